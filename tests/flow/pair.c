// pair - a link whose server is the test itself, at the other end of a socket pair
// SPDX-License-Identifier: BSD-3-Clause
#include "pair.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/opcode.h"

static void on_ready(struct hg_link *link)
{
    ((struct pair *)link->pool)->readies++;
}

static void on_room(struct hg_link *link)
{
    link->full = false;
    ((struct pair *)link->pool)->rooms++;
}

static void on_answers(struct hg_link *link, uint32_t in_time, uint32_t late, uint64_t waited_us)
{
    (void)late;
    (void)waited_us;
    ((struct pair *)link->pool)->answers += in_time;
}

static void on_timeout(struct hg_link *link, const struct hg_call *call, uint64_t waited_us)
{
    (void)call;
    (void)waited_us;
    ((struct pair *)link->pool)->timeouts++;
}

static struct hg_link *heir(void *arg, const struct hg_call *call)
{
    (void)call;
    return ((struct pair *)arg)->heir;
}

static void on_end(struct hg_link *link, enum hg_link_state was, enum hg_link_why why, int error)
{
    struct pair *pair = link->pool;
    (void)was;
    pair->ends++;
    hg_link_end_text(link, why, error, pair->text);
    pair->why = why;
    hg_link_fail(link, hg_link_first_unsent(link), HG_FAULT_LOST);
    hg_link_move(link, heir, pair);
    if (link == pair->link)
        pair->link = NULL;
}

static const struct hg_link_owner owner = {on_ready, on_room, on_answers, on_timeout,
                                           NULL,     on_end,  NULL};

struct hg_link *pair_bare_link(struct pair *pair)
{
    struct hg_link *link = hg_link_new(&pair->hub, &hg_dialect_memcached, &pair->limits, &owner,
                                       pair, &pair->counters);
    assert_non_null(link);
    link->server = "test:1";
    return link;
}

struct hg_link *pair_new_link(struct pair *pair, int *ret_fd, bool probe)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    struct hg_link *link = pair_bare_link(pair);
    hg_link_adopt(link, fds[0], probe);
    *ret_fd = fds[1];
    return link;
}

void pair_init(struct pair *pair, bool probe)
{
    memset(pair, 0, sizeof *pair);
    rig_init(&pair->rig);
    pair->limits = (struct hg_link_limits){.depth = 8,
                                           .max_reply = 4 << 20,
                                           .max_bytes = 1 << 20,
                                           .timeout_us = 60000000,
                                           .silent_us = 120000000};
    assert_int_equal(hg_hub_init(&pair->hub, &pair->rig.loop, &pair->rig.mailbox, &pair->rig.blobs,
                                 &pair->rig.outs),
                     0);
    pair->link = pair_new_link(pair, &pair->fd, probe);
}

void pair_fini(struct pair *pair)
{
    if (pair->link != NULL)
        hg_link_end(pair->link, HG_LINK_LET_GO, 0);
    close(pair->fd);
    hg_hub_fini(&pair->hub);
    rig_fini(&pair->rig);
}

void pair_turn(struct pair *pair)
{
    hg_loop_turn(&pair->rig.loop, false);
}

void pair_send(struct pair *pair, struct note *note)
{
    enum hg_fault fault = HG_FAULT_NONE;
    assert_true(hg_link_has_room(pair->link));
    assert_true(hg_link_submit(pair->link, &note->call, &fault));
    assert_true(note->call.place.pending);
}

void pair_get(struct pair *pair, struct note *note, const char *key)
{
    note_init(note, NULL, HG_OP_GET, key);
    pair_send(pair, note);
}

void pair_say(struct pair *pair, const void *bytes, size_t len)
{
    assert_int_equal(send(pair->fd, bytes, len, MSG_NOSIGNAL), len);
}

/* A found value as the server says it. */
size_t pair_found(uint8_t *out, uint32_t opaque, const char *value)
{
    const uint8_t flags[4] = {1, 2, 3, 4};
    return fake_encode(out, HG_OPCODE_GET, 0, opaque, 0x1122334455667788, flags, 4, value,
                       strlen(value));
}

void pair_say_found(struct pair *pair, uint32_t opaque, const char *value)
{
    uint8_t out[1024];
    pair_say(pair, out, pair_found(out, opaque, value));
}

/* What the server has received. */
size_t pair_hear(struct pair *pair, uint8_t *out, size_t cap)
{
    ssize_t n = recv(pair->fd, out, cap, 0);
    return n < 0 ? 0 : (size_t)n;
}
