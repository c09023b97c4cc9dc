// redisd - a redis-server of the test's own, on a free port of 127.0.0.1, that writes no file
// SPDX-License-Identifier: BSD-3-Clause
#ifndef REDISD_H
#define REDISD_H

#include "daemon.h"

/* False, and a line for the test driver that skips everything, when there is none. */
bool redisd_is_installed(void);
/* As daemon_launch; `options` are arguments more ("--requirepass", "x"), the last one NULL; may be
   NULL. daemon_put_down ends it. */
void redisd_launch(struct daemon *daemon, const char *const *options);

#endif
