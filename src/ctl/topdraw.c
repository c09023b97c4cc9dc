// topdraw - the live screen of top: drawing
// SPDX-License-Identifier: BSD-3-Clause
#include "config.h"

#ifdef HAVE_NCURSES

#include <curses.h>
#include <stdio.h>
#include <string.h>

#include "ctl/topscreen.h"

#define MIN_LINES   8
#define MIN_COLUMNS 40
#define HEAD_LINES  (HG_TOP_HEAD_LINES + 2) /* with the pages and the headings */

void hg_top_clamp_scroll(struct hg_top_screen_state *screen)
{
    size_t most = screen->count > screen->shown ? screen->count - screen->shown : 0;
    if (screen->first > most)
        screen->first = most;
}

static const struct hg_top_sample *before_of(const struct hg_top_screen_state *screen)
{
    return screen->has_before ? &screen->samples[1 - screen->last] : NULL;
}

static int style_of(const struct hg_top_screen_state *screen, enum hg_top_mark mark)
{
    if (mark == HG_TOP_BAD)
        return screen->colours ? COLOR_PAIR(HG_TOP_STYLE_BAD) | A_BOLD : A_BOLD;
    if (mark == HG_TOP_NOTED)
        return screen->colours ? COLOR_PAIR(HG_TOP_STYLE_NOTED) : A_BOLD;
    return A_NORMAL;
}

/* A line of text, cut at the edge; with a style to the edge if `full`. */
static void put(int y, int style, bool full, const char *text)
{
    attrset(style);
    mvaddnstr(y, 0, text, COLS);
    for (int x = (int)strlen(text); full && x < COLS; x++)
        addch(' ');
    attrset(A_NORMAL);
}

static void draw_head(const struct hg_top_screen_state *screen)
{
    char head[HG_TOP_HEAD_LINES][HG_TOP_LINE_BYTES];
    const struct hg_top_sample *last = hg_top_last(screen);
    hg_top_head(before_of(screen), last, head);
    bool calm = hg_top_is_calm(before_of(screen), last);
    const char *where = screen->ctl->server;
    put(0, A_BOLD, false, head[0]);
    if (where != NULL && strlen(head[0]) + strlen(where) + 2 <= (size_t)COLS)
        mvaddstr(0, COLS - (int)strlen(where), where);
    put(1, A_NORMAL, false, head[1]);
    put(2, style_of(screen, calm ? HG_TOP_PLAIN : HG_TOP_BAD), false, head[2]);
}

static void draw_pages(const struct hg_top_screen_state *screen)
{
    move(HG_TOP_HEAD_LINES, 0);
    for (int p = 0; p < HG_TOP_PAGES; p++) {
        attrset((int)screen->page == p ? A_REVERSE : A_NORMAL);
        printw(" %d %s ", p + 1, hg_top_page_names[p]);
    }
    attrset(A_BOLD);
    if (screen->frozen)
        addstr(" frozen");
    if (screen->filter[0] != '\0')
        printw(" /%s", screen->filter);
    attrset(A_NORMAL);
}

static void draw_heading(const struct hg_top_screen_state *screen, const struct hg_top_view *view,
                         const unsigned *widths)
{
    char line[1024];
    unsigned sorted = screen->orders[screen->page].column, x = 0;
    hg_top_view_print(view, NULL, widths, line, sizeof line);
    put(HEAD_LINES - 1, A_REVERSE, true, line);
    for (unsigned c = 0; c < sorted; c++)
        x += widths[c] > 0 ? widths[c] + HG_TOP_GAP : 0;
    if ((int)x < COLS && x < strlen(line)) {
        attrset(A_REVERSE | A_BOLD | A_UNDERLINE);
        mvaddnstr(
            HEAD_LINES - 1, (int)x, line + x,
            (int)(x + widths[sorted] <= (unsigned)COLS ? widths[sorted] : (unsigned)COLS - x));
        attrset(A_NORMAL);
    }
}

