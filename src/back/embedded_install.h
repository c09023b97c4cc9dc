// embedded_install - puts a copy of an embedded store in a store's place
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_EMBEDDED_INSTALL_H
#define HG_BACK_EMBEDDED_INSTALL_H

#include <stdbool.h>

#include "back/embedded_check.h"

/* Checks `from` in full, copies it to <data_dir>/<name>.mdb (data_dir is made if missing), checks
   what was written, brings it to the disk and only then gives it its name. 0, or -errno with
   `error`: -EEXIST when there is a store and not `force`, -EBUSY when a process uses it. Before the
   last step nothing of the old store is touched. */
HG_MUST_USE int hg_embedded_install(const char *data_dir, const char *name, const char *from,
                                    bool force, struct hg_embedded_found *ret, char *error,
                                    size_t error_bytes);

#endif
