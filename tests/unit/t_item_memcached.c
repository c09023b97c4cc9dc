// t_item_memcached - the semantics of items against a real memcached, by random operations
// SPDX-License-Identifier: BSD-3-Clause
//
// A memcached is started on a free port of 127.0.0.1 and killed at the end. It and hg_item_decide
// get the same operations on a few keys; status, flags, value, counter and the course of the CAS
// must be the same. Its background threads are off: while one of them happens to hold an item, a
// counter is not written in place, and keeps no spaces. Expiry times are in the past, far away, or
// none, since memcached's clock cannot be turned.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "back/item.h"
#include "base/attr.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/prng.h"
#include "proto/status.h"
#include "patience.h"

#define KEYS       4
#define OPERATIONS 30000
#define VALUE_MAX  200

struct reply {
    uint16_t status;
    uint64_t cas;
    uint8_t body[1024];
    uint32_t extras_len, len;
};

/* What we believe one key holds, with memcached's CAS beside ours. */
struct model {
    bool stored;
    struct hg_item item;
    uint8_t value[VALUE_MAX * 2];
    uint64_t their_cas;
};

static pid_t server;
static int fd = -1;

static const char *program(void)
{
    static const char *const places[] = {"/usr/bin/memcached", "/usr/local/bin/memcached"};
    for (size_t i = 0; i < HG_COUNT_OF(places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

static uint16_t free_port(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof sa;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&sa, len) != 0 ||
        getsockname(s, (struct sockaddr *)&sa, &len) != 0)
        return 0;
    close(s);
    return ntohs(sa.sin_port);
}

/* Starts it on one port; false when somebody else took that meanwhile. */
static bool start_once(void)
{
    uint16_t port = free_port();
    char port_text[8];
    snprintf(port_text, sizeof port_text, "%u", port);
    server = fork();
    if (server == 0) {
        const char *const user = geteuid() == 0 ? "root" : "nobody";
        execl(program(), "memcached", "-l", "127.0.0.1", "-p", port_text, "-U", "0", "-u", user,
              "-t", "1", "-o", "no_modern", (char *)NULL);
        _exit(127);
    }
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    sa.sin_port = htons(port);
    uint64_t end_us = patience_end_us();
    while (hg_now_us() < end_us) {
        if (waitpid(server, NULL, WNOHANG) != 0)
            return false;
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0)
            return true;
        close(fd);
        patience_nap();
    }
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return false;
}

static int start(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        if (start_once())
            return 0;
    return -1;
}

static int stop(void **state)
{
    (void)state;
    close(fd);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return 0;
}

static void read_all(uint8_t *at, size_t len)
{
    while (len > 0) {
        ssize_t n = read(fd, at, len);
        assert_true(n > 0);
        at += n;
        len -= (size_t)n;
    }
}

static void exchange(uint8_t opcode, struct hg_span key, struct hg_span extras,
                     struct hg_span value, uint64_t cas, struct reply *reply)
{
    uint8_t frame[24 + 20 + 16 + VALUE_MAX] = {0x80, opcode};
    size_t len = 24;
    hg_put_u16(frame + 2, (uint16_t)key.len);
    frame[4] = (uint8_t)extras.len;
    hg_put_u32(frame + 8, (uint32_t)(extras.len + key.len + value.len));
    hg_put_u64(frame + 16, cas);
    struct hg_span parts[] = {extras, key, value};
    for (size_t i = 0; i < HG_COUNT_OF(parts); i++) {
        if (parts[i].len > 0)
            memcpy(frame + len, parts[i].at, parts[i].len);
        len += parts[i].len;
    }
    assert_int_equal(write(fd, frame, len), len);
    read_all(frame, 24);
    reply->status = hg_get_u16(frame + 6);
    reply->extras_len = frame[4];
    reply->len = hg_get_u32(frame + 8);
    reply->cas = hg_get_u64(frame + 16);
    assert_true(reply->len <= sizeof reply->body);
    read_all(reply->body, reply->len);
}

