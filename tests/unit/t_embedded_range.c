// t_embedded_range - stretches of keys of the embedded store, against a sorted model
// SPDX-License-Identifier: BSD-3-Clause
#include "embeddedhelp.h"

#include "base/prng.h"

#define KEYS     10000
#define KEY_MAX  40
#define AT_ONCE  250
#define SEEN_MAX 16384

static struct world world;

struct key {
    uint8_t at[KEY_MAX];
    uint8_t len;
    bool alive;
    unsigned n; /* its value */
};

static struct key keys[KEYS]; /* sorted, each once */
static size_t key_count;

/* What one range call has handed out. */
struct ranging {
    struct hg_range_call call;
    struct key seen[SEEN_MAX];
    size_t count, enough; /* enough: on_item says so at this one, 0: never */
    unsigned done;
    struct hg_range_end end;
    uint8_t last[512];
    size_t last_len;
    char text[128];
};

static struct ranging ranging;

static struct hg_span span_of(const struct key *key)
{
    return hg_span(key->at, key->len);
}

static int order_of(struct hg_span a, struct hg_span b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.at, b.at, len) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_keys(const void *a, const void *b)
{
    return order_of(span_of(a), span_of(b));
}

/* --- filling the store --- */

static void ask_of_key(struct ask *ask, enum hg_op op, struct hg_span key, struct hg_span value)
{
    ask_init(ask, &world, op, "");
    if (key.len > 0)
        memcpy(ask->key, key.at, key.len);
    ask->call.key = hg_span(ask->key, key.len);
    ask->call.value = value;
}

static void change(enum hg_op op, struct hg_span key, const char *value, uint32_t expiry)
{
    struct ask ask;
    ask_of_key(&ask, op, key, hg_span_str(value));
    ask.call.expiry = expiry;
    ask.call.item_flags = 77;
    ask_run(&ask);
    assert_int_equal(ask.result.status, HG_STATUS_SUCCESS);
    ask_fini(&ask);
}

/* Stores all keys; those that are not alive with an expiry that is then let pass. */
static void fill(void)
{
    static struct ask asks[AT_ONCE];
    static char values[AT_ONCE][12];
    for (size_t first = 0; first < key_count; first += AT_ONCE) {
        size_t n = key_count - first < AT_ONCE ? key_count - first : AT_ONCE;
        for (size_t i = 0; i < n; i++) {
            struct key *key = &keys[first + i];
            snprintf(values[i], sizeof values[i], "%u", key->n);
            ask_of_key(&asks[i], HG_OP_SET, span_of(key), hg_span_str(values[i]));
            asks[i].call.expiry = key->alive ? 0 : 10;
            asks[i].call.item_flags = 77;
            ask_submit(&asks[i]);
        }
        for (size_t i = 0; i < n; i++) {
            TURN_UNTIL(&world, asks[i].is_done);
            assert_int_equal(asks[i].result.status, HG_STATUS_SUCCESS);
            ask_fini(&asks[i]);
        }
    }
    /* The worker that writes itself does not sweep before it turns again: what is dead stays. */
    atomic_fetch_add(&world.wall_s, 11);
}

static void sort_keys(size_t count)
{
    qsort(keys, count, sizeof *keys, compare_keys);
    key_count = 0;
    for (size_t i = 0; i < count; i++)
        if (key_count == 0 || compare_keys(&keys[key_count - 1], &keys[i]) != 0)
            keys[key_count++] = keys[i];
}

/* Keys that differ in few bytes, 0x00 and 0xff among them. */
static void make_keys(struct hg_prng *prng, size_t count)
{
    static const uint8_t letters[] = {0x00, 0x01, 0xfe, 0xff, 'a', 'b'};
    for (size_t i = 0; i < count; i++) {
        struct key *key = &keys[i];
        memset(key, 0, sizeof *key);
        key->len = (uint8_t)(1 + hg_prng_next(prng) % 12);
        for (unsigned at = 0; at < key->len; at++)
            key->at[at] = letters[hg_prng_next(prng) % sizeof letters];
        key->n = (unsigned)i;
        key->alive =
            hg_prng_next(prng) % 4 != 0 || world.options.writing == HG_EMBEDDED_WRITING_THREAD;
    }
    sort_keys(count);
}

