// tls_own - what the context and the connection of TLS know of each other
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_IO_TLS_OWN_H
#define HG_IO_TLS_OWN_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "io/tls.h"

struct hg_tls_ctx {
    atomic_uint refs;
    SSL_CTX *ssl;
    bool is_server;
    enum hg_tls_peer peer;
};

#endif
