// backup - copies of embedded stores for administrators, handed out in pieces
// SPDX-License-Identifier: BSD-3-Clause
//
//   begin(upstream) ──► id ── look(id) until it is ready ── read(id, offset) ... ── end(id)
//
// One at a time; a second gets 0x85. It is dropped when its connection goes, when nobody asked for
// it for HG_BACKUP_IDLE_US, when its upstream is removed, and when it fails; its file has no name,
// so nothing is left. The copy is made by back/embedded_copy.h on a thread of its own. All of this
// runs on housekeeping.
#ifndef HG_APP_BACKUP_H
#define HG_APP_BACKUP_H

#include "back/embedded_copy.h"
#include "front/front.h"

#define HG_BACKUP_IDLE_US    30000000u
#define HG_BACKUP_READ_BYTES (1u << 20) /* of one read, at most */
#define HG_BACKUP_END        UINT64_MAX /* an offset: forget the copy */

struct hg_process;
struct hg_upstream;

struct hg_backup {
    uint64_t id; /* 0: there is none */
    struct hg_embedded_copy *copy;
    struct hg_upstream *upstream; /* counted */
    uint64_t asked_us;            /* when somebody asked last */
    struct hg_timer timer;
    char who[HG_BUCKET_NAME_MAX + 1];
    char from[HG_ADDR_TEXT];
    _Atomic bool closed; /* housekeeping has ended */
};

/* 0 or -errno. */
HG_MUST_USE int hg_backup_start(struct hg_process *process);
/* Housekeeping has ended: forgets a copy that there is. */
void hg_backup_stop(struct hg_process *process);

/* Opcode Backup; fills the job's answer. */
void hg_backup_on_job(struct hg_process *process, struct hg_job *job);
/* Hook: a session that began a backup has gone; the worker's thread. */
void hg_backup_on_gone(void *app, uint64_t id);

#endif
