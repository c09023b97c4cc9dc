// t_slotsask - asking a real cluster, and servers that are none, who owns which slots
// SPDX-License-Identifier: BSD-3-Clause
#include "clusterd.h"
#include "rig.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "back/slotsask.h"
#include "base/clock.h"
#include "base/log.h"

static struct clusterd cluster;

/* A question and its answer. */
struct scene {
    struct rig rig;
    struct bench bench;
    struct hg_resolver *resolver;
    struct hg_slotsask ask;
    int done;
    bool found;
    uint32_t uncovered, node_count, masters;
    char owner_of_0[HG_REDIRECT_ADDRESS];
    char from[HG_REDIRECT_ADDRESS];
    char why[HG_SLOTSASK_WHY];
};

static void on_done(struct hg_slotsask *ask, const struct hg_slots *slots, const char *from,
                    const char *why)
{
    struct scene *scene = ask->asker;
    scene->done++;
    scene->found = slots != NULL;
    snprintf(scene->why, sizeof scene->why, "%s", why);
    if (slots == NULL)
        return;
    snprintf(scene->from, sizeof scene->from, "%s", from);
    scene->uncovered = slots->uncovered;
    scene->node_count = slots->node_count;
    scene->masters = 0;
    for (uint32_t n = 0; n < slots->node_count; n++)
        scene->masters += slots->nodes[n].owns;
    snprintf(scene->owner_of_0, sizeof scene->owner_of_0, "%s",
             slots->owner[0] == HG_SLOTS_NONE ? "" : slots->nodes[slots->owner[0]].address);
}

static void scene_init(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    rig_init(&scene->rig);
    scene->bench.rigs[0] = &scene->rig;
    scene->resolver = hg_resolver_new();
    scene->ask.loop = &scene->rig.loop;
    scene->ask.mailbox = &scene->rig.mailbox;
    scene->ask.resolver = scene->resolver;
    scene->ask.outs = &scene->rig.outs;
    scene->ask.user = scene->ask.password = "";
    scene->ask.timeout_us = 2000000 * bench_scale();
    scene->ask.on_done = on_done;
    scene->ask.asker = scene;
    assert_int_equal(hg_slotsask_init(&scene->ask), 0);
}

static void scene_fini(struct scene *scene)
{
    hg_slotsask_fini(&scene->ask);
    hg_resolver_free(scene->resolver);
    rig_fini(&scene->rig);
}

static void start(struct scene *scene)
{
    scene->done = 0;
    assert_true(hg_slotsask_start(&scene->ask));
    assert_int_equal(scene->done, 0);
}

static void finish(struct scene *scene)
{
    BENCH_UNTIL(&scene->bench, scene->done > 0);
    assert_int_equal(scene->done, 1);
}

static int listen_at(char address[32])
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    snprintf(address, 32, "127.0.0.1:%u", ntohs(in.sin_port));
    return fd;
}

static void t_real(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    for (uint32_t n = 0; n < cluster.count; n++) {
        hg_slotsask_add(&s.ask, cluster.nodes[n].address);
        start(&s);
        finish(&s);
        assert_true(s.found);
        assert_int_equal(s.uncovered, 0);
        assert_int_equal(s.node_count, 6);
        assert_int_equal(s.masters, 3);
        assert_string_equal(s.owner_of_0, cluster.nodes[0].address);
        assert_string_equal(s.from, cluster.nodes[n].address);
    }
    scene_fini(&s);
}

static void t_by_name(void **state)
{
    (void)state;
    struct scene s;
    char name[64];
    scene_init(&s);
    snprintf(name, sizeof name, "localhost:%u", cluster.nodes[1].port);
    hg_slotsask_add(&s.ask, name);
    start(&s);
    finish(&s);
    assert_true(s.found);
    hg_slotsask_add(&s.ask, "no-such-host.invalid:1");
    hg_slotsask_add(&s.ask, cluster.nodes[2].address);
    start(&s);
    finish(&s);
    assert_string_equal(s.from, cluster.nodes[2].address);
    scene_fini(&s);
}