/* --- reading --- */

static bool on_item(struct hg_range_call *call, const struct hg_range_item *item)
{
    struct ranging *into = HG_CONTAINER_OF(call, struct ranging, call);
    assert_true(into->count < SEEN_MAX && item->key.len <= KEY_MAX);
    assert_int_equal(item->item_flags, 77);
    assert_true(item->cas > 0);
    struct key *key = &into->seen[into->count++];
    memset(key, 0, sizeof *key);
    memcpy(key->at, item->key.at, item->key.len);
    key->len = (uint8_t)item->key.len;
    char value[16] = "";
    assert_true(item->value.len < sizeof value);
    memcpy(value, item->value.at, item->value.len);
    key->n = (unsigned)atoi(value);
    return into->count != into->enough;
}

static void on_done(struct hg_range_call *call, const struct hg_range_end *end)
{
    struct ranging *into = HG_CONTAINER_OF(call, struct ranging, call);
    into->done++;
    into->end = *end;
    if (end->last.len > 0)
        memcpy(into->last, end->last.at, end->last.len);
    into->last_len = end->last.len;
    snprintf(into->text, sizeof into->text, "%.*s", (int)end->text.len,
             end->text.len > 0 ? (const char *)end->text.at : "");
}

static void begin(struct hg_span from, struct hg_span to, bool reverse, uint32_t max_items)
{
    memset(&ranging.call, 0, sizeof ranging.call);
    ranging.call.tenant_id = world.tenant_id;
    ranging.call.from = from;
    ranging.call.to = to;
    ranging.call.reverse = reverse;
    ranging.call.max_items = max_items;
    ranging.call.max_us = 3600 * 1000000ull;
    ranging.call.on_item = on_item;
    ranging.call.on_done = on_done;
    ranging.count = ranging.enough = 0;
    ranging.done = 0;
    ranging.last_len = 0;
}

static void go(void)
{
    world.store->ops->range(world.store, &ranging.call);
    assert_int_equal(ranging.done, 1);
}

static void read_range(struct hg_span from, struct hg_span to, bool reverse, uint32_t max_items)
{
    begin(from, to, reverse, max_items);
    go();
    assert_int_equal(ranging.end.fault, HG_FAULT_NONE);
}

/* Puts the bound behind what was seen last, as a caller goes on. */
static void go_on_behind(uint8_t bound[512], struct hg_span *from, struct hg_span *to, bool reverse)
{
    memcpy(bound, ranging.last, ranging.last_len);
    bound[ranging.last_len] = 0;
    if (reverse)
        *to = hg_span(bound, ranging.last_len);
    else
        *from = hg_span(bound, ranging.last_len + 1);
}

/* Asserts that key number `at` of the model was seen as number `seen`. */
static void expect_seen(size_t seen, const struct key *key)
{
    assert_int_equal(compare_keys(&ranging.seen[seen], key), 0);
    assert_int_equal(ranging.seen[seen].n, key->n);
}

/* One call against the model; returns whether there was more. */
static bool check_stretch(struct hg_span from, struct hg_span to, bool reverse, uint32_t max_items)
{
    size_t seen = 0, looked = 0;
    const struct key *last = NULL;
    bool more = false;
    read_range(from, to, reverse, max_items);
    for (size_t i = 0; i < key_count; i++) {
        const struct key *key = &keys[reverse ? key_count - 1 - i : i];
        if (order_of(span_of(key), from) < 0 || order_of(span_of(key), to) >= 0)
            continue;
        if (looked == max_items) {
            more = true;
            break;
        }
        looked++;
        last = key;
        if (key->alive) {
            assert_true(seen < ranging.count);
            expect_seen(seen++, key);
        }
    }
    assert_int_equal(seen, ranging.count);
    assert_int_equal(ranging.end.more, more);
    assert_int_equal(ranging.last_len, last != NULL ? last->len : 0);
    if (last != NULL)
        assert_memory_equal(ranging.last, last->at, last->len);
    return more;
}

/* --- tests --- */

static const struct hg_span lowest = HG_SPAN_LIT(""),
                            highest = HG_SPAN_LIT("\xff\xff\xff\xff\xff\xff\xff\xff"
                                                  "\xff\xff\xff\xff\xff\xff\xff\xff");

