// process - everything one running server consists of, and who owns which part
// SPDX-License-Identifier: BSD-3-Clause
//
//   main thread         signals, ticks, listeners, drain; reads the live buckets under `lock`
//   housekeeping        configuration, users, state file, directories, statistics, administration
//   workers             clients and stores (src/front)
//   login helpers       password checks (login.c)
//
// What housekeeping changes and the main thread reads (the directory in force) is behind `lock`,
// which is held for a moment a tick and never on a request's path.
#ifndef HG_APP_PROCESS_H
#define HG_APP_PROCESS_H

#include <pthread.h>

#include "app/backup.h"
#include "app/binds.h"
#include "app/throttles.h"
#include "app/conf.h"
#include "app/hotkeys.h"
#include "app/state.h"
#include "app/tlslisten.h"
#include "app/users.h"
#include "back/ring.h"
#include "core/credittick.h"
#include "front/front.h"
#include "front/listener.h"
#include "front/worker.h"

struct hg_handover;
struct hg_inherit;
struct hg_logins;
struct hg_resolver;
struct hg_watch;
struct hg_web;

/* A users snapshot with its readers counted: what hg_directory.users points to. */
struct hg_users_ref {
    _Atomic unsigned refs;
    struct hg_users *users;
};

/* How the program was started. */
struct hg_process_options {
    const char *conf_path; /* NULL: the built-in configuration */
    struct hg_conf_overrides overrides;
    bool take_over; /* from the process that runs */
    char **argv;    /* for starting it again; lives as long as the process */
};

struct hg_process {
    const struct hg_process_options *options;
    /* the configuration: housekeeping's, once the threads run */
    const char *conf_path;
    struct hg_conf_overrides overrides;
    bool frozen;               /* a new process takes over: nothing is changed here any more */
    struct hg_conf *file;      /* as in the file */
    struct hg_state *state;    /* as set by opcode */
    struct hg_conf *effective; /* both together: what is in force */
    struct hg_users_ref *users;

    struct hg_front front;
    struct hg_credit_node node;
    struct hg_worker *workers;
    struct hg_logins *logins;
    struct hg_listeners *listeners;
    struct hg_tlslisten *tls;    /* NULL: no listener speaks TLS */
    struct hg_addr first_listen; /* as bound */

    pthread_mutex_t lock;
    struct hg_directory *directory; /* in force; under lock */
    pthread_mutex_t slot_lock;
    bool slots[HG_UPSTREAMS_MAX]; /* upstream slots in use; under slot_lock */
    uint64_t generations;         /* of upstreams, so far */
    struct hg_resolver *resolver;

    struct hg_loop loop; /* main thread's */
    struct hg_mailbox mailbox;
    struct hg_timer tick_timer, drain_timer, hot_timer, gate_timer;
    uint64_t hot_begin_us; /* when the epoch of hot keys began */
    bool hot_prolonged;    /* it goes on longer, since nothing ran when it should have ended */
    struct event signals[6];
    struct hg_credit_bucket **tick_buckets; /* room for tick_room buckets */
    struct hg_fair *tick_scratch;
    size_t tick_room;
    _Atomic bool overcommitted; /* warned that reservations exceed the capacity */
    _Atomic bool draining; /* any thread may look: no new connections, and not ready any more */
    bool end_asked;        /* by a signal */
    uint64_t drain_hard_us, drain_until_us;
    struct hg_letter drain_letter;
    _Atomic bool drain_posted;
    struct hg_inherit *inherit; /* while it is set up: sockets that it need not open */
    struct hg_handover *handover;
    bool took_over;         /* from another process */
    struct hg_watch *watch; /* NULL: no watchdog */

    struct hg_loop house_loop; /* housekeeping's */
    struct hg_mailbox house;
    pthread_t house_thread;
    struct hg_letter reload_letter;
    _Atomic bool reload_posted;
    struct hg_hotkeys hotkeys;
    struct hg_binds binds;
    struct hg_throttles throttles;
    uint64_t servers_looked_us; /* housekeeping's last look at the servers */
    struct hg_backup backup;
    struct hg_web *web; /* NULL: HTTP is not served */

    hg_counter ticks, reloads, reload_errors;
    uint64_t start_wall_s;
};

/* Reads the configuration, sets everything up, runs until a signal ends it, tears down in reverse.
   The exit status. Messages go to stderr before the log is open. */
int hg_process_run(const struct hg_process_options *options);

/* process_signals.c: begins the same end as SIGTERM; from any thread. */
void hg_process_ask_drain(struct hg_process *process);

