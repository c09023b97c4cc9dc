// rows - TableAPI and HBase within the binary protocol of a load
// SPDX-License-Identifier: BSD-3-Clause
//
//   extras: operation u8, 0, length of the table's name u16, 0 u32    key: table, row
//   reply:  operation u8, 0, affected u16, 0 u32
#include "load/rows.h"

#include "load/rowbody.h"
#include "load/wire.h"

#define EXTRAS_BYTES 8

void hg_load_rows_prepare(struct hg_load_lane *lane, enum hg_load_op op)
{
    const struct hg_load_tenant *tenant = lane->tenant;
    const struct hg_load_op_info *info = &hg_load_op_table[op];
    const char *table = hg_load_op_is_hbase(op) ? tenant->hbase : tenant->table;
    if (table == NULL) {
        return;
    }
    struct hg_lane_frame *frame = &lane->frame[op];
    size_t table_bytes = strlen(table);
    uint8_t *at = frame->bytes + HG_WIRE_HEADER;
    hg_wire_put_header(frame->bytes, info->opcode, table_bytes + tenant->key_bytes, EXTRAS_BYTES,
                       0);
    memset(at, 0, EXTRAS_BYTES);
    at[0] = info->operation;
    hg_put_u16(at + 2, (uint16_t)table_bytes);
    at += EXTRAS_BYTES;
    memcpy(at, table, table_bytes);
    at += table_bytes;
    hg_lane_put_key(tenant, info->space, 0, at);
    frame->len = (uint32_t)(at - frame->bytes) + tenant->key_bytes;
    frame->digits_end = frame->len;
    uint8_t begin[8] = {HG_WIRE_RESPONSE, info->opcode, 0, 0, EXTRAS_BYTES};
    memcpy(&lane->expected[op], begin, sizeof begin);
}

size_t hg_load_rows_compose(const struct hg_load_lane *lane, enum hg_load_op op, uint32_t key,
                            uint8_t *to)
{
    uint32_t len = lane->frame[op].len;
    struct hg_gen_value value = hg_gen_value_of(&lane->tables->values, key);
    size_t body = hg_rowbody_encode(op, &value, to + len);
    hg_put_u32(to + HG_WIRE_AT_BODY_BYTES, (uint32_t)(len - HG_WIRE_HEADER + body));
    return len + body;
}

/* Whether that many rows (cells) can be affected; *ret_miss: none, because there was none. */
static bool fits_affected(enum hg_load_op op, uint32_t affected, bool *ret_miss)
{
    switch (op) {
    case HG_LOAD_TABLE_GET:
    case HG_LOAD_HBASE_GET:
        return affected == 0;
    case HG_LOAD_TABLE_DELETE:
    case HG_LOAD_TABLE_UPDATE:
        *ret_miss = affected == 0;
        return affected <= 1;
    case HG_LOAD_HBASE_DELETE:
        *ret_miss = affected == 0;
        return true;
    case HG_LOAD_TABLE_REPLACE:
        return affected == 1 || affected == 2;
    default:
        return affected == 1;
    }
}

enum hg_load_outcome hg_load_rows_judge(struct hg_load_lane *lane, enum hg_load_op op, uint32_t key,
                                        const uint8_t *at, uint32_t body_bytes)
{
    const uint8_t *extras = at + HG_WIRE_HEADER;
    uint8_t operation = hg_load_op_table[op].operation;
    uint32_t affected = hg_get_u16(extras + 2);
    bool miss = false;
    if (extras[0] != operation || !fits_affected(op, affected, &miss)) {
        hg_lane_wrong(lane, HG_LANE_WRONG_EXTRAS, op, key,
                      "extras say operation %u, affected %u; asked was operation %u", extras[0],
                      affected, operation);
        return HG_LOAD_WRONG;
    }
    struct hg_gen_value value = hg_gen_value_of(&lane->tables->values, key);
    switch (hg_rowbody_decode(op, &value, extras + EXTRAS_BYTES, body_bytes - EXTRAS_BYTES)) {
    case HG_ROWBODY_RIGHT:
        return miss ? HG_LOAD_MISS : HG_LOAD_DONE;
    case HG_ROWBODY_NO_ROW:
        return HG_LOAD_MISS;
    case HG_ROWBODY_OTHER:
        hg_lane_wrong(lane, HG_LANE_WRONG_VALUE, op, key,
                      "the body of %u bytes is not the row that was stored",
                      body_bytes - EXTRAS_BYTES);
        return HG_LOAD_WRONG;
    default:
        hg_lane_wrong(lane, HG_LANE_WRONG_LENGTH, op, key,
                      "the body of %u bytes is no reply of this operation",
                      body_bytes - EXTRAS_BYTES);
        return HG_LOAD_WRONG;
    }
}
