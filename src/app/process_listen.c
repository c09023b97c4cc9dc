// process_listen - opens what the server listens on, and makes room for its connections
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "app/process.h"
#include "app/process_own.h"
#include "base/log.h"

void hg_process_raise_limit(const struct hg_conf *conf)
{
    struct rlimit limit;
    rlim_t want = conf->max_connections + 4096;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
        return;
    limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < want)
        hg_log_warn("descriptors=%llu msg=\"fewer file descriptors than max_connections wants; "
                    "raise the limit of open files\"",
                    (unsigned long long)limit.rlim_cur);
}

int hg_process_listen(struct hg_process *process)
{
    const struct hg_conf *conf = process->effective;
    process->listeners =
        hg_listeners_new(&process->loop, &process->front, (unsigned)conf->max_connections);
    if (process->listeners == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < conf->listen_count; i++) {
        const char *text = conf->listen[i].address.text;
        struct hg_addr addr, bound;
        char bound_text[HG_ADDR_TEXT];
        int rc = hg_addr_resolve(text, 0, &addr);
        if (rc == 0)
            rc =
                hg_listeners_add(process->listeners, &addr, (unsigned)conf->listen[i].mode, &bound);
        if (rc != 0) {
            fprintf(stderr, "headgate: cannot bind '%s': %s\n", text,
                    rc == -EADDRINUSE ? "address in use"
                    : rc == -ENOENT   ? "no such host"
                                      : strerror(-rc));
            return rc;
        }
        if (i == 0)
            process->first_listen = bound;
        hg_log_info("listen=%s msg=\"listening\"", hg_addr_text(&bound, bound_text));
    }
    return 0;
}
