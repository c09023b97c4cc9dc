// front - what the client side and the process (src/app) know of each other
// SPDX-License-Identifier: BSD-3-Clause
//
// The client side calls up through struct hg_front_hooks only; the process calls down by letters to
// the workers. A request that the process answers (login, statistics, administration) parks its
// session: nothing behind it is looked at until hg_job_answer. Jobs may be answered from any
// thread, and their session may have gone meanwhile.
#ifndef HG_FRONT_FRONT_H
#define HG_FRONT_FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "core/credit.h"
#include "front/bucket.h"
#include "front/cursor.h"
#include "front/directory.h"
#include "front/hotshare.h"
#include "io/mailbox.h"
#include "io/out.h"
#include "io/sock.h"
#include "proto/frame.h"

struct hg_session;
struct hg_worker;

/* A request that src/app answers, with a copy of what it needs of the frame. */
struct hg_job {
    struct hg_letter letter; /* for the way to another thread and back */
    struct hg_worker *worker;
    struct hg_session *session; /* worker's thread only */
    const struct hg_opcode_row *row;
    uint32_t opaque;
    uint32_t frame_bytes;
    uint32_t features;
    uint32_t dropped;               /* privileges that the session gave away */
    struct hg_bucket *bucket;       /* selected; counted; or NULL */
    struct hg_directory *directory; /* in force when it was asked; counted */
    const void *user;               /* of directory->users; NULL: anonymous */
    struct hg_addr peer;
    char user_name[HG_BUCKET_NAME_MAX + 1];
    struct hg_span extras, key, value; /* within `data` */

    /* The answer, set before hg_job_answer. `text` goes with an error; `body` is malloc'd and
       freed by the front end: raw bytes of a value, or with `packets` whole stat packets made by
       hg_job_stat. */
    uint16_t status;
    char text[1024];
    char *body;
    size_t body_len, body_cap;
    bool packets;
    bool close_after;
    /* Runs on the worker's thread just before the reply, while the session still lives: a login
       tells the session who it is. May be NULL. */
    void (*on_worker)(struct hg_job *job, struct hg_session *session);
    /* Runs there instead when the session has ended meanwhile, or NULL. */
    void (*on_orphan)(struct hg_job *job);
    void *ctx; /* the app's */
    uint8_t data[];
};

struct hg_front_hooks {
    void *app;
    /* A job to carry out; runs on the worker's thread and must not block. It answers at once or
       later, exactly once. */
    void (*on_job)(void *app, struct hg_job *job);
    /* A session ends: the app frees its login dialogue (session's `login`), if there is one. */
    void (*on_login_gone)(void *app, void *login);
    /* A session ends that hg_session_set_backup was called for. */
    void (*on_backup_gone)(void *app, uint64_t id);
    /* What a user may do: bits of HG_PRIVILEGE_BIT; bucket none: with none selected. */
    uint32_t (*privileges)(void *app, const struct hg_directory *directory, const void *user,
                           struct hg_span bucket);
    bool (*may_see)(void *app, const struct hg_directory *directory, const void *user,
                    struct hg_span bucket);
    /* A user by name in this directory; NULL when there is none (any more). */
    const void *(*find_user)(void *app, const struct hg_directory *directory, struct hg_span name);
    /* Whether a login made under the old directory does not hold any more. */
    bool (*revoked)(void *app, const struct hg_directory *now, const void *user_before);
    /* Bucket that a connection starts in, or an empty span. */
    struct hg_span (*anonymous_bucket)(void *app, const struct hg_directory *directory);
};

/* Shared by all workers of a process. */
struct hg_front {
    struct hg_front_hooks hooks;
    struct hg_credit_node *node;
    unsigned worker_count;
    struct hg_worker *workers; /* array */
    struct hg_mailbox *main;   /* where workers report to */
    uint64_t start_us;
    uint64_t hash_seed; /* random, for hashes of keys */
    struct hg_gate_holder ingress;
    _Atomic bool ingress_enabled;
    struct hg_hot_front hot;
    struct hg_cursors cursors; /* sessions of queries */
    const char *version;       /* "N.N.N" */
};

/* Answers a job: from any thread, once; the job is gone afterwards. */
void hg_job_answer(struct hg_job *job);
/* Sets status and text (printf), for an error. */
void hg_job_fail(struct hg_job *job, uint16_t status, const char *fmt, ...) HG_PRINTF(3, 4);
/* Adds a stat packet; sets job->packets. When memory is out the job fails with 0x84. */
void hg_job_stat(struct hg_job *job, const char *name, const char *fmt, ...) HG_PRINTF(3, 4);
void hg_job_stat_bytes(struct hg_job *job, struct hg_span name, struct hg_span value);
/* Sets the body to a copy of the text. */
void hg_job_body(struct hg_job *job, struct hg_span text);

/* What on_worker may do to the session of its job. */
void hg_session_log_in(struct hg_session *session, const void *user, const char *name);
/* Takes the login away: the session is anonymous again. */
void hg_session_log_out(struct hg_session *session);
void *hg_session_login(const struct hg_session *session);
void hg_session_set_login(struct hg_session *session, void *login);
/* The session has begun this backup, which ends with it. */
void hg_session_set_backup(struct hg_session *session, uint64_t id);

#endif
