// redis_rows - the reply to a stretch of rows, as the script packs it
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_rows.h"

#include <stdint.h>

#include "base/bytes.h"

#define LEN_BYTES 4

static bool take_part(struct hg_span *rest, struct hg_span *ret)
{
    if (rest->len < LEN_BYTES)
        return false;
    uint32_t len = hg_get_u32(rest->at);
    if (len > rest->len - LEN_BYTES)
        return false;
    *ret = hg_span(rest->at + LEN_BYTES, len);
    *rest = hg_span(ret->at + len, rest->len - LEN_BYTES - len);
    return true;
}

bool hg_redis_rows_next(struct hg_redis_rows *rows, struct hg_span *ret_row,
                        struct hg_span *ret_item)
{
    return take_part(&rows->rest, ret_row) && take_part(&rows->rest, ret_item);
}

bool hg_redis_rows_decode(struct hg_span reply, struct hg_redis_rows *ret)
{
    if (reply.len == 0 || (reply.at[0] != '0' && reply.at[0] != '1'))
        return false;
    struct hg_redis_rows rows = {.more = reply.at[0] == '1',
                                 .rest = hg_span(reply.at + 1, reply.len - 1)};
    if (!take_part(&rows.rest, &rows.last) || rows.last.len > HG_REDIS_ROW_MAX ||
        (rows.more && rows.last.len == 0))
        return false;
    *ret = rows;
    while (rows.rest.len > 0) {
        struct hg_span row, item;
        if (!hg_redis_rows_next(&rows, &row, &item) || row.len > HG_REDIS_ROW_MAX)
            return false;
    }
    return true;
}
