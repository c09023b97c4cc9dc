// clusterd - a real Redis Cluster of the test's own: redis-server processes on free ports of
// 127.0.0.1
// SPDX-License-Identifier: BSD-3-Clause
#include "clusterd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon.h"
#include "proto/keyslot.h"
#include "../unit/patience.h"

#define NODE_TIMEOUT_MS 1000

/* Looks, 5 ms apart, in which all must agree: one message that is on its way may undo what they
   have just agreed on. */
#define AGREED_LOOKS 10

#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        PATIENCE_UNTIL(condition, poll(NULL, 0, 5));                                               \
    } while (0)

bool clusterd_is_installed(void)
{
    char line[256] = "";
    int major = 0;
    FILE *pipe = popen("redis-server --version 2>/dev/null", "r");
    if (pipe != NULL) {
        if (fgets(line, sizeof line, pipe) == NULL)
            line[0] = '\0';
        pclose(pipe);
    }
    const char *version = strstr(line, "v=");
    if (version != NULL)
        major = atoi(version + 2);
    if (major < 7)
        printf("1..0 # SKIP redis-server 7 or later is not installed\n");
    return major >= 7;
}

static void exec_server(const struct clusterd *cluster, const struct clusterd_node *node)
{
    char port[8], bus[8], timeout[16];
    snprintf(port, sizeof port, "%u", node->port);
    snprintf(bus, sizeof bus, "%u", node->bus_port);
    snprintf(timeout, sizeof timeout, "%d", NODE_TIMEOUT_MS);
    char folder[96];
    snprintf(folder, sizeof folder, "%s/%u", cluster->folder, node->port);
    int quiet = open("/dev/null", O_WRONLY);
    dup2(quiet, 1);
    dup2(quiet, 2);
    execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port, "--cluster-port",
           bus, "--cluster-enabled", "yes", "--cluster-node-timeout", timeout, "--appendonly", "no",
           "--save", "", "--dir", folder, "--repl-diskless-sync-delay", "0",
           "--repl-ping-replica-period", "1", "--cluster-replica-validity-factor", "0",
           "--enable-debug-command", "local", (char *)NULL);
    _exit(127);
}

static bool answers(struct clusterd_node *node)
{
    const struct timeval patience = {5, 0};
    node->context = redisConnectWithTimeout("127.0.0.1", node->port, patience);
    redisReply *reply = NULL;
    if (node->context != NULL && node->context->err == 0 &&
        redisSetTimeout(node->context, patience) == REDIS_OK)
        reply = redisCommand(node->context, "PING");
    bool ok = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (!ok && node->context != NULL) {
        redisFree(node->context);
        node->context = NULL;
    }
    return ok;
}

void clusterd_relaunch(struct clusterd *cluster, uint32_t number)
{
    struct clusterd_node *node = &cluster->nodes[number];
    assert_int_equal(node->pid, 0);
    node->pid = fork();
    assert_true(node->pid >= 0);
    if (node->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        exec_server(cluster, node);
    }
    UNTIL((assert_int_equal(waitpid(node->pid, NULL, WNOHANG), 0), answers(node)));
}

static uint32_t launch(struct clusterd *cluster)
{
    uint32_t number = cluster->count++;
    assert_in_range(number, 0, CLUSTERD_NODES - 1);
    struct clusterd_node *node = &cluster->nodes[number];
    node->port = daemon_free_port();
    node->bus_port = daemon_free_port();
    snprintf(node->address, sizeof node->address, "127.0.0.1:%u", node->port);
    char folder[96];
    snprintf(folder, sizeof folder, "%s/%u", cluster->folder, node->port);
    assert_int_equal(mkdir(folder, 0700), 0);
    clusterd_relaunch(cluster, number);
    redisReply *reply = clusterd_ask(cluster, number, "CLUSTER MYID");
    snprintf(node->id, sizeof node->id, "%s", reply->str);
    freeReplyObject(reply);
    return number;
}