static void ask_memcached(struct hg_span key, const struct hg_item_ask *ask, uint64_t cas,
                          struct reply *reply)
{
    static const uint8_t opcodes[HG_OPS] = {
        [HG_OP_GET] = 0x00,       [HG_OP_SET] = 0x01,    [HG_OP_ADD] = 0x02,
        [HG_OP_REPLACE] = 0x03,   [HG_OP_DELETE] = 0x04, [HG_OP_INCREMENT] = 0x05,
        [HG_OP_DECREMENT] = 0x06, [HG_OP_FLUSH] = 0x08,  [HG_OP_APPEND] = 0x0e,
        [HG_OP_PREPEND] = 0x0f,   [HG_OP_TOUCH] = 0x1c,  [HG_OP_GAT] = 0x1d,
    };
    uint8_t extras[20];
    size_t extras_len = 0;
    struct hg_span value = HG_SPAN_NONE;
    switch (ask->op) {
    case HG_OP_SET:
    case HG_OP_ADD:
    case HG_OP_REPLACE:
        hg_put_u32(extras, ask->flags);
        hg_put_u32(extras + 4, ask->expiry);
        extras_len = 8;
        value = ask->value;
        break;
    case HG_OP_INCREMENT:
    case HG_OP_DECREMENT:
        hg_put_u64(extras, ask->delta);
        hg_put_u64(extras + 8, ask->initial);
        hg_put_u32(extras + 16, ask->expiry);
        extras_len = 20;
        break;
    case HG_OP_TOUCH:
    case HG_OP_GAT:
        hg_put_u32(extras, ask->expiry);
        extras_len = 4;
        break;
    case HG_OP_APPEND:
    case HG_OP_PREPEND:
        value = ask->value;
        break;
    default:
        break;
    }
    exchange(opcodes[ask->op], key, hg_span(extras, extras_len), value, cas, reply);
}

/* memcached 1.6.18 looks for a minus in front of a number of 2^63 and more, but does so beyond the
   end of the value: it refuses such a number when one happens to lie in memory behind it. So large
   numbers and minus signs are tried apart. */
static const char *const large[] = {
    "",
    "0",
    "9",
    "10",
    "99",
    "100",
    "12abc",
    "12 abc",
    " 12",
    "+12",
    "abc",
    "0000012",
    "12\n",
    "\t7\t",
    "+",
    "1 2 3",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "99999999999999999999999999",
};
static const char *const minus[] = {
    "",
    "0",
    "9",
    "10",
    "99",
    "100",
    "12abc",
    "-0",
    "-5",
    "-",
    "- 5",
    "--5",
    "5-",
    "+-5",
    "-12 a",
    "-18446744073709551615",
    "-9223372036854775808",
    "-9223372036854775809",
    "-18446744073709551616",
    "-99999999999999999999999999",
};
static const uint64_t numbers[] = {0, 1, 2, 9, 10, 91, 1000000, INT64_MAX, UINT64_MAX};
#define SMALL_NUMBERS 7
static const uint32_t expiries[] = {0,
                                    0,
                                    0,
                                    HG_ITEM_RELATIVE_MAX_S,
                                    HG_ITEM_RELATIVE_MAX_S + 1,
                                    0x7fffffff,
                                    0x80000000,
                                    0xfffffffe,
                                    0xffffffff};

#define PICK(random, array) ((array)[hg_prng_below((random), HG_COUNT_OF(array))])

static void pick_ask(struct hg_prng *random, bool with_minus, struct hg_item_ask *ask)
{
    static const enum hg_op ops[] = {
        HG_OP_GET,       HG_OP_GET,       HG_OP_SET,       HG_OP_SET,       HG_OP_SET,   HG_OP_ADD,
        HG_OP_REPLACE,   HG_OP_DELETE,    HG_OP_APPEND,    HG_OP_PREPEND,   HG_OP_TOUCH, HG_OP_GAT,
        HG_OP_INCREMENT, HG_OP_INCREMENT, HG_OP_DECREMENT, HG_OP_DECREMENT,
    };
    memset(ask, 0, sizeof *ask);
    ask->op = hg_prng_below(random, 200) == 0 ? HG_OP_FLUSH : PICK(random, ops);
    ask->flags = hg_prng_below(random, 2) ? 0 : (uint32_t)hg_prng_next(random);
    ask->expiry = PICK(random, expiries);
    size_t how_many = with_minus ? SMALL_NUMBERS : HG_COUNT_OF(numbers);
    ask->delta = numbers[hg_prng_below(random, how_many)];
    ask->initial = numbers[hg_prng_below(random, how_many)];
    ask->value = hg_span_str(with_minus ? PICK(random, minus) : PICK(random, large));
}

/* Takes over what the decision made of the item. */
static void follow(struct model *model, const struct hg_item_outcome *outcome, uint64_t their_cas)
{
    uint8_t value[sizeof model->value];
    size_t len = hg_item_outcome_bytes(outcome);
    switch (outcome->act) {
    case HG_ITEM_KEEP:
        return;
    case HG_ITEM_REMOVE:
        model->stored = false;
        return;
    case HG_ITEM_STORE:
    case HG_ITEM_TOUCH:
        assert_true(len <= sizeof value);
        hg_item_outcome_copy(outcome, value);
        memcpy(model->value, value, len);
        model->item = outcome->item;
        model->item.value = hg_span(model->value, len);
        model->stored = true;
        if (outcome->act == HG_ITEM_STORE)
            model->their_cas = their_cas;
        return;
    }
}

