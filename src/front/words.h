// words - what refusals say, kept for the next one that says the same
// SPDX-License-Identifier: BSD-3-Clause
//
// A refusal is to cost far less than what it refuses, and under a flood most say the same: so their
// encoded values are kept, a few of each worker. Whom a value speaks of is known by its address
// only; a new directory empties the memory, since others may get that address then.
#ifndef HG_FRONT_WORDS_H
#define HG_FRONT_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define HG_WORDS_ENTRIES 64
#define HG_WORDS_BYTES   480

enum hg_words_kind {
    HG_WORDS_LATE,
    HG_WORDS_FULL,
    HG_WORDS_FLOOD,
    HG_WORDS_KEY,
    HG_WORDS_BIND,
    HG_WORDS_HOT
};

/* What a value says: kind, and numbers that it mentions. */
struct hg_words_key {
    const void *of;
    uint8_t kind; /* enum hg_words_kind */
    uint8_t json; /* for a client with JSON */
    uint16_t number;
    uint32_t other;
};

struct hg_words {
    struct hg_words_entry {
        struct hg_words_key key;
        uint16_t len; /* 0: empty */
        uint8_t bytes[HG_WORDS_BYTES];
    } entries[HG_WORDS_ENTRIES];
};

/* The value, or an empty span. It holds until the next call of hg_words_keep. */
struct hg_span hg_words_find(const struct hg_words *words, const struct hg_words_key *key);
/* Makes the value of a text and of members for JSON, cut to fit, and keeps it. */
struct hg_span hg_words_keep(struct hg_words *words, const struct hg_words_key *key,
                             const char *text, const char *members);
void hg_words_forget(struct hg_words *words);

#endif
