// t_link_values - values of every size go through a connection, and over to another when it ends
// SPDX-License-Identifier: BSD-3-Clause
#include "pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "proto/opcode.h"

/* A large value comes in many reads, and lies in a blob of its size in the end; small ones around
   it come and go meanwhile. */
static void t_large_reply_by_reference(void **state)
{
    (void)state;
    struct pair pair;
    struct note before, large, after;
    const uint8_t flags[4] = {0};
    size_t value = 1000000;
    uint8_t *out = malloc(value + 512), *bytes = malloc(value);
    uint32_t sum = 0;
    for (size_t i = 0; i < value; i++)
        sum += bytes[i] = (uint8_t)(i * 31);
    pair_init(&pair, false);
    pair_get(&pair, &before, "before");
    pair_get(&pair, &large, "large");
    pair_get(&pair, &after, "after");
    pair_turn(&pair);
    size_t len = pair_found(out, 0, "1");
    len += fake_encode(out + len, HG_OPCODE_GET, 0, 1, 0, flags, 4, bytes, value);
    len += pair_found(out + len, 2, "3");
    bool was_large = false;
    for (size_t at = 0; at < len;) {
        ssize_t n = send(pair.fd, out + at, len - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        pair_turn(&pair);
        was_large |= hg_link_is_large(pair.link);
    }
    pair_turn(&pair);
    assert_true(was_large);
    assert_false(hg_link_is_large(pair.link));
    assert_string_equal(before.value, "1");
    assert_int_equal(large.value_len, value);
    assert_int_equal(large.value_sum, sum);
    assert_true(large.in_blob);
    assert_string_equal(after.value, "3");
    free(bytes);
    free(out);
    pair_fini(&pair);
}

static void t_large_request_by_reference(void **state)
{
    (void)state;
    struct pair pair;
    struct note set, small, behind;
    size_t value = 300000, heard = 0;
    uint8_t *in = malloc(value + 512);
    pair_init(&pair, false);
    struct hg_blob *blob = hg_blob_borrow(&pair.rig.blobs, value + 100);
    memset(blob->data, 'v', blob->cap);
    note_init(&set, NULL, HG_OP_SET, "large");
    set.call.blob = blob;
    set.call.value = hg_span(blob->data + 100, value);
    pair_get(&pair, &small, "small");
    pair_send(&pair, &set);
    assert_int_equal(blob->refs, 2);
    hg_blob_unref(blob); /* the caller lets go; the queue holds on */
    assert_true(hg_link_is_large(pair.link));
    pair_get(&pair, &behind, "behind");
    size_t want = 24 + 5 + 24 + 8 + 5 + value + 24 + 6;
    for (int i = 0; heard < want && i < 10000; i++) {
        pair_turn(&pair);
        heard += pair_hear(&pair, in + heard, value + 512 - heard);
    }
    assert_int_equal(heard, want);
    assert_int_equal(in[29 + 1], HG_OPCODE_SET);
    for (size_t i = 0; i < value; i++)
        assert_int_equal(in[29 + 37 + i], 'v');
    assert_memory_equal(in + want - 6, "behind", 6);
    pair_turn(&pair);
    assert_false(hg_link_is_large(pair.link));
    free(in);
    pair_fini(&pair);
}

/* Every length around the limits between a copy and a reference, in chunks of every fill. */
static void t_values_of_all_sizes(void **state)
{
    (void)state;
    static const size_t around[] = {0, 64, 1024, 8192, 16320, 16384, 65536};
    struct pair pair;
    uint8_t *in = malloc(200000);
    pair_init(&pair, false);
    uint32_t opaque = 0;
    for (size_t i = 0; i < HG_COUNT_OF(around); i++) {
        for (size_t value = around[i] > 32 ? around[i] - 32 : 0; value <= around[i] + 32; value++) {
            struct hg_blob *blob = hg_blob_borrow(&pair.rig.blobs, value + 1);
            for (size_t b = 0; b < value; b++)
                blob->data[b] = (uint8_t)(b * 7 + value);
            struct note note;
            note_init(&note, NULL, HG_OP_SET, "k");
            note.call.blob = value % 2 ? blob : NULL;
            note.call.value = hg_span(blob->data, value);
            pair_send(&pair, &note);
            size_t heard = 0, want = 24 + 8 + 1 + value;
            PATIENCE_WHILE(heard < want)
            {
                pair_turn(&pair);
                heard += pair_hear(&pair, in + heard, 200000 - heard);
            }
            assert_int_equal(heard, want);
            assert_memory_equal(in + 33, blob->data, value);
            hg_blob_unref(blob);
            uint8_t out[64];
            pair_say(&pair, out, fake_encode(out, HG_OPCODE_SET, 0, opaque++, 1, NULL, 0, NULL, 0));
            pair_turn(&pair);
            assert_int_equal(note.done, 1);
        }
    }
    free(in);
    pair_fini(&pair);
}

static void t_prefix_and_key_too_long(void **state)
{
    (void)state;
    struct pair pair;
    struct note note;
    char key[252];
    memset(key, 'k', sizeof key);
    key[246] = '\0';
    pair_init(&pair, false);
    note_init(&note, NULL, HG_OP_GET, key);
    note.call.prefix = HG_SPAN_LIT("shop:");
    enum hg_fault fault = HG_FAULT_NONE;
    assert_false(hg_link_submit(pair.link, &note.call, &fault));
    assert_int_equal(fault, HG_FAULT_KEY_TOO_LONG);
    assert_int_equal(pair.link->out.bytes, 0);
    assert_int_equal(hg_link_pending(pair.link), 0);
    note.call.prefix = HG_SPAN_LIT("shop");
    assert_true(hg_link_submit(pair.link, &note.call, &fault));
    pair_fini(&pair);
}

/* What was not sent moves, with opaques of its new link; what was sent is lost. */
static void t_unsent_moves(void **state)
{
    (void)state;
    struct pair pair;
    struct note sent, unsent[3], gone;
    uint8_t in[1024];
    int fd;
    pair_init(&pair, false);
    pair.heir = pair_new_link(&pair, &fd, false);
    struct note other;
    note_init(&other, NULL, HG_OP_GET, "other");
    enum hg_fault fault;
    assert_true(hg_link_submit(pair.heir, &other.call, &fault));
    pair_get(&pair, &sent, "sent");
    pair_turn(&pair);
    for (int i = 0; i < 3; i++)
        pair_get(&pair, &unsent[i], i == 0 ? "u0" : i == 1 ? "u1" : "u2");
    pair_get(&pair, &gone, "gone");
    hg_link_cancel(pair.link, &gone.call);
    struct hg_link *to = pair.heir;
    hg_link_end(pair.link, HG_LINK_CLOSED, -ECONNRESET);
    assert_int_equal(sent.done, 1);
    assert_int_equal(sent.result.fault, HG_FAULT_LOST);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(unsent[i].done, 0);
        assert_ptr_equal(unsent[i].call.place.link, to);
    }
    pair_turn(&pair);
    size_t n = (size_t)recv(fd, in, sizeof in, 0);
    assert_int_equal(n, 24 + 5 + 3 * 26);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(hg_get_u32(in + 29 + i * 26 + 12), i + 1);
        assert_memory_equal(in + 29 + i * 26 + 24, unsent[i].key, 2);
    }
    /* They do not move a second time. */
    pair.heir = NULL;
    uint8_t out[64];
    pair_say(&(struct pair){.fd = fd}, out, pair_found(out, 0, "o"));
    pair_turn(&pair);
    hg_link_end(to, HG_LINK_CLOSED, -ECONNRESET);
    assert_int_equal(other.done, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(unsent[i].done, 1);
        assert_int_equal(unsent[i].result.fault, HG_FAULT_LOST); /* it had been sent by then */
    }
    close(fd);
    pair_fini(&pair);
}

