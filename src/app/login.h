// login - SASL for the connections: mechanisms, dialogues, and the threads that check passwords
// SPDX-License-Identifier: BSD-3-Clause
//
//                     full: 0x85                    address failed before
//   on_job (worker) ───────────► ready queue ─► helper ─────────────► delayed, by due time
//                                     ▲            │ step                     │
//                                     └────────────┼──────────────────────────┘
//                  session ◄── hg_job_answer ◄─────┘
//
// Each step of a dialogue runs on a helper thread, since a password costs a key derivation; never
// on a worker's loop. Both queues are bounded. An attempt is judged by the login guard when a
// helper takes up the message that carries its proof, so that a burst of guesses cannot pass before
// the first has failed. A delayed attempt occupies no thread.
//
// A failure is 0x20 with one text, whatever was wrong with name or password. A login that begins
// ends the identity that the connection had.
#ifndef HG_APP_LOGIN_H
#define HG_APP_LOGIN_H

#include "app/users.h"
#include "base/attr.h"
#include "base/counter.h"
#include "front/front.h"

#define HG_LOGIN_MESSAGE_MAX 16384u /* bytes of a client's message */
#define HG_LOGIN_DELAYED_MAX 4096u  /* attempts delayed at a time; at most queue_max too */

struct hg_logins;

struct hg_logins_options {
    unsigned threads;   /* helpers, at least 1 */
    unsigned queue_max; /* steps that may wait for one, at least 1 */
    /* The users of a directory: what directory->users points to is the process's affair. */
    const struct hg_users *(*users)(const struct hg_directory *directory);
};

struct hg_login_stats {
#define HG_LOGIN_STAT(name, kind, text) hg_counter name;
#include "app/login_stats.def"
#undef HG_LOGIN_STAT
};

/* Starts the helpers. 0 or -errno. */
HG_MUST_USE int hg_logins_new(const struct hg_logins_options *options, struct hg_logins **ret);
/* Ends the helpers, and answers what still waits; later jobs are answered 0x85 at once. While the
   workers run. May be called again. */
void hg_logins_stop(struct hg_logins *logins);
/* Frees, after a stop. No worker may run any more. */
void hg_logins_free(struct hg_logins *logins);

/* The front's hooks, for SaslListMechs, SaslAuth and SaslStep; on the worker's thread. */
void hg_logins_on_job(struct hg_logins *logins, struct hg_job *job);
void hg_logins_on_gone(void *login);

/* From any thread; those that wait already stay. */
void hg_logins_set_queue_max(struct hg_logins *logins, unsigned queue_max);

/* Any thread may read. */
const struct hg_login_stats *hg_logins_stats(const struct hg_logins *logins);

#endif
