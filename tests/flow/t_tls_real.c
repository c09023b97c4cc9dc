// t_tls_real - the memcached store, and links by themselves, against memcached itself over TLS
// SPDX-License-Identifier: BSD-3-Clause
#include "daemon.h"
#include "pair.h"
#include "tlshelp.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/prng.h"

#define VALUE_MAX 70000

static struct tls_identity ca, server, stranger;
static struct daemon good, bad; /* bad: one with a stranger's certificate */
static char good_options[200], bad_options[200];

static const struct hg_uptls_conf *trust(void)
{
    static struct hg_uptls_conf conf;
    conf = (struct hg_uptls_conf){.tls = {.ca = ca.certificate_file, .peer = HG_TLS_PEER_REQUIRED},
                                  .server_name = ""};
    return &conf;
}

struct scene {
    struct rig rig;
    struct bench bench;
    struct hg_upstream_shared *shared;
    struct hg_store *store;
};

static void scene_init(struct scene *scene, struct daemon *daemon)
{
    struct hg_remote_conf conf;
    struct hg_ring_server servers[1] = {{daemon->address, 1}};
    memset(scene, 0, sizeof *scene);
    rig_init(&scene->rig);
    scene->bench.rigs[0] = &scene->rig;
    hg_remote_conf_init(&conf);
    conf.name = "real";
    conf.ring.servers = servers;
    conf.ring.count = 1;
    conf.times.connect_timeout_ms = 5000;
    conf.times.backend_timeout_ms = 5000;
    conf.times.queue_timeout_ms = 60000;
    conf.tls = trust();
    scene->shared = rig_shared(&conf, 1);
    scene->store = rig_store(&scene->rig, scene->shared, 0, 4);
}

static void scene_fini(struct scene *scene)
{
    scene->store->ops->free(scene->store);
    hg_upstream_shared_free(scene->shared);
    rig_fini(&scene->rig);
}

/* Whatever requests share a record, memcached answers them all. */
static void t_bursts_of_any_sizes(void **state)
{
    (void)state;
    enum { BURST = 40, BURSTS = 60 };
    static struct note notes[BURST];
    static char value[VALUE_MAX];
    struct scene scene;
    struct hg_prng prng = {4711};
    scene_init(&scene, &good);
    memset(value, 'v', sizeof value);
    for (int b = 0; b < BURSTS; b++) {
        for (int i = 0; i < BURST; i++) {
            char key[16];
            snprintf(key, sizeof key, "k%d", i);
            bool is_set = hg_prng_below(&prng, 3) > 0;
            note_init(&notes[i], scene.store, is_set ? HG_OP_SET : HG_OP_GET, key);
            if (is_set)
                notes[i].call.value = hg_span(
                    value, hg_prng_below(&prng, hg_prng_below(&prng, 4) > 0 ? 9000 : sizeof value));
            (void)note_submit(&notes[i], &scene.rig);
        }
        for (int i = 0; i < BURST; i++) {
            BENCH_UNTIL(&scene.bench, notes[i].done == 1);
            assert_int_equal(notes[i].result.fault, HG_FAULT_NONE);
        }
    }
    assert_int_equal(rig_stat(scene.shared, 0, HG_UPSTREAM_TIMEOUTS), 0);
    scene_fini(&scene);
}

static void t_the_quarantine(void **state)
{
    (void)state;
    struct scene scene;
    struct note first, apart;
    scene_init(&scene, &good);
    note_init(&first, scene.store, HG_OP_SET, "key");
    first.call.value = hg_span_str("value");
    (void)note_submit(&first, &scene.rig);
    BENCH_UNTIL(&scene.bench, first.done == 1);
    note_init(&apart, scene.store, HG_OP_GET, "key");
    apart.call.quarantine = true;
    (void)note_submit(&apart, &scene.rig);
    BENCH_UNTIL(&scene.bench, apart.done == 1);
    assert_int_equal(apart.result.fault, HG_FAULT_NONE);
    assert_string_equal(apart.value, "value");
    assert_int_equal(rig_stat(scene.shared, 0, HG_UPSTREAM_QUARANTINED), 1);
    assert_int_equal(rig_stat(scene.shared, 0, HG_UPSTREAM_CONNECTS), 2);
    scene_fini(&scene);
}

