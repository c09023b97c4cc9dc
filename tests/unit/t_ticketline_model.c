// t_ticketline_model - the line against a plain model, and shares of many tenants in virtual time
// SPDX-License-Identifier: BSD-3-Clause
//
// The model keeps all waiters in one array, charges every tenant for every microsecond in which
// somebody waits, and looks at all tenants for the lowest tag.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/prng.h"
#include "core/ticketline.h"

#define TENANTS 100
#define WAITERS 4000

static struct hg_ticketline line;
static struct hg_ticketline_tenant tenants[TENANTS];
static struct hg_ticketline_waiter waiters[WAITERS];
static struct hg_ticketline_conf conf;
static struct hg_prng dice;

static void setup(void)
{
    conf = (struct hg_ticketline_conf){
        .queue_timeout_us = 1000000, .flood_wait_us = 100000, .size = 16};
    hg_ticketline_init(&line);
    for (uint32_t t = 0; t < TENANTS; t++)
        hg_ticketline_tenant_init(&tenants[t]);
    memset(waiters, 0, sizeof waiters);
}

/* ---- the model ---- */

static struct {
    uint32_t in[WAITERS], of[WAITERS], count; // waiters as they came, and their tenants
    uint64_t used_us[TENANTS], now_us, served_us;
    uint32_t out[TENANTS], mean_16us[TENANTS];
    uint64_t flood_us[TENANTS];       // when it was seen to flood last; 0: never
    uint64_t finished_us, stalled_us; // last answer, or first ticket; sum of all stalls
    uint32_t line_mean_16us;
} model;

static uint32_t model_holding(void)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < TENANTS; t++)
        n += model.out[t] > 0;
    return n;
}

/* Tickets cost nothing while nobody waits, or none of several tenants has an answer. */
static void model_pass(uint64_t now_us)
{
    uint64_t patience_us = 4 * (model.line_mean_16us / 16), charged_us = now_us;
    if (patience_us < 100000)
        patience_us = 100000;
    if (model_holding() > 1 && model.finished_us + patience_us < now_us)
        charged_us = model.finished_us + patience_us;
    if (charged_us < model.now_us)
        charged_us = model.now_us;
    for (uint32_t t = 0; t < TENANTS && model.count > 0; t++)
        model.used_us[t] += model.out[t] * (charged_us - model.now_us);
    model.stalled_us += model.count > 0 ? now_us - charged_us : 0;
    model.now_us = now_us;
}

static uint32_t model_waiting(uint32_t tenant)
{
    uint32_t n = 0;
    for (uint32_t at = 0; at < model.count; at++)
        n += model.of[at] == tenant;
    return n;
}

static uint64_t model_tag(uint32_t tenant)
{
    uint64_t mean_us = model.mean_16us[tenant] >= 16 ? model.mean_16us[tenant] / 16 : 1000;
    return model.used_us[tenant] + model.out[tenant] * mean_us;
}

static uint64_t model_lowest_tag(void)
{
    uint64_t lowest_us = UINT64_MAX;
    for (uint32_t at = 0; at < model.count; at++)
        if (model_tag(model.of[at]) < lowest_us)
            lowest_us = model_tag(model.of[at]);
    return lowest_us;
}

static void model_push(uint32_t waiter, uint32_t tenant)
{
    uint64_t tag_us = model_tag(tenant);
    if (model_waiting(tenant) == 0 && tag_us < model.served_us)
        model.used_us[tenant] += model.served_us - tag_us;
    model.in[model.count] = waiter;
    model.of[model.count++] = tenant;
}

static uint32_t model_find(const struct hg_ticketline_waiter *waiter)
{
    uint32_t at = 0;
    while (at < model.count && &waiters[model.in[at]] != waiter)
        at++;
    assert_true(at < model.count);
    return at;
}

static void model_take_out(uint32_t at)
{
    model.count--;
    memmove(model.in + at, model.in + at + 1, (model.count - at) * sizeof model.in[0]);
    memmove(model.of + at, model.of + at + 1, (model.count - at) * sizeof model.of[0]);
}

