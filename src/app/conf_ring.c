// conf_ring - a libmemcached configuration string, read with that library's own limits in mind
// SPDX-License-Identifier: BSD-3-Clause
//
//     --DISTRIBUTION=consistent --HASH=MD5 --SERVER=host1:11211/?2 --SERVER=host2
//     --SOCKET="/run/memcached.sock"
//
// Whoever has such a string has clients that libmemcached read it for. So what is accepted here
// must mean the same there: the string is held to what the library (1.1.4) understands, and what it
// would silently ignore, or what has no meaning in a proxy, is a fault that says so. The library
// itself never sees the string: it would open files for --CONFIGURE-FILE.
//
// What was found by trying it out: words are separated by exactly one space; option names, hashes
// and distributions are in any case; a host name has three characters or more and is no keyword;
// weights count only if
// --DISTRIBUTION=consistent stands in front; a hash after `consistent,` changes nothing; a weight
// behind a socket's path becomes a part of the path; a port over 65535 is cut to 16 bits.
#include "app/conf_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct ring {
    struct hg_conf_upstream *upstream;
    const char *file;
    unsigned line;
    struct hg_conf_errors *errs;
    size_t room;
    bool has_distribution;
    bool has_hash;
    int rc;
};

#define FAULT(ring, ...)                                                                           \
    do {                                                                                           \
        hg_conf_errors_add((ring)->errs, (ring)->file, (ring)->line, __VA_ARGS__);                 \
        if ((ring)->rc == 0)                                                                       \
            (ring)->rc = -EINVAL;                                                                  \
    } while (0)

/* Words that the library's scanner takes for something else than a host. */
static const char *const keywords[] = {
    "end",    "reset",   "true",     "false",   "include",    "md5",
    "crc",    "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32",   "hsieh",
    "murmur", "jenkins", "random",   "modula",  "consistent",
};

