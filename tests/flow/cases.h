// cases - tests that are tables of rows: a failure names the case and the row
// SPDX-License-Identifier: BSD-3-Clause
//
// A file that uses this declares a `struct row` with members `act` and `line`, arrays of rows, and
// a function that runs one case. The function calls cases_at before each row and cases_over at the
// end. If an assertion fails in between, cases_tell names the row.
#ifndef CASES_H
#define CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"

struct cases_case {
    const char *name;
    const void *rows;
    unsigned count;
};

struct cases_place {
    const struct cases_case *in; /* NULL: no case is being carried out */
    unsigned row;                /* from 1; one more than there are: the end of the case */
    int line;
};

static struct cases_place cases_place;

static inline void cases_at(const struct cases_case *in, unsigned index, int line)
{
    cases_place = (struct cases_place){in, index + 1, line};
}

static inline void cases_over(void)
{
    cases_place.in = NULL;
}

/* Carries out the rows of a case, an array of the file's `struct row`, on the file's `struct play`.
 */
#define CASES_PLAY(in, play)                                                                       \
    do {                                                                                           \
        const struct row *cases_rows = (in)->rows;                                                 \
        for (unsigned i = 0; i < (in)->count; i++) {                                               \
            cases_at(in, i, cases_rows[i].line);                                                   \
            cases_rows[i].act(play, &cases_rows[i]);                                               \
        }                                                                                          \
        cases_at(in, (in)->count, 0);                                                              \
    } while (0)

/* cmocka's teardown, which it calls after a failure too. */
static inline int cases_tell(void **state)
{
    (void)state;
    if (cases_place.in == NULL)
        return 0;
    if (cases_place.row > cases_place.in->count)
        print_message("# case '%s', after its last row\n", cases_place.in->name);
    else
        print_message("# case '%s', row %u, line %d\n", cases_place.in->name, cases_place.row,
                      cases_place.line);
    cases_over();
    return 0;
}

/* A cmocka test of the array `rows`, which `run` carries out. */
#define CASE(run, rows)                                                                            \
    {                                                                                              \
        "" #rows, run, NULL, cases_tell, CASES_ROWS(rows)                                          \
    }
#define CASES_ROWS(rows)                                                                           \
    &(struct cases_case)                                                                           \
    {                                                                                              \
        "" #rows, rows, (unsigned)HG_COUNT_OF(rows)                                                \
    }

#endif