static void compare(const struct hg_item_ask *ask, const struct hg_item_outcome *outcome,
                    const struct model *model, const struct reply *reply, unsigned n)
{
    if (reply->status != outcome->status)
        fail_msg("operation %u, %s: memcached says 0x%02x, we say 0x%02x", n,
                 hg_op_rows[ask->op].name, reply->status, outcome->status);
    if (outcome->status != HG_STATUS_SUCCESS)
        return;
    bool shows = ask->op == HG_OP_GET || ask->op == HG_OP_GAT;
    if (shows || ask->op == HG_OP_TOUCH) {
        assert_int_equal(reply->cas, model->their_cas);
        assert_int_equal(hg_get_u32(reply->body), outcome->item.flags);
    }
    if (shows) {
        assert_int_equal(reply->len - 4, outcome->item.value.len);
        assert_memory_equal(reply->body + 4, outcome->item.value.at, outcome->item.value.len);
    }
    if (ask->op == HG_OP_INCREMENT || ask->op == HG_OP_DECREMENT)
        assert_int_equal(hg_get_u64(reply->body), outcome->counter);
    if (ask->op == HG_OP_DELETE)
        assert_int_equal(reply->cas, 0);
}

/* What lies behind the value holds a minus by chance, a byte of a time for example: see `large`.
   memcached has changed nothing then. */
static bool is_misread(const struct model *model, const struct hg_item_outcome *outcome,
                       const struct reply *reply)
{
    char digits[24] = "";
    size_t len =
        model->item.value.len < sizeof digits - 1 ? model->item.value.len : sizeof digits - 1;
    memcpy(digits, model->value, len);
    return outcome->status == HG_STATUS_SUCCESS && reply->status == HG_STATUS_DELTA_BADVAL &&
           strtoull(digits, NULL, 10) > INT64_MAX;
}

static void random_operations(uint64_t seed, bool with_minus)
{
    struct model models[KEYS];
    struct hg_prng random = {seed};
    struct hg_item_flush flush = {0, 0};
    struct reply reply;
    uint64_t cas = 0, their_highest = 0;
    memset(models, 0, sizeof models);
    for (unsigned n = 0; n < OPERATIONS; n++) {
        struct hg_item_ask ask;
        pick_ask(&random, with_minus, &ask);
        struct model *model = &models[hg_prng_below(&random, KEYS)];
        char key[16];
        snprintf(key, sizeof key, "key%d", (int)(model - models));
        uint64_t now_s = hg_wall_s();
        if (ask.op == HG_OP_FLUSH) {
            exchange(0x08, HG_SPAN_NONE, HG_SPAN_NONE, HG_SPAN_NONE, 0, &reply);
            assert_int_equal(reply.status, 0);
            flush = hg_item_flush_plan(flush, 0, now_s, cas);
            continue;
        }
        bool alive = model->stored && hg_item_alive(&model->item, now_s, flush);
        /* No CAS, the right one, or a wrong one. Reads have none. */
        uint64_t kind = hg_prng_below(&random, 4), their_cas = 0;
        bool has_cas = ask.op != HG_OP_GET && ask.op != HG_OP_GAT && ask.op != HG_OP_TOUCH;
        if (has_cas && kind == 2) {
            ask.cas = model->stored ? model->item.cas : 12345678901;
            their_cas = model->stored ? model->their_cas : 12345678901;
        } else if (has_cas && kind == 3) {
            ask.cas = their_cas = 12345678902;
        }
        bool counts = ask.op == HG_OP_INCREMENT || ask.op == HG_OP_DECREMENT;
        if (alive && with_minus && counts && model->item.value.len >= 19 && model->value[0] != '-')
            ask.op = HG_OP_DELETE; /* digits that were put together */
        if (alive && model->item.value.len + ask.value.len > VALUE_MAX - 40 &&
            (ask.op == HG_OP_APPEND || ask.op == HG_OP_PREPEND))
            ask.op = HG_OP_DELETE;
        struct hg_item_outcome outcome;
        hg_item_decide(alive ? &model->item : NULL, &ask, now_s, 1u << 20, cas + 1, &outcome);
        ask_memcached(hg_span_str(key), &ask, their_cas, &reply);
        if (alive && counts && is_misread(model, &outcome, &reply))
            continue;
        compare(&ask, &outcome, model, &reply, n);
        if (outcome.act == HG_ITEM_STORE) {
            cas++;
            assert_true(reply.cas > their_highest);
            their_highest = reply.cas;
        }
        follow(model, &outcome, reply.cas);
    }
    /* The random operations met with something. */
    assert_true(cas > OPERATIONS / 5);
}

static void large_numbers(void **state)
{
    (void)state;
    random_operations(20240601, false);
}

static void signs(void **state)
{
    (void)state;
    random_operations(20240602, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_numbers, start, stop),
        cmocka_unit_test_setup_teardown(signs, start, stop),
    };
    if (program() == NULL) {
        printf("1..0 # SKIP there is no memcached on this machine\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