/* Options of the library that are no fault of the user's, with what to do instead here. */
static const struct advice {
    const char *option;
    const char *text;
} advices[] = {
    {"--CONFIGURE-FILE", "it would read a file (accepted: its text, here)"},
    {"--NAMESPACE", "it has no effect here (accepted: key_prefix of a tenant)"},
    {"--SORT-HOSTS", "it would reorder the servers (accepted: servers in their sorted order)"},
    {"--HASH-WITH-NAMESPACE",
     "the ring sees keys without a prefix (accepted: the option left out)"},
    {"--HASH-WITH-PREFIX-KEY",
     "the ring sees keys without a prefix (accepted: the option left out)"},
    {"--CONNECT-TIMEOUT", "it has no effect here (accepted: connect_timeout_ms of the upstream)"},
    {"--POLL-TIMEOUT", "it has no effect here (accepted: backend_timeout_ms of the upstream)"},
    {"--RCV-TIMEOUT", "it has no effect here (accepted: backend_timeout_ms of the upstream)"},
    {"--SND-TIMEOUT", "it has no effect here (accepted: backend_timeout_ms of the upstream)"},
    {"--RETRY-TIMEOUT", "it has no effect here (accepted: reconnect_max_ms of the upstream)"},
    {"--REMOVE-FAILED-SERVERS", "it has no effect here (accepted: eject_servers of the upstream)"},
    {"--REMOVE_FAILED_SERVERS", "it has no effect here (accepted: eject_servers of the upstream)"},
    {"--SERVER-FAILURE-LIMIT", "it has no effect here (accepted: the option left out)"},
    {"--NUMBER-OF-REPLICAS", "replicas are not written here (accepted: the option left out)"},
    {"--USE-UDP", "servers are spoken to by TCP (accepted: the option left out)"},
    {"--POOL-MIN", "it has no effect here (accepted: the option left out)"},
    {"--POOL-MAX", "it has no effect here (accepted: pool_max_connections of the upstream)"},
};

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Whether the library's scanner takes it for a host. */
static bool library_knows_host(const char *host, size_t len)
{
    if (len < 3 || !is_word_char(host[0]) || !is_word_char(host[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_word_char(host[i]) && !strchr(".-_", host[i]))
            return false;
    for (size_t i = 0; i < HG_COUNT_OF(keywords); i++)
        if (strlen(keywords[i]) == len && strncasecmp(keywords[i], host, len) == 0)
            return false;
    return true;
}

static void add_server(struct ring *ring, const char *address, uint64_t weight)
{
    struct hg_conf_upstream *upstream = ring->upstream;
    struct hg_conf_why why;
    if (upstream->servers_count == ring->room) {
        size_t room = ring->room ? ring->room * 2 : 8;
        void *more = reallocarray(upstream->servers, room, sizeof *upstream->servers);
        if (!more) {
            ring->rc = -ENOMEM;
            return;
        }
        upstream->servers = more;
        ring->room = room;
    }
    struct hg_conf_upstream_server *server = &upstream->servers[upstream->servers_count++];
    memset(server, 0, sizeof *server);
    int rc = hg_conf_object_init(HG_CONF_SCOPE_UPSTREAM_SERVER, server);
    if (!rc)
        rc = hg_conf_value_set(hg_conf_scopes[HG_CONF_SCOPE_UPSTREAM_SERVER].options, server,
                               address, &why);
    if (rc == -EINVAL)
        FAULT(ring, "%s", why.text);
    else if (rc)
        ring->rc = rc;
    server->weight = weight;
    server->lines[HG_CONF_UPSTREAM_SERVER_address] = ring->line;
    if (weight != 1)
        server->lines[HG_CONF_UPSTREAM_SERVER_weight] = ring->line;
}

/* HOST[:PORT][/?WEIGHT] */
static void parse_server(struct ring *ring, char *value)
{
    uint64_t weight = 1, port = 11211;
    char whole[300], address[300];
    snprintf(whole, sizeof whole, "%s", value);
    char *mark = strstr(value, "/?");
    if (mark) {
        *mark = '\0';
        if (hg_conf_number_parse(mark + 2, &weight) || weight < 1 || weight > 65535) {
            FAULT(ring, "bad weight in '--SERVER=%.80s' (accepted: 1 to 65535)", whole);
            return;
        }
    }
    if (value[0] == '[' || strchr(value, ':') != strrchr(value, ':')) {
        FAULT(ring,
              "libmemcached reads no IPv6 address in a configuration string: '--SERVER=%.80s' "
              "(accepted: servers, with ring and hash)",
              whole);
        return;
    }
    char *colon = strchr(value, ':');
    if (colon) {
        *colon = '\0';
        if (hg_conf_number_parse(colon + 1, &port) || port < 1 || port > 65535) {
            FAULT(ring, "bad port in '--SERVER=%.80s' (accepted: 1 to 65535)", whole);
            return;
        }
    }
    if (!library_knows_host(value, strlen(value))) {
        FAULT(
            ring,
            "libmemcached cannot read the host '%.80s' in a configuration string (accepted: names "
            "of "
            "three or more letters, digits, . - _ that are none of its keywords, or servers, with "
            "ring and hash)",
            value);
        return;
    }
    snprintf(address, sizeof address, "%s:%u", value, (unsigned)port);
    add_server(ring, address, weight);
}

/* "/PATH" in double quotes */
static void parse_socket(struct ring *ring, char *value)
{
    size_t len = strlen(value);
    if (len < 4 || value[0] != '"' || value[len - 1] != '"' || value[1] != '/') {
        FAULT(ring,
              "bad value in '--SOCKET=%.80s' (accepted: --SOCKET=\"/PATH\", in double quotes)",
              value);
        return;
    }
    if (strstr(value, "/?")) {
        FAULT(ring,
              "libmemcached takes the weight in '--SOCKET=%.80s' for a part of the path (accepted: "
              "servers, with ring and weights)",
              value);
        return;
    }
    value[len - 1] = '\0';
    add_server(ring, value + 1, 1);
}

static void parse_distribution(struct ring *ring, char *value)
{
    char *comma = strchr(value, ',');
    if (ring->has_distribution)
        FAULT(ring, "repeated option '--DISTRIBUTION' (accepted: once)");
    ring->has_distribution = true;
    if (comma) {
        FAULT(ring,
              "the hash in '--DISTRIBUTION=%.80s' has no effect in libmemcached (accepted: "
              "--HASH=%.20s as an option of its own, if that is meant)",
              value, comma + 1);
        return;
    }
    if (ring->upstream->servers_count)
        FAULT(ring,
              "'--DISTRIBUTION' behind a server makes libmemcached ignore the server's weight "
              "(accepted: in front of all servers)");
    if (strcasecmp(value, "consistent") == 0)
        ring->upstream->ring = HG_CONF_RING_CONSISTENT;
    else if (strcasecmp(value, "modula") == 0)
        ring->upstream->ring = HG_CONF_RING_MODULA;
    else
        FAULT(ring, "bad value in '--DISTRIBUTION=%.80s' (accepted: consistent, modula)", value);
}

/* Neither `default` nor murmur3 are words of the library's strings. */
static void parse_hash(struct ring *ring, const char *value)
{
    size_t count;
    const char *const *names = hg_conf_choice_names(HG_CONF_TYPE_HASH, &count);
    if (ring->has_hash)
        FAULT(ring, "repeated option '--HASH' (accepted: once)");
    ring->has_hash = true;
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(names[i], value) == 0 && i != HG_CONF_HASH_DEFAULT &&
            i != HG_CONF_HASH_MURMUR3) {
            ring->upstream->hash = (enum hg_conf_hash)i;
            return;
        }
    FAULT(ring,
          "bad value in '--HASH=%.80s' (accepted: md5, crc, fnv1_64, fnv1a_64, fnv1_32, fnv1a_32, "
          "jenkins, murmur)",
          value);
}

static void parse_word(struct ring *ring, char *word)
{
    char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value - word) : strlen(word);
    static const char *const known =
        "--SERVER, --SOCKET, --DISTRIBUTION, --HASH, --BINARY-PROTOCOL";
    for (size_t i = 0; i < HG_COUNT_OF(advices); i++)
        if (strlen(advices[i].option) == len && strncasecmp(advices[i].option, word, len) == 0) {
            FAULT(ring, "option '%s' in the configuration string: %s", advices[i].option,
                  advices[i].text);
            return;
        }
    if (!value && strcasecmp(word, "--BINARY-PROTOCOL") == 0)
        return;
    if (!value || !value[1]) {
        FAULT(ring, "'%.80s' in the configuration string has no effect here (accepted: %s)", word,
              known);
        return;
    }
    value++;
    if (len == 8 && strncasecmp(word, "--SERVER", len) == 0)
        parse_server(ring, value);
    else if (len == 8 && strncasecmp(word, "--SOCKET", len) == 0)
        parse_socket(ring, value);
    else if (len == 14 && strncasecmp(word, "--DISTRIBUTION", len) == 0)
        parse_distribution(ring, value);
    else if (len == 6 && strncasecmp(word, "--HASH", len) == 0)
        parse_hash(ring, value);
    else
        FAULT(ring, "'%.*s' in the configuration string has no effect here (accepted: %s)",
              (int)len, word, known);
}

