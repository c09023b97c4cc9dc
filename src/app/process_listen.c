// process_listen - opens what the server listens on, and makes room for its connections
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/inherit.h"
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

static int print_failure(const char *text, int rc)
{
    fprintf(stderr, "headgate: cannot bind '%s': %s\n", text,
            rc == -EADDRINUSE ? "address in use"
            : rc == -ENOENT   ? "no such host"
                              : strerror(-rc));
    return rc;
}

static int resolve(const struct hg_conf *conf, struct hg_addr *ret)
{
    for (size_t i = 0; i < conf->listen_count; i++) {
        int rc = hg_addr_resolve(conf->listen[i].address.text, 0, &ret[i]);
        if (rc != 0)
            return print_failure(conf->listen[i].address.text, rc);
    }
    return 0;
}

/* The socket of one entry, which `share` may have already. */
static int open_entry(struct hg_process *process, size_t number, const struct hg_addr *addr,
                      const struct hg_inherit_share *share)
{
    const struct hg_conf_listen *entry = &process->effective->listen[number];
    struct hg_addr bound;
    char text[HG_ADDR_TEXT];
    int rc;
    if (share->fd == -EALREADY && entry->tls_count > 0) {
        fprintf(stderr,
                "headgate: listener '%s' speaks TLS and needs a socket of its own, but the one "
                "that was handed over belongs to another entry\n",
                entry->address.text);
        return -EINVAL;
    }
    if (share->fd == -EALREADY)
        return 0;
    if (share->fd >= 0)
        rc = hg_listeners_adopt(process->listeners, share->fd, share->keeps_file, &bound);
    else
        rc = hg_listeners_add(process->listeners, addr, (unsigned)entry->mode, &bound);
    if (rc != 0)
        return print_failure(entry->address.text, rc);
    hg_listeners_number_last(process->listeners, number);
    if (process->first_listen.len == 0)
        process->first_listen = bound;
    hg_log_info("listen=%s msg=\"%s\"", hg_addr_text(&bound, text),
                share->fd >= 0 ? "listening on a socket that was handed over" : "listening");
    return 0;
}

int hg_process_listen(struct hg_process *process)
{
    const struct hg_conf *conf = process->effective;
    struct hg_addr *addrs = calloc(conf->listen_count, sizeof *addrs);
    struct hg_inherit_share *shares = calloc(conf->listen_count, sizeof *shares);
    process->listeners =
        hg_listeners_new(&process->loop, &process->front, (unsigned)conf->max_connections);
    int rc = addrs != NULL && shares != NULL && process->listeners != NULL ? resolve(conf, addrs)
                                                                           : -ENOMEM;
    if (rc == 0)
        hg_inherit_take(process->inherit, HG_INHERIT_LISTEN, addrs, conf->listen_count, shares);
    for (size_t i = 0; i < conf->listen_count && rc == 0; i++)
        rc = open_entry(process, i, &addrs[i], &shares[i]);
    free(addrs);
    free(shares);
    return rc;
}

/* The addresses of all entries, as the file has them. */
static void list_entries(const struct hg_conf *conf, char *ret, size_t size)
{
    size_t at = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < conf->listen_count && at < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%s", i > 0 ? ", " : "",
                               conf->listen[i].address.text);
}

int hg_process_refuse_inherited(struct hg_process *process)
{
    struct hg_inherited *left;
    char text[HG_ADDR_TEXT], entries[512];
    while ((left = hg_inherit_left(process->inherit)) != NULL) {
        hg_addr_text(&left->addr, text);
        if (process->inherit->from_parent) {
            list_entries(process->effective, entries, sizeof entries);
            fprintf(stderr,
                    "headgate: nothing wants the socket '%s' ('%s') that LISTEN_FDS passes "
                    "(accepted: the addresses of listen and admin: %s)\n",
                    text, left->name, entries);
            return -EINVAL;
        }
        hg_log_warn("listen=%s msg=\"no entry of listen has this address any more: closed\"", text);
        if (left->addr.sa.ss_family == AF_UNIX && !left->keeps_file)
            unlink(((struct sockaddr_un *)&left->addr.sa)->sun_path);
        close(left->fd);
        left->fd = -1;
    }
    return 0;
}
