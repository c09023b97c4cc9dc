// conf_address - socket addresses as they are written in the configuration
// SPDX-License-Identifier: BSD-3-Clause
//
// Only the form is checked; names are looked up by those who listen and connect.
#include "app/conf_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define HOST_MAX 255

static bool host_ok(const char *host, size_t len)
{
    if (len < 1 || len > HOST_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = host[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
        if (!ok)
            return false;
    }
    return true;
}

static bool ipv6_ok(const char *host, size_t len)
{
    char text[INET6_ADDRSTRLEN + 1];
    struct in6_addr address;
    if (len >= sizeof text)
        return false;
    memcpy(text, host, len);
    text[len] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

static int fill(struct hg_conf_address *ret, const char *text, const char *host, size_t host_len,
                uint64_t port, bool is_unix)
{
    struct hg_conf_address address = {.port = (uint16_t)port, .is_unix = is_unix};
    address.text = strdup(text);
    address.host = strndup(host, host_len);
    if (!address.text || !address.host) {
        hg_conf_address_fini(&address);
        return -ENOMEM;
    }
    *ret = address;
    return 0;
}

static int parse_unix(const char *text, const char *path, struct hg_conf_address *ret)
{
    size_t len = strlen(path);
    if (len < 2 || len >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return -EINVAL;
    return fill(ret, text, path, len, 0, true);
}

int hg_conf_address_parse(const char *text, struct hg_conf_address *ret)
{
    if (text[0] == '/')
        return parse_unix(text, text, ret);
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text, text + 5, ret);
    const char *colon = strrchr(text, ':');
    uint64_t port;
    if (!colon || hg_conf_number_parse(colon + 1, &port) || port > UINT16_MAX)
        return -EINVAL;
    size_t len = (size_t)(colon - text);
    if (text[0] == '[') {
        if (len < 3 || text[len - 1] != ']' || !ipv6_ok(text + 1, len - 2))
            return -EINVAL;
        return fill(ret, text, text + 1, len - 2, port, false);
    }
    return host_ok(text, len) ? fill(ret, text, text, len, port, false) : -EINVAL;
}

void hg_conf_address_fini(struct hg_conf_address *address)
{
    free(address->text);
    free(address->host);
    *address = (struct hg_conf_address){0};
}

bool hg_conf_address_is_local(const struct hg_conf_address *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (address->is_unix || strcmp(address->host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, address->host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, address->host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
    return false;
}
