// opcode - the table of opcodes, built from opcode.def
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/opcode.h"

#include <endian.h>

// Lengths of extras as bit sets, and the sentence that goes with each.
#define EXTRAS_E0      (1u << 0)
#define EXTRAS_E1      (1u << 1)
#define EXTRAS_E2      (1u << 2)
#define EXTRAS_E4      (1u << 4)
#define EXTRAS_E8      (1u << 8)
#define EXTRAS_E20     (1u << 20)
#define EXTRAS_E0_OR_4 (1u << 0 | 1u << 4)
#define TEXT_E0        " takes no extras"
#define TEXT_E1        " takes 1 byte of extras"
#define TEXT_E2        " takes 2 bytes of extras"
#define TEXT_E4        " takes 4 bytes of extras"
#define TEXT_E8        " takes 8 bytes of extras"
#define TEXT_E20       " takes 20 bytes of extras"
#define TEXT_E0_OR_4   " takes no extras, or 4 bytes"

#define KEY_NO        0, 0
#define KEY_MUST      1, HG_KEY_MAX_BYTES - 1
#define KEY_MAY       0, HG_KEY_MAX_BYTES
#define KEY_TEXT_NO   " takes no key"
#define KEY_TEXT_MUST " takes a key of 1 to 250 bytes"
#define KEY_TEXT_MAY  " takes a key of at most 250 bytes"

#define VALUE_NO       0, 0
#define VALUE_MAY      0, UINT32_MAX
#define VALUE_TWO      2, 0
#define VALUE_K1       1, 1024 - 1
#define VALUE_K16      1, 16 * 1024 - 1
#define VALUE_M1       1, 1024 * 1024 - 1
#define VALUE_TEXT_NO  " takes no value"
#define VALUE_TEXT_MAY " takes any value"
#define VALUE_TEXT_TWO " takes a value of 2 bytes"
#define VALUE_TEXT_K1  " takes a value of 1 to 1024 bytes"
#define VALUE_TEXT_K16 " takes a value of 1 to 16384 bytes"
#define VALUE_TEXT_M1  " takes a value of 1 to 1048576 bytes"
#define ADMIN_NO       false
#define ADMIN_MAY      false
#define ADMIN_TWO      false
#define ADMIN_K1       true
#define ADMIN_K16      true
#define ADMIN_M1       true

#define CAS_ANY  0
#define CAS_ZERO UINT64_MAX

// The two bytes "extras length, data type" of a header, read as one integer in host order.
#define QUICK_EXTRAS(len) (BYTE_ORDER == LITTLE_ENDIAN ? (len) : (len) << 8)
#define QUICK_NEVER       0x10000u // longer than two bytes: equals nothing that was read
#define QUICK_E0          QUICK_EXTRAS(0u)
#define QUICK_E1          QUICK_EXTRAS(1u)
#define QUICK_E2          QUICK_EXTRAS(2u)
#define QUICK_E4          QUICK_EXTRAS(4u)
#define QUICK_E8          QUICK_EXTRAS(8u)
#define QUICK_E20         QUICK_EXTRAS(20u)
#define QUICK_E0_OR_4     QUICK_EXTRAS(0u)

// The quick test's longest value. A value length that went below 0 is above every one of them.
#define QUICK_MAX_NO  0
#define QUICK_MAX_MAY INT32_MAX
#define QUICK_MAX_TWO 0
#define QUICK_MAX_K1  0
#define QUICK_MAX_K16 0
#define QUICK_MAX_M1  0

// Whether the quick test, which wants a key and knows no least length, suits a rule.
#define QUICK_KEY_NO    false
#define QUICK_KEY_MUST  true
#define QUICK_KEY_MAY   false
#define QUICK_VALUE_NO  true
#define QUICK_VALUE_MAY true
#define QUICK_VALUE_TWO false
#define QUICK_VALUE_K1  false
#define QUICK_VALUE_K16 false
#define QUICK_VALUE_M1  false

enum {
    OP_NONE = HG_OPS,
#define HG_OP(name, ...) OP_##name = HG_OP_##name,
#include "base/op.def"
#undef HG_OP
};

enum { QUIET = 1, KEYED = 2, OPEN = 4, INGRESS = 8 };

