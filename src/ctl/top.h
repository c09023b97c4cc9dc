// top - the parts of the verb top: what the server says, what is made of it, how it is shown
// SPDX-License-Identifier: BSD-3-Clause
//
//   topfetch.c   asks the server for groups of statistics: a sample
//   topsample.c  values of a sample, and rates from the differences of two
//   toppage.c    the rows of a page (topclient.c: of connections)
//   topsum.c     the lines above it, and who is throttled and why
//   topview.h    rows: order, filter, widths
//   topscreen.c  the terminal and its keys (topdraw.c: drawing)
//   top.c        the verb, and the output without a terminal
//
// Samples and pages know no terminal, no socket and no clock.
#ifndef HG_CTL_TOP_H
#define HG_CTL_TOP_H

#include "ctl/ctl.h"
#include "ctl/topview.h"

enum hg_top_page {
    HG_TOP_TENANTS,
    HG_TOP_HOTKEYS,
    HG_TOP_UPSTREAMS,
    HG_TOP_CONNECTIONS,
    HG_TOP_PAGES
};

/* Groups of statistics; which of them a page needs is topfetch.c's. */
enum hg_top_group {
    HG_TOP_GENERAL,
    HG_TOP_BUCKETS,
    HG_TOP_HOT,
    HG_TOP_BINDS,
    HG_TOP_STORES,
    HG_TOP_TICKETS,
    HG_TOP_CLIENTS,
    HG_TOP_GROUPS
};

/* A row of a group; `json` is its value if that is an object. */
struct hg_top_entry {
    const struct hg_ctl_row *row;
    json_t *json;
};

struct hg_top_part {
    bool fetched;
    uint64_t at_us; /* when */
    struct hg_ctl_rows rows;
    char *refused;                /* why the server does not say; or NULL */
    struct hg_top_entry *entries; /* those rows, by name */
};

struct hg_top_sample {
    struct hg_top_part parts[HG_TOP_GROUPS];
};

/* ---- topsample.c ---- */

void hg_top_sample_free(struct hg_top_sample *sample);
/* Once the rows are there. */
void hg_top_part_index(struct hg_top_part *part);
/* The row of a name; NULL: there is none. A part may be NULL. */
const struct hg_top_entry *hg_top_find(const struct hg_top_part *part, const char *name);
/* Its value as a number; NAN when there is none. */
double hg_top_number(const struct hg_top_part *part, const char *name);
const char *hg_top_text(const struct hg_top_part *part, const char *name);
/* How much a counter grew a second between two parts; NAN when that is not known: there is no
   earlier one, or the counter was set to 0 in between. */
double hg_top_rate(const struct hg_top_part *before, const struct hg_top_part *now, double earlier,
                   double later);
/* The same of the counter of this name. */
double hg_top_rate_of(const struct hg_top_part *before, const struct hg_top_part *now,
                      const char *name);
/* Is it the same process, with the same counters? Otherwise no rates can be told. */
bool hg_top_follows(const struct hg_top_sample *before, const struct hg_top_sample *now);
/* Numbers as they are shown: "0.5", "1234", "567k"; "-" for NAN. */
void hg_top_format(double number, char ret[16]);
/* As JSON, to two decimals; null, or "unlimited", if it is no number. */
json_t *hg_top_json_of(double number);

/* ---- toppage.c: `before` may be NULL ---- */

extern const char *const hg_top_page_names[HG_TOP_PAGES]; /* "tenants", "hot keys", ... */
/* By which column a page is sorted at first. */
unsigned hg_top_page_order(enum hg_top_page page);
/* The view is to be initialised and empty. */
void hg_top_page_build(enum hg_top_page page, const struct hg_top_sample *before,
                       const struct hg_top_sample *now, struct hg_top_view *view);
/* Why a page shows nothing: the server's words; NULL: it may be seen. */
const char *hg_top_page_refused(enum hg_top_page page, const struct hg_top_sample *now);

/* ---- topsum.c ---- */

/* Refusals of a tenant, or of the whole server, a second. */
double hg_top_refused_rate(const struct hg_top_part *before, const struct hg_top_part *now,
                           const json_t *tenant_before, const json_t *tenant_now);
/* What a tenant's requests are held or refused for, the most frequent first; "": nothing. */
void hg_top_why(const struct hg_top_part *before, const struct hg_top_part *now,
                const json_t *tenant_before, const json_t *tenant_now, char *ret, size_t size);
/* That it is far beyond its hard limit although it is held to it, and what it owes; "": neither. */
void hg_top_beyond(const struct hg_top_part *before, const struct hg_top_part *now,
                   const json_t *tenant_before, const json_t *tenant_now, char *ret, size_t size);
/* Lines of the head, as text without control characters. */
enum { HG_TOP_HEAD_LINES = 3, HG_TOP_LINE_BYTES = 512 };
void hg_top_head(const struct hg_top_sample *before, const struct hg_top_sample *now,
                 char ret[HG_TOP_HEAD_LINES][HG_TOP_LINE_BYTES]);
json_t *hg_top_head_json(const struct hg_top_sample *before, const struct hg_top_sample *now);
/* Is somebody throttled? */
bool hg_top_is_calm(const struct hg_top_sample *before, const struct hg_top_sample *now);

/* A server of an upstream in words: its breaker's state, and whether it was ever asked at all.
   `requests`, `probes`, `failures` so far; NAN: unknown, which is no sign of idleness. Connections
   that it allows, 0 or NAN: all. */
const char *hg_ctl_server_word(const char *breaker, double requests, double probes, double failures,
                               double connect_target);

/* ---- topfetch.c ---- */

/* What a page shows, or with HG_TOP_PAGES all pages. An exit code; what is wrong has been said.
   The sample is empty before, and to be freed in any case. */
HG_MUST_USE int hg_top_fetch(struct hg_ctl *ctl, enum hg_top_page page,
                             struct hg_top_sample *sample);

/* ---- topterm.c, topscreen.c ---- */

/* Can the terminal show a screen? An exit code. */
HG_MUST_USE int hg_top_check_terminal(void);

/* The live screen, until it is left. An exit code. */
HG_MUST_USE int hg_top_screen(struct hg_ctl *ctl, uint64_t interval_us);

#endif