/* The socket takes a part of a large value: that call is lost, what is behind it moves whole. */
static void t_behind_a_half_sent_request(void **state)
{
    (void)state;
    struct pair pair;
    struct note large, set, got;
    size_t value = 4000000, heard = 0;
    char *text = malloc(20001);
    memset(text, 'w', 20000);
    text[20000] = '\0';
    int fd;
    pair_init(&pair, false);
    pair.limits.max_bytes = 100000000;
    pair.heir = pair_new_link(&pair, &fd, false);
    struct hg_link *to = pair.heir;
    struct hg_blob *blob = hg_blob_borrow(&pair.rig.blobs, value);
    memset(blob->data, 'v', value);
    note_init(&large, NULL, HG_OP_SET, "large");
    large.call.blob = blob;
    large.call.value = hg_span(blob->data, value);
    pair_send(&pair, &large);
    pair_turn(&pair);
    assert_true(pair.link->blocked);
    note_init(&set, NULL, HG_OP_SET, "set");
    set.call.value = hg_span_str(text);
    pair_send(&pair, &set);
    pair_get(&pair, &got, "got");
    hg_link_end(pair.link, HG_LINK_CLOSED, -ECONNRESET);
    assert_int_equal(large.done, 1);
    assert_int_equal(large.result.fault, HG_FAULT_LOST);
    assert_int_equal(set.done + got.done, 0);
    uint8_t *in = malloc(30000);
    size_t want = 24 + 8 + 3 + 20000 + 24 + 3;
    for (int i = 0; heard < want && i < 10000; i++) {
        pair_turn(&pair);
        ssize_t n = recv(fd, in + heard, 30000 - heard, 0);
        heard += n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(heard, want);
    assert_int_equal(in[1], HG_OPCODE_SET);
    assert_int_equal(hg_get_u32(in + 12), 0);
    for (size_t i = 0; i < 20000; i++)
        assert_int_equal(in[35 + i], 'w');
    assert_int_equal(hg_get_u32(in + 20035 + 12), 1);
    assert_memory_equal(in + want - 3, "got", 3);
    hg_blob_unref(blob);
    pair.heir = NULL;
    hg_link_end(to, HG_LINK_CLOSED, 0);
    assert_int_equal(set.done + got.done, 2);
    free(in);
    free(text);
    close(fd);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_large_reply_by_reference),
        cmocka_unit_test(t_large_request_by_reference),
        cmocka_unit_test(t_values_of_all_sizes),
        cmocka_unit_test(t_prefix_and_key_too_long),
        cmocka_unit_test(t_unsent_moves),
        cmocka_unit_test(t_behind_a_half_sent_request),
    };
    return cmocka_run_group_tests_name("link_values", tests, NULL, NULL);
}