enum {
    R = HG_PRIVILEGE_BIT(HG_PRIVILEGE_READ),
    W = HG_PRIVILEGE_BIT(HG_PRIVILEGE_WRITE),
    T = HG_PRIVILEGE_BIT(HG_PRIVILEGE_BUCKET_THROTTLE_MANAGEMENT),
    N = HG_PRIVILEGE_BIT(HG_PRIVILEGE_NODE_SUPERVISOR),
};

// The initializer below is in the order of the struct where macros carry two fields.
#define RANGE_(min_field, span_field, pair)       RANGE__(min_field, span_field, pair)
#define RANGE__(min_field, span_field, min, span) .min_field = min, .span_field = span

enum {
#define HG_OPCODE(code, name, ...) ROW_##name,
#include "proto/opcode.def"
#undef HG_OPCODE
    ROW_COUNT
};

static const struct hg_opcode_row rows[ROW_COUNT] = {
#define HG_OPCODE(code_, name_, printed, EXTRAS, KEY, VALUE, CAS, LOUD, CLASS, NATURE, OP, flags,  \
                  needs_)                                                                          \
    [ROW_##name_] = {                                                                              \
        .quick_extras = QUICK_KEY_##KEY && QUICK_VALUE_##VALUE ? QUICK_##EXTRAS : QUICK_NEVER,     \
        .quick_value = QUICK_MAX_##VALUE,                                                          \
        .cas_mask = CAS_##CAS,                                                                     \
        .extras_lengths = EXTRAS_##EXTRAS,                                                         \
        RANGE_(value_min, value_span, VALUE_##VALUE),                                              \
        RANGE_(key_min, key_span, KEY_##KEY),                                                      \
        .known = true,                                                                             \
        .code = code_,                                                                             \
        .loud = HG_OPCODE_##LOUD,                                                                  \
        .op = OP_##OP,                                                                             \
        .op_class = HG_OPCODE_CLASS_##CLASS,                                                       \
        .nature = HG_OPCODE_##NATURE,                                                              \
        .quiet = ((flags)&QUIET) != 0,                                                             \
        .keyed = ((flags)&KEYED) != 0,                                                             \
        .before_login = ((flags)&OPEN) != 0,                                                       \
        .ingress = ((flags)&INGRESS) != 0,                                                         \
        .admin_value = ADMIN_##VALUE,                                                              \
        .needs = needs_,                                                                           \
        .name = printed,                                                                           \
        .extras_text = printed TEXT_##EXTRAS,                                                      \
        .key_text = printed KEY_TEXT_##KEY,                                                        \
        .value_text = printed VALUE_TEXT_##VALUE,                                                  \
        .cas_text = printed " takes CAS 0",                                                        \
    },
#include "proto/opcode.def"
#undef HG_OPCODE
};

static const struct hg_opcode_row unknown = {
    .quick_extras = QUICK_NEVER,
    .name = "unknown",
    .extras_text = "",
    .key_text = "",
    .value_text = "",
    .cas_text = "",
};

#define U1  &unknown
#define U4  U1, U1, U1, U1
#define U16 U4, U4, U4, U4
#define U64 U16, U16, U16, U16

// The unknown row everywhere, then the known ones over it: which is what is meant.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
const struct hg_opcode_row *const hg_opcode_table[256] = {
    U64,
    U64,
    U64,
    U64,
#define HG_OPCODE(code, name, ...) [code] = &rows[ROW_##name],
#include "proto/opcode.def"
#undef HG_OPCODE
};
#pragma GCC diagnostic pop

const char *hg_opcode_name(uint8_t opcode)
{
    return hg_opcode_table[opcode]->name;
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

static bool same_but_case(struct hg_span name, const char *text)
{
    for (size_t i = 0; i < name.len; i++)
        if (text[i] == 0 || lower(name.at[i]) != lower((uint8_t)text[i]))
            return false;
    return text[name.len] == 0;
}

bool hg_opcode_parse(struct hg_span name, uint8_t *ret_opcode)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (same_but_case(name, rows[i].name)) {
            *ret_opcode = rows[i].code;
            return true;
        }
    return false;
}
