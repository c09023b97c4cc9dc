// topscreen - the live screen of top: drawing and keys
// SPDX-License-Identifier: BSD-3-Clause
//
// The screen is made anew in memory and ncurses sends what differs, so a slow line gets no more
// than what has changed. The next look at the server is due an interval after the last was drawn:
// where drawing takes long there are fewer. Signals that end the program leave the loop, so that
// the terminal is as it was before.
#include "config.h"

#include "ctl/top.h"

#ifndef HAVE_NCURSES

int hg_top_screen(struct hg_ctl *ctl, uint64_t interval_us)
{
    (void)ctl;
    (void)interval_us;
    return hg_ctl_say(HG_CTL_USAGE, "top: this program was built without ncurses, and has no live "
                                    "screen (top --once prints what it would show)");
}

#else

#include <curses.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define MIN_LINES    8
#define MIN_COLUMNS  40
#define HEAD_LINES   (HG_TOP_HEAD_LINES + 2) /* with the pages and the headings */
#define KEYS_A_DRAW  64                      /* that are obeyed before the screen is drawn again */
#define AGAIN_US     1000000                 /* until the next try, when the server is lost */
#define FILTER_BYTES 64
#define KEY_ESC      27

enum { STYLE_BAD = 1, STYLE_NOTED };

struct order {
    unsigned column;
    bool reverse;
};

struct screen {
    struct hg_ctl *ctl;
    uint64_t interval_us, next_us;
    enum hg_top_page page;
    struct order orders[HG_TOP_PAGES];
    struct hg_top_sample samples[2]; /* the last, and the one before */
    unsigned last;                   /* which of them is the last */
    bool has_last, has_before;
    char filter[FILTER_BYTES + 1], typed[FILTER_BYTES + 1];
    bool typing, frozen, helping, colours, leave;
    size_t first, shown; /* rows: scrolled by, on the screen */
    size_t count;        /* rows of the page */
    char lost[512];      /* why there is no connection; "": there is one */
};

static volatile sig_atomic_t got_signal;

static void on_signal(int number)
{
    got_signal = number;
}

/* ---- looking ---- */

static void drop_samples(struct screen *screen)
{
    hg_top_sample_free(&screen->samples[0]);
    hg_top_sample_free(&screen->samples[1]);
    screen->has_last = screen->has_before = false;
}

static void be_lost(struct screen *screen)
{
    hg_ctl_client_free(screen->ctl->client);
    screen->ctl->client = NULL;
}

/* Takes a sample of the page; what is wrong is in `lost` then. */
static void look(struct screen *screen)
{
    struct hg_top_sample sample = {0};
    char said[sizeof screen->lost] = "";
    hg_ctl_say_into(said, sizeof said);
    int code = screen->ctl->client == NULL ? hg_ctl_connect(screen->ctl) : HG_CTL_OK;
    if (code == HG_CTL_OK)
        code = hg_top_fetch(screen->ctl, screen->page, &sample);
    hg_ctl_say_into(NULL, 0);
    if (code != HG_CTL_OK) {
        hg_top_sample_free(&sample);
        be_lost(screen);
        snprintf(screen->lost, sizeof screen->lost, "%s", said);
        return;
    }
    screen->lost[0] = '\0';
    unsigned next = screen->has_last ? 1 - screen->last : 0;
    hg_top_sample_free(&screen->samples[next]);
    screen->samples[next] = sample;
    screen->has_before =
        screen->has_last && hg_top_follows(&screen->samples[1 - next], &screen->samples[next]);
    screen->last = next;
    screen->has_last = true;
}

static const struct hg_top_sample *last_of(const struct screen *screen)
{
    return &screen->samples[screen->last];
}

static const struct hg_top_sample *before_of(const struct screen *screen)
{
    return screen->has_before ? &screen->samples[1 - screen->last] : NULL;
}

/* ---- drawing ---- */

