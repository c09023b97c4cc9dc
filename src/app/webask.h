// webask - what only other threads may look at, asked for by letter and kept for a moment
// SPDX-License-Identifier: BSD-3-Clause
//
//   HTTP ── letter ──► housekeeping: copies the records of hot keys ──► HTTP: makes the text
//   HTTP ── letter ──► worker 0 ──► worker 1 ... : each copies its slow log ──► HTTP
//
// One letter is under way at a time, whoever asks: requests that come meanwhile are answered with
// what it brings. What it brought is good for a while, so that no number of clients makes the
// others work more than that often.
#ifndef HG_APP_WEBASK_H
#define HG_APP_WEBASK_H

#include <event2/http.h>

#include "app/webtext.h"
#include "base/list.h"
#include "front/worker.h"

#define HG_WEBASK_FRESH_US 250000 /* how long an answer is good */

struct hg_web;

/* A key as it is shown; the tenant's name and the key are copies. */
struct hg_webask_key {
    char tenant[HG_BUCKET_NAME_MAX + 1];
    uint64_t activity; /* operations of the tenant in the epoch */
    uint64_t threshold;
    uint8_t type, percent, rank;
    uint8_t table_len, len;
    uint64_t freq, error;
    uint8_t key[HG_HOTKEY_KEY_MAX];
};

struct hg_webask {
    struct hg_letter letter;
    struct hg_web *web;
    struct hg_list waiting; /* requests */
    bool under_way;
    bool failed;     /* memory was out */
    uint64_t got_us; /* when the last answer came; 0: none yet */
    /* What came, rows of one of these; written by whom the letter is with. */
    struct hg_webask_key *keys;
    struct hg_slow_entry *slow;
    size_t count, cap;
    uint64_t epoch;
};

void hg_webask_init(struct hg_webask *ask, struct hg_web *web);
/* When no letter is under way any more, or never will be delivered. */
void hg_webask_fini(struct hg_webask *ask);
/* Answers the request, at once or when the letter is back. */
void hg_webask_hotkeys(struct hg_web *web, struct evhttp_request *request);
void hg_webask_slow(struct hg_web *web, struct evhttp_request *request);
/* The connections have gone, and requests with them. */
void hg_webask_drop(struct hg_webask *ask);

#endif