/* 5 ms, 10, 20, 40, a second each. */
static bool model_floods(uint32_t tenant)
{
    return model.flood_us[tenant] != 0 && model.now_us - model.flood_us[tenant] < 4000000;
}

/* The place of the tenant's one that is served next. */
static uint32_t model_next_of(uint32_t tenant)
{
    uint32_t next = model.count;
    for (uint32_t at = 0; at < model.count; at++)
        if (model.of[at] == tenant &&
            (next == model.count || (conf.flood_newest && model_floods(tenant))))
            next = at;
    return next;
}

/* ---- against it ---- */

static struct {
    uint64_t pushed, served, removed, late, newest_first, moved, most_moved;
} seen;

static void push_one(uint32_t n_tenants, uint64_t now_us)
{
    uint32_t w = (uint32_t)hg_prng_below(&dice, 300);
    uint32_t tenant = (uint32_t)hg_prng_below(&dice, 1 + hg_prng_below(&dice, n_tenants));
    if (waiters[w].tenant != NULL)
        return;
    waiters[w].since_us = waiters[w].came_us = now_us;
    waiters[w].deadline_us = now_us + (hg_prng_below(&dice, 3) == 0 ? hg_prng_below(&dice, 60000)
                                                                    : conf.queue_timeout_us);
    hg_ticketline_push(&line, &tenants[tenant], &waiters[w], now_us);
    model_push(w, tenant);
    seen.pushed++;
}

static void take(uint32_t tenant, uint64_t now_us)
{
    hg_ticketline_take(&line, &tenants[tenant], now_us);
    if (model_holding() == 0)
        model.finished_us = now_us;
    model.out[tenant]++;
}

/* The tenants whose place in the heap was put right. */
static uint64_t count_moved(const uint64_t before[TENANTS])
{
    uint64_t n = 0;
    for (uint32_t t = 0; t < TENANTS; t++)
        n += tenants[t].turn.key != before[t];
    return n;
}

static void pop_one(uint64_t now_us)
{
    uint64_t keys[TENANTS];
    for (uint32_t t = 0; t < TENANTS; t++)
        keys[t] = tenants[t].turn.key;
    struct hg_ticketline_waiter *waiter = hg_ticketline_pop(&line, &conf, now_us);
    if (waiter == NULL) {
        assert_int_equal(model.count, 0);
        return;
    }
    uint64_t moved = count_moved(keys), lowest_us = model_lowest_tag();
    uint32_t at = model_find(waiter), tenant = model.of[at];
    assert_int_equal(model_tag(tenant), lowest_us);
    assert_int_equal(at, model_next_of(tenant));
    seen.newest_first += conf.flood_newest && model_floods(tenant);
    seen.moved += moved;
    seen.most_moved = moved > seen.most_moved ? moved : seen.most_moved;
    if (lowest_us > model.served_us)
        model.served_us = lowest_us;
    model_take_out(at);
    take(tenant, now_us);
    seen.served++;
}

/* Some ticket comes back; its service need not be what the ticket time was. */
static void give_one(uint32_t n_tenants, uint64_t now_us)
{
    uint32_t tenant = (uint32_t)hg_prng_below(&dice, n_tenants);
    uint64_t service_us = hg_prng_below(&dice, 1 + hg_prng_below(&dice, 40000));
    bool answered = hg_prng_below(&dice, 10) != 0;
    if (model.out[tenant] == 0)
        return;
    hg_ticketline_give(&line, &tenants[tenant], service_us, answered, now_us);
    model.out[tenant]--;
    if (answered || service_us > model.mean_16us[tenant] / 16)
        model.mean_16us[tenant] = hg_ticketline_mean(model.mean_16us[tenant], service_us);
    if (answered)
        model.finished_us = now_us;
    if (answered && model.count > 0)
        model.line_mean_16us = hg_ticketline_mean(model.line_mean_16us, service_us);
}

static void remove_one(uint64_t now_us)
{
    if (model.count == 0)
        return;
    uint32_t at = (uint32_t)hg_prng_below(&dice, model.count);
    hg_ticketline_remove(&line, &waiters[model.in[at]], now_us);
    model_take_out(at);
    seen.removed++;
}

