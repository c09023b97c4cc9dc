// redis_login - what Redis is told before a connection is somebody's
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_put.h"

#define LEN_BYTES 13 /* "$", ten digits, line's end */

void hg_redis_write_command(struct hg_out *out, const struct hg_span *parts, uint32_t count)
{
    size_t room = LEN_BYTES;
    for (uint32_t i = 0; i < count; i++)
        room += LEN_BYTES + parts[i].len + 2;
    uint8_t *base = hg_out_reserve(out, room), *at = hg_redis_put_len(base, '*', count);
    for (uint32_t i = 0; i < count; i++)
        at = hg_redis_put_part(at, parts[i]);
    hg_out_commit(out, (size_t)(at - base));
}

static void write_auth(struct hg_out *out, const struct hg_identity *identity, const char *password)
{
    struct hg_span parts[3] = {HG_SPAN_LIT("AUTH")};
    uint32_t count = 1;
    if (identity->user[0] != '\0')
        parts[count++] = hg_span_str(identity->user);
    parts[count++] = hg_span_str(password);
    hg_redis_write_command(out, parts, count);
}

static void write_select(struct hg_out *out, uint32_t database)
{
    uint8_t digits[HG_REDIS_NUMBER_BYTES];
    const struct hg_span parts[] = {
        HG_SPAN_LIT("SELECT"),
        hg_span(digits, (size_t)(hg_redis_put_number(digits, database) - digits))};
    hg_redis_write_command(out, parts, 2);
}

uint32_t hg_redis_write_login(const struct hg_redis_style *style, struct hg_out *out,
                              const struct hg_identity *identity, bool rebind, bool probe)
{
    uint32_t replies = 0;
    const char *password = identity != NULL ? hg_identity_password(identity) : "";
    if (password[0] != '\0') {
        write_auth(out, identity, password);
        replies++;
    } else if (rebind) {
        /* Back to whom a new connection belongs to. */
        hg_redis_write_command(out, (const struct hg_span[]){HG_SPAN_LIT("RESET")}, 1);
        replies++;
    }
    uint32_t database = identity != NULL ? identity->database : 0;
    if (database != 0 || rebind) {
        write_select(out, database);
        replies++;
    }
    for (unsigned i = 0; !rebind && i < HG_REDIS_SCRIPTS; i++, replies++)
        hg_redis_write_command(out,
                               (const struct hg_span[]){HG_SPAN_LIT("SCRIPT"), HG_SPAN_LIT("LOAD"),
                                                        style->scripts.texts[i]},
                               3);
    if (probe) {
        hg_redis_write_command(out, (const struct hg_span[]){HG_SPAN_LIT("PING")}, 1);
        replies++;
    }
    return replies;
}
