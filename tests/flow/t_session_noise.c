// t_session_noise - bytes of any kind, in pieces of any size: every frame has one answer or none,
// and nothing is left SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "scene.h"

#define FRAMES 400

static struct hg_prng dice;

static uint64_t below(uint64_t n)
{
    return hg_prng_below(&dice, n);
}

/* A request that is right, or wrong in one way or another; its framing is intact. */
static void add_frame(struct client *client, uint32_t opaque)
{
    static uint8_t bytes[70000];
    uint8_t opcode = (uint8_t)(below(3) == 0 ? below(256) : below(0x25));
    const struct hg_opcode_row *row = hg_opcode_row(opcode);
    static const uint8_t extras_lengths[] = {0, 0, 4, 8, 20, 1, 3, 31};
    size_t extras = extras_lengths[below(8)], key = below(4) == 0 ? below(300) : 1 + below(20);
    size_t framing = below(20) == 0 ? 1 + below(30) : 0;
    size_t value = below(3) == 0 ? below(100) : 0;
    if (below(30) == 0)
        value = below(sizeof bytes - 1000);
    if (row != NULL && below(2) == 0) {
        extras = row->extras_lengths == 0 ? 0 : (size_t)__builtin_ctz(row->extras_lengths);
        key = row->key_min;
        value = row->value_min;
    }
    if (framing > 0 && key > 255)
        key = 255;
    for (size_t i = 24; i < 24 + framing + extras + key + 16; i++)
        bytes[i] = (uint8_t)hg_prng_next(&dice);
    memset(bytes, 0, 24);
    bytes[0] = framing > 0 ? 0x08 : 0x80;
    bytes[1] = opcode;
    hg_put_u16(bytes + 2, (uint16_t)(framing << 8 | key));
    bytes[4] = (uint8_t)extras;
    bytes[5] = (uint8_t)(below(30) == 0 ? below(256) : 0);
    hg_put_u16(bytes + 6, (uint16_t)below(65536));
    hg_put_u32(bytes + 8, (uint32_t)(framing + extras + key + value));
    hg_put_u32(bytes + 12, opaque);
    hg_put_u64(bytes + 16, below(10) == 0 ? hg_prng_next(&dice) : 0);
    client_add_bytes(client, bytes, 24 + framing + extras + key + value);
}

static void answer_jobs(struct stage *stage)
{
    struct hg_job *job;
    while ((job = stage_job(stage)) != NULL)
        hg_job_answer(job);
}

/* Replies come in the order of the requests, at most one each but for statistics. */
static void take_all(struct scene *s, uint32_t *last)
{
    struct reply reply;
    client_read(&s->client, SIZE_MAX);
    while (client_take(&s->client, &reply)) {
        if (reply.opaque < *last || (reply.opaque == *last && reply.opcode != HG_OPCODE_STAT))
            fail_msg("opaque %u after %u", reply.opaque, *last);
        *last = reply.opaque;
    }
}

static void play(uint64_t seed, bool slow)
{
    struct scene s;
    uint32_t last = 0;
    dice.state = seed;
    scene_init(&s);
    s.stage.settings.max_value_bytes = 30000;
    s.stage.settings.max_frame_bytes = 100000;
    scene_open(&s);
    s.store->answers = !slow;
    uint32_t opaque = 0;
    PATIENCE_WHILE(opaque < FRAMES || s.client.out_len > 0)
    {
        while (opaque < FRAMES && s.client.out_len < 2000) {
            size_t before = s.client.out_len;
            add_frame(&s.client, ++opaque);
            uint8_t opcode = s.client.out[before + 1];
            if (opcode == HG_OPCODE_QUIT || opcode == HG_OPCODE_QUITQ)
                s.client.out_len = before; /* it would be the end */
        }
        size_t piece = 1 + below(below(4) == 0 ? 20000 : 300);
        client_send_part(&s.client, piece < s.client.out_len ? piece : s.client.out_len);
        stage_turn(&s.stage);
        answer_jobs(&s.stage);
        if (slow && below(2) == 0)
            fakestore_obey_all(s.store);
        take_all(&s, &last);
        assert_in_range(s.stage.workers[0].blobs.live_bytes, 0, 2u << 20);
        assert_false(s.client.ended);
    }
    s.store->answers = true;
    for (unsigned n = 0; n < 200; n++) {
        fakestore_obey_all(s.store);
        answer_jobs(&s.stage);
        stage_turn(&s.stage);
    }
    take_all(&s, &last);
    client_ask(&s.client, HG_OPCODE_NOOP, NULL, FRAMES + 1);
    scene_expect(&s, HG_OPCODE_NOOP, 0, FRAMES + 1);
    assert_int_equal(s.stage.workers[0].blobs.live_bytes, 0);
    assert_int_equal(s.stage.workers[0].requests.borrowed, 0);
    scene_close(&s);
}

static void test_frames_of_any_kind(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        play(seed, seed % 3 == 0);
}

/* No framing at all: whatever comes, it ends cleanly. */
static void test_bytes_of_any_kind(void **state)
{
    (void)state;
    dice.state = 99;
    for (unsigned round = 0; round < 300; round++) {
        struct scene s;
        uint8_t bytes[3000];
        scene_start(&s);
        s.store->answers = true;
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)hg_prng_next(&dice);
        bytes[0] = 0x80;
        if (round % 2 == 0) {
            bytes[8] = bytes[9] = 0; /* lengths that are possible */
            bytes[10] &= 7;
            bytes[2] = 0;
            bytes[4] &= 31;
        }
        client_add_bytes(&s.client, bytes, 1 + below(sizeof bytes));
        PATIENCE_WHILE(s.client.out_len > 0)
        {
            size_t piece = 1 + below(500);
            client_send_part(&s.client, piece < s.client.out_len ? piece : s.client.out_len);
            stage_turn(&s.stage);
            answer_jobs(&s.stage);
        }
        stage_run(&s.stage);
        answer_jobs(&s.stage);
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_of_any_kind),
        cmocka_unit_test(test_bytes_of_any_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
