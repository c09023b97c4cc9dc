// topterm - can the terminal show a screen
// SPDX-License-Identifier: BSD-3-Clause
//
// By itself, since <term.h> defines words like "lines" and "columns".
#include "config.h"

#ifdef HAVE_NCURSES

#include <stdlib.h>
#include <unistd.h>

#include "ctl/top.h"

#include <curses.h>
#include <term.h> /* behind all others, for the same reason */

int hg_top_check_terminal(void)
{
    const char *term = getenv("TERM");
    int found = 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return hg_ctl_say(HG_CTL_USAGE, "top needs a terminal (top --once prints to anything)");
    if (term == NULL || term[0] == '\0' || setupterm(term, STDOUT_FILENO, &found) != OK)
        return hg_ctl_say(HG_CTL_USAGE, "top: the terminal '%s' (TERM) is not known",
                          term != NULL ? term : "");
    const char *move_cursor = tigetstr("cup");
    bool moves = move_cursor != NULL && move_cursor != (const char *)-1;
    del_curterm(cur_term); /* the screen gets one of its own */
    if (!moves)
        return hg_ctl_say(HG_CTL_USAGE,
                          "top: the terminal '%s' (TERM) cannot move its cursor (top --once prints "
                          "to anything)",
                          term);
    return HG_CTL_OK;
}

#endif
