// t_publish_tickets - options of tickets and binds arrive where requests look
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#include "app/gates.h"
#include "app/process.h"
#include "front/gate.h"

struct fixture {
    struct hg_front front;
    struct hg_upstream upstream;
};

static int setup(void **ret)
{
    struct fixture *fixture = aligned_alloc(HG_CACHE_LINE, (sizeof *fixture + HG_CACHE_LINE - 1) /
                                                               HG_CACHE_LINE * HG_CACHE_LINE);
    assert_non_null(fixture);
    memset(fixture, 0, sizeof *fixture);
    assert_int_equal(hg_gate_holder_init(&fixture->front.ingress, HG_GATE_INGRESS, 2, 0, NULL), 0);
    static const char *const servers[] = {""};
    fixture->upstream.gates = hg_gateset_new(2);
    assert_non_null(fixture->upstream.gates);
    assert_int_equal(hg_gateset_list(fixture->upstream.gates, &fixture->front, servers, 1, 1), 0);
    *ret = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    hg_gate_holder_fini(&fixture->front.ingress);
    hg_gateset_free(fixture->upstream.gates);
    free(fixture);
    return 0;
}

static void publish(struct fixture *fixture, const char *text)
{
    struct hg_conf *conf = apphelp_conf(text);
    hg_publish_ingress(&fixture->front, conf);
    hg_publish_execution(&fixture->front, &fixture->upstream, &conf->upstreams[0]);
    hg_conf_free(conf);
}

static int64_t size_of(const struct fixture *fixture, enum hg_ticket_kind kind)
{
    return hg_ticket_size(&hg_gateset_at(fixture->upstream.gates, 0)->holders[kind].ticket);
}

static void assert_line(const struct hg_gate_holder *holder, uint64_t max, uint64_t timeout_us,
                        uint64_t flood_us, bool newest)
{
    struct hg_gate_holder *h = (struct hg_gate_holder *)(uintptr_t)holder;
    assert_int_equal(atomic_load(&h->max_waiting), max);
    assert_int_equal(atomic_load(&h->queue_timeout_us), timeout_us);
    assert_int_equal(atomic_load(&h->flood_wait_us), flood_us);
    assert_int_equal(atomic_load(&h->flood_newest), newest);
}

static void test_ingress(void **state)
{
    struct fixture *fixture = *state;
    struct hg_gate_holder *ingress = &fixture->front.ingress;
    publish(fixture, "");
    assert_true(atomic_load(&fixture->front.ingress_enabled));
    assert_int_equal(hg_ticket_size(&ingress->ticket), 1000000);
    assert_line(ingress, 1000000, 1000000, 100000, false);
    publish(fixture, "ingress_enabled: false\ningress_tickets: 50\ningress_max_queue_depth: 0\n"
                     "ingress_queue_timeout_ms: 7\n");
    assert_false(atomic_load(&fixture->front.ingress_enabled));
    assert_int_equal(hg_ticket_size(&ingress->ticket), 50);
    assert_line(ingress, 0, 7000, 100000, false);
}

static void test_fewer_tickets_revoke_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct hg_ticket *ticket = &fixture->front.ingress.ticket;
    publish(fixture, "ingress_tickets: 10\n");
    for (int i = 0; i < 8; i++)
        assert_true(hg_ticket_try(ticket));
    publish(fixture, "ingress_tickets: 5\n");
    assert_int_equal(hg_ticket_available(ticket), -3);
    assert_int_equal(hg_ticket_out(ticket), 8);
    assert_false(hg_ticket_try(ticket));
    publish(fixture, "ingress_tickets: 9\n");
    assert_true(hg_ticket_try(ticket));
}

#define E(options) "upstreams: [{name: e, kind: embedded, " options "}]\n"

