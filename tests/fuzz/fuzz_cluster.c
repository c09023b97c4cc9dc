// fuzz_cluster - any bytes as what servers of a Redis Cluster say of slots and of each other
// SPDX-License-Identifier: BSD-3-Clause
//
// Input: one byte that chooses, then what the server says: a reply to CLUSTER SLOTS (behind up to
// three of a login), which is read as a whole and byte by byte with the same outcome; or the text
// of a redirect, and a key. What is taken must hold together.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "back/slotsreply.h"
#include "fuzz.h"
#include "proto/keyslot.h"
#include "proto/redirect.h"

// Stays on in every build: a broken promise must stop the fuzzer.
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static struct hg_slotsreply *read_slots(const uint8_t *data, size_t size, unsigned before,
                                        size_t piece, enum hg_codec *ret_codec)
{
    struct hg_slotsreply *reply = hg_slotsreply_new("10.0.0.1:6379", before);
    MUST(reply != NULL);
    *ret_codec = HG_MORE;
    for (size_t at = 0; at < size && *ret_codec == HG_MORE; at += piece)
        *ret_codec = hg_slotsreply_feed(reply, data + at, size - at < piece ? size - at : piece);
    MUST((*ret_codec == HG_BAD) == (hg_slotsreply_why(reply)[0] != '\0'));
    return reply;
}

static void check_slots(const struct hg_slots *slots)
{
    uint32_t uncovered = 0;
    MUST(slots->node_count <= HG_SLOTS_NODES_MAX);
    for (uint32_t slot = 0; slot < HG_KEYSLOTS; slot++) {
        uint16_t owner = slots->owner[slot];
        uncovered += owner == HG_SLOTS_NONE;
        MUST(owner == HG_SLOTS_NONE || (owner < slots->node_count && slots->nodes[owner].owns));
    }
    MUST(uncovered == slots->uncovered);
    for (uint32_t n = 0; n < slots->node_count; n++) {
        char again[HG_REDIRECT_ADDRESS];
        const char *address = slots->nodes[n].address;
        MUST(hg_redirect_target(hg_span_str(address), "x:1", again));
        MUST(strcmp(again, address) == 0);
    }
}

static void try_slots(const uint8_t *data, size_t size, unsigned before)
{
    enum hg_codec whole, split;
    struct hg_slotsreply *a = read_slots(data, size, before, SIZE_MAX, &whole);
    struct hg_slotsreply *b = read_slots(data, size, before, 1, &split);
    MUST(whole == split);
    if (whole == HG_OK) {
        check_slots(hg_slotsreply_slots(a));
        MUST(memcmp(hg_slotsreply_slots(a), hg_slotsreply_slots(b), sizeof(struct hg_slots)) == 0);
    }
    hg_slotsreply_free(a);
    hg_slotsreply_free(b);
}

static void try_redirect(struct hg_span text)
{
    struct hg_redirect redirect;
    MUST(hg_keyslot_of(text) < HG_KEYSLOTS);
    if (!hg_redirect_decode(text, "[::1]:6379", &redirect))
        return;
    char again[HG_REDIRECT_ADDRESS];
    MUST(redirect.slot < HG_KEYSLOTS);
    MUST(hg_redirect_target(hg_span_str(redirect.address), "x:1", again));
    MUST(strcmp(again, redirect.address) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] & 4)
        try_redirect(hg_span(data + 1, size - 1));
    else
        try_slots(data + 1, size - 1, data[0] & 3);
    return 0;
}
