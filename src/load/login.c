// login - from a fresh connection to one that may send a tenant's requests
// SPDX-License-Identifier: BSD-3-Clause
#include "load/login.h"

#include <errno.h>
#include <gsasl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "load/secure.h"
#include "load/status.h"
#include "load/wire.h"

/* Largest value of a session's replies. */
#define VALUE_MAX 16384

/* Steps after which a SASL exchange is given up; SCRAM takes three. */
#define STEPS_MAX 8

struct exchange {
    int fd;
    struct hg_tls *tls;
    int timeout_ms;
    char *why;
    size_t why_bytes;
    const char *asked; /* the last request, in words */
    uint16_t status;   /* of its reply */
    size_t value_bytes;
    uint8_t value[VALUE_MAX];
};

HG_PRINTF(2, 3) static bool fail(struct exchange *ex, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ex->why, ex->why_bytes, format, args);
    va_end(args);
    return false;
}

static bool await(struct exchange *ex, short events)
{
    struct pollfd poll_fd = {.fd = ex->fd, .events = events};
    int rc;
    do {
        rc = poll(&poll_fd, 1, ex->timeout_ms);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0) {
        return fail(ex, "no reply to %s for %g s", ex->asked, ex->timeout_ms / 1000.0);
    }
    return rc > 0 || fail(ex, "%s", strerror(errno));
}

