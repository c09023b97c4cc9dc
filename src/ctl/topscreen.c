// topscreen - the live screen of top: the terminal, its keys, and when to look
// SPDX-License-Identifier: BSD-3-Clause
//
// The screen is made anew in memory and ncurses sends what differs, so a slow line gets no more
// than what has changed. The next look at the server is due an interval after the last was drawn:
// where drawing takes long there are fewer. Signals that end the program leave the loop, so that
// the terminal is as it was before.
#include "config.h"

#include "ctl/topscreen.h"

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

#define KEYS_A_DRAW 64      /* that are obeyed before the screen is drawn again */
#define AGAIN_US    1000000 /* until the next try, when the server is lost */
#define KEY_ESC     27

static volatile sig_atomic_t got_signal;

static void on_signal(int number)
{
    got_signal = number;
}

/* ---- looking ---- */

static void drop_samples(struct hg_top_screen_state *screen)
{
    hg_top_sample_free(&screen->samples[0]);
    hg_top_sample_free(&screen->samples[1]);
    screen->has_last = screen->has_before = false;
}

static void be_lost(struct hg_top_screen_state *screen)
{
    hg_ctl_client_free(screen->ctl->client);
    screen->ctl->client = NULL;
}

/* Takes a sample of the page; what is wrong is in `lost` then. */
static void look(struct hg_top_screen_state *screen)
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

/* ---- keys ---- */

static void show_page(struct hg_top_screen_state *screen, unsigned page)
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

static void sort_by(struct hg_top_screen_state *screen, int step)
{
    struct hg_top_view view;
    struct hg_top_order *order = &screen->orders[screen->page];
    hg_top_page_build(screen->page, NULL, hg_top_last(screen), &view);
    int columns = (int)view.column_count;
    order->column = (unsigned)(((int)order->column + step + columns) % columns);
    order->reverse = false;
    hg_top_view_fini(&view);
}

static void type_key(struct hg_top_screen_state *screen, int key)
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
    } else if (key >= ' ' && key <= '~' && len < HG_TOP_FILTER_BYTES) {
        screen->typed[len] = (char)key;
        screen->typed[len + 1] = '\0';
    }
    if (!screen->typing)
        curs_set(0);
}

static void scroll_by(struct hg_top_screen_state *screen, long rows)
{
    if (rows < 0 && screen->first < (size_t)-rows)
        screen->first = 0;
    else
        screen->first = (size_t)((long)screen->first + rows);
    hg_top_clamp_scroll(screen);
}

static void begin_typing(struct hg_top_screen_state *screen)
{
    screen->typing = true;
    screen->typed[0] = '\0';
    curs_set(1);
}

static void unfreeze(struct hg_top_screen_state *screen)
{
    screen->frozen = !screen->frozen;
    if (!screen->frozen)
        screen->next_us = 0;
}

static bool scroll_key(struct hg_top_screen_state *screen, int key)
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
        hg_top_clamp_scroll(screen);
        return true;
    default:
        return false;
    }
}

static void obey(struct hg_top_screen_state *screen, int key)
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
static void wait_for_keys(struct hg_top_screen_state *screen)
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

static void run(struct hg_top_screen_state *screen)
{
    while (!screen->leave && got_signal == 0) {
        if (!screen->frozen && hg_now_us() >= screen->next_us) {
            look(screen);
            hg_top_draw(screen);
            bool lost = screen->lost[0] != '\0';
            uint64_t wait_us =
                lost && screen->interval_us < AGAIN_US ? AGAIN_US : screen->interval_us;
            screen->next_us = hg_now_us() + wait_us;
        }
        wait_for_keys(screen);
        if (screen->frozen || hg_now_us() < screen->next_us)
            hg_top_draw(screen); /* else there is more to draw in a moment */
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

static void begin(struct hg_top_screen_state *screen)
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
        init_pair(HG_TOP_STYLE_BAD, COLOR_RED, -1);
        init_pair(HG_TOP_STYLE_NOTED, COLOR_YELLOW, -1);
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
    struct hg_top_screen_state screen = {.ctl = ctl, .interval_us = interval_us};
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
