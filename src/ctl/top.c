// top - the verb top: the live screen, or what it shows as text or JSON
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/option.h"

#define INTERVAL_MIN_S 0.1
#define INTERVAL_MAX_S 3600.0

/* A number of seconds. An exit code. */
static int parse_interval(const struct hg_ctl *ctl, uint64_t *ret_us)
{
    const char *text = hg_ctl_option(ctl, HG_CTL_OPT_INTERVAL);
    char *end = NULL;
    *ret_us = 1000000;
    if (text == NULL)
        return HG_CTL_OK;
    double seconds = strspn(text, "0123456789.") == strlen(text) ? strtod(text, &end) : 0;
    if (end == NULL || end == text || *end != '\0' || seconds < INTERVAL_MIN_S ||
        seconds > INTERVAL_MAX_S)
        return hg_ctl_say(HG_CTL_USAGE, "'%s' is no interval (accepted: %.1f to %.0f seconds)",
                          text, INTERVAL_MIN_S, INTERVAL_MAX_S);
    *ret_us = (uint64_t)(seconds * 1e6);
    return HG_CTL_OK;
}

/* ---- once ---- */

static void pause_for(uint64_t us)
{
    struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

static void print_page(enum hg_top_page page, const struct hg_top_sample *before,
                       const struct hg_top_sample *now)
{
    struct hg_top_view view;
    unsigned widths[HG_TOP_COLUMNS_MAX];
    const char *refused = hg_top_page_refused(page, now);
    hg_top_page_build(page, before, now, &view);
    hg_top_view_sort(&view, hg_top_page_order(page), false);
    printf("\n%s\n", hg_top_page_names[page]);
    if (refused != NULL)
        printf("%s\n", refused);
    hg_top_view_fit(&view, UINT32_MAX, 0, widths);
    for (size_t i = 0; refused == NULL && i <= view.count; i++) {
        char line[4096];
        hg_top_view_print(&view, i > 0 ? &view.lines[i - 1] : NULL, widths, line, sizeof line);
        size_t len = strlen(line);
        while (len > 0 && line[len - 1] == ' ')
            len--;
        printf("%.*s\n", (int)len, line);
    }
    hg_top_view_fini(&view);
}

static json_t *cell_json(const struct hg_top_column *column, const struct hg_top_cell *cell)
{
    if (!column->is_number)
        return json_string(cell->text);
    return hg_top_json_of(cell->number);
}

static json_t *page_json(enum hg_top_page page, const struct hg_top_sample *before,
                         const struct hg_top_sample *now)
{
    struct hg_top_view view;
    json_t *list = json_array();
    hg_top_page_build(page, before, now, &view);
    hg_top_view_sort(&view, hg_top_page_order(page), false);
    for (size_t i = 0; i < view.count; i++) {
        json_t *row = json_object();
        for (unsigned c = 0; c < view.column_count; c++)
            json_object_set_new(row, view.columns[c].name,
                                cell_json(&view.columns[c], &view.lines[i].cells[c]));
        json_array_append_new(list, row);
    }
    hg_top_view_fini(&view);
    return hg_top_page_refused(page, now) == NULL ? list : (json_decref(list), json_null());
}

static int print_all(const struct hg_ctl *ctl, const struct hg_top_sample *before,
                     const struct hg_top_sample *now)
{
    static const char *const names[HG_TOP_PAGES] = {"tenants", "hotkeys", "upstreams",
                                                    "connections"};
    if (ctl->json) {
        json_t *json = hg_top_head_json(before, now);
        for (int p = 0; p < HG_TOP_PAGES; p++)
            json_object_set_new(json, names[p], page_json((enum hg_top_page)p, before, now));
        return hg_ctl_json_print_rounded(json);
    }
    char head[HG_TOP_HEAD_LINES][HG_TOP_LINE_BYTES];
    hg_top_head(before, now, head);
    for (int i = 0; i < HG_TOP_HEAD_LINES; i++)
        puts(head[i]);
    for (int p = 0; p < HG_TOP_PAGES; p++)
        print_page((enum hg_top_page)p, before, now);
    return HG_CTL_OK;
}

static int once(struct hg_ctl *ctl, uint64_t interval_us)
{
    struct hg_top_sample before = {0}, now = {0};
    int code = hg_top_fetch(ctl, HG_TOP_PAGES, &before);
    if (code == HG_CTL_OK) {
        pause_for(interval_us);
        code = hg_top_fetch(ctl, HG_TOP_PAGES, &now);
    }
    if (code == HG_CTL_OK)
        code = print_all(ctl, hg_top_follows(&before, &now) ? &before : NULL, &now);
    hg_top_sample_free(&before);
    hg_top_sample_free(&now);
    return code;
}

int hg_ctl_top(struct hg_ctl *ctl)
{
    uint64_t interval_us;
    bool is_once = hg_ctl_option_is(ctl, HG_CTL_OPT_ONCE);
    if (ctl->arg_count > 0)
        return hg_ctl_say(HG_CTL_USAGE, "top takes options only, not '%s'", ctl->args[0]);
    if (ctl->json && !is_once)
        return hg_ctl_say(HG_CTL_USAGE, "top prints JSON with --once only");
    int code = parse_interval(ctl, &interval_us);
    if (code != HG_CTL_OK)
        return code;
    if (!is_once)
        return hg_top_screen(ctl, interval_us);
    code = hg_ctl_connect(ctl);
    return code != HG_CTL_OK ? code : once(ctl, interval_us);
}
