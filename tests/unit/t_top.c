// t_top - headgatectl's top without a terminal: rates, pages, order, filter, widths
// SPDX-License-Identifier: BSD-3-Clause
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/top.h"

/* ---- samples ---- */

static void add(struct hg_top_part *part, const char *name, const char *value)
{
    struct hg_ctl_rows *rows = &part->rows;
    rows->row = realloc(rows->row, (rows->count + 1) * sizeof *rows->row);
    assert_non_null(rows->row);
    rows->row[rows->count++] =
        (struct hg_ctl_row){strdup(name), strdup(value), strlen(name), strlen(value)};
}

struct pair {
    const char *name, *value;
};

static void fill(struct hg_top_sample *sample, enum hg_top_group group, uint64_t at_us,
                 const struct pair *pairs)
{
    struct hg_top_part *part = &sample->parts[group];
    for (; pairs->name != NULL; pairs++)
        add(part, pairs->name, pairs->value);
    part->at_us = at_us;
    part->fetched = true;
    hg_top_part_index(part);
}

#define FILL(sample, group, at_us, ...)                                                            \
    fill(sample, group, at_us, (const struct pair[]){__VA_ARGS__, {NULL, NULL}})

/* Another one of the same groups that has nothing. */
static void fill_rest(struct hg_top_sample *sample)
{
    for (int g = 0; g < HG_TOP_GROUPS; g++)
        if (sample->parts[g].entries == NULL)
            hg_top_part_index(&sample->parts[g]);
}

static unsigned column_of(const struct hg_top_view *view, const char *heading)
{
    for (unsigned c = 0; c < view->column_count; c++)
        if (strcmp(view->columns[c].heading, heading) == 0)
            return c;
    fail_msg("no column %s", heading);
    return 0;
}

static const char *cell(const struct hg_top_view *view, size_t line, const char *heading)
{
    return view->lines[line].cells[column_of(view, heading)].text;
}

/* ---- numbers ---- */

