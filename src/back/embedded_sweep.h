// embedded_sweep - removes dead items from the embedded store in small steps
// SPDX-License-Identifier: BSD-3-Clause
//
// Dead is what has expired, what a flush hid, and all of a deleted bucket. Readers do not see such
// items anyway; sweeping gives their room back. A pass walks over one tenant that was flushed or
// deleted, or over all keys once the earliest known expiry is due, HG_EMBEDDED_SWEEP_RECORDS in a
// step, each step a write transaction of its own between the groups. A step that finds nothing
// dead writes nothing. Part of the writer, on its thread.
#ifndef HG_BACK_EMBEDDED_SWEEP_H
#define HG_BACK_EMBEDDED_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "back/embedded_record.h"
#include "base/attr.h"

#define HG_EMBEDDED_SWEEP_RECORDS 512
#define HG_EMBEDDED_SWEEP_STEP_US 10000   /* between steps of a pass: at most ~50,000 records/s */
#define HG_EMBEDDED_SWEEP_IDLE_US 1000000 /* between looks whether a pass is due */

struct hg_embedded_writer;

struct hg_embedded_sweep {
    bool passing;
    bool over;              /* a cache that may be above its quota */
    bool wanted;            /* some tenant has its `sweep` set */
    uint32_t tenant_id;     /* the pass is over this one; 0: over all */
    uint32_t budget;        /* records of the next step; less after a failure */
    uint64_t next_expiry_s; /* nothing stored expires before */
    uint32_t key_len;       /* where the pass goes on */
    uint8_t key[HG_EMBEDDED_KEY_BYTES];
};

/* The first pass runs at once: what the file holds is not known. */
void hg_embedded_sweep_init(struct hg_embedded_sweep *sweep);

/* An item with this expiry was stored. */
static inline void hg_embedded_sweep_note(struct hg_embedded_sweep *sweep, uint64_t expiry_s)
{
    if (expiry_s != 0 && expiry_s < sweep->next_expiry_s)
        sweep->next_expiry_s = expiry_s;
}

/* Is the record one that readers do not see any more? In the writer's transaction. */
HG_MUST_USE bool hg_embedded_sweep_is_dead(struct hg_embedded_writer *writer, MDB_val key,
                                           MDB_val record);

/* One step; microseconds until the next. */
uint64_t hg_embedded_sweep_step(struct hg_embedded_writer *writer);

#endif
