// webauth - who may read over HTTP: the token, the cookie made from it, and the Host header
// SPDX-License-Identifier: BSD-3-Clause
#include "app/webauth.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "app/web_own.h"

#define DIGEST          SHA256_DIGEST_LENGTH
#define HEX             (2 * DIGEST)
#define TOKEN_MAX       512
#define COOKIE          "headgate_token_" /* and the port: cookies know of hosts only */
#define COOKIE_NAME_MAX (sizeof COOKIE + 8)
#define COOKIE_FOR      "headgate cookie: " /* what makes its digest another than the token's */

/* The token in force; "" for none. */
static void get_token(struct hg_web *web, char token[TOKEN_MAX + 1])
{
    struct hg_process *process = web->process;
    token[0] = '\0';
    pthread_mutex_lock(&process->lock);
    if (process->effective->admin_count > 0)
        snprintf(token, TOKEN_MAX + 1, "%s", process->effective->admin[0].token);
    pthread_mutex_unlock(&process->lock);
}

static bool are_equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned char left[DIGEST], right[DIGEST];
    SHA256((const unsigned char *)a, a_len, left);
    SHA256((const unsigned char *)b, b_len, right);
    return CRYPTO_memcmp(left, right, DIGEST) == 0;
}

static void make_cookie(const char *token, char hex[HEX + 1])
{
    char text[sizeof COOKIE_FOR + TOKEN_MAX];
    unsigned char digest[DIGEST];
    int len = snprintf(text, sizeof text, "%s%s", COOKIE_FOR, token);
    SHA256((const unsigned char *)text, (size_t)len, digest);
    for (unsigned i = 0; i < DIGEST; i++)
        snprintf(hex + 2 * (size_t)i, 3, "%02x", digest[i]);
    OPENSSL_cleanse(text, sizeof text);
}

static unsigned bound_port(const struct hg_web *web)
{
    const struct sockaddr_storage *sa = &web->bound.sa;
    return ntohs(sa->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)sa)->sin6_port
                                           : ((const struct sockaddr_in *)sa)->sin_port);
}

unsigned hg_webauth_port(const char *host, unsigned bound)
{
    const char *at = host != NULL ? strrchr(host, ':') : NULL;
    unsigned port = 0;
    if (at == NULL || strlen(at + 1) > 5 || strspn(at + 1, "0123456789") != strlen(at + 1) ||
        (host[0] == '[' ? at[-1] != ']' : strchr(host, ':') != at))
        return bound;
    for (at++; *at != '\0'; at++)
        port = port * 10 + (unsigned)(*at - '0');
    return port > 0 && port <= UINT16_MAX ? port : bound;
}

/* The name of the cookie with its "=", of where the client believes to be. */
static void name_cookie(const struct hg_web *web, struct evhttp_request *request,
                        char name[COOKIE_NAME_MAX])
{
    const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
    snprintf(name, COOKIE_NAME_MAX, COOKIE "%u=", hg_webauth_port(host, bound_port(web)));
}

/* The value of the cookie of this name in a Cookie header, or none. */
static struct hg_span find_cookie(const char *header, const char *name)
{
    size_t name_len = strlen(name);
    while (header != NULL && *header != '\0') {
        header += strspn(header, " ;");
        size_t len = strcspn(header, ";");
        if (len >= name_len && strncmp(header, name, name_len) == 0)
            return hg_span(header + name_len, len - name_len);
        header += len;
    }
    return HG_SPAN_NONE;
}

enum hg_webauth hg_webauth_check(struct hg_web *web, struct evhttp_request *request)
{
    struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
    const char *bearer = evhttp_find_header(headers, "Authorization");
    char token[TOKEN_MAX + 1], hex[HEX + 1], name[COOKIE_NAME_MAX];
    enum hg_webauth result = HG_WEBAUTH_MISSING;
    name_cookie(web, request, name);
    struct hg_span cookie = find_cookie(evhttp_find_header(headers, "Cookie"), name);
    get_token(web, token);
    /* A reload may have taken the token away, but it does not move the socket. */
    if (token[0] == '\0')
        return web->is_loopback ? HG_WEBAUTH_PASS : HG_WEBAUTH_MISSING;
    if (bearer != NULL && strncasecmp(bearer, "Bearer ", 7) == 0) {
        bearer += 7 + strspn(bearer + 7, " ");
        result = are_equal(bearer, strlen(bearer), token, strlen(token)) ? HG_WEBAUTH_PASS
                                                                         : HG_WEBAUTH_WRONG;
    } else if (cookie.len > 0) {
        make_cookie(token, hex);
        result = are_equal((const char *)cookie.at, cookie.len, hex, HEX) ? HG_WEBAUTH_PASS
                                                                          : HG_WEBAUTH_WRONG;
    }
    OPENSSL_cleanse(token, sizeof token);
    return result;
}

enum hg_webauth hg_webauth_log_in(struct hg_web *web, struct evhttp_request *request,
                                  char cookie[HG_WEBAUTH_COOKIE_MAX])
{
    struct evbuffer *body = evhttp_request_get_input_buffer(request);
    char token[TOKEN_MAX + 1], text[HG_WEBCONN_BODY_BYTES + 1], hex[HEX + 1];
    char name[COOKIE_NAME_MAX];
    struct evkeyvalq form;
    cookie[0] = '\0';
    get_token(web, token);
    if (token[0] == '\0')
        return web->is_loopback ? HG_WEBAUTH_PASS : HG_WEBAUTH_MISSING;
    ev_ssize_t len = evbuffer_remove(body, text, sizeof text - 1);
    text[len > 0 ? len : 0] = '\0';
    enum hg_webauth result = HG_WEBAUTH_MISSING;
    if (evhttp_parse_query_str(text, &form) == 0) {
        const char *given = evhttp_find_header(&form, "token");
        if (given != NULL)
            result = are_equal(given, strlen(given), token, strlen(token)) ? HG_WEBAUTH_PASS
                                                                           : HG_WEBAUTH_WRONG;
        evhttp_clear_headers(&form);
    }
    if (result == HG_WEBAUTH_PASS) {
        make_cookie(token, hex);
        name_cookie(web, request, name);
        snprintf(cookie, HG_WEBAUTH_COOKIE_MAX, "%s%s; Path=/; HttpOnly; SameSite=Strict", name,
                 hex);
    }
    OPENSSL_cleanse(token, sizeof token);
    OPENSSL_cleanse(text, sizeof text);
    return result;
}

/* ---- the host ---- */

bool hg_webauth_is_local_name(const char *header, const char *own)
{
    char host[256];
    struct in_addr v4;
    struct in6_addr v6;
    const char *end;
    if (header[0] == '[') {
        end = strchr(header, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
        header++;
    } else {
        end = strrchr(header, ':');
        if (end != NULL && memchr(header, ':', (size_t)(end - header)) != NULL)
            return false; /* an IPv6 address without brackets */
    }
    size_t len = end != NULL ? (size_t)(end - header) : strlen(header);
    if (len == 0 || len >= sizeof host)
        return false;
    memcpy(host, header, len);
    host[len] = '\0';
    if (strcasecmp(host, "localhost") == 0 || strcasecmp(host, own) == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Beyond loopback there is a token, which a foreign page does not have; and what names lead here
   only the operator knows. */
bool hg_webauth_host_is_ours(const struct hg_web *web, struct evhttp_request *request)
{
    const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
    return !web->is_loopback || host == NULL || hg_webauth_is_local_name(host, web->host);
}