/* The next word, cut out in place: to the next space, or past it where it stands in quotes. */
static char *next_word(char **at)
{
    char *word = *at, *end = word;
    bool quoted = false;
    for (; *end && (quoted || *end != ' '); end++)
        quoted ^= *end == '"';
    *at = *end ? end + 1 : NULL;
    *end = '\0';
    return word;
}

static void check_whole(struct ring *ring)
{
    const struct hg_conf_upstream *upstream = ring->upstream;
    if (upstream->servers_count == 0)
        FAULT(
            ring,
            "no server in the configuration string (accepted: at least one --SERVER or --SOCKET)");
    for (size_t i = 0; i < upstream->servers_count; i++)
        if (upstream->servers[i].weight != 1 && upstream->ring == HG_CONF_RING_MODULA)
            FAULT(ring,
                  "weight of server '%s' has no effect in libmemcached (accepted: "
                  "--DISTRIBUTION=consistent in front of the servers)",
                  upstream->servers[i].address.text);
}

int hg_conf_ring_parse(struct hg_conf_upstream *upstream, const char *file,
                       struct hg_conf_errors *errs)
{
    struct ring ring = {.upstream = upstream,
                        .file = file,
                        .line = upstream->lines[HG_CONF_UPSTREAM_configuration],
                        .errs = errs};
    char *text = strdup(upstream->configuration), *at = text;
    if (!text)
        return -ENOMEM;
    upstream->ring = HG_CONF_RING_MODULA; /* what the library does when told nothing */
    if (!text[0] || text[0] == ' ' || text[strlen(text) - 1] == ' ' || strstr(text, "  "))
        FAULT(
            &ring,
            "libmemcached wants one space between the options of a configuration string, and none "
            "around them");
    else
        while (at && ring.rc != -ENOMEM)
            parse_word(&ring, next_word(&at));
    free(text);
    if (!ring.rc)
        check_whole(&ring);
    return ring.rc;
}
