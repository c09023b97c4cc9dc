// tablemsg - TableAPI and HBase requests as structs
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/tablemsg.h"

#include "base/bytes.h"
#include "proto/status.h"
#include "proto/tablepart.h"

static const char *check_extras(const uint8_t *extras)
{
    if (extras[1] != 0)
        return "the flags (byte 1 of the extras) are 0";
    if (hg_get_u32(extras + 4) != 0)
        return "the reserved bytes 4 to 7 of the extras are 0";
    return NULL;
}

static const char *check_key(enum hg_op op, struct hg_span key, size_t table_len)
{
    if (table_len < 1 || table_len > HG_TABLE_NAME_MAX)
        return "the table length (bytes 2 and 3 of the extras) is 1 to 100";
    if (table_len > key.len)
        return "the table length (bytes 2 and 3 of the extras) is greater than the key's";
    if (memchr(key.at, 0, table_len) != NULL)
        return "the table's name has no zero byte";
    if (!hg_tablefields_row(op))
        return key.len == table_len ? NULL
                                    : "the key is the table's name alone: the operation takes no "
                                      "row key in it";
    if (key.len == table_len)
        return "the row key is missing: the key is the table's name and a row key of 1 byte or "
               "more";
    if (key.len > HG_TABLE_KEY_MAX)
        return "the key is too long: table name and row key together have at most 249 bytes";
    return NULL;
}

uint16_t hg_tablemsg_head(enum hg_api api, struct hg_span extras, struct hg_span key,
                          enum hg_op *ret_op, struct hg_span *ret_table, struct hg_span *ret_row,
                          const char **ret_why)
{
    if (extras.len != HG_TABLE_EXTRAS_BYTES) {
        *ret_why = "the extras have 8 bytes: operation, flags, table length (2), reserved (4)";
        return HG_STATUS_EINVAL;
    }
    enum hg_op op = hg_op_of_code(api, extras.at[0]);
    if (op == HG_OPS) {
        *ret_why = api == HG_API_HBASE ? "unknown operation (byte 0 of the extras) of opcode 0xe9: "
                                         "accepted are 1, 3, 5, 9, 11, 12, 13, 15, 16, 18 and 19"
                                       : "unknown operation (byte 0 of the extras) of opcode 0xe8: "
                                         "accepted are 0 to 12";
        return HG_STATUS_UNKNOWN_COMMAND;
    }
    size_t table_len = hg_get_u16(extras.at + 2);
    const char *why = check_extras(extras.at);
    if (why == NULL)
        why = check_key(op, key, table_len);
    if (why != NULL) {
        *ret_why = why;
        return HG_STATUS_EINVAL;
    }
    *ret_op = op;
    *ret_table = hg_span(key.at, table_len);
    *ret_row = hg_span(key.at + table_len, key.len - table_len);
    return 0;
}

uint16_t hg_tablemsg_decode(enum hg_op op, struct hg_span table, struct hg_span row,
                            struct hg_span body, struct hg_arena *arena, struct hg_tablemsg *ret,
                            const char **ret_why)
{
    struct hg_tablemsg msg = {.op = op, .api = hg_op_rows[op].api, .table = table};
    struct hg_tablepart part = {.arena = arena, .api = msg.api, .table = table};
    bool right = msg.api == HG_API_HBASE ? hg_tablepart_hbase(&part, row, body, &msg)
                                         : hg_tablepart_table(&part, row, body, &msg);
    if (!right) {
        *ret_why = part.why;
        return part.status;
    }
    *ret = msg;
    return 0;
}

bool hg_tablemsg_point(const struct hg_tablemsg *msg, struct hg_span *ret_row)
{
    const struct hg_range *range = &msg->query.range;
    switch (msg->op) {
    case HG_OP_TABLE_QUERY:
    case HG_OP_TABLE_QUERY_START:
        if (range->start.len == 0 || range->start_exclusive || range->end_exclusive ||
            !hg_span_equal(range->start, range->end))
            return false;
        *ret_row = range->start;
        return true;
    case HG_OP_HBASE_SCAN:
        if (msg->scan.start.len == 0 || msg->scan.start_exclusive ||
            !hg_span_equal(msg->scan.start, msg->scan.stop))
            return false;
        *ret_row = msg->scan.start;
        return true;
    default:
        return false;
    }
}
