// redis_error - what an error reply of Redis means to a client, and whether to say it again
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_error.h"

#include <stdbool.h>
#include <string.h>

#include "proto/status.h"

#define SAID_BYTES 200 /* of the server's own words, the rest is cut */
#define SLOTS      16384

struct row {
    const char *beginning;
    const char *text;
    uint16_t status;
    uint8_t again;
};

static const struct row rows[] = {
#define HG_REDIS_ERROR(beginning, status, again, text)                                             \
    {beginning, text, HG_STATUS_##status, HG_AGAIN_##again},
#include "back/redis_error.def"
#undef HG_REDIS_ERROR
};

static bool begins_with(struct hg_span text, const char *beginning, size_t len)
{
    return text.len >= len && memcmp(text.at, beginning, len) == 0;
}

static const struct row *row_of(struct hg_span said)
{
    const struct row *best = NULL;
    size_t best_len = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].beginning);
        if ((best == NULL || len > best_len) && begins_with(said, rows[i].beginning, len)) {
            best = &rows[i];
            best_len = len;
        }
    }
    return best;
}

/* Before version 7 a script's error comes as "ERR Error running script (call to f_...):
   @user_script:3: @user_script: 3: -OOM command not allowed": what the command said is behind the
   last of these marks. */
static struct hg_span within_script(struct hg_span said)
{
    static const char head[] = "ERR Error running script", mark[] = "@user_script:";
    if (!begins_with(said, head, sizeof head - 1))
        return said;
    struct hg_span inner = said;
    const uint8_t *at;
    while ((at = memmem(inner.at, inner.len, mark, sizeof mark - 1)) != NULL) {
        const uint8_t *end = inner.at + inner.len;
        at += sizeof mark - 1;
        while (at < end && (*at == ' ' || *at == ':' || (*at >= '0' && *at <= '9')))
            at++;
        at += at < end && *at == '-';
        inner = hg_span(at, (size_t)(end - at));
    }
    return inner.len > 0 ? inner : said;
}

static void put(struct hg_redis_error *error, const char *text, size_t len)
{
    size_t room = sizeof error->text - error->text_len;
    if (len > room)
        len = room;
    memcpy(error->text + error->text_len, text, len);
    error->text_len += len;
}

static void put_escaped(struct hg_redis_error *error, struct hg_span said)
{
    static const char hex[] = "0123456789abcdef";
    size_t len = said.len < SAID_BYTES ? said.len : SAID_BYTES;
    size_t room = error->text_len + SAID_BYTES;
    for (size_t i = 0; i < len && error->text_len < room; i++) {
        uint8_t c = said.at[i];
        char escaped[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
        if (c >= ' ' && c < 0x7f)
            put(error, (const char *)&c, 1);
        else
            put(error, escaped, sizeof escaped);
    }
    if (said.len > len)
        put(error, "...", 3);
}

/* "MOVED 3999 127.0.0.1:6381": false if it is not of this form. */
static bool read_address(struct hg_span said, struct hg_redis_error *error)
{
    const uint8_t *end = said.at + said.len, *at = memchr(said.at, ' ', said.len);
    if (at == NULL)
        return false;
    uint32_t slot = 0;
    const uint8_t *digits = ++at;
    for (; at < end && *at >= '0' && *at <= '9' && slot < SLOTS; at++)
        slot = slot * 10 + (uint32_t)(*at - '0');
    if (at == digits || at == end || *at != ' ' || slot >= SLOTS)
        return false;
    at++;
    struct hg_span address = hg_span(at, (size_t)(end - at));
    const uint8_t *space = memchr(address.at, ' ', address.len);
    if (space != NULL)
        address.len = (size_t)(space - address.at);
    if (memchr(address.at, ':', address.len) == NULL)
        return false;
    error->slot = (uint16_t)slot;
    error->address = address;
    return true;
}

void hg_redis_error_read(struct hg_span said, struct hg_redis_error *ret)
{
    struct hg_span inner = within_script(said);
    const struct row *row = row_of(inner);
    ret->status = row->status;
    ret->again = row->again;
    ret->slot = 0;
    ret->address = HG_SPAN_NONE;
    ret->text_len = 0;
    if ((row->again == HG_AGAIN_MOVED || row->again == HG_AGAIN_ASK) && !read_address(inner, ret))
        ret->again = HG_AGAIN_NO;
    put(ret, row->text, strlen(row->text));
    put(ret, " (", 2);
    put_escaped(ret, inner);
    put(ret, ")", 1);
}