static redisReply *ask(struct clusterd *cluster, uint32_t number, const char *format, va_list args)
{
    redisReply *reply = redisvCommand(cluster->nodes[number].context, format, args);
    if (reply == NULL)
        fail_msg("node %u: '%s': %s", number, format, cluster->nodes[number].context->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("node %u: '%s': %s", number, format, reply->str);
    return reply;
}

redisReply *clusterd_ask(struct clusterd *cluster, uint32_t number, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask(cluster, number, format, args);
    va_end(args);
    return reply;
}

void clusterd_do(struct clusterd *cluster, uint32_t number, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    freeReplyObject(ask(cluster, number, format, args));
    va_end(args);
}

static void meet(struct clusterd *cluster, uint32_t number)
{
    clusterd_do(cluster, 0, "CLUSTER MEET 127.0.0.1 %d %d", cluster->nodes[number].port,
                cluster->nodes[number].bus_port);
}

static bool knows(struct clusterd *cluster, uint32_t number, const char *id)
{
    redisReply *reply = clusterd_ask(cluster, number, "CLUSTER NODES");
    const char *line = strstr(reply->str, id);
    bool known = line != NULL && strncmp(strchr(line, ' '), " :0", 3) != 0 &&
                 strstr(line, "handshake") == NULL;
    freeReplyObject(reply);
    return known;
}

static bool says_ok(struct clusterd *cluster, uint32_t number)
{
    redisReply *reply = clusterd_ask(cluster, number, "CLUSTER INFO");
    bool ok = strstr(reply->str, "cluster_state:ok") != NULL;
    freeReplyObject(reply);
    return ok;
}

uint32_t clusterd_owner(struct clusterd *cluster, uint32_t witness, uint32_t slot)
{
    redisReply *reply = clusterd_ask(cluster, witness, "CLUSTER SLOTS");
    uint32_t owner = UINT32_MAX;
    for (size_t i = 0; i < reply->elements; i++) {
        redisReply *row = reply->element[i];
        if (row->element[0]->integer > slot || row->element[1]->integer < slot)
            continue;
        for (uint32_t n = 0; n < cluster->count; n++) {
            if (cluster->nodes[n].port == row->element[2]->element[1]->integer)
                owner = n;
        }
    }
    freeReplyObject(reply);
    return owner;
}

bool clusterd_is_master(struct clusterd *cluster, uint32_t number)
{
    redisReply *reply = clusterd_ask(cluster, number, "ROLE");
    bool is = strcmp(reply->element[0]->str, "master") == 0;
    freeReplyObject(reply);
    return is;
}

void clusterd_wait(struct clusterd *cluster, uint32_t slot, uint32_t owner)
{
    for (uint32_t n = 0; n < cluster->count; n++) {
        if (cluster->nodes[n].pid != 0)
            UNTIL(says_ok(cluster, n) && clusterd_owner(cluster, n, slot) == owner);
    }
}

static bool names_hosts(struct clusterd *cluster, uint32_t witness, const char *host)
{
    redisReply *reply = clusterd_ask(cluster, witness, "CLUSTER SLOTS");
    bool ok = true;
    for (size_t i = 0; i < reply->elements; i++) {
        redisReply *row = reply->element[i];
        for (size_t n = 2; n < row->elements; n++) {
            redisReply *name = row->element[n]->element[0];
            ok &= host == NULL ? name->type == REDIS_REPLY_NIL
                               : name->type == REDIS_REPLY_STRING && strcmp(name->str, host) == 0;
        }
    }
    freeReplyObject(reply);
    return ok;
}

void clusterd_wait_hosts(struct clusterd *cluster, const char *host)
{
    for (uint32_t n = 0; n < cluster->count; n++)
        UNTIL(names_hosts(cluster, n, host));
}

static bool names(struct clusterd *cluster, uint32_t witness, const char *id)
{
    redisReply *reply = clusterd_ask(cluster, witness, "CLUSTER NODES");
    bool named = strstr(reply->str, id) != NULL;
    freeReplyObject(reply);
    return named;
}

void clusterd_wait_without(struct clusterd *cluster, uint32_t number)
{
    for (uint32_t n = 0; n < cluster->count; n++) {
        if (n != number && cluster->nodes[n].pid != 0)
            UNTIL(!names(cluster, n, cluster->nodes[number].id));
    }
}

static bool is_in_step(struct clusterd *cluster, uint32_t replica)
{
    redisReply *reply = clusterd_ask(cluster, replica, "ROLE");
    bool ok = reply->elements == 5 && strcmp(reply->element[3]->str, "connected") == 0;
    freeReplyObject(reply);
    return ok;
}

/* Does it know a replica of every master? */
static bool sees_replicas(struct clusterd *cluster, uint32_t witness)
{
    redisReply *reply = clusterd_ask(cluster, witness, "CLUSTER SLOTS");
    bool ok = reply->elements == CLUSTERD_MASTERS;
    for (size_t i = 0; i < reply->elements; i++)
        ok &= reply->element[i]->elements == 4;
    freeReplyObject(reply);
    return ok;
}

void clusterd_wait_replicas(struct clusterd *cluster)
{
    for (uint32_t n = 0; n < cluster->count; n++) {
        if (cluster->nodes[n].pid != 0)
            UNTIL(sees_replicas(cluster, n));
    }
}

/* A test that fails while the cluster is made leaves nothing either. */
static struct clusterd *left_behind;

static void clear_away(void)
{
    clusterd_fini(left_behind);
}

void clusterd_init(struct clusterd *cluster)
{
    memset(cluster, 0, sizeof *cluster);
    /* Nodes wait for the disk with each change of a slot: memory is faster, where there is such. */
    bool shm = access("/dev/shm", W_OK) == 0;
    snprintf(cluster->folder, sizeof cluster->folder, "%sclusterd.XXXXXX", shm ? "/dev/shm/" : "");
    assert_non_null(mkdtemp(cluster->folder));
    if (left_behind == NULL)
        atexit(clear_away);
    left_behind = cluster;
    for (uint32_t n = 0; n < 2 * CLUSTERD_MASTERS; n++)
        (void)launch(cluster);
    for (uint32_t n = 0; n < CLUSTERD_MASTERS; n++) {
        uint32_t first = HG_KEYSLOTS * n / CLUSTERD_MASTERS;
        uint32_t last = HG_KEYSLOTS * (n + 1) / CLUSTERD_MASTERS - 1;
        clusterd_do(cluster, n, "CLUSTER ADDSLOTSRANGE %d %d", first, last);
    }
    for (uint32_t n = 0; n < cluster->count; n++)
        clusterd_do(cluster, n, "CLUSTER SET-CONFIG-EPOCH %d", n + 1);
    for (uint32_t n = 1; n < cluster->count; n++)
        meet(cluster, n);
    for (uint32_t n = 0; n < CLUSTERD_MASTERS; n++) {
        uint32_t replica = n + CLUSTERD_MASTERS;
        UNTIL(knows(cluster, replica, cluster->nodes[n].id));
        clusterd_do(cluster, replica, "CLUSTER REPLICATE %s", cluster->nodes[n].id);
    }
    for (uint32_t n = 0; n < CLUSTERD_MASTERS; n++) {
        clusterd_wait(cluster, HG_KEYSLOTS * n / CLUSTERD_MASTERS, n);
        UNTIL(is_in_step(cluster, n + CLUSTERD_MASTERS));
    }
    clusterd_wait_replicas(cluster);
}

uint32_t clusterd_add(struct clusterd *cluster)
{
    uint32_t number = launch(cluster);
    meet(cluster, number);
    for (uint32_t n = 0; n < number; n++) {
        if (cluster->nodes[n].pid != 0)
            UNTIL(knows(cluster, n, cluster->nodes[number].id));
    }
    UNTIL(says_ok(cluster, number));
    return number;
}

void clusterd_kill(struct clusterd *cluster, uint32_t number)
{
    struct clusterd_node *node = &cluster->nodes[number];
    if (node->context != NULL)
        redisFree(node->context);
    node->context = NULL;
    if (node->pid <= 0)
        return;
    kill(node->pid, SIGCONT);
    kill(node->pid, SIGKILL);
    waitpid(node->pid, NULL, 0);
    node->pid = 0;
}

void clusterd_fini(struct clusterd *cluster)
{
    char path[128];
    for (uint32_t n = 0; n < cluster->count; n++) {
        clusterd_kill(cluster, n);
        snprintf(path, sizeof path, "%s/%u/nodes.conf", cluster->folder, cluster->nodes[n].port);
        unlink(path);
        snprintf(path, sizeof path, "%s/%u/dump.rdb", cluster->folder, cluster->nodes[n].port);
        unlink(path);
        snprintf(path, sizeof path, "%s/%u", cluster->folder, cluster->nodes[n].port);
        rmdir(path);
    }
    rmdir(cluster->folder);
}

void clusterd_open_slot(struct clusterd *cluster, uint32_t slot, uint32_t from, uint32_t to)
{
    clusterd_do(cluster, to, "CLUSTER SETSLOT %d IMPORTING %s", slot, cluster->nodes[from].id);
    clusterd_do(cluster, from, "CLUSTER SETSLOT %d MIGRATING %s", slot, cluster->nodes[to].id);
}

uint32_t clusterd_move_keys(struct clusterd *cluster, uint32_t slot, uint32_t from, uint32_t to,
                            uint32_t max)
{
    redisReply *reply = clusterd_ask(cluster, from, "CLUSTER GETKEYSINSLOT %d %d", slot, max);
    uint32_t moved = (uint32_t)reply->elements;
    for (uint32_t i = 0; i < moved; i++)
        clusterd_do(cluster, from, "MIGRATE 127.0.0.1 %d %b 0 5000", cluster->nodes[to].port,
                    reply->element[i]->str, (size_t)reply->element[i]->len);
    freeReplyObject(reply);
    return moved;
}

/* The number that all epochs are below. */
static long long epoch_of(struct clusterd *cluster, uint32_t number)
{
    redisReply *reply = clusterd_ask(cluster, number, "CLUSTER INFO");
    const char *at = strstr(reply->str, "cluster_current_epoch:");
    long long epoch = at == NULL ? -1 : atoll(strchr(at, ':') + 1);
    freeReplyObject(reply);
    return epoch;
}

/* Do all nodes agree about the slot and about the epoch? If not, the next move could be made in an
   epoch that is not the newest, and be taken back by an older message that is still on its way. */
static bool agree(struct clusterd *cluster, uint32_t slot, uint32_t owner)
{
    long long epoch = epoch_of(cluster, owner);
    for (uint32_t n = 0; n < cluster->count; n++) {
        if (cluster->nodes[n].pid != 0 &&
            (epoch_of(cluster, n) != epoch || clusterd_owner(cluster, n, slot) != owner))
            return false;
    }
    return true;
}

void clusterd_close_slot(struct clusterd *cluster, uint32_t slot, uint32_t to)
{
    clusterd_do(cluster, to, "CLUSTER SETSLOT %d NODE %s", slot, cluster->nodes[to].id);
    for (uint32_t n = 0; n < cluster->count; n++) {
        if (n != to && cluster->nodes[n].pid != 0 && clusterd_is_master(cluster, n))
            clusterd_do(cluster, n, "CLUSTER SETSLOT %d NODE %s", slot, cluster->nodes[to].id);
    }
    unsigned in_a_row = 0;
    UNTIL((in_a_row = agree(cluster, slot, to) ? in_a_row + 1 : 0) == AGREED_LOOKS);
}