static bool expire_one(uint64_t now_us)
{
    uint32_t share = conf.size / hg_ticketline_active(&line);
    struct hg_ticketline_waiter *waiter = hg_ticketline_expire(&line, &conf, now_us);
    if (waiter == NULL)
        return false;
    uint32_t at = model_find(waiter), tenant = model.of[at];
    for (uint32_t i = 0; i < model.count; i++)
        assert_true(waiter->deadline_us <= waiters[model.in[i]].deadline_us);
    assert_true(waiter->deadline_us <= now_us);
    if (now_us - waiter->since_us >= conf.queue_timeout_us &&
        model_waiting(tenant) > (share > 0 ? share : 1))
        model.flood_us[tenant] = now_us;
    model_take_out(at);
    seen.late++;
    return true;
}

static void expire_all(uint64_t now_us)
{
    while (expire_one(now_us))
        ;
    assert_true(hg_ticketline_next_us(&line) > now_us);
}

static void compare(uint64_t now_us)
{
    uint32_t holding = 0, starved = 0;
    uint64_t next_us = UINT64_MAX;
    assert_int_equal(line.count, model.count);
    assert_int_equal(seen.pushed, seen.served + seen.removed + seen.late + model.count);
    for (uint32_t t = 0; t < 10; t++) {
        assert_int_equal(tenants[t].out, model.out[t]);
        assert_int_equal(tenants[t].count, model_waiting(t));
        assert_int_equal(hg_ticketline_tag_us(&line, &tenants[t], now_us), model_tag(t));
        assert_int_equal(hg_ticketline_flood_since_us(&tenants[t], &conf, now_us) != 0,
                         model_floods(t));
        holding += model.out[t] > 0;
        starved += model.out[t] == 0 && model_waiting(t) > 0;
    }
    for (uint32_t at = 0; at < model.count; at++)
        if (waiters[model.in[at]].deadline_us < next_us)
            next_us = waiters[model.in[at]].deadline_us;
    assert_int_equal(line.holding, holding);
    assert_int_equal(line.starved, starved);
    assert_int_equal(hg_ticketline_next_us(&line), next_us);
}

static void step(uint32_t i, uint32_t n_tenants, uint64_t now_us)
{
    // More come than go, then fewer, so that the line fills and empties.
    uint64_t what = hg_prng_below(&dice, 100), load = i / 1000 % 2 == 0 ? 45 : 15;
    bool stopped = i % 2000 >= 1200 && i % 2000 < 1700;
    if (what < load)
        push_one(n_tenants, now_us);
    else if (what < 65 && !stopped)
        pop_one(now_us);
    else if (what < 84 && !stopped)
        give_one(n_tenants, now_us);
    else if (what >= 84 && what < 88)
        remove_one(now_us);
    else if (what >= 88 && what < 95)
        expire_all(now_us);
    else if (what == 95)
        conf.flood_newest = !conf.flood_newest;
    else if (what == 96 && model.count == 0)
        take((uint32_t)hg_prng_below(&dice, n_tenants), now_us);
}

static void test_random_steps(void **state)
{
    (void)state;
    uint64_t newest_first = 0, stalled_us = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t now_us = 1000000;
        uint32_t n_tenants = 1 + (uint32_t)seed % 10;
        memset(&model, 0, sizeof model);
        memset(&seen, 0, sizeof seen);
        dice = (struct hg_prng){seed};
        setup();
        conf.size = 2; // few waiters are above a share
        conf.queue_timeout_us = 80000;
        conf.flood_wait_us = 5000;
        for (uint32_t i = 0; i < 8000; i++) {
            now_us += hg_prng_below(&dice, 4) == 0 ? hg_prng_below(&dice, 6000) : 0;
            model_pass(now_us);
            step(i, n_tenants, now_us);
            compare(now_us);
        }
        assert_true(seen.served > 1000 && seen.removed > 100 && seen.late > 100);
        assert_true(seen.most_moved <= n_tenants);
        newest_first += seen.newest_first;
        stalled_us += model.stalled_us;
    }
    assert_true(newest_first > 100);
    assert_true(stalled_us > 1000000);
}

