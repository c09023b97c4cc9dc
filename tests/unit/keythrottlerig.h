// keythrottlerig - one tenant's throttle, driven epoch by epoch
// SPDX-License-Identifier: BSD-3-Clause
//
// Keys are numbers, see hothelp.h; include cmocka first.
#ifndef HG_TEST_KEYTHROTTLERIG_H
#define HG_TEST_KEYTHROTTLERIG_H

#include "core/keythrottle.h"
#include "hothelp.h"

#define NOMINAL_US 2000000
#define COUNTERS   2048

/* A tenant: four epochs of merged sketches, and its list. */
static struct {
    struct hg_keythrottle throttle;
    struct hg_keythrottle_settings settings;
    struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS];
    struct hg_hotkey *sketch; // of the running epoch
} tenant;

static inline int setup(void **state)
{
    (void)state;
    memset(&tenant, 0, sizeof tenant);
    tenant.settings.threshold = 1000;
    tenant.sketch = hot_new(COUNTERS, true);
    assert_null(
        hg_keythrottle_give_room(&tenant.throttle, malloc(32 * sizeof *tenant.throttle.keys), 32));
    return 0;
}

static inline void forget_epochs(void)
{
    for (unsigned e = 0; e < HG_KEYTHROTTLE_EPOCHS; e++)
        free((void *)(uintptr_t)tenant.spans[e].merged);
    memset(tenant.spans, 0, sizeof tenant.spans);
}

static inline int teardown(void **state)
{
    (void)state;
    forget_epochs();
    hot_free(tenant.sketch);
    free(tenant.throttle.keys);
    return 0;
}

static inline void admit(uint32_t id, uint64_t n)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, HOT_MIXED, room);
    if (n > 0)
        assert_true(hg_hotkey_tell(tenant.sketch, &key, n));
}

static inline void tell(uint32_t id, uint64_t passed, uint64_t refused)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, HOT_MIXED, room);
    hg_keythrottle_tell(&tenant.throttle, &key, passed, refused);
}

static inline const struct hg_keythrottle_key *listed(uint32_t id)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, HOT_MIXED, room);
    return hg_keythrottle_find(&tenant.throttle, &key);
}

/* -1: it is not listed. */
static inline int percent(uint32_t id)
{
    return listed(id) == NULL ? -1 : listed(id)->percent;
}

static inline void end_epoch_after(uint64_t length_us)
{
    const struct hg_hotkey *sketch = tenant.sketch;
    void *scratch = malloc(hg_hotmerge_scratch_bytes(COUNTERS));

    free((void *)(uintptr_t)tenant.spans[HG_KEYTHROTTLE_EPOCHS - 1].merged);
    memmove(tenant.spans + 1, tenant.spans, sizeof tenant.spans - sizeof tenant.spans[0]);
    tenant.spans[0].merged =
        hg_hotmerge_make(malloc(hg_hotmerge_bytes(COUNTERS)), COUNTERS, &sketch, 1, scratch);
    tenant.spans[0].length_us = length_us;
    free(scratch);
    hg_hotkey_clear(tenant.sketch);
    hg_keythrottle_epoch(&tenant.throttle, &tenant.settings, tenant.spans, NOMINAL_US);
    for (unsigned i = 0; i < tenant.throttle.count; i++) {
        const struct hg_keythrottle_key *key = &tenant.throttle.keys[i];
        assert_ptr_equal(key->key.at, key->bytes);
        assert_ptr_equal(hg_keythrottle_find(&tenant.throttle, &key->key), key);
        assert_int_equal(key->refused_epoch + key->passed_epoch, 0);
    }
}

static inline void end_epoch(void)
{
    end_epoch_after(NOMINAL_US);
}

/* One epoch in which key 1 is admitted so often. */
static inline void epoch_of(uint64_t n)
{
    admit(1, n);
    end_epoch();
}

#endif
