// opcode - every opcode, what it may carry, what it is, and who may send it
// SPDX-License-Identifier: BSD-3-Clause
//
// The table is opcode.def; this is how the program reads it. The lengths are kept as bit sets
// and ranges, so that the check of a frame is a few additions and no branch. Pure.
#ifndef HG_PROTO_OPCODE_H
#define HG_PROTO_OPCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/op.h"
#include "base/privilege.h"
#include "base/span.h"
#include "proto/wire.h"

enum hg_opcode {
#define HG_OPCODE(code, name, ...) HG_OPCODE_##name = code,
#include "proto/opcode.def"
#undef HG_OPCODE
};

enum hg_opcode_class {
    HG_OPCODE_CLASS_DATA,    // a store carries it out; `op` says what
    HG_OPCODE_CLASS_SESSION, // about this connection
    HG_OPCODE_CLASS_STAT,
    HG_OPCODE_CLASS_ADMIN,
    HG_OPCODE_CLASS_TABLE, // a table operation; its extras say which
};

/* What happens to data; READS | WRITES = both. */
enum hg_opcode_nature {
    HG_OPCODE_NEITHER = 0,
    HG_OPCODE_READS = 1,
    HG_OPCODE_WRITES = 2,
    HG_OPCODE_BOTH = 3,
};

struct hg_opcode_row {
    // The quick test, for rows with a key and without a least length of the value: a frame that
    // passes it is right. What does not pass is tested by the exact shape below.
    uint32_t quick_extras; // extras length and data type 0 as they lie in a header; else no 16 bits
    uint32_t quick_value;  // longest value; below what a negative length would be
    uint64_t cas_mask;     // a CAS may have none of these bits: all of them, or none
    // Shape: a length is right when (length - min) as unsigned is at most the span.
    uint32_t extras_lengths; // bit n is set: n bytes of extras are right
    uint32_t value_min;
    uint32_t value_span;
    uint16_t key_min;
    uint16_t key_span;
    // Meaning.
    bool known;
    uint8_t code;
    uint8_t loud; // the opcode that does the same and always answers
    uint8_t op;   // enum hg_op; HG_OPS where no store is asked
    uint8_t op_class;
    uint8_t nature;
    bool quiet;              // silent on success, or on a miss where it reads
    bool keyed;              // the reply carries the key
    bool before_login;       // allowed before login
    bool ingress;            // refused while 2b blocks the bucket
    bool admin_value;        // the value has a limit of its own, not the item limit
    uint32_t needs;          // set of privileges that must all be held
    const char *name;        // as printed: "GetKQ"
    const char *extras_text; // what is right, in a sentence with the name
    const char *key_text;
    const char *value_text;
    const char *cas_text;
};

/* All 256; those of unknown opcodes point to a row that no frame fits, with `known` unset. */
extern const struct hg_opcode_row *const hg_opcode_table[256];

/* The row of an opcode; NULL when it is unknown. */
static inline const struct hg_opcode_row *hg_opcode_row(uint8_t opcode)
{
    const struct hg_opcode_row *row = hg_opcode_table[opcode];
    return row->known ? row : NULL;
}

/* The printed name; "unknown" when there is none. */
const char *hg_opcode_name(uint8_t opcode);

/* Finds an opcode by its printed name, whatever the case. False when there is none. */
bool hg_opcode_parse(struct hg_span name, uint8_t *ret_opcode) HG_MUST_USE;

#endif
