// embedded_copy - a consistent copy of an embedded store's file, made while it serves
// SPDX-License-Identifier: BSD-3-Clause
//
//   begin ── thread: LMDB's compacting copy of one snapshot ──► file without a name ──► read ──►
//   end
//
// The copy has every write that was answered before begin, and is a store as it stands. A thread of
// its own makes it, into a file in the data directory that has no name: whatever happens, nothing
// is left behind. Memory is LMDB's two buffers of 1 MiB. Neither the writer nor a worker waits for
// it; but while it is made its snapshot holds on to the pages that writes set free, so the file
// grows. It gives way (state FAILED) when the store comes near the end of its map, when LMDB finds
// no page any more, and after HG_EMBEDDED_COPY_MAX_S.
//
// One at a time and store. All functions but give_way belong to one thread.
#ifndef HG_BACK_EMBEDDED_COPY_H
#define HG_BACK_EMBEDDED_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* Even 1 TiB at 500 MB/s is done by then; a disk that is slower must not fill the map. */
#define HG_EMBEDDED_COPY_MAX_S      2400
#define HG_EMBEDDED_COPY_HASH_BYTES 32
#define HG_EMBEDDED_COPY_WHY        200

struct hg_embedded_shared;
struct hg_embedded_copy;

enum hg_embedded_copy_state {
    HG_EMBEDDED_COPY_RUNS,
    HG_EMBEDDED_COPY_DONE,
    HG_EMBEDDED_COPY_FAILED
};

struct hg_embedded_copy_view {
    enum hg_embedded_copy_state state;
    uint64_t bytes;                              /* so far; in all when it is done */
    uint64_t about_bytes;                        /* what it will come to, as of begin */
    uint8_t sha256[HG_EMBEDDED_COPY_HASH_BYTES]; /* of the whole, when it is done */
    char why[HG_EMBEDDED_COPY_WHY];              /* when it failed */
};

/* 0 or -errno, and then `error` says why: -EBUSY while there is another, -ENOSPC when the disk has
   no room for it. */
HG_MUST_USE int hg_embedded_copy_begin(struct hg_embedded_shared *shared,
                                       struct hg_embedded_copy **ret, char *error,
                                       size_t error_bytes);
/* How far it is. Also looks whether it has to give way: to be called a few times a second while it
   runs. */
void hg_embedded_copy_look(struct hg_embedded_copy *copy, struct hg_embedded_copy_view *ret);
/* Bytes of a copy that is done, within its length. 0 or -errno. */
HG_MUST_USE int hg_embedded_copy_read(struct hg_embedded_copy *copy, uint64_t offset, void *to,
                                      size_t bytes);
/* Stops it if need be, which takes as long as one write of 1 MiB, and forgets it. NULL is allowed;
   must be called before the store is closed. */
void hg_embedded_copy_end(struct hg_embedded_copy *copy);

/* The writer: the map is full. Stops a copy that still holds pages, and waits for that, 200 ms at
   most; true when there was one. */
HG_MUST_USE bool hg_embedded_copy_give_way(struct hg_embedded_shared *shared);

#endif