static void test_execution(void **state)
{
    struct fixture *fixture = *state;
    struct hg_gateshare *gate = hg_gateset_at(fixture->upstream.gates, 0);
    publish(fixture, E("execution_control: fixed, read_tickets: 64, write_tickets: 32, "
                       "execution_max_queue_depth: 11, queue_timeout_ms: 120, flood_wait_ms: 13, "
                       "flood_order: newest"));
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        assert_line(&gate->holders[kind], 11, 120000, 13000, true);
    /* In force at once: nobody comes in between. It is remembered when a size grew. */
    assert_int_equal(atomic_load(&gate->holders[HG_TICKET_READ].grew_us), 0);
    assert_int_equal(size_of(fixture, HG_TICKET_READ), 64);
    assert_int_equal(size_of(fixture, HG_TICKET_WRITE), 32);
    publish(fixture, E("execution_control: fixed, read_tickets: 8, write_tickets: 2000"));
    assert_int_equal(size_of(fixture, HG_TICKET_READ), 8);
    assert_int_equal(size_of(fixture, HG_TICKET_WRITE), 2000);
    assert_int_equal(atomic_load(&gate->holders[HG_TICKET_READ].grew_us), 0);
    assert_true(atomic_load(&gate->holders[HG_TICKET_WRITE].grew_us) > 0);
    publish(fixture, E("throughput_probing_max_concurrency: 100"));
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        assert_true(size_of(fixture, kind) >= 4);
        assert_true(size_of(fixture, kind) <= 100);
    }
}

static void test_the_controller_gets_its_options(void **state)
{
    struct fixture *fixture = *state;
    const struct hg_probe_conf *wanted = &fixture->upstream.gates->conf.probe;
    publish(fixture, E("execution_control: probing, throughput_probing_interval_ms: 50, "
                       "throughput_probing_initial_concurrency: 40, "
                       "throughput_probing_min_concurrency: 6, "
                       "throughput_probing_max_concurrency: 60, "
                       "throughput_probing_read_write_ratio: 0.75, "
                       "throughput_probing_concurrency_moving_average_weight: 0.3, "
                       "throughput_probing_step_multiple: 0.25"));
    assert_int_equal(wanted->control, HG_PROBE_PROBING);
    assert_int_equal(wanted->interval_us, 50000);
    assert_int_equal(wanted->initial, 40);
    assert_true(wanted->cores >= 1);
    assert_int_equal(wanted->min, 6);
    assert_int_equal(wanted->max, 60);
    assert_true(wanted->read_write_ratio == 0.75);
    assert_true(wanted->weight == 0.3);
    assert_true(wanted->step == 0.25);
    assert_int_equal(size_of(fixture, HG_TICKET_READ), 30);
    assert_int_equal(size_of(fixture, HG_TICKET_WRITE), 10);
}

/* Else each setting of a tenant would set the controllers back. */
static void test_other_settings_leave_the_controller_alone(void **state)
{
    struct fixture *fixture = *state;
    struct hg_gateshare *gate = hg_gateset_at(fixture->upstream.gates, 0);
    publish(fixture, E("execution_control: probing, throughput_probing_initial_concurrency: 40"));
    gate->probe.state = HG_PROBE_UP;
    publish(fixture, E("execution_control: probing, throughput_probing_initial_concurrency: 40, "
                       "flood_wait_ms: 99"));
    assert_int_equal(gate->probe.state, HG_PROBE_UP);
    publish(fixture, E("execution_control: probing, throughput_probing_initial_concurrency: 80"));
    assert_int_equal(gate->probe.state, HG_PROBE_STABLE);
    assert_int_equal(size_of(fixture, HG_TICKET_READ), 40);
}

static void test_binds(void **state)
{
    (void)state;
    struct hg_conf *conf =
        apphelp_conf("bind_backlog_ms: 250\nbind_eviction_threshold_pct: 30\n"
                     "bind_eviction_target_conn_pct: 0\nbind_eviction_decr_per_sec: 2.5\n"
                     "eviction_min_age_ms: 9\nbind_evict_sent_writes: true\n");
    struct hg_bind_settings binds = hg_publish_binds(conf);
    assert_int_equal(binds.backlog_us, 250000);
    assert_int_equal(binds.threshold_pct, 30);
    assert_int_equal(binds.target_pct, 0);
    assert_true(binds.decr_per_sec == 2.5);
    assert_int_equal(binds.min_age_us, 9000);
    assert_true(binds.evict_sent_writes);
    hg_conf_free(conf);
}

