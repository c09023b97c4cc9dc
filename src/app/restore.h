// restore - headgate --restore: starts an embedded store from a backup
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_RESTORE_H
#define HG_APP_RESTORE_H

#include "app/conf.h"

struct hg_restore {
    const char *from;     /* the backup */
    const char *upstream; /* NULL: the only embedded one of the configuration */
    bool force;           /* over a store that is there */
};

/* Checks the backup, puts it in the place of the upstream's store, and says what it holds. The exit
   status; what is wrong is said on stderr. */
int hg_restore_run(const char *conf_path, const struct hg_conf_overrides *overrides,
                   const struct hg_restore *restore);

#endif
