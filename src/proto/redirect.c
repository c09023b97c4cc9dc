// redirect - where a server of a Redis Cluster says that a key lives
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/redirect.h"

#include <stdio.h>
#include <string.h>

#include "proto/keyslot.h"

/* A name, an address of either kind, or one of IPv6 with a zone. */
static bool is_host(struct hg_span host)
{
    if (host.len == 0 || host.len > HG_REDIRECT_HOST_MAX)
        return false;
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = host.at[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!plain && (c == '\0' || strchr(".:-_%", c) == NULL))
            return false;
    }
    return true;
}

/* The host of "host:port" or "[host]:port"; none of a path. */
static struct hg_span host_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (strchr(address, '/') != NULL)
        return HG_SPAN_NONE;
    size_t len = colon == NULL ? strlen(address) : (size_t)(colon - address);
    if (len >= 2 && address[0] == '[') {
        const char *end = strchr(address, ']');
        return end == NULL ? HG_SPAN_NONE : hg_span(address + 1, (size_t)(end - address) - 1);
    }
    return hg_span(address, len);
}

bool hg_redirect_address(struct hg_span host, uint64_t port, const char *asked,
                         char ret_address[HG_REDIRECT_ADDRESS])
{
    if (host.len == 0)
        host = host_of(asked);
    if (!is_host(host) || port == 0 || port > UINT16_MAX)
        return false;
    bool v6 = memchr(host.at, ':', host.len) != NULL;
    snprintf(ret_address, HG_REDIRECT_ADDRESS, v6 ? "[%.*s]:%u" : "%.*s:%u", (int)host.len,
             (const char *)host.at, (unsigned)port);
    return true;
}

/* Digits only, at most 5 of them. */
static bool read_number(struct hg_span text, uint64_t *ret)
{
    uint64_t n = 0;
    if (text.len == 0 || text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(text.at[i] - '0');
    }
    *ret = n;
    return true;
}

/* Cuts what is before the first blank off `text`. */
static struct hg_span next_word(struct hg_span *text)
{
    if (text->len == 0)
        return HG_SPAN_NONE;
    const uint8_t *blank = memchr(text->at, ' ', text->len);
    size_t len = blank == NULL ? text->len : (size_t)(blank - text->at);
    struct hg_span word = hg_span(text->at, len);
    size_t cut = blank == NULL ? len : len + 1;
    *text = hg_span(text->at + cut, text->len - cut);
    return word;
}

bool hg_redirect_target(struct hg_span where, const char *asked,
                        char ret_address[HG_REDIRECT_ADDRESS])
{
    uint64_t port;
    size_t colon = where.len;
    while (colon > 0 && where.at[colon - 1] != ':')
        colon--;
    if (colon == 0 || !read_number(hg_span(where.at + colon, where.len - colon), &port))
        return false;
    struct hg_span host = hg_span(where.at, colon - 1);
    if (host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']')
        host = hg_span(host.at + 1, host.len - 2);
    return hg_redirect_address(host, port, asked, ret_address);
}

bool hg_redirect_decode(struct hg_span text, const char *asked, struct hg_redirect *ret)
{
    struct hg_span kind = next_word(&text), slot_text = next_word(&text), where = next_word(&text);
    uint64_t slot;
    if ((!hg_span_is(kind, "ASK") && !hg_span_is(kind, "MOVED")) || text.len > 0 ||
        !read_number(slot_text, &slot) || slot >= HG_KEYSLOTS ||
        !hg_redirect_target(where, asked, ret->address))
        return false;
    ret->ask = hg_span_is(kind, "ASK");
    ret->slot = (uint16_t)slot;
    return true;
}
