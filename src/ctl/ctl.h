// ctl - what the verbs of headgatectl share: options, exit codes, asking the server
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_CTL_H
#define HG_CTL_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/span.h"
#include "ctl/client.h"

/* In the manual, too. */
enum hg_ctl_exit {
    HG_CTL_OK = 0,
    HG_CTL_REFUSED = 1, /* by the server */
    HG_CTL_USAGE = 2,   /* wrong arguments, or a file that cannot be read */
    HG_CTL_LOST = 3,    /* cannot connect, or the connection was lost */
    HG_CTL_LOGIN = 4,   /* the login failed */
};

/* An option of one verb (option.h). */
struct hg_ctl_given {
    int option;
    const char *value;
};
#define HG_CTL_GIVEN_MAX 32

struct hg_ctl {
    const char *server, *user, *password_file, *bucket; /* options; NULL: not given */
    bool json;
    bool tls, tls_insecure; /* tls: also when any of the others is given */
    const char *tls_ca, *tls_certificate, *tls_key;
    bool keeps_password; /* to connect again without asking */
    char *password;      /* if so, once it is known */
    int arg_count;       /* behind the verb */
    char **args;
    unsigned given_count;
    struct hg_ctl_given given[HG_CTL_GIVEN_MAX];
    struct hg_ctl_client *client; /* once connected */
};

/* The verbs; each returns an exit code, and has said on stderr what was wrong. */
#define HG_CTL_VERB(name, run, ...) int run(struct hg_ctl *ctl);
#include "ctl/verb.def"
#undef HG_CTL_VERB

/* Prints "headgatectl: ..." and a new line on stderr; returns `code`. */
int hg_ctl_say(int code, const char *fmt, ...) HG_PRINTF(2, 3);
/* From now on what is said goes there instead, cut to fit, each in the place of the last; NULL: to
   stderr again. */
void hg_ctl_say_into(char *text, size_t size);

/* Connects, logs in and selects the bucket, as the options say. An exit code. */
HG_MUST_USE int hg_ctl_connect(struct hg_ctl *ctl);
/* Sends and receives; a status that is no success is no error here. */
HG_MUST_USE int hg_ctl_ask(struct hg_ctl *ctl, const struct hg_ctl_request *request,
                           struct hg_ctl_reply *ret);
/* The server's text, or the status' own; malloc'd. */
char *hg_ctl_text_of(const struct hg_ctl_reply *reply);
/* Says what the server said: "WHAT: its text". Returns HG_CTL_REFUSED. */
int hg_ctl_refused(const struct hg_ctl_reply *reply, const char *what);

/* Rows of a statistics group, in the server's order. */
struct hg_ctl_row {
    char *name, *value; /* with zero bytes behind them */
    size_t name_len, value_len;
};
struct hg_ctl_rows {
    struct hg_ctl_row *row;
    size_t count, room;
};
/* Fetches a group. An exit code; HG_CTL_REFUSED with the reason in *ret_refused, unless that is
   NULL: then it has been said. `rows` is to be freed in any case. */
HG_MUST_USE int hg_ctl_fetch(struct hg_ctl *ctl, const char *group, struct hg_ctl_rows *rows,
                             char **ret_refused);
void hg_ctl_rows_free(struct hg_ctl_rows *rows);
/* The value of a name, or NULL. */
const char *hg_ctl_rows_find(const struct hg_ctl_rows *rows, const char *name);

/* A value as JSON: objects, lists and whole numbers as such, anything else as a string. */
json_t *hg_ctl_json_of(const char *text, size_t len);
/* Text of any bytes as a JSON string, escaped where it is no UTF-8. */
json_t *hg_ctl_json_text(const char *text, size_t len);
/* All rows as one object. */
json_t *hg_ctl_json_rows(const struct hg_ctl_rows *rows);
/* Prints it and lets go of it. An exit code. */
int hg_ctl_json_print(json_t *json);
/* The same with shares and rates in it, whose last digits say nothing: 0.1, not
 * 0.10000000000000001.
 */
int hg_ctl_json_print_rounded(json_t *json);

/* login.c: SCRAM. An exit code. */
HG_MUST_USE int hg_ctl_login(struct hg_ctl *ctl, const char *password);

/* prompt.c. Where a password comes from: password_file ("-": standard input), else the variable
   HEADGATE_PASSWORD if `from_environment`, else the terminal (`twice`: to be typed twice), or
   standard input if that is no terminal and `from_input`. An exit code; the text is malloc'd. */
struct hg_ctl_prompt {
    const char *text;
    bool twice, from_environment, from_input;
};
HG_MUST_USE int hg_ctl_password(struct hg_ctl *ctl, const struct hg_ctl_prompt *prompt, char **ret);
void hg_ctl_password_free(char *password);

#endif