static int set_up(void **state)
{
    world_init(&world, *(enum hg_embedded_writing *)*state, HG_EMBEDDED_SYNC_NEVER);
    world_open(&world);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&world);
    return 0;
}

static void random_stretches(void **state)
{
    (void)state;
    struct hg_prng prng;
    prng.state = 7;
    make_keys(&prng, KEYS);
    fill();
    for (int reverse = 0; reverse < 2; reverse++) {
        assert_false(check_stretch(lowest, highest, reverse, UINT32_MAX));
        assert_true(ranging.count > key_count / 2);
        assert_false(check_stretch(lowest, highest, reverse, (uint32_t)key_count));
        assert_true(check_stretch(lowest, highest, reverse, (uint32_t)key_count - 1));
    }
    for (unsigned round = 0; round < 1000; round++) {
        uint8_t bounds[2][KEY_MAX + 1];
        struct hg_span ends[2];
        for (unsigned i = 0; i < 2; i++) {
            const struct key *key = &keys[hg_prng_next(&prng) % key_count];
            size_t len = hg_prng_next(&prng) % (key->len + 2u);
            memset(bounds[i], 0, sizeof bounds[i]);
            memcpy(bounds[i], key->at, key->len);
            ends[i] = hg_span(bounds[i], len);
        }
        uint32_t most = (uint32_t)(1 + hg_prng_next(&prng) % 200);
        check_stretch(ends[0], ends[1], hg_prng_next(&prng) % 2, most);
    }
}

static void chunks(void **state)
{
    (void)state;
    struct hg_prng prng;
    prng.state = 8;
    make_keys(&prng, KEYS);
    fill();
    for (int reverse = 0; reverse < 2; reverse++) {
        uint8_t bound[512];
        struct hg_span from = lowest, to = highest;
        size_t looked = 0, at = 0;
        bool more = true;
        while (more) {
            read_range(from, to, reverse, 7);
            for (size_t i = 0; i < ranging.count; i++, at++) {
                while (!keys[reverse ? key_count - 1 - at : at].alive)
                    at++;
                expect_seen(i, &keys[reverse ? key_count - 1 - at : at]);
            }
            more = ranging.end.more;
            looked += 7;
            go_on_behind(bound, &from, &to, reverse);
        }
        for (; at < key_count; at++)
            assert_false(keys[reverse ? key_count - 1 - at : at].alive);
        assert_true(looked >= key_count && looked < key_count + 7);
    }
}

/* While a walk goes on, keys before, at and behind it go, and others come. Those that stay all the
   time are seen once. */
static void changes_between_chunks(void **state)
{
    (void)state;
    for (int reverse = 0; reverse < 2; reverse++) {
        struct hg_prng prng;
        uint8_t bound[512];
        unsigned seen[600] = {0};
        struct hg_span from = HG_SPAN_LIT("row"), to = HG_SPAN_LIT("rox");
        for (unsigned i = 0; i < 600; i++) {
            struct key *key = &keys[i];
            memset(key, 0, sizeof *key);
            key->len = (uint8_t)sprintf((char *)key->at, "row%04u", i);
            key->n = i;
            key->alive = true;
        }
        key_count = 600;
        fill();
        prng.state = 9;
        bool more = true, gone[600] = {false};
        while (more) {
            read_range(from, to, reverse, 7);
            for (size_t i = 0; i < ranging.count; i++)
                if (ranging.seen[i].n < 600)
                    seen[ranging.seen[i].n]++;
            more = ranging.end.more;
            unsigned last = ranging.count > 0 ? ranging.seen[ranging.count - 1].n : 600;
            go_on_behind(bound, &from, &to, reverse);
            unsigned victims[] = {last, (unsigned)(hg_prng_next(&prng) % 600)};
            for (unsigned i = 0; i < 2; i++)
                if (victims[i] < 600 && !gone[victims[i]]) {
                    change(HG_OP_DELETE, span_of(&keys[victims[i]]), "", 0);
                    gone[victims[i]] = true;
                }
            char fresh[32];
            snprintf(fresh, sizeof fresh, "row%04u+", (unsigned)(hg_prng_next(&prng) % 600));
            change(HG_OP_SET, hg_span_str(fresh), "1000", 0);
        }
        unsigned stayed = 0;
        for (unsigned i = 0; i < 600; i++) {
            assert_true(seen[i] <= 1);
            if (!gone[i]) {
                assert_int_equal(seen[i], 1);
                stayed++;
            }
        }
        assert_true(stayed > 300);
        change(HG_OP_FLUSH, HG_SPAN_NONE, "", 0);
    }
}

