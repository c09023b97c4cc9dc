// login_own - what the two files of the logins share: their records and the way through the queues
// SPDX-License-Identifier: BSD-3-Clause
//
// login.c speaks with the sessions, on the workers' threads; login_helpers.c owns the queues, the
// helper threads and the guard.
//
// A login belongs to its session (one reference) and, while a job of it is under way, to that job's
// way through the queues (another). A session asks for one thing at a time, so a login has at most
// one job; while it has, only the helper that carries it out touches the dialogue, and the session
// may go at any moment. The one mutex guards queues, guard, references and counters, and is held
// for well under a microsecond, but for the sorted insertion of a delayed attempt.
#ifndef HG_APP_LOGIN_OWN_H
#define HG_APP_LOGIN_OWN_H

#include <pthread.h>

#include "app/dialogue.h"
#include "app/login.h"
#include "base/list.h"
#include "core/loginguard.h"

#define HG_LOGIN_FAILED_TEXT "the login failed"
#define HG_LOGIN_HASH_KEY    192 /* bytes; XXH3 takes at least 136 */

struct hg_logins {
    pthread_mutex_t mutex;
    pthread_cond_t work; /* something was queued, or the end has come */
    struct hg_list ready, delayed;
    unsigned queue_max;
    bool stopping;
    struct hg_loginguard guard;
    struct hg_login_stats stats;
    const struct hg_users *(*users)(const struct hg_directory *directory);
    Gsasl *gsasl;
    uint8_t hash_key[HG_LOGIN_HASH_KEY];
    unsigned thread_count;
    pthread_t threads[];
};

struct hg_login {
    struct hg_logins *logins;
    unsigned refs;       /* under the mutex */
    struct hg_list node; /* in `ready` or `delayed`, under the mutex */
    bool delayed;        /* in `delayed`, until due_us */
    uint64_t due_us;
    struct hg_job *job; /* while it waits or is carried out */
    bool asked;         /* the guard has judged this attempt */
    bool ended;         /* it is counted how; under the mutex */
    enum hg_mechanism mechanism;
    struct hg_dialogue *dialogue; /* NULL after success */
};

/* Counts how the login ended (a counter of its stats), once. */
void hg_login_end(struct hg_login *login, hg_counter *how);
void hg_login_unref(struct hg_login *login);

/* Overwrites the client's message, which may hold a password. */
void hg_login_wipe(struct hg_job *job);

/* Puts the job on its way to a helper, which answers it; `first`: this starts the login. False, and
   nothing has happened, when too many wait. */
HG_MUST_USE bool hg_login_enqueue(struct hg_login *login, struct hg_job *job, bool first);
/* Takes the login's job out of the queues and answers it, if it is in one. */
void hg_login_withdraw(struct hg_login *login);

#endif