/* ---- publish.c: from settings to directories ---- */

/* Makes the directory of `effective` and `users`; reuses the records of the one in force. Nothing
   is in force yet. 0, or -errno with `why` filled. */
HG_MUST_USE int hg_publish_prepare(struct hg_process *process, const struct hg_conf *effective,
                                   struct hg_users_ref *users, struct hg_directory **ret,
                                   char why[512]);
/* Puts the directory in force everywhere. `effective` becomes process->effective. 0 or -ENOMEM
   (then nothing has changed). `purge`: a bucket that goes takes its items in an embedded store with
   it (its name; NULL: none). */
HG_MUST_USE int hg_publish(struct hg_process *process, struct hg_conf *effective,
                           struct hg_directory *directory, const char *purge);

/* publish_tickets.c: options of ingress tickets, of an upstream's, and of binds. */
void hg_publish_ingress(struct hg_front *front, const struct hg_conf *conf);
void hg_publish_execution(struct hg_front *front, struct hg_upstream *upstream,
                          const struct hg_conf_upstream *conf);
struct hg_bind_settings hg_publish_binds(const struct hg_conf *conf);

struct hg_users_ref *hg_users_ref_new(struct hg_users *users);
void hg_users_ref_unref(void *users);
/* The users of a directory (hooks.c). */
const struct hg_users *hg_users_of(const struct hg_directory *directory);

/* ---- upstreams.c ---- */

/* Opens an upstream that there was not, with its first generation. 0, or -errno with `why`. */
HG_MUST_USE int hg_upstream_open(struct hg_process *process, const struct hg_conf_upstream *conf,
                                 struct hg_generation **ret, char why[512]);
/* Ring and hash of a memcached upstream, as texts that hold; no servers. */
void hg_upstream_ring_conf(struct hg_ring_conf *ring, const struct hg_conf_upstream *conf);
/* Does the change need another generation? Both have the same kind. */
bool hg_upstream_needs_renewal(const struct hg_conf_upstream *before,
                               const struct hg_conf_upstream *now);
/* Another generation of it. Servers that were out before begin so. 0, or -errno with `why`. */
HG_MUST_USE int hg_upstream_renew(struct hg_upstream *upstream, const struct hg_conf_upstream *conf,
                                  struct hg_generation **ret, char why[512]);
/* The generation is in force from now on, with what an open store takes over. */
void hg_upstream_update(struct hg_generation *generation, const struct hg_conf_upstream *conf);
/* It is not listed any more. */
void hg_upstream_end(struct hg_upstream *upstream);
/* The key space of a bucket in an embedded upstream; 0 for other kinds. */
HG_MUST_USE int hg_upstream_tenant(struct hg_generation *generation, const char *bucket,
                                   uint32_t *ret_id);
/* As whom a tenant's requests go to the servers: a number of back/identity.h; 0 for kinds without
   servers. *id comes with what it was in this generation before, or 0, which saves a search if it
   still is. 0, -ENOMEM, or -ENOSPC: the generation has had too many logins. */
HG_MUST_USE int hg_upstream_identity(struct hg_generation *generation,
                                     const struct hg_conf_tenant *tenant, uint32_t *id);
/* The bucket is deleted: its items go. */
void hg_upstream_purge(struct hg_upstream *upstream, const char *bucket, uint32_t tenant_id);
/* The same for what an earlier bucket of the name may have left. */
void hg_upstream_forget(struct hg_generation *generation, const char *bucket);
/* Begins a copy of an embedded upstream; 0 or -errno with `error`, -ENOTSUP for other kinds. */
HG_MUST_USE int hg_upstream_copy_begin(struct hg_upstream *upstream, struct hg_embedded_copy **ret,
                                       char *error, size_t error_bytes);
/* Rows of `stats upstreams`. */
void hg_upstream_stats(struct hg_upstream *upstream, struct hg_job *job);
/* Rows of `stats pool`. */
void hg_upstream_pool_stats(struct hg_upstream *upstream, struct hg_job *job);

/* ---- hooks.c ---- */
void hg_hooks_init(struct hg_process *process);

/* ---- admin.c, stats.c: run on housekeeping ---- */
void hg_admin_on_job(struct hg_process *process, struct hg_job *job);
void hg_stats_on_job(struct hg_process *process, struct hg_job *job);
/* Reads file and users again and publishes. 0, or -EINVAL with all messages in `why` (malloc'd). */
HG_MUST_USE int hg_admin_reload(struct hg_process *process, const char *who, char **ret_why);

/* --describe-stats */
void hg_stats_describe(FILE *to);

#endif