/* Tables whose names begin alike, with row keys of all kinds of bytes. */
static void tables(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "aa", "a\x01", "ab", "a\xff", "b", "\x01"};
    static const struct hg_span row_keys[] = {
        HG_SPAN_LIT("\0"),   HG_SPAN_LIT("\0\0"), HG_SPAN_LIT("\x01"),     HG_SPAN_LIT("a"),
        HG_SPAN_LIT("a\0b"), HG_SPAN_LIT("\xff"), HG_SPAN_LIT("\xff\xff"), HG_SPAN_LIT("zzz"),
    };
    size_t count = 0;
    for (unsigned t = 0; t < HG_COUNT_OF(names); t++)
        for (unsigned r = 0; r < HG_COUNT_OF(row_keys); r++) {
            struct key *key = &keys[count];
            memset(key, 0, sizeof *key);
            size_t len = strlen(names[t]);
            memcpy(key->at, names[t], len + 1);
            memcpy(key->at + len + 1, row_keys[r].at, row_keys[r].len);
            key->len = (uint8_t)(len + 1 + row_keys[r].len);
            key->n = (unsigned)count++;
            key->alive = true;
        }
    sort_keys(count);
    assert_int_equal(key_count, count);
    fill();
    for (unsigned t = 0; t < HG_COUNT_OF(names); t++)
        for (int reverse = 0; reverse < 2; reverse++) {
            char from[8] = "", to[8] = "";
            size_t len = strlen(names[t]) + 1;
            memcpy(from, names[t], len);
            memcpy(to, names[t], len);
            to[len - 1] = 1;
            check_stretch(hg_span(from, len), hg_span(to, len), reverse, 100);
            assert_int_equal(ranging.count, HG_COUNT_OF(row_keys));
            for (size_t i = 0; i < ranging.count; i++)
                assert_int_equal(ranging.seen[i].n / HG_COUNT_OF(row_keys), t);
        }
}

static void other_tenants_and_prefixes(void **state)
{
    (void)state;
    static const char *const names[] = {"before", "behind"};
    uint32_t shop = world.tenant_id, other[2];
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(hg_embedded_tenant_id(world.shared, names[i], &other[i]), 0);
        world.tenant_id = other[i];
        change(HG_OP_SET, HG_SPAN_LIT("k"), "9", 0);
    }
    world.tenant_id = other[0];
    change(HG_OP_SET, HG_SPAN_LIT("p:a"), "1", 0);
    change(HG_OP_SET, HG_SPAN_LIT("p:b"), "2", 0);
    change(HG_OP_SET, HG_SPAN_LIT("p;"), "3", 0);
    world.tenant_id = shop;
    for (int reverse = 0; reverse < 2; reverse++) {
        read_range(lowest, highest, reverse, 10);
        assert_int_equal(ranging.count, 0);
        assert_false(ranging.end.more);
        assert_int_equal(ranging.last_len, 0);
        begin(lowest, highest, reverse, 10);
        ranging.call.tenant_id = other[0];
        ranging.call.prefix = HG_SPAN_LIT("p:");
        go();
        assert_int_equal(ranging.count, 2);
        assert_int_equal(ranging.seen[reverse].len, 1);
        assert_int_equal(ranging.seen[reverse].at[0], 'a');
        assert_int_equal(ranging.seen[!reverse].at[0], 'b');
    }
    assert_int_equal(hg_embedded_tenant_delete(world.shared, other[0]), 0);
    begin(lowest, highest, false, 10);
    ranging.call.tenant_id = other[0];
    go();
    assert_int_equal(ranging.end.fault, HG_FAULT_INTERNAL);
    assert_string_equal(ranging.text, "the bucket has been deleted");
    assert_int_equal(ranging.count, 0);
}