static int style_of(const struct screen *screen, enum hg_top_mark mark)
{
    if (mark == HG_TOP_BAD)
        return screen->colours ? COLOR_PAIR(STYLE_BAD) | A_BOLD : A_BOLD;
    if (mark == HG_TOP_NOTED)
        return screen->colours ? COLOR_PAIR(STYLE_NOTED) : A_BOLD;
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

static void draw_head(const struct screen *screen)
{
    char head[HG_TOP_HEAD_LINES][HG_TOP_LINE_BYTES];
    const struct hg_top_sample *last = last_of(screen);
    hg_top_head(before_of(screen), last, head);
    bool calm = hg_top_is_calm(before_of(screen), last);
    const char *where = screen->ctl->server;
    put(0, A_BOLD, false, head[0]);
    if (where != NULL && strlen(head[0]) + strlen(where) + 2 <= (size_t)COLS)
        mvaddstr(0, COLS - (int)strlen(where), where);
    put(1, A_NORMAL, false, head[1]);
    put(2, style_of(screen, calm ? HG_TOP_PLAIN : HG_TOP_BAD), false, head[2]);
}

static void draw_pages(const struct screen *screen)
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

static void clamp_scroll(struct screen *screen)
{
    size_t most = screen->count > screen->shown ? screen->count - screen->shown : 0;
    if (screen->first > most)
        screen->first = most;
}

static void draw_heading(const struct screen *screen, const struct hg_top_view *view,
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

static void draw_rows(struct screen *screen)
{
    struct hg_top_view view;
    unsigned widths[HG_TOP_COLUMNS_MAX];
    struct order order = screen->orders[screen->page];
    const char *refused = hg_top_page_refused(screen->page, last_of(screen));
    hg_top_page_build(screen->page, before_of(screen), last_of(screen), &view);
    hg_top_view_filter(&view, screen->typing ? screen->typed : screen->filter);
    hg_top_view_sort(&view, order.column, order.reverse);
    hg_top_view_fit(&view, (unsigned)COLS, order.column, widths);
    screen->count = view.count;
    screen->shown = (size_t)(LINES - HEAD_LINES - 1);
    clamp_scroll(screen);
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
static void draw_foot(const struct screen *screen)
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

static void draw(struct screen *screen)
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

/* ---- keys ---- */

static void show_page(struct screen *screen, unsigned page)
{
    if (screen->page == page || page >= HG_TOP_PAGES)
        return;
    screen->page = (enum hg_top_page)page;
    screen->first = 0;
    screen->helping = false;
    drop_samples(screen);
    screen->frozen = false;
    screen->next_us = 0; /* at once, and its rates one interval later */
}

static void sort_by(struct screen *screen, int step)
{
    struct hg_top_view view;
    struct order *order = &screen->orders[screen->page];
    hg_top_page_build(screen->page, NULL, last_of(screen), &view);
    int columns = (int)view.column_count;
    order->column = (unsigned)(((int)order->column + step + columns) % columns);
    order->reverse = false;
    hg_top_view_fini(&view);
}

static void type_key(struct screen *screen, int key)
{
    size_t len = strlen(screen->typed);
    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        memcpy(screen->filter, screen->typed, sizeof screen->filter);
        screen->typing = false;
        screen->first = 0;
    } else if (key == KEY_ESC) {
        screen->typing = false;
    } else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && len > 0) {
        screen->typed[len - 1] = '\0';
    } else if (key >= ' ' && key <= '~' && len < FILTER_BYTES) {
        screen->typed[len] = (char)key;
        screen->typed[len + 1] = '\0';
    }
    if (!screen->typing)
        curs_set(0);
}

static void scroll_by(struct screen *screen, long rows)
{
    if (rows < 0 && screen->first < (size_t)-rows)
        screen->first = 0;
    else
        screen->first = (size_t)((long)screen->first + rows);
    clamp_scroll(screen);
}

static void begin_typing(struct screen *screen)
{
    screen->typing = true;
    screen->typed[0] = '\0';
    curs_set(1);
}

static void unfreeze(struct screen *screen)
{
    screen->frozen = !screen->frozen;
    if (!screen->frozen)
        screen->next_us = 0;
}

static bool scroll_key(struct screen *screen, int key)
{
    switch (key) {
    case KEY_UP:
        scroll_by(screen, -1);
        return true;
    case KEY_DOWN:
        scroll_by(screen, 1);
        return true;
    case KEY_PPAGE:
        scroll_by(screen, -(long)screen->shown);
        return true;
    case KEY_NPAGE:
        scroll_by(screen, (long)screen->shown);
        return true;
    case KEY_HOME:
        screen->first = 0;
        return true;
    case KEY_END:
        screen->first = screen->count;
        clamp_scroll(screen);
        return true;
    default:
        return false;
    }
}

static void obey(struct screen *screen, int key)
{
    if (screen->typing) {
        type_key(screen, key);
        return;
    }
    if (scroll_key(screen, key))
        return;
    if (key >= '1' && key < '1' + HG_TOP_PAGES)
        show_page(screen, (unsigned)(key - '1'));
    else if (key == '\t')
        show_page(screen, (screen->page + 1) % HG_TOP_PAGES);
    else if (key == '<' || key == ',' || key == KEY_LEFT)
        sort_by(screen, -1);
    else if (key == '>' || key == '.' || key == KEY_RIGHT)
        sort_by(screen, 1);
    else if (key == 'r')
        screen->orders[screen->page].reverse = !screen->orders[screen->page].reverse;
    else if (key == '/')
        begin_typing(screen);
    else if (key == KEY_ESC)
        screen->filter[0] = '\0', screen->helping = false;
    else if (key == 'f' || key == ' ')
        unfreeze(screen);
    else if (key == '?' || key == 'h')
        screen->helping = !screen->helping;
    else if (key == 'q' || key == 'Q')
        screen->leave = true;
    else if (key == '\f') /* Control-L */
        clearok(curscr, TRUE);
}

/* Waits for a key until the next look is due, and obeys those that were typed. */
static void wait_for_keys(struct screen *screen)
{
    uint64_t now_us = hg_now_us();
    bool looks = !screen->frozen;
    uint64_t left_us = screen->next_us > now_us ? screen->next_us - now_us : 0;
    timeout(looks ? (int)((left_us + 999) / 1000) : -1);
    int key = getch();
    timeout(0);
    for (int n = 0; key != ERR && n < KEYS_A_DRAW; n++) {
        obey(screen, key);
        key = n + 1 < KEYS_A_DRAW ? getch() : ERR;
    }
}

static void run(struct screen *screen)
{
    while (!screen->leave && got_signal == 0) {
        if (!screen->frozen && hg_now_us() >= screen->next_us) {
            look(screen);
            draw(screen);
            bool lost = screen->lost[0] != '\0';
            uint64_t wait_us =
                lost && screen->interval_us < AGAIN_US ? AGAIN_US : screen->interval_us;
            screen->next_us = hg_now_us() + wait_us;
        }
        wait_for_keys(screen);
        draw(screen);
    }
}

/* ---- the terminal ---- */

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: a wait is to end */
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < HG_COUNT_OF(numbers); i++)
        sigaction(numbers[i], &action, NULL);
    hg_ctl_client_stop_on(&got_signal);
}