static void t_a_stranger(void **state)
{
    (void)state;
    struct scene scene;
    struct note note;
    char error[HG_SERVER_ERROR_BYTES];
    scene_init(&scene, &bad);
    note_init(&note, scene.store, HG_OP_GET, "key");
    (void)note_submit(&note, &scene.rig);
    BENCH_UNTIL(&scene.bench, note.done == 1);
    assert_int_equal(note.result.fault, HG_FAULT_DOWN);
    assert_int_equal(rig_stat(scene.shared, 0, HG_UPSTREAM_CONNECTS), 0);
    assert_true(rig_stat(scene.shared, 0, HG_UPSTREAM_TLS_FAILURES) > 0);
    hg_server_last_error(&scene.shared->servers[0], error);
    assert_non_null(strstr(error, "TLS failed: "));
    assert_non_null(strstr(error, "certificate"));
    scene_fini(&scene);
}

/* A name of several addresses: who is not trusted is passed over. */
static void t_the_next_address(void **state)
{
    (void)state;
    struct pair pair;
    struct hg_addrs addrs = {.count = 3};
    char why[HG_TLS_WHY_BYTES], nobody[32];
    struct note note;
    pair_init(&pair, false);
    pair.readies = 0;
    struct hg_uptls *uptls = hg_uptls_new(trust(), why);
    assert_non_null(uptls);
    snprintf(nobody, sizeof nobody, "127.0.0.1:%u", daemon_free_port());
    const char *texts[3] = {bad.address, nobody, good.address};
    for (int i = 0; i < 3; i++)
        assert_int_equal(hg_addr_parse(texts[i], 0, &addrs.list[i]), 0);
    struct hg_link *link = pair_bare_link(&pair), *other = pair.link;
    link->uptls = uptls;
    link->host = "127.0.0.1";
    pair.link = link;
    hg_link_connect(link, &addrs, true);
    struct bench bench = {.rigs = {&pair.rig}};
    BENCH_UNTIL(&bench, pair.readies > 0 || pair.ends > 0);
    assert_int_equal(pair.readies, 1);
    assert_int_equal(hg_link_addr(link), 2);
    assert_int_equal(hg_counter_get(&pair.counters.values[HG_UPSTREAM_TLS_FAILURES]), 1);
    pair_get(&pair, &note, "no-such-key");
    BENCH_UNTIL(&bench, note.done == 1);
    assert_int_equal(note.result.status, HG_STATUS_KEY_ENOENT);
    hg_link_end(link, HG_LINK_LET_GO, 0);
    pair.link = other;
    pair_fini(&pair);
    hg_uptls_free(uptls);
}

static int begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    ca = tls_make(&(struct tls_paper){.cn = "authority", .is_ca = true}, NULL);
    server = tls_make(&(struct tls_paper){.cn = "server", .san = "IP:127.0.0.1"}, &ca);
    stranger =
        tls_make(&(struct tls_paper){.cn = "somebody", .is_ca = true, .san = "IP:127.0.0.1"}, NULL);
    snprintf(good_options, sizeof good_options, "ssl_chain_cert=%s,ssl_key=%s",
             server.certificate_file, server.key_file);
    snprintf(bad_options, sizeof bad_options, "ssl_chain_cert=%s,ssl_key=%s",
             stranger.certificate_file, stranger.key_file);
    good.tls = good_options;
    bad.tls = bad_options;
    daemon_launch(&good);
    daemon_launch(&bad);
    return 0;
}

static int end(void **state)
{
    (void)state;
    daemon_put_down(&good);
    daemon_put_down(&bad);
    tls_drop(&ca);
    tls_drop(&server);
    tls_drop(&stranger);
    return 0;
}

int main(void)
{
    if (!daemon_is_installed())
        return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_bursts_of_any_sizes),
        cmocka_unit_test(t_the_quarantine),
        cmocka_unit_test(t_a_stranger),
        cmocka_unit_test(t_the_next_address),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, begin, end);
}
