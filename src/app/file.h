// file - small files as a whole: read one, replace one so that it is never seen half
// SPDX-License-Identifier: BSD-3-Clause
//
// Blocking; for start, reload and the housekeeping thread.
#ifndef HG_APP_FILE_H
#define HG_APP_FILE_H

#include <stddef.h>

#include "base/attr.h"

/* Reads all of a file, at most max bytes, onto the heap; a zero byte follows. 0 or -errno (-EFBIG
   when it is longer, -EISDIR, ...). */
HG_MUST_USE int hg_file_read(const char *path, size_t max, char **ret, size_t *ret_len);

/* Writes path anew with mode 0600: temporary file beside it, fsync, rename, fsync of the directory.
   0 or -errno; on failure the old file is whole and the temporary one gone (only if the last step
   fails, which no caller can undo, the new one is whole). */
HG_MUST_USE int hg_file_replace(const char *path, const void *data, size_t len);

#endif
