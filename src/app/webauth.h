// webauth - who may read over HTTP: the token, the cookie made from it, and the Host header
// SPDX-License-Identifier: BSD-3-Clause
//
// The cookie is not the token but a digest of it, so a stolen browser profile does not hold the
// token; it is good for as long as the token is. Digests are compared, in constant time. A wrong
// token is answered late, on a connection that can ask nothing else meanwhile: with
// HG_WEBCONN_MAX connections there are at most so many guesses a second.
//
// On loopback a page of a foreign site may reach us under a name of its own that it lets point
// here. So the Host header has to be one that only we can have.
#ifndef HG_APP_WEBAUTH_H
#define HG_APP_WEBAUTH_H

#include <event2/http.h>
#include <stdbool.h>

#include "base/attr.h"

#define HG_WEBAUTH_COOKIE_MAX 200

struct hg_web;

enum hg_webauth { HG_WEBAUTH_PASS, HG_WEBAUTH_MISSING, HG_WEBAUTH_WRONG };

/* Without a token everybody passes on loopback, and nobody beyond. */
enum hg_webauth hg_webauth_check(struct hg_web *web, struct evhttp_request *request);
/* The body of POST /login. With PASS `cookie` is for Set-Cookie; empty when there is no token. */
enum hg_webauth hg_webauth_log_in(struct hg_web *web, struct evhttp_request *request,
                                  char cookie[HG_WEBAUTH_COOKIE_MAX]);
/* Of `host`, a Host header or NULL: its port, or `bound` if it names none that could be one. The
   cookie has it in its name, so that tunnels to two servers from one machine do not overwrite each
   other's. */
unsigned hg_webauth_port(const char *host, unsigned bound);
bool hg_webauth_host_is_ours(const struct hg_web *web, struct evhttp_request *request);
/* Is `host`, as in a Host header, a name that only this machine has: localhost, a loopback address,
   or `own`? */
bool hg_webauth_is_local_name(const char *host, const char *own);

#endif