static bool put_all(struct exchange *ex, const uint8_t *at, size_t len)
{
    while (len > 0) {
        ssize_t n = hg_load_put(ex->fd, ex->tls, at, len);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return fail(ex, "%s", strerror(errno));
        }
        if (n < 0 && !await(ex, POLLOUT)) {
            return false;
        }
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static bool get_all(struct exchange *ex, uint8_t *to, size_t len)
{
    while (len > 0) {
        ssize_t n = hg_load_get(ex->fd, ex->tls, to, len);
        if (n == 0) {
            return fail(ex, "closed by the server after %s", ex->asked);
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return fail(ex, "%s", strerror(errno));
        }
        if (n < 0 && !await(ex, POLLIN)) {
            return false;
        }
        if (n > 0) {
            to += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static const char *name_of(uint8_t opcode)
{
    switch (opcode) {
    case HG_WIRE_HELLO:
        return "HELLO";
    case HG_WIRE_SASL_LIST:
        return "the list of mechanisms";
    case HG_WIRE_SELECT_BUCKET:
        return "the selection of a bucket";
    default:
        return "a login";
    }
}

/* Sends one request and reads its reply into the exchange. False: no reply that is one. */
static bool ask(struct exchange *ex, uint8_t opcode, const char *key, const void *value,
                size_t value_bytes)
{
    uint8_t header[HG_WIRE_HEADER];
    size_t key_bytes = strlen(key);
    ex->asked = name_of(opcode);
    hg_wire_put_header(header, opcode, key_bytes, 0, value_bytes);
    if (!put_all(ex, header, sizeof header) || !put_all(ex, (const uint8_t *)key, key_bytes) ||
        !put_all(ex, value, value_bytes) || !get_all(ex, header, sizeof header)) {
        return false;
    }
    uint32_t body = hg_get_u32(header + HG_WIRE_AT_BODY_BYTES);
    size_t skip =
        header[HG_WIRE_AT_EXTRAS_BYTES] + (size_t)hg_get_u16(header + HG_WIRE_AT_KEY_BYTES);
    if (header[0] != HG_WIRE_RESPONSE || header[HG_WIRE_AT_OPCODE] != opcode || body < skip ||
        body > VALUE_MAX) {
        return fail(ex, "answered %s with bytes that are no reply to it", ex->asked);
    }
    if (!get_all(ex, ex->value, body)) {
        return false;
    }
    ex->status = hg_get_u16(header + HG_WIRE_AT_STATUS);
    ex->value_bytes = body - skip;
    memmove(ex->value, ex->value + skip, ex->value_bytes);
    return true;
}

static bool refused(struct exchange *ex, const char *what, const char *name)
{
    size_t len = ex->value_bytes < 120 ? ex->value_bytes : 120;
    return fail(ex, "%s '%s' refused with 0x%02x (%s): '%.*s'", what, name, ex->status,
                hg_load_status_name(ex->status), (int)len, (const char *)ex->value);
}

static bool say_hello(struct exchange *ex, uint32_t features)
{
    static const struct {
        uint32_t bit;
        uint16_t code;
        const char *name;
    } known[] = {
        {HG_LOAD_HELLO_XERROR, 0x07, "xerror"},
        {HG_LOAD_HELLO_JSON, 0x0b, "json"},
        {HG_LOAD_HELLO_NONBLOCKING, 0x1b, "nonblocking"},
    };
    uint8_t codes[2 * HG_COUNT_OF(known)];
    size_t len = 0;
    for (size_t i = 0; i < HG_COUNT_OF(known); i++) {
        if ((features & known[i].bit) != 0) {
            hg_put_u16(codes + len, known[i].code);
            len += 2;
        }
    }
    if (!ask(ex, HG_WIRE_HELLO, "headgate-load", codes, len)) {
        return false;
    }
    if (ex->status != 0) {
        return refused(ex, "HELLO as", "headgate-load");
    }
    for (size_t i = 0; i < HG_COUNT_OF(known); i++) {
        bool granted = (features & known[i].bit) == 0;
        for (size_t at = 0; at + 2 <= ex->value_bytes; at += 2) {
            granted |= hg_get_u16(ex->value + at) == known[i].code;
        }
        if (!granted) {
            return fail(ex, "the server does not grant '%s'", known[i].name);
        }
    }
    return true;
}

/* The strongest mechanism that the server offers and the tenant allows. */
static const char *choose_mechanism(struct exchange *ex, const struct hg_load_tenant *tenant)
{
    static const char *const ranked[] = {"SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"};
    if (tenant->mechanism != NULL) {
        return tenant->mechanism;
    }
    if (!ask(ex, HG_WIRE_SASL_LIST, "", NULL, 0)) {
        return NULL;
    }
    if (ex->status != 0) {
        refused(ex, "request for", "SASL mechanisms");
        return NULL;
    }
    for (size_t i = 0; i < HG_COUNT_OF(ranked); i++) {
        size_t len = strlen(ranked[i]);
        for (size_t at = 0; at + len <= ex->value_bytes; at++) {
            bool starts = at == 0 || ex->value[at - 1] == ' ';
            bool ends = at + len == ex->value_bytes || ex->value[at + len] == ' ';
            if (starts && ends && memcmp(ex->value + at, ranked[i], len) == 0) {
                return ranked[i];
            }
        }
    }
    fail(ex, "the server offers '%.*s', none of PLAIN, SCRAM-SHA-1, SCRAM-SHA-256",
         (int)(ex->value_bytes < 120 ? ex->value_bytes : 120), (const char *)ex->value);
    return NULL;
}

/* The exchange itself. A server of SCRAM proves in its last message that it knows the secret too,
 * whether that comes with success or one step earlier. */
static bool run_sasl(struct exchange *ex, Gsasl_session *session, const char *mechanism,
                     const char *user)
{
    ex->value_bytes = 0;
    for (int step = 0; step < STEPS_MAX; step++) {
        char *out = NULL;
        size_t out_bytes = 0;
        int rc = gsasl_step(session, (const char *)ex->value, ex->value_bytes, &out, &out_bytes);
        if (rc != GSASL_OK && rc != GSASL_NEEDS_MORE) {
            return fail(ex, "login of '%s' with %s: %s", user, mechanism, gsasl_strerror(rc));
        }
        uint8_t opcode = step == 0 ? HG_WIRE_SASL_AUTH : HG_WIRE_SASL_STEP;
        bool answered = ask(ex, opcode, mechanism, out, out_bytes);
        gsasl_free(out);
        if (!answered) {
            return false;
        }
        if (ex->status == 0) {
            if (rc == GSASL_NEEDS_MORE) {
                rc =
                    gsasl_step(session, (const char *)ex->value, ex->value_bytes, &out, &out_bytes);
                gsasl_free(rc == GSASL_OK || rc == GSASL_NEEDS_MORE ? out : NULL);
            }
            return rc == GSASL_OK ||
                   fail(ex, "login of '%s' with %s: the server did not prove who it is: %s", user,
                        mechanism, gsasl_strerror(rc));
        }
        if (ex->status != 0x21) {
            return refused(ex, "login of", user);
        }
    }
    return fail(ex, "login of '%s' with %s does not end", user, mechanism);
}

static bool log_in(struct exchange *ex, Gsasl *sasl, const struct hg_load_tenant *tenant)
{
    const char *mechanism = choose_mechanism(ex, tenant);
    if (mechanism == NULL) {
        return false;
    }
    Gsasl_session *session = NULL;
    int rc = gsasl_client_start(sasl, mechanism, &session);
    if (rc != GSASL_OK) {
        return fail(ex, "cannot start %s: %s", mechanism, gsasl_strerror(rc));
    }
    bool fine = gsasl_property_set(session, GSASL_AUTHID, tenant->user) == GSASL_OK &&
                gsasl_property_set(session, GSASL_PASSWORD, tenant->password) == GSASL_OK;
    fine = fine ? run_sasl(ex, session, mechanism, tenant->user) : fail(ex, "out of memory");
    gsasl_finish(session);
    return fine;
}

struct Gsasl *hg_load_login_new(void)
{
    Gsasl *sasl = NULL;
    return gsasl_init(&sasl) == GSASL_OK ? sasl : NULL;
}

void hg_load_login_free(struct Gsasl *sasl)
{
    if (sasl != NULL) {
        gsasl_done(sasl);
    }
}

bool hg_load_login(struct Gsasl *sasl, int fd, struct hg_tls *tls,
                   const struct hg_load_tenant *tenant, int timeout_ms, char *ret_why,
                   size_t why_bytes)
{
    struct exchange ex = {
        .fd = fd, .tls = tls, .timeout_ms = timeout_ms, .why = ret_why, .why_bytes = why_bytes};
    if (tenant->hello != 0 && !say_hello(&ex, tenant->hello)) {
        return false;
    }
    if (tenant->user != NULL && !log_in(&ex, sasl, tenant)) {
        return false;
    }
    if (tenant->bucket != NULL) {
        if (!ask(&ex, HG_WIRE_SELECT_BUCKET, tenant->bucket, NULL, 0)) {
            return false;
        }
        return ex.status == 0 || refused(&ex, "bucket", tenant->bucket);
    }
    return true;
}
