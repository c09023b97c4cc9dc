// client - the other end of a session's socket, in the hands of a test
// SPDX-License-Identifier: BSD-3-Clause
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "proto/wire.h"

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

void client_init(struct client *client, int fd)
{
    memset(client, 0, sizeof *client);
    client->fd = fd;
}

void client_close(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    free(client->out);
    free(client->in);
    client_init(client, -1);
}

void client_half_close(struct client *client)
{
    must(shutdown(client->fd, SHUT_WR) == 0, "shutdown");
}

static uint8_t *room(uint8_t **buffer, size_t *cap, size_t len, size_t more)
{
    if (*cap - len < more) {
        *cap = *cap * 2 + more;
        *buffer = realloc(*buffer, *cap);
        must(*buffer != NULL, "realloc");
    }
    return *buffer + len;
}

void client_add_bytes(struct client *client, const void *bytes, size_t len)
{
    uint8_t *at = room(&client->out, &client->out_cap, client->out_len, len + 1);
    if (len > 0)
        memcpy(at, bytes, len);
    client->out_len += len;
}

static void add_span(struct client *client, struct hg_span span)
{
    client_add_bytes(client, span.at, span.len);
}

void client_add(struct client *client, const struct ask *ask)
{
    uint8_t head[HG_FRAME_HEADER_BYTES] = {0};
    struct hg_span key = ask->key != NULL ? hg_span_str(ask->key) : HG_SPAN_NONE;
    bool alt = ask->framing.len > 0;
    head[0] = alt ? HG_MAGIC_REQUEST_ALT : HG_MAGIC_REQUEST;
    head[1] = ask->opcode;
    hg_put_u16(head + 2, (uint16_t)(key.len | ask->framing.len << 8));
    head[4] = (uint8_t)ask->extras.len;
    hg_put_u32(head + 8, (uint32_t)(ask->framing.len + ask->extras.len + key.len + ask->value.len));
    hg_put_u32(head + 12, ask->opaque);
    hg_put_u64(head + 16, ask->cas);
    client_add_bytes(client, head, sizeof head);
    add_span(client, ask->framing);
    add_span(client, ask->extras);
    add_span(client, key);
    add_span(client, ask->value);
}

void client_add_op(struct client *client, uint8_t opcode, const char *key, uint32_t opaque)
{
    client_add(client, &(struct ask){.opcode = opcode, .key = key, .opaque = opaque});
}

void client_add_set(struct client *client, uint8_t opcode, const char *key, const void *value,
                    size_t len, uint32_t opaque)
{
    static const uint8_t extras[8] = {0, 0, 0, 7, 0, 0, 0, 0};
    client_add(client, &(struct ask){.opcode = opcode,
                                     .key = key,
                                     .opaque = opaque,
                                     .extras = hg_span(extras, sizeof extras),
                                     .value = hg_span(value, len)});
}

void client_add_hello(struct client *client, uint32_t opaque, const uint16_t *codes)
{
    uint8_t value[64];
    size_t len = 0;
    for (; codes[len / 2] != 0; len += 2)
        hg_put_u16(value + len, codes[len / 2]);
    client_add(client, &(struct ask){.opcode = HG_OPCODE_HELLO,
                                     .key = "test",
                                     .opaque = opaque,
                                     .value = hg_span(value, len)});
}

void client_send_part(struct client *client, size_t len)
{
    size_t done = 0;
    must(len <= client->out_len, "more than there is");
    while (done < len && client->fd >= 0) {
        ssize_t n = send(client->fd, client->out + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            done = len; /* the server has gone: so have the bytes */
        if (n < 0)
            break;
        done += (size_t)n;
    }
    client->out_len -= done;
    memmove(client->out, client->out + done, client->out_len);
}

bool client_send(struct client *client)
{
    if (client->out_len > 0)
        client_send_part(client, client->out_len);
    return client->out_len == 0;
}

void client_ask(struct client *client, uint8_t opcode, const char *key, uint32_t opaque)
{
    client_add_op(client, opcode, key, opaque);
    must(client_send(client), "send");
}

void client_read(struct client *client, size_t most)
{
    client->in_len -= client->at;
    if (client->in != NULL)
        memmove(client->in, client->in + client->at, client->in_len);
    client->at = 0;
    while (client->fd >= 0 && !client->ended && most > 0) {
        size_t want = most < 65536 ? most : 65536;
        uint8_t *at = room(&client->in, &client->in_cap, client->in_len, want);
        ssize_t n = recv(client->fd, at, want, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        client->ended = n <= 0;
        client->reset |= n < 0;
        if (n <= 0)
            return;
        client->in_len += (size_t)n;
        client->read_total += (size_t)n;
        most -= (size_t)n;
    }
}

bool client_take(struct client *client, struct reply *ret)
{
    size_t have = client->in_len - client->at;
    if (have < HG_FRAME_HEADER_BYTES)
        return false;
    const uint8_t *at = client->in + client->at;
    size_t body = hg_get_u32(at + 8), key = hg_get_u16(at + 2), framing = 0;
    if (have < HG_FRAME_HEADER_BYTES + body)
        return false;
    must(at[0] == HG_MAGIC_REPLY || at[0] == HG_MAGIC_REPLY_ALT, "not a reply");
    if (at[0] == HG_MAGIC_REPLY_ALT) {
        framing = key >> 8;
        key &= 0xff;
    }
    must(framing + at[4] + key <= body, "lengths of a reply");
    *ret = (struct reply){.magic = at[0],
                          .opcode = at[1],
                          .status = hg_get_u16(at + 6),
                          .opaque = hg_get_u32(at + 12),
                          .cas = hg_get_u64(at + 16)};
    const uint8_t *part = at + HG_FRAME_HEADER_BYTES;
    ret->framing = hg_span(part, framing);
    ret->extras = hg_span(part + framing, at[4]);
    ret->key = hg_span(part + framing + at[4], key);
    ret->value = hg_span(part + framing + at[4] + key, body - framing - at[4] - key);
    client->at += HG_FRAME_HEADER_BYTES + body;
    return true;
}