static void begin(struct screen *screen)
{
    setlocale(LC_CTYPE, "");
    set_escdelay(25);
    initscr();
    catch_signals(); /* behind initscr, which has its own */
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    curs_set(0);
    screen->colours = has_colors() && start_color() == OK;
    if (screen->colours) {
        use_default_colors();
        init_pair(STYLE_BAD, COLOR_RED, -1);
        init_pair(STYLE_NOTED, COLOR_YELLOW, -1);
    }
}

/* Who was asked to end ends by that, as whoever asked expects; an interrupt is a way to leave. */
static void end_by_signal(void)
{
    if (got_signal == 0 || got_signal == SIGINT)
        return;
    signal(got_signal, SIG_DFL);
    raise(got_signal);
}

int hg_top_screen(struct hg_ctl *ctl, uint64_t interval_us)
{
    struct screen screen = {.ctl = ctl, .interval_us = interval_us};
    for (int p = 0; p < HG_TOP_PAGES; p++)
        screen.orders[p].column = hg_top_page_order((enum hg_top_page)p);
    int code = hg_top_check_terminal();
    ctl->keeps_password = true;
    if (code == HG_CTL_OK)
        code = hg_ctl_connect(ctl); /* what is wrong is said before the screen is taken */
    if (code != HG_CTL_OK)
        return code;
    begin(&screen);
    run(&screen);
    endwin();
    drop_samples(&screen);
    end_by_signal();
    return HG_CTL_OK;
}

#endif