static void draw_rows(struct hg_top_screen_state *screen)
{
    struct hg_top_view view;
    unsigned widths[HG_TOP_COLUMNS_MAX];
    struct hg_top_order order = screen->orders[screen->page];
    const char *refused = hg_top_page_refused(screen->page, hg_top_last(screen));
    hg_top_page_build(screen->page, before_of(screen), hg_top_last(screen), &view);
    hg_top_view_filter(&view, screen->typing ? screen->typed : screen->filter);
    hg_top_view_sort(&view, order.column, order.reverse);
    hg_top_view_fit(&view, (unsigned)COLS, order.column, widths);
    screen->count = view.count;
    screen->shown = (size_t)(LINES - HEAD_LINES - 1);
    hg_top_clamp_scroll(screen);
    draw_heading(screen, &view, widths);
    for (size_t i = 0; i < screen->shown && screen->first + i < view.count; i++) {
        char line[1024];
        const struct hg_top_line *row = &view.lines[screen->first + i];
        hg_top_view_print(&view, row, widths, line, sizeof line);
        put(HEAD_LINES + (int)i, style_of(screen, row->mark), false, line);
    }
    if (refused != NULL)
        put(HEAD_LINES, style_of(screen, HG_TOP_BAD), false, refused);
    else if (view.count == 0)
        put(HEAD_LINES, A_NORMAL, false, screen->filter[0] != '\0' ? "nothing matches" : "nothing");
    hg_top_view_fini(&view);
}

static void draw_help(void)
{
    static const char *const lines[] = {
        "1 2 3 4, Tab   tenants, hot keys, upstreams, connections",
        "< >            sort by the column to the left, to the right",
        "r              the other way round",
        "/              show rows with this text only; empty: all",
        "f, space       freeze, and go on",
        "up, down, Page Up, Page Down, Home, End   scroll",
        "?, h           this help",
        "q              leave",
        "",
        "Rates are over the last interval; - is not known, or no limit.",
        "THROTTLE is the share that is refused, or one in how many is let through;",
        "in brackets: would be, but the tenant only observes.",
    };
    for (size_t i = 0; i < HG_COUNT_OF(lines) && (int)i + HEAD_LINES < LINES - 1; i++)
        put(HEAD_LINES + (int)i, A_NORMAL, false, lines[i]);
}

/* The last line: what is typed, what is wrong, or what may be done. */
static void draw_foot(const struct hg_top_screen_state *screen)
{
    char text[700];
    if (screen->typing) {
        snprintf(text, sizeof text, "filter: %s", screen->typed);
        put(LINES - 1, A_BOLD, false, text);
        return;
    }
    if (screen->lost[0] != '\0') {
        snprintf(text, sizeof text, "%s; trying again", screen->lost);
        put(LINES - 1, A_REVERSE | A_BOLD, true, text);
        move(0, 0);
        return;
    }
    size_t last = screen->first + screen->shown;
    snprintf(text, sizeof text,
             "%zu-%zu of %zu   q leave  ? help  < > sort  r reverse  / filter  f freeze",
             screen->count > 0 ? screen->first + 1 : 0, last < screen->count ? last : screen->count,
             screen->count);
    put(LINES - 1, A_DIM, false, text);
    move(0, 0);
}

void hg_top_draw(struct hg_top_screen_state *screen)
{
    erase();
    if (LINES < MIN_LINES || COLS < MIN_COLUMNS) {
        char text[80];
        snprintf(text, sizeof text, "too small: at least %dx%d", MIN_COLUMNS, MIN_LINES);
        put(0, A_NORMAL, false, text);
        refresh();
        return;
    }
    if (screen->has_last) {
        draw_head(screen);
        draw_pages(screen);
        if (screen->helping)
            draw_help();
        else
            draw_rows(screen);
    }
    draw_foot(screen);
    refresh();
}

#endif
