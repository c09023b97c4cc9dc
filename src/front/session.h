// session - one client connection: reading, order of replies, back-pressure
// SPDX-License-Identifier: BSD-3-Clause
//
//   socket ─► scratch or `in` ─► frames ─► requests (queue) ─► out ─► socket
//
// Bytes are read into the worker's scratch and cut in place; only what is left over (part of a
// frame, frames behind one that waits) is kept in a blob of the session, and the rest of a large
// frame is read straight into its place. An idle session has neither blob nor output.
//
// Why a session stops reading: its request waits (credits, room, a job), too many replies are under
// way or unsent, or it is closing. Requests under way: at most 1 + high water / size of recent
// replies, which is taken to be HG_SESSION_REPLY_GUESS at least. Memory of one session is at most
//   one frame (at least 128 KiB) to be carried out,
//   2 high waters and one value unsent (counted in blocks, hg_out.held_bytes),
//   2 high waters and two values answered before their turn;
// and when replies are suddenly as large as can be, for this moment one value for each request
// under way. Blocks are at most twice as large as what is in them.
#ifndef HG_FRONT_SESSION_H
#define HG_FRONT_SESSION_H

#include <event2/event_struct.h>

#include "front/front.h"
#include "front/request.h"
#include "front/worker.h"
#include "io/out.h"
#include "io/tls.h"

#define HG_SESSION_FRAMES_AFTER_WAIT 16
#define HG_SESSION_IGNORED_MAX       8
#define HG_SESSION_QUEUE_MAX         1024
#define HG_SESSION_REPLY_GUESS       4096
#define HG_LEAVE_PATIENCE_US         1000000 /* as long as a closed connection lingers */
#define HG_SESSION_LOGIN_FRAME_BYTES 16384   /* limit of a frame before a login */

enum hg_wait {
    HG_WAIT_NONE,
    HG_WAIT_CREDITS, /* in its lane's list of held sessions */
    HG_WAIT_TICKET,  /* in a holder's line */
    HG_WAIT_ROOM,    /* in its store's queue */
    HG_WAIT_JOB      /* the process answers */
};

struct hg_session {
    struct hg_list node;  /* all sessions of the worker */
    struct hg_list ready; /* worker's ready list */
    struct hg_list dirty; /* worker's dirty list; later its dead list */
    struct hg_list held;  /* lane's held list */
    struct hg_worker *worker;
    int fd;
    short watching;     /* EV_READ, EV_WRITE, EV_CLOSED */
    struct hg_tls *tls; /* NULL: plain */
    struct event event;

    struct hg_blob *in; /* bytes not yet carried out: in->data[in_at .. in->len) */
    size_t in_at;
    size_t in_need;      /* bytes of the frame of which `in` holds a part; 0: not known */
    uint64_t skip_bytes; /* of a refused frame, still to be dropped */

    struct hg_request *first, *last; /* under way, in order */
    uint32_t queue_len;
    struct hg_request *waiting; /* the last one, if it waits for credits, tickets or room */
    struct hg_bindthrottle_pass bind_pass; /* of the last request that passed a bind throttle */
    uint64_t read_us;      /* the last read: what is not looked at yet is at least as old */
    uint64_t keys_pending; /* bit (hash & 63) of every key under way */
    struct hg_out out;
    uint32_t reply_peak; /* recent reply bytes, decaying: the window comes from it */

    uint8_t wait;     /* enum hg_wait */
    bool read_closed; /* end of file seen */
    bool hung_up;     /* the client sends no more: its requests are not held any more */
    bool lingering;   /* all sent, our side closed: read on for a moment */
    bool barrier;     /* a flush, a range or a batch is under way: nothing overtakes it */
    bool turning;     /* something is under way on a store that is old: nothing overtakes it */
    bool closing;     /* send what is queued, then close */
    bool leaving;     /* closes as soon as nothing of its client is under way or unread */
    bool dead;
    bool full;       /* the socket takes no more: wait for EV_WRITE */
    bool paused;     /* reading stopped for output */
    uint8_t ignored; /* times that bytes were there while its request waited for room */
    bool unread;     /* there is something to read, when the turn of its tenant comes */
    bool hidden;     /* read from the socket, and still within `tls`: no event tells of it */
    bool logged_in;
    bool chose;              /* the client has selected a bucket, or none, itself */
    uint8_t party, party_by; /* as gate_party.c has worked it out: by which enum hg_fair_by */
    bool no_place;     /* the bucket that it would start in has as many connections as it may */
    bool over_limit;   /* accepted over the limit: first request gets 0x85 */
    uint32_t features; /* set of enum hg_feature */
    uint32_t privileges;
    uint32_t dropped;     /* privileges given away by DropPrivilege */
    struct hg_lane *lane; /* of the selected bucket, or NULL */
    const void *user;     /* of worker->directory->users */
    char *user_name;      /* NULL: anonymous */
    void *login;          /* the app's dialogue */
    uint64_t backup;      /* that it began last, or 0 */
    struct hg_job *job;   /* parked on it; NULL */
    char *agent;          /* from HELLO, or NULL */
    uint64_t born_us, active_us, linger_until_us;
    size_t lingered_bytes;
    hg_counter requests;
    struct hg_addr peer;
};

/* Takes over the socket and `tls`. NULL when memory is out: then it does not. It may be closed
   already, when its certificate names nobody. */
HG_MUST_USE struct hg_session *hg_session_new(struct hg_worker *worker,
                                              const struct hg_client *client);
/* Cancels what is under way and closes; memory goes at the end of the turn. */
void hg_session_close(struct hg_session *session);
/* Looks at what has been read, from where it stopped; after a wait has ended. */
void hg_session_run(struct hg_session *session);
/* The same for a few frames, from a store that has room again; the rest is left to the ready list.
 */
void hg_session_run_some(struct hg_session *session);
/* Puts the session on the worker's list of those with something to send. */
void hg_session_touch(struct hg_session *session);
/* Sends what the socket takes, keeps the rest; called by the worker at the end of a turn. */
void hg_session_flush(struct hg_session *session);
/* Puts the session on the ready list of its lane: it is run in this turn or the next. */
void hg_session_make_ready(struct hg_session *session);
/* A reply has left: reading goes on if it had stopped for want of room. */
void hg_session_resume(struct hg_session *session);
/* By the worker's timer: idle, lingering and closing connections. */
void hg_session_tick(struct hg_session *session, uint64_t now_us);
/* Frees a closed session; no job may refer to it any more. */
void hg_session_free(struct hg_session *session);
/* recv through `tls`: record by record, as long as there is something within. Sets `hidden` when
   some of it did not fit; errno as recv does. */
ssize_t hg_session_receive_tls(struct hg_session *session, uint8_t *room, size_t bytes);
/* Logs in who the certificate names, or closes, or leaves it anonymous. */
void hg_session_present(struct hg_session *session, enum hg_client_user user);
/* A new directory is in force. */
void hg_session_adopt(struct hg_session *session);
/* Carries out nothing more, closes when what is under way is answered. */
void hg_session_finish(struct hg_session *session);
/* leave.c: goes on until nothing is under way, half read or unread, then closes. A client that has
   just come and asked nothing yet, or has stopped within a request, has HG_LEAVE_PATIENCE_US. */
void hg_session_leave(struct hg_session *session);
/* Is that moment now? */
bool hg_session_at_gap(const struct hg_session *session);
/* Selects a bucket (NULL: none); privileges are worked out anew. */
void hg_session_select(struct hg_session *session, struct hg_bucket *bucket);

#endif
