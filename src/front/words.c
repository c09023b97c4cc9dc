// words - what refusals say, kept for the next one that says the same
// SPDX-License-Identifier: BSD-3-Clause
#include "front/words.h"

#include "proto/reply.h"

static unsigned place_of(const struct hg_words_key *key)
{
    uint64_t mixed = (uintptr_t)key->of ^ ((uint64_t)key->kind << 40) ^
                     ((uint64_t)key->json << 44) ^ ((uint64_t)key->number << 24) ^ key->other;
    return (unsigned)((mixed * 0x9e3779b97f4a7c15u) >> 58); /* 64 entries */
}

static bool same(const struct hg_words_key *a, const struct hg_words_key *b)
{
    return a->of == b->of && a->kind == b->kind && a->json == b->json && a->number == b->number &&
           a->other == b->other;
}

struct hg_span hg_words_find(const struct hg_words *words, const struct hg_words_key *key)
{
    const struct hg_words_entry *entry = &words->entries[place_of(key)];
    if (entry->len == 0 || !same(&entry->key, key))
        return HG_SPAN_NONE;
    return hg_span(entry->bytes, entry->len);
}

struct hg_span hg_words_keep(struct hg_words *words, const struct hg_words_key *key,
                             const char *text, const char *members)
{
    struct hg_words_entry *entry = &words->entries[place_of(key)];
    entry->key = *key;
    entry->len = (uint16_t)hg_reply_error_value(entry->bytes, sizeof entry->bytes, key->json,
                                                hg_span_str(text), hg_span_str(members));
    return hg_span(entry->bytes, entry->len);
}

void hg_words_forget(struct hg_words *words)
{
    for (unsigned i = 0; i < HG_WORDS_ENTRIES; i++)
        words->entries[i].len = 0;
}