/* ---- shares ---- */

#define SERVICE_US 500 // one store that can do 2000 a second
#define RUN_US     10000000

static struct {
    uint64_t offered[TENANTS], served[TENANTS], wait_us[TENANTS], pops, moved;
    uint32_t of[WAITERS], last; // tenants of the waiters; the last waiter that was used
} flow;

static uint32_t free_waiter(void)
{
    for (uint32_t i = 0; i < WAITERS; i++) {
        flow.last = (flow.last + 1) % WAITERS;
        if (waiters[flow.last].tenant == NULL)
            return flow.last;
    }
    fail_msg("more wait than thought");
    return 0;
}

static void arrive(uint32_t tenant, uint64_t now_us)
{
    uint32_t w = free_waiter();
    waiters[w].since_us = waiters[w].came_us = now_us;
    waiters[w].deadline_us = now_us + conf.queue_timeout_us;
    flow.of[w] = tenant;
    flow.offered[tenant]++;
    if (hg_ticketline_admit(&line, &tenants[tenant], &conf, &waiters[w], now_us).why ==
        HG_TICKETLINE_WAIT)
        hg_ticketline_push(&line, &tenants[tenant], &waiters[w], now_us);
}

/* The next one has the store for SERVICE_US. */
static void serve(uint64_t now_us)
{
    uint64_t keys[TENANTS];
    for (uint32_t t = 0; t < TENANTS; t++)
        keys[t] = tenants[t].turn.key;
    struct hg_ticketline_waiter *waiter = hg_ticketline_pop(&line, &conf, now_us);
    if (waiter == NULL)
        return;
    uint32_t tenant = flow.of[waiter - waiters];
    flow.pops++;
    flow.moved += count_moved(keys);
    flow.served[tenant]++;
    flow.wait_us[tenant] += now_us - waiter->since_us;
    hg_ticketline_take(&line, &tenants[tenant], now_us);
    hg_ticketline_give(&line, &tenants[tenant], SERVICE_US, true, now_us + SERVICE_US);
}

/* Tenant 0 offers 100 times what each of the others offers, Poisson; one is served each 500 us. */
static void simulate(double each_per_s)
{
    double due_us[TENANTS];
    dice = (struct hg_prng){42};
    memset(&flow, 0, sizeof flow);
    setup();
    conf.size = 1;
    for (uint32_t t = 0; t < TENANTS; t++)
        due_us[t] = 1000000;
    for (uint64_t now_us = 1000000; now_us < 1000000 + RUN_US; now_us += SERVICE_US) {
        for (uint32_t t = 0; t < TENANTS; t++) {
            double mean_us = 1e6 / (t == 0 ? 100 * each_per_s : each_per_s);
            for (; due_us[t] <= (double)now_us;
                 due_us[t] -= mean_us * log1p(-(double)(hg_prng_next(&dice) >> 11) * 0x1p-53))
                arrive(t, now_us);
        }
        while (hg_ticketline_expire(&line, &conf, now_us) != NULL)
            ;
        serve(now_us);
    }
}

static double jain_of_the_others(void)
{
    double sum = 0, squares = 0;
    for (uint32_t t = 1; t < TENANTS; t++) {
        sum += (double)flow.served[t];
        squares += (double)flow.served[t] * (double)flow.served[t];
    }
    return sum * sum / ((TENANTS - 1) * squares);
}

/* The others fit: they hardly wait, and all are served, whatever the flood. */
static void test_a_flood_takes_nothing_from_others(void **state)
{
    uint64_t offered = 0, served = 0, wait_us = 0;
    (void)state;
    simulate(12); // 1188 a second in all, and 1200 of the one
    for (uint32_t t = 1; t < TENANTS; t++) {
        offered += flow.offered[t];
        served += flow.served[t];
        wait_us += flow.wait_us[t];
    }
    print_message("others: served %.4f, mean wait %.2f ms, Jain %.4f; the flood: served %.3f\n",
                  (double)served / (double)offered, (double)wait_us / (double)served / 1000,
                  jain_of_the_others(), (double)flow.served[0] / (double)flow.offered[0]);
    assert_true((double)served >= 0.999 * (double)offered);
    assert_true(wait_us / served < 5000);
    assert_true(jain_of_the_others() >= 0.95);
    assert_true(served + flow.served[0] >= RUN_US / SERVICE_US * 95 / 100); // and nothing idles
    assert_true(flow.moved <= 2 * flow.pops);
}