static void test_how_binds_are_controlled(void **state)
{
    struct fixture *fixture = *state;
    struct hg_gateset *gates = fixture->upstream.gates;
    static const struct {
        const char *text;
        bool longest, halves;
        unsigned share_pct;
    } rows[] = {
        {E("bind_mended: halve"), false, true, 25},
        {E("bind_mended: seed"), false, false, 25},
        {E("bind_control: hera"), true, true, 100},
        {"compat_overload: seed\n" E("read_tickets: 5"), true, false, 100},
    };
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        publish(fixture, rows[i].text);
        assert_int_equal(gates->conf.evict_longest, rows[i].longest);
        assert_int_equal(atomic_load(&gates->bind_halves), rows[i].halves);
        assert_int_equal(
            atomic_load(&hg_gateset_at(gates, 0)->holders[HG_TICKET_READ].key_share_pct),
            rows[i].share_pct);
    }
}

/* `stat reset` while something is under way: what it ends with fits what it began with. */
static void test_a_reset_keeps_what_is_under_way(void **state)
{
    struct hg_gate_tally tally;
    uint64_t sums[HG_GATE_STATS] = {0};
    (void)state;
    memset(&tally, 0, sizeof tally);
    hg_counter_set(&tally.started, 10);
    hg_counter_set(&tally.answered, 6);
    hg_counter_set(&tally.unanswered, 1);
    hg_counter_set(&tally.added, 5);
    hg_counter_set(&tally.removed, 1);
    hg_counter_set(&tally.exempt_started, 2);
    hg_counter_set(&tally.exempt_finished, 2);
    hg_counter_set(&tally.delinquent_max_ms, 99);
    hg_gate_tally_reset(&tally);
    assert_int_equal(hg_counter_get(&tally.started), 3);
    assert_int_equal(hg_counter_get(&tally.added), 4);
    hg_counter_add(&tally.answered, 3);
    hg_counter_add(&tally.removed, 4);
    hg_gate_tally_add(&tally, sums);
    assert_int_equal(sums[0], 3); /* started, answered and unanswered are the first rows */
    assert_int_equal(sums[1], 3);
    assert_int_equal(sums[2], 0);
    assert_int_equal(hg_counter_get(&tally.exempt_started), 0);
    assert_int_equal(hg_counter_get(&tally.delinquent_max_ms), 0);
}

static void test_maxima_are_not_added(void **state)
{
    struct hg_gate_tally a, b;
    uint64_t sums[HG_GATE_STATS] = {0};
    (void)state;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    hg_counter_set(&a.delinquent_max_ms, 5);
    hg_counter_set(&b.delinquent_max_ms, 3);
    hg_counter_set(&a.delinquent, 1);
    hg_counter_set(&b.delinquent, 1);
    hg_gate_tally_add(&a, sums);
    hg_gate_tally_add(&b, sums);
    for (unsigned i = 0; i < HG_GATE_STATS; i++) {
        if (strcmp(hg_gate_stat_rows[i].field, "delinquent_max_ms") == 0)
            assert_int_equal(sums[i], 5);
        if (strcmp(hg_gate_stat_rows[i].field, "delinquent") == 0)
            assert_int_equal(sums[i], 2);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ingress),
        TEST(test_fewer_tickets_revoke_nothing),
        TEST(test_execution),
        TEST(test_the_controller_gets_its_options),
        TEST(test_how_binds_are_controlled),
        TEST(test_other_settings_leave_the_controller_alone),
        TEST(test_binds),
        TEST(test_a_reset_keeps_what_is_under_way),
        TEST(test_maxima_are_not_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