static void test_format(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {NAN, "-"},         {0, "0"},           {0.04, "0.0"},       {1, "1"},
        {1.5, "1.5"},       {9.94, "9.9"},      {9.96, "10"},        {1234.4, "1234"},
        {999999, "999999"}, {1000000, "1000k"}, {9999999, "10000k"}, {10000000, "10M"},
        {1e12, "1000G"},    {1e18, "1e+18"},    {-1, "-"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        char text[16];
        hg_top_format(cases[i].number, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_rates(void **state)
{
    (void)state;
    struct hg_top_sample a = {0}, b = {0};
    FILL(&a, HG_TOP_GENERAL, 1000000, {"cmd_total", "100"}, {"pid", "7"}, {"uptime", "10"},
         {"odd", "12x"});
    FILL(&b, HG_TOP_GENERAL, 1500000, {"cmd_total", "150"}, {"pid", "7"}, {"uptime", "11"});
    const struct hg_top_part *x = &a.parts[HG_TOP_GENERAL], *y = &b.parts[HG_TOP_GENERAL];
    assert_true(hg_top_rate_of(x, y, "cmd_total") == 100);
    assert_true(isnan(hg_top_rate_of(NULL, y, "cmd_total")));
    assert_true(isnan(hg_top_rate_of(y, x, "cmd_total"))); /* time goes back */
    assert_true(isnan(hg_top_rate_of(x, y, "nothing")));
    assert_true(isnan(hg_top_number(x, "odd")));
    assert_true(isnan(hg_top_rate(x, y, 5, 4))); /* set to 0 in between */
    assert_true(hg_top_follows(&a, &b));
    assert_false(hg_top_follows(&b, &a)); /* started again, with the same pid */
    hg_top_sample_free(&a);
    FILL(&a, HG_TOP_GENERAL, 1000000, {"pid", "8"}, {"uptime", "10"});
    assert_false(hg_top_follows(&a, &b));
    hg_top_sample_free(&a);
    hg_top_sample_free(&b);
}

/* ---- tenants ---- */

#define LIMITS "\"throttle_reserved\":100,\"throttle_hard_limit\":\"unlimited\","

static void two_samples(struct hg_top_sample *a, struct hg_top_sample *b)
{
    *a = *b = (struct hg_top_sample){0};
    FILL(a, HG_TOP_GENERAL, 0, {"pid", "7"}, {"uptime", "10"}, {"cmd_total", "0"},
         {"outcome_hot_key", "0"});
    FILL(b, HG_TOP_GENERAL, 1000000, {"pid", "7"}, {"uptime", "90061"}, {"cmd_total", "500"},
         {"version", "1.0\x1b[2J"}, {"outcome_hot_key", "20"}, {"held_now", "4"},
         {"in_flight", "2"}, {"curr_connections", "3"}, {"max_connections", "10"});
    FILL(a, HG_TOP_BUCKETS, 0,
         {"shop", "{\"state\":\"active\"," LIMITS
                  "\"units\":0,\"requests\":0,\"held\":0,\"clients\":1,\"held_for_hard_limit\":0,"
                  "\"hotkey_rejected\":0,\"outcomes\":{\"hot_key\":0,\"success\":0}}"},
         {"calm", "{\"state\":\"active\",\"units\":5,\"requests\":5,\"outcomes\":{}}"});
    FILL(b, HG_TOP_BUCKETS, 1000000,
         {"shop",
          "{\"state\":\"active\"," LIMITS
          "\"units\":200,\"requests\":220,\"held\":4,\"clients\":2,\"held_for_hard_limit\":9,"
          "\"hotkey_rejected\":20,\"outcomes\":{\"hot_key\":20,\"success\":200}}"},
         {"calm", "{\"state\":\"active\",\"units\":1005,\"requests\":5,\"outcomes\":{}}"},
         {"new", "{\"state\":\"paused\",\"units\":5,\"requests\":5,\"outcomes\":{}}"},
         {"broken", "{\"state\""});
    fill_rest(a);
    fill_rest(b);
}

static void test_tenants(void **state)
{
    (void)state;
    struct hg_top_sample a, b;
    struct hg_top_view view;
    two_samples(&a, &b);
    hg_top_page_build(HG_TOP_TENANTS, &a, &b, &view);
    assert_int_equal(view.count, 3); /* what is no JSON is left out */
    hg_top_view_sort(&view, hg_top_page_order(HG_TOP_TENANTS), false);
    assert_string_equal(cell(&view, 0, "TENANT"), "calm");
    assert_string_equal(cell(&view, 0, "UNITS/S"), "1000");
    assert_string_equal(cell(&view, 0, "WHY"), "");
    assert_string_equal(cell(&view, 1, "TENANT"), "shop");
    assert_string_equal(cell(&view, 1, "UNITS/S"), "200");
    assert_string_equal(cell(&view, 1, "RESERVED"), "100");
    assert_string_equal(cell(&view, 1, "LIMIT"), "-");
    assert_string_equal(cell(&view, 1, "REQ/S"), "220");
    assert_string_equal(cell(&view, 1, "REFUSED/S"), "20");
    assert_string_equal(cell(&view, 1, "WHY"), "hot key, hard limit"); /* the most frequent first */
    assert_int_equal(view.lines[1].mark, HG_TOP_BAD);
    assert_string_equal(cell(&view, 2, "TENANT"), "new"); /* no rates yet */
    assert_string_equal(cell(&view, 2, "UNITS/S"), "-");
    assert_string_equal(cell(&view, 2, "WHY"), "paused");
    hg_top_view_fini(&view);
    hg_top_sample_free(&a);
    hg_top_sample_free(&b);
}

/* Who is held stays so for the limit that began it, whatever is counted anew in a second. */
static void test_why_it_is_held(void **state)
{
    static const struct {
        const char *before, *now, *why;
    } cases[] = {
        /* nothing new was held, but four still are */
        {"'held':4,'held_for':'hard_limit','held_for_hard_limit':9",
         "'held':4,'held_for':'hard_limit','held_for_hard_limit':9", "hard limit"},
        {"'held':0", "'held':4,'held_for':'share'", "share"},
        {"'held':0", "'held':4,'held_for':'none'", "credits"},
        {"'held':0", "'held':4", "credits"}, /* an older server */
        /* those behind others count with them */
        {"'held_for_pool':0,'hotkey_rejected':0,'held_behind_others':0",
         "'held':0,'held_for':'free_pool','held_for_pool':1,'hotkey_rejected':5,"
         "'held_behind_others':19",
         "free pool, hot key"},
        /* refused after a wait that began earlier */
        {"'held':3,'outcomes':{'throttled_too_long':0}",
         "'held':0,'held_for':'hard_limit','outcomes':{'throttled_too_long':3}", "hard limit"},
        {"'held':4,'held_for':'hard_limit'", "'held':0,'held_for':'hard_limit'", ""},
        /* only counted */
        {"'credit_mode':'observe','held_for_hard_limit':0,'held_behind_others':0",
         "'credit_mode':'observe','held_for_hard_limit':9,'held_behind_others':9,"
         "'held_for':'hard_limit','held':0",
         ""},
    };
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_top_part part[2] = {{.fetched = true}, {.fetched = true, .at_us = 1000000}};
        json_t *tenant[2];
        char why[200];
        for (int j = 0; j < 2; j++) {
            char text[400];
            snprintf(text, sizeof text, "{'state':'active',%s}",
                     j == 0 ? cases[i].before : cases[i].now);
            for (char *at = text; *at != '\0'; at++)
                *at = *at == '\'' ? '"' : *at;
            tenant[j] = json_loads(text, 0, NULL);
            assert_non_null(tenant[j]);
        }
        hg_top_why(&part[0], &part[1], tenant[0], tenant[1], why, sizeof why);
        if (strcmp(why, cases[i].why) != 0)
            fail_msg("%s: '%s'", cases[i].now, why);
        json_decref(tenant[0]);
        json_decref(tenant[1]);
    }
}

/* Users that nothing holds: the tenant is beyond its limit, and nobody is throttled. */
static void test_beyond_its_limit(void **state)
{
    struct hg_top_sample a = {0}, b = {0};
    struct hg_top_view view;
    char head[HG_TOP_HEAD_LINES][HG_TOP_LINE_BYTES];
    (void)state;
    FILL(&a, HG_TOP_BUCKETS, 0, {"bulk", "{\"state\":\"active\",\"units\":0,\"units_exempt\":0}"},
         {"edge", "{\"state\":\"active\",\"units\":0,\"units_exempt\":0}"},
         {"owes", "{\"state\":\"active\",\"units\":0,\"units_exempt\":0}"});
    FILL(&b, HG_TOP_BUCKETS, 1000000,
         {"bulk", "{\"state\":\"active\",\"units\":195670,\"units_exempt\":195000,"
                  "\"throttle_hard_limit\":500,\"slot_used\":9100,\"slot_hard_limit\":100}"},
         {"edge", "{\"state\":\"active\",\"units\":750,\"units_exempt\":750,"
                  "\"throttle_hard_limit\":500,\"slot_used\":110,\"slot_hard_limit\":100}"},
         {"owes", "{\"state\":\"active\",\"units\":9000,\"units_exempt\":0,"
                  "\"throttle_hard_limit\":500,\"slot_used\":9100,\"slot_hard_limit\":100}"});
    fill_rest(&a);
    fill_rest(&b);
    hg_top_page_build(HG_TOP_TENANTS, &a, &b, &view);
    assert_string_equal(cell(&view, 0, "WHY"),
                        "above its limit: exempt users, in debt: 9000 units");
    assert_int_equal(view.lines[0].mark, HG_TOP_NOTED);
    assert_string_equal(cell(&view, 1, "WHY"), "");
    assert_string_equal(cell(&view, 2, "WHY"), "in debt: 9000 units");
    hg_top_head(&a, &b, head);
    assert_string_equal(head[2], "throttled: nobody; 2 above their limits");
    hg_top_view_fini(&view);
    hg_top_sample_free(&a);
    hg_top_sample_free(&b);
}

static void test_head(void **state)
{
    (void)state;
    struct hg_top_sample a, b;
    char head[HG_TOP_HEAD_LINES][HG_TOP_LINE_BYTES];
    two_samples(&a, &b);
    hg_top_head(&a, &b, head);
    assert_string_equal(head[0], "headgate 1.0\\x1b[2J, process 7, up 1 d 01:01:01");
    assert_string_equal(head[1], "requests 500/s, refused 20/s, held 4, in stores 2, connections 3 "
                                 "of 10");
    assert_string_equal(head[2], "throttled: new (paused), shop (hot key, hard limit)");
    assert_false(hg_top_is_calm(&a, &b));
    hg_top_head(NULL, &b, head);
    assert_non_null(strstr(head[1], "requests -/s, refused -/s"));
    assert_string_equal(head[2], "throttled: new (paused), shop (credits)");
    json_t *json = hg_top_head_json(&a, &b);
    assert_int_equal(json_integer_value(json_object_get(json, "requests_per_s")), 500);
    assert_int_equal(json_array_size(json_object_get(json, "throttled")), 2);
    json_decref(json);
    hg_top_sample_free(&a);
    hg_top_sample_free(&b);
}

/* A thousand names do not fit: how many are left out is said. */
static void test_many_throttled(void **state)
{
    (void)state;
    struct hg_top_sample b = {0};
    char head[HG_TOP_HEAD_LINES][HG_TOP_LINE_BYTES];
    for (unsigned i = 0; i < 1000; i++) {
        char name[200];
        snprintf(name, sizeof name, "\x01%0*u", (int)(i % 100) + 1, i);
        add(&b.parts[HG_TOP_BUCKETS], name, "{\"state\":\"paused\"}");
    }
    fill_rest(&b);
    hg_top_head(NULL, &b, head);
    assert_non_null(strstr(head[2], " more"));
    assert_true(strlen(head[2]) < HG_TOP_LINE_BYTES);
    for (const char *at = head[2]; *at != '\0'; at++)
        assert_true(*at >= ' ' && *at <= '~');
    hg_top_sample_free(&b);
}

/* ---- other pages ---- */

static void test_hot_keys(void **state)
{
    (void)state;
    struct hg_top_sample b = {0};
    struct hg_top_view view;
    FILL(&b, HG_TOP_BUCKETS, 1, {"shop", "{\"hotkey_mode\":\"enforce\",\"bind_mode\":\"observe\"}"},
         {"toys", "{\"hotkey_mode\":\"observe\",\"bind_mode\":\"enforce\"}"});
    FILL(&b, HG_TOP_HOT, 1,
         {"hotkeys:1", "{\"TENANT\":\"shop\",\"TABLE\":\"\",\"HOTKEY\":\"a\\\\x00b\\u00e9\","
                       "\"HOTKEY_TYPE\":\"TABLE_HOTKEY_QUERY\",\"HOTKEY_FREQ\":100,\"ERROR\":1,"
                       "\"THROTTLE_PERCENT\":30,\"REJECTED\":33}"},
         {"hotkeys:2", "{\"TENANT\":\"toys\",\"HOTKEY\":\"k\",\"HOTKEY_TYPE\":\"?\","
                       "\"HOTKEY_FREQ\":200,\"THROTTLE_PERCENT\":10}"},
         {"hotkeys:3", "nonsense"});
    FILL(&b, HG_TOP_BINDS, 1, {"rounds_begun", "1"},
         {"bindthrottle:1", "{\"class\":\"shop/QUERY\",\"k\":\"key\",\"v\":\"slow\","
                            "\"allowEveryX\":5,\"passed\":1,\"refused\":4}"},
         {"bindthrottle:2", "{\"class\":\"toys\",\"k\":\"t\",\"v\":\"r\",\"allowEveryX\":4}"});
    fill_rest(&b);
    hg_top_page_build(HG_TOP_HOTKEYS, NULL, &b, &view);
    hg_top_view_sort(&view, hg_top_page_order(HG_TOP_HOTKEYS), false);
    assert_int_equal(view.count, 4);
    assert_string_equal(cell(&view, 0, "KEY"), "k");
    assert_string_equal(cell(&view, 0, "THROTTLE"), "(10 %)");
    assert_string_equal(cell(&view, 1, "KEY"), "a\\x00b??"); /* escaped by the server; no UTF-8 */
    assert_string_equal(cell(&view, 1, "TYPE"), "query");
    assert_string_equal(cell(&view, 1, "THROTTLE"), "30 %");
    assert_string_equal(cell(&view, 1, "REFUSED"), "33");
    assert_string_equal(cell(&view, 2, "KEY"), "r");
    assert_string_equal(cell(&view, 2, "THROTTLE"), "1 in 4");
    assert_string_equal(cell(&view, 3, "KEY"), "slow");
    assert_string_equal(cell(&view, 3, "THROTTLE"), "(1 in 5)");
    assert_string_equal(cell(&view, 3, "TABLE"), "");
    hg_top_view_fini(&view);
    hg_top_sample_free(&b);
}

static void test_upstreams(void **state)
{
    (void)state;
    struct hg_top_sample a = {0}, b = {0};
    struct hg_top_view view;
    FILL(&a, HG_TOP_STORES, 0, {"cache:0:requests", "0"}, {"cache:0:timeouts", "0"},
         {"cache:0:connect_failures", "0"}, {"cache:0:lost", "0"}, {"cache:0:bad_replies", "0"},
         {"cache:0:refused_down", "0"});
    FILL(&b, HG_TOP_STORES, 2000000, {"cache:kind", "memcached"},
         {"cache:0:address", "10.0.0.1:11211"}, {"cache:0:state", "closed"},
         {"cache:0:requests", "300"}, {"cache:0:timeouts", "4"}, {"cache:0:connect_failures", "0"},
         {"cache:0:lost", "2"}, {"cache:0:bad_replies", "0"}, {"cache:0:refused_down", "0"},
         {"cache:0:connections", "2"}, {"cache:1:address", "10.0.0.2:11211"},
         {"cache:1:state", "closed"}, {"cache:1:requests", "0"}, {"cache:1:probes", "0"},
         {"cache:2:address", "10.0.0.3:11211"}, {"cache:2:state", "open"},
         {"main:kind", "embedded"}, {":address", "x"}, {"odd:address", "x"});
    FILL(&b, HG_TOP_TICKETS, 2000000, {"cache:read:out", "3"}, {"cache:read:totalTickets", "64"},
         {"cache:read:queueLength", "5"}, {"cache:write:queueLength", "1"});
    fill_rest(&a);
    fill_rest(&b);
    hg_top_page_build(HG_TOP_UPSTREAMS, &a, &b, &view);
    hg_top_view_sort(&view, hg_top_page_order(HG_TOP_UPSTREAMS), false);
    assert_int_equal(view.count, 4);
    assert_string_equal(cell(&view, 0, "SERVER"), "10.0.0.1:11211");
    assert_string_equal(cell(&view, 0, "STATE"), "up");
    assert_string_equal(cell(&view, 0, "REQ/S"), "150");
    assert_string_equal(cell(&view, 0, "ERR/S"), "3");
    assert_string_equal(cell(&view, 0, "READ"), "3/64");
    assert_string_equal(cell(&view, 0, "WRITE"), "-/-");
    assert_string_equal(cell(&view, 0, "QUEUED"), "6");
    assert_string_equal(cell(&view, 1, "STATE"), "not asked yet");
    assert_int_equal(view.lines[1].mark, HG_TOP_NOTED); /* for those queued */
    assert_string_equal(cell(&view, 2, "STATE"), "down");
    assert_int_equal(view.lines[2].mark, HG_TOP_BAD);
    assert_string_equal(cell(&view, 3, "UPSTREAM"), "main");
    hg_top_view_fini(&view);
    hg_top_sample_free(&a);
    hg_top_sample_free(&b);
}

static void test_connections(void **state)
{
    (void)state;
    struct hg_top_sample a = {0}, b = {0};
    struct hg_top_view view;
    FILL(
        &a, HG_TOP_CLIENTS, 0,
        {"0:1", "peer=1.1.1.1:1 user=- bucket=shop agent=x age_s=1 idle_ms=1 requests=100 queue=0"},
        {"0:2", "peer=1.1.1.1:9 user=- bucket=shop agent=x age_s=1 idle_ms=1 requests=1 queue=0"});
    FILL(&b, HG_TOP_CLIENTS, 1000000,
         {"0:1", "peer=1.1.1.1:1 user=ann bucket=shop agent=evil age_s=9 requests=9 wait=none "
                 "age_s=5 idle_ms=2500 requests=110 queue=3 out_bytes=7 wait=credits features=0x2"},
         {"0:2", "peer=1.1.1.1:2 user=- bucket=shop agent=- age_s=1 idle_ms=1 requests=9 queue=0 "
                 "wait=process"},
         {"0:3", ""}, {"0:4", "agent= age_s="});
    fill_rest(&a);
    fill_rest(&b);
    hg_top_page_build(HG_TOP_CONNECTIONS, &a, &b, &view);
    hg_top_view_sort(&view, hg_top_page_order(HG_TOP_CONNECTIONS), false);
    assert_int_equal(view.count, 4);
    assert_string_equal(cell(&view, 0, "PEER"), "1.1.1.1:1");
    assert_string_equal(cell(&view, 0, "USER"), "ann");
    assert_string_equal(cell(&view, 0, "REQ/S"), "10");
    assert_string_equal(cell(&view, 0, "REQUESTS"), "110"); /* not what the agent says */
    assert_string_equal(cell(&view, 0, "IDLE S"), "2.5");
    assert_string_equal(cell(&view, 0, "WAIT"), "credits");
    assert_string_equal(cell(&view, 0, "AGENT"), "evil age_s=9 requests=9 wait=none");
    hg_top_view_filter(&view, "1.1.1.1:2");
    assert_int_equal(view.count, 1);
    assert_string_equal(cell(&view, 0, "REQ/S"), "-"); /* another one with its number */
    assert_string_equal(cell(&view, 0, "WAIT"), "");
    hg_top_view_fini(&view);
    hg_top_sample_free(&a);
    hg_top_sample_free(&b);
}

/* ---- rows ---- */

static const struct hg_top_column columns[] = {
    {"NAME", "name", false, 4, 0},
    {"N", "n", true, 0, 1},
    {"LONGER", "longer", true, 0, 3},
    {"TEXT", "text", false, 5, 2},
};

static void make(struct hg_top_view *view)
{
    static const struct {
        const char *name, *text;
        double n;
    } rows[] = {
        {"beta", "a\tb", 2}, {"alpha", "Gamma ray", 2}, {"gone", "", NAN}, {"delta", "x", 10}};
    hg_top_view_init(view, columns, HG_COUNT_OF(columns));
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        struct hg_top_line *line = hg_top_view_add(view);
        hg_top_set(line, 0, rows[i].name);
        hg_top_set_number(line, 1, rows[i].n);
        hg_top_set_number(line, 2, 1000);
        hg_top_set(line, 3, rows[i].text);
    }
}

static void expect_order(struct hg_top_view *view, unsigned column, bool reverse, const char *names)
{
    char found[100] = "";
    hg_top_view_sort(view, column, reverse);
    for (size_t i = 0; i < view->count; i++) {
        strcat(found, i > 0 ? " " : "");
        strcat(found, view->lines[i].cells[0].text);
    }
    assert_string_equal(found, names);
}

static void test_order(void **state)
{
    (void)state;
    struct hg_top_view view;
    make(&view);
    expect_order(&view, 1, false, "delta alpha beta gone"); /* unknown last, both ways */
    expect_order(&view, 1, true, "alpha beta delta gone");
    expect_order(&view, 0, false, "alpha beta delta gone");
    expect_order(&view, 0, true, "gone delta beta alpha");
    expect_order(&view, 2, false, "alpha beta delta gone");
    hg_top_view_fini(&view);
}

static void test_filter(void **state)
{
    (void)state;
    struct hg_top_view view;
    make(&view);
    hg_top_view_filter(&view, "");
    assert_int_equal(view.count, 4);
    hg_top_view_filter(&view, "GAMMA");
    assert_int_equal(view.count, 1);
    assert_string_equal(view.lines[0].cells[0].text, "alpha");
    hg_top_view_filter(&view, "nowhere");
    assert_int_equal(view.count, 0);
    hg_top_view_fini(&view);
}

static void expect_line(const struct hg_top_view *view, unsigned width, unsigned keep,
                        const char *heading, const char *line)
{
    unsigned widths[HG_TOP_COLUMNS_MAX];
    char text[200];
    hg_top_view_fit(view, width, keep, widths);
    hg_top_view_print(view, NULL, widths, text, sizeof text);
    assert_string_equal(text, heading);
    hg_top_view_print(view, &view->lines[0], widths, text, sizeof text);
    assert_string_equal(text, line);
    assert_true(strlen(text) <= width || width < 8);
}

/* Texts are cut first; then columns go, the least important first, never the sorted one. */
static void test_widths(void **state)
{
    (void)state;
    struct hg_top_view view;
    make(&view);
    hg_top_view_sort(&view, 0, false);
    expect_line(&view, 80, 0, "NAME   N LONGER TEXT     ", "alpha  2   1000 Gamma ray");
    expect_line(&view, 22, 0, "NAME   N LONGER TEXT  ", "alpha  2   1000 Gamma~");
    expect_line(&view, 20, 0, "NAME  N LONGER TEXT ", "alp~  2   1000 Gamm~");
    expect_line(&view, 16, 0, "NAME   N TEXT   ", "alpha  2 Gamma ~");
    expect_line(&view, 16, 2, "NAME   N LONGER", "alpha  2   1000");
    expect_line(&view, 9, 0, "NAME   N", "alpha  2");
    expect_line(&view, 4, 0, "NAME", "alp~");
    expect_line(&view, 1, 0, "NAME", "alp~"); /* no less: whoever draws it cuts it */
    hg_top_view_fini(&view);
}

static void test_cells_are_printable(void **state)
{
    (void)state;
    struct hg_top_view view;
    char bytes[256];
    for (int i = 0; i < 255; i++)
        bytes[i] = (char)(i + 1);
    bytes[255] = '\0';
    hg_top_view_init(&view, columns, HG_COUNT_OF(columns));
    struct hg_top_line *line = hg_top_view_add(&view);
    hg_top_set(line, 0, bytes);
    hg_top_set_shown(line, 3, bytes);
    for (unsigned c = 0; c <= 3; c += 3)
        for (const char *at = line->cells[c].text; *at != '\0'; at++)
            assert_true(*at >= ' ' && *at <= '~');
    hg_top_view_fini(&view);
}

static void test_server_words(void **state)
{
    (void)state;
    assert_string_equal(hg_ctl_server_word("closed", 0, 0, 0, 0), "not asked yet");
    assert_string_equal(hg_ctl_server_word("closed", NAN, NAN, NAN, 0), "up");
    assert_string_equal(hg_ctl_server_word("closed", 1, 0, 0, 0), "up");
    assert_string_equal(hg_ctl_server_word("closed", 0, 0, 2, 0), "up");
    assert_string_equal(hg_ctl_server_word("closed", 1, 0, 2, 3), "connects-limited");
    assert_string_equal(hg_ctl_server_word("closed", 1, 0, 2, NAN), "up");
    assert_string_equal(hg_ctl_server_word("open", 1, 0, 2, 3), "down");
    assert_string_equal(hg_ctl_server_word("open", 0, 0, 0, 0), "down");
    assert_string_equal(hg_ctl_server_word("half-open", 1, 0, 0, 0), "half-open");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_tenants),
        cmocka_unit_test(test_why_it_is_held),
        cmocka_unit_test(test_beyond_its_limit),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_many_throttled),
        cmocka_unit_test(test_hot_keys),
        cmocka_unit_test(test_upstreams),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_cells_are_printable),
        cmocka_unit_test(test_server_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