static void t_login(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    clusterd_do(&cluster, 0, "ACL SETUSER asker on >secret ~* +@all");
    s.ask.user = "asker";
    s.ask.password = "secret";
    hg_slotsask_add(&s.ask, cluster.nodes[0].address);
    start(&s);
    finish(&s);
    assert_true(s.found);
    s.ask.password = "wrong";
    hg_slotsask_add(&s.ask, cluster.nodes[0].address);
    start(&s);
    finish(&s);
    assert_false(s.found);
    assert_non_null(strstr(s.why, "WRONGPASS"));
    assert_non_null(strstr(s.why, cluster.nodes[0].address));
    scene_fini(&s);
}

/* One refuses, one hangs up, one says nothing, one talks of something else: then comes a node. */
static void t_in_turn(void **state)
{
    (void)state;
    struct scene s;
    char gone[32], mute[32], rude[32], other[32];
    scene_init(&s);
    s.ask.timeout_us = 300000 * bench_scale();
    close(listen_at(gone));
    int mute_fd = listen_at(mute), rude_fd = listen_at(rude), other_fd = listen_at(other);
    hg_slotsask_add(&s.ask, gone);
    hg_slotsask_add(&s.ask, gone);
    assert_int_equal(s.ask.count, 1);
    hg_slotsask_add(&s.ask, rude);
    hg_slotsask_add(&s.ask, other);
    hg_slotsask_add(&s.ask, mute);
    hg_slotsask_add(&s.ask, cluster.nodes[5].address);
    start(&s);
    assert_false(hg_slotsask_start(&s.ask));
    BENCH_UNTIL(&s.bench, s.ask.next == 2);
    close(accept(rude_fd, NULL, NULL));
    BENCH_UNTIL(&s.bench, s.ask.next == 3);
    int fd = accept(other_fd, NULL, NULL);
    assert_int_equal(send(fd, "+OK\r\n", 5, MSG_NOSIGNAL), 5);
    finish(&s);
    assert_true(s.found);
    assert_string_equal(s.from, cluster.nodes[5].address);
    close(fd);
    close(mute_fd);
    close(rude_fd);
    close(other_fd);
    scene_fini(&s);
}

static void t_nobody(void **state)
{
    (void)state;
    struct scene s;
    char gone[32];
    scene_init(&s);
    close(listen_at(gone));
    start(&s);
    finish(&s);
    assert_false(s.found);
    assert_string_equal(s.why, "there is nobody to ask");
    hg_slotsask_add(&s.ask, gone);
    start(&s);
    finish(&s);
    assert_false(s.found);
    assert_non_null(strstr(s.why, gone));
    assert_non_null(strstr(s.why, "refused"));
    start(&s); /* candidates are for one question */
    finish(&s);
    assert_string_equal(s.why, "there is nobody to ask");
    scene_fini(&s);
}

/* The question is dropped at every stage. */
static void t_dropped(void **state)
{
    (void)state;
    for (int turns = 0; turns < 6; turns++) {
        struct scene s;
        scene_init(&s);
        hg_slotsask_add(&s.ask, turns % 2 == 0 ? "localhost:1" : cluster.nodes[0].address);
        start(&s);
        for (int i = 0; i < turns; i++)
            bench_turn(&s.bench);
        int done = s.done;
        hg_slotsask_fini(&s.ask);
        bench_for(&s.bench, 20000);
        assert_int_equal(s.done, done);
        hg_resolver_free(s.resolver);
        rig_fini(&s.rig);
    }
}

static int set_up(void **state)
{
    (void)state;
    clusterd_init(&cluster);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    clusterd_fini(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_real),    cmocka_unit_test(t_by_name), cmocka_unit_test(t_login),
        cmocka_unit_test(t_in_turn), cmocka_unit_test(t_nobody),  cmocka_unit_test(t_dropped),
    };
    if (!clusterd_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("slotsask", tests, set_up, tear_down);
}
