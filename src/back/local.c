// local - errors of a connect that are this host's, not the server's
// SPDX-License-Identifier: BSD-3-Clause
#include "back/local.h"

#include <errno.h>
#include <stddef.h>

/* A unix socket whose line is full says EAGAIN: that is the server's. */
static const struct row {
    int error;
    const char *advice;
} rows[] = {
    {EMFILE, "raise the limit of open files (LimitNOFILE, ulimit -n), or lower max_connections"},
    {ENFILE, "raise fs.file-max: all processes of this host together have too many files open"},
    {ENOMEM, "this host, or its container, is out of memory"},
    {ENOBUFS, "the kernel is out of memory for sockets: see net.ipv4.tcp_mem"},
    {EADDRNOTAVAIL, "widen net.ipv4.ip_local_port_range, or lower pool_max_connections"},
    {EACCES, "this user may not connect there: see the socket's permissions and security modules"},
    {EPERM, "a firewall of this host forbids it"},
    {EAFNOSUPPORT, "this host does not speak the protocol of the address"},
    {EPROTONOSUPPORT, "this host does not speak the protocol of the address"},
};

static const struct row *row_of(int error)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].error == -error)
            return &rows[i];
    }
    return NULL;
}

bool hg_local_is(int error)
{
    return row_of(error) != NULL;
}

const char *hg_local_advice(int error)
{
    const struct row *row = row_of(error);
    return row != NULL ? row->advice : "see the error";
}