/* It stops where it is told to, and says where. */
static void limits(void **state)
{
    (void)state;
    static uint8_t long_key[HG_EMBEDDED_KEY_BYTES];
    for (unsigned i = 0; i < 100; i++) {
        struct key *key = &keys[i];
        memset(key, 0, sizeof *key);
        key->len = (uint8_t)sprintf((char *)key->at, "k%02u", i);
        key->n = i;
        key->alive = i >= 40;
    }
    key_count = 100;
    fill();
    begin(lowest, highest, false, 1000);
    ranging.enough = 5;
    go();
    assert_int_equal(ranging.count, 5);
    assert_true(ranging.end.more);
    assert_memory_equal(ranging.last, "k44", 3);
    /* Enough at the last of all: `more` is set, and going on finds nothing. */
    begin(HG_SPAN_LIT("k99"), highest, false, 1000);
    ranging.enough = 1;
    go();
    assert_true(ranging.end.more);
    assert_false(check_stretch(HG_SPAN_LIT("k99\0"), highest, false, 10));
    /* Time counts after 16 looks, at dead ones too. */
    begin(lowest, highest, false, 1000);
    ranging.call.max_us = 0;
    go();
    assert_int_equal(ranging.count, 0);
    assert_true(ranging.end.more);
    assert_memory_equal(ranging.last, "k15", 3);
    begin(lowest, highest, true, 1000);
    ranging.call.max_us = 0;
    go();
    assert_int_equal(ranging.count, 16);
    assert_memory_equal(ranging.last, "k84", 3);
    begin(hg_span(long_key, sizeof long_key), highest, true, 1000);
    go();
    assert_int_equal(ranging.end.fault, HG_FAULT_KEY_TOO_LONG);
    begin(lowest, highest, true, 1000);
    ranging.call.deadline_us = 1;
    go();
    assert_int_equal(ranging.end.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_false(check_stretch(highest, lowest, false, 10));
    assert_false(check_stretch(highest, lowest, true, 10));
}

static void flushed(void **state)
{
    (void)state;
    change(HG_OP_SET, HG_SPAN_LIT("a"), "1", 0);
    change(HG_OP_FLUSH, HG_SPAN_NONE, "", 0);
    change(HG_OP_SET, HG_SPAN_LIT("b"), "2", 0);
    read_range(lowest, highest, false, 10);
    assert_int_equal(ranging.count, 1);
    assert_int_equal(ranging.seen[0].n, 2);
}

/* A range sees what was answered, whatever views of older snapshots the turn still holds. */
static void sees_own_writes(void **state)
{
    (void)state;
    for (unsigned i = 1; i < 6; i++) {
        char value[8];
        snprintf(value, sizeof value, "%u", i);
        change(HG_OP_SET, HG_SPAN_LIT("a"), value, 0);
        for (unsigned n = 0; n < 2; n++) {
            struct ask get = run(&world, HG_OP_GET, "a", HG_SPAN_NONE, 0, 0);
            assert_string_equal(get.value, value);
            read_range(lowest, highest, false, 10);
            assert_int_equal(ranging.count, 1);
            assert_int_equal(ranging.seen[0].n, i);
            ask_fini(&get);
        }
    }
    struct hg_embedded *embedded = HG_CONTAINER_OF(world.store, struct hg_embedded, store);
    assert_false(embedded->readers[3].active);
}

int main(void)
{
    static enum hg_embedded_writing modes[] = {HG_EMBEDDED_WRITING_INLINE,
                                               HG_EMBEDDED_WRITING_THREAD};
#define ONE(test)                                                                                  \
    {                                                                                              \
#test, test, set_up, tear_down, &modes[0]                                                  \
    }
#define BOTH(test)                                                                                 \
    {#test "_inline", test, set_up, tear_down, &modes[0]},                                         \
    {                                                                                              \
#test "_thread", test, set_up, tear_down, &modes[1]                                        \
    }
    const struct CMUnitTest tests[] = {
        BOTH(random_stretches),
        BOTH(chunks),
        BOTH(changes_between_chunks),
        BOTH(tables),
        BOTH(other_tenants_and_prefixes),
        ONE(limits),
        BOTH(flushed),
        BOTH(sees_own_writes),
    };
    return cmocka_run_group_tests_name("embedded_range", tests, NULL, NULL);
}