/* The others need 95 % of what there is, and at any moment few of them wait: the flood has what
   they leave over, not a share among those few. */
static void test_a_flood_has_what_others_leave_over(void **state)
{
    uint64_t offered = 0, served = 0;
    (void)state;
    simulate(19.2); // 1900 a second in all, and 1920 of the one
    for (uint32_t t = 1; t < TENANTS; t++) {
        offered += flow.offered[t];
        served += flow.served[t];
    }
    print_message("others: served %.4f, Jain %.4f; the flood has %.2f of what is left over\n",
                  (double)served / (double)offered, jain_of_the_others(),
                  (double)flow.served[0] / (double)(RUN_US / SERVICE_US - served));
    assert_true((double)served >= 0.98 * (double)offered);
    assert_true(jain_of_the_others() >= 0.95);
    assert_true(served + flow.served[0] >= RUN_US / SERVICE_US * 95 / 100);
}

/* Each offers more than its share: shares are equal, and the flood's is not much larger. */
static void test_shares_are_equal_under_overload(void **state)
{
    (void)state;
    simulate(60); // 5940 a second in all, and 6000 of the one
    print_message("others: Jain %.4f; the flood has %.2f of a share\n", jain_of_the_others(),
                  (double)flow.served[0] * SERVICE_US * TENANTS / RUN_US);
    assert_true(jain_of_the_others() >= 0.95);
    assert_true(flow.served[0] < RUN_US / SERVICE_US / TENANTS * 11 / 10);
}

/* ---- the cost of a turn ---- */

#define TICKETS 32

/* A hundred tenants always wait, for 32 tickets: a pop puts few of the heap's keys right. */
static void test_a_pop_moves_few_tenants(void **state)
{
    uint32_t held[TICKETS], pushed = 0;
    uint64_t since_us[TICKETS], keys[TENANTS], pops = 0, moved = 0, most = 0;
    (void)state;
    dice = (struct hg_prng){5};
    setup();
    for (uint32_t t = 0; t < TENANTS; t++)
        for (uint32_t i = 0; i < 2; i++, pushed++)
            hg_ticketline_push(&line, &tenants[t], &waiters[pushed], 1000000);
    for (uint32_t i = 0; i < 50000; i++) {
        uint64_t now_us = 1000000 + i * 300;
        uint32_t slot = i % TICKETS;
        if (i >= TICKETS)
            hg_ticketline_give(&line, &tenants[held[slot]], now_us - since_us[slot], true, now_us);
        for (uint32_t t = 0; t < TENANTS; t++)
            keys[t] = tenants[t].turn.key;
        struct hg_ticketline_waiter *waiter = hg_ticketline_pop(&line, &conf, now_us);
        uint64_t of_pop = count_moved(keys);
        pops++;
        moved += of_pop;
        most = of_pop > most ? of_pop : most;
        for (uint32_t t = 0; t < TENANTS; t++) // the only one with one waiter
            if (tenants[t].count < 2)
                held[slot] = t;
        since_us[slot] = now_us;
        hg_ticketline_take(&line, &tenants[held[slot]], now_us);
        hg_ticketline_push(&line, &tenants[held[slot]], waiter, now_us);
    }
    print_message("of %u tenants a pop moved %.2f, %u at most\n", TENANTS,
                  (double)moved / (double)pops, (unsigned)most);
    assert_true(moved <= 3 * pops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_steps),
        cmocka_unit_test(test_a_flood_takes_nothing_from_others),
        cmocka_unit_test(test_a_flood_has_what_others_leave_over),
        cmocka_unit_test(test_shares_are_equal_under_overload),
        cmocka_unit_test(test_a_pop_moves_few_tenants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
