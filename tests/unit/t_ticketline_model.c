// t_ticketline_model - the line against a plain model, and shares of many tenants in virtual time
// SPDX-License-Identifier: BSD-3-Clause
//
// The model keeps all waiters in one array, looks at every one for everything, and goes round the
// tenants one turn after the other. A tenant that waits no longer keeps its place in the round.
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
    hg_ticketline_init(&line);
    for (uint32_t t = 0; t < TENANTS; t++)
        hg_ticketline_tenant_init(&tenants[t]);
    memset(waiters, 0, sizeof waiters);
}

/* ---- the model ---- */

static struct {
    uint32_t in[WAITERS], of[WAITERS], count; // waiters as they came, and their tenants
    uint32_t fresh[TENANTS], n_fresh;         // new tenants
    uint32_t round[TENANTS], n_round;         // old ones, those without waiters too
    int64_t deficit[TENANTS];                 // never of a tenant without waiters
    bool in_turn[TENANTS], overloaded[TENANTS];
    uint64_t slow_since_us[TENANTS], last_old_us[TENANTS];
    bool stalled;
    uint64_t served_us, last_late_us; // of all
} model;

/* The place of the tenant's oldest waiter; model.count: none. */
static uint32_t model_oldest(uint32_t tenant)
{
    uint32_t at = 0;
    while (at < model.count && model.of[at] != tenant)
        at++;
    return at;
}

static uint64_t model_oldest_us(uint32_t tenant, uint64_t now_us)
{
    return now_us - waiters[model.in[model_oldest(tenant)]].since_us;
}

static void model_look_at(uint32_t tenant, uint64_t now_us)
{
    if (model_oldest(tenant) == model.count)
        return;
    if (model_oldest_us(tenant, now_us) >= HG_TICKETLINE_TARGET_US)
        model.last_old_us[tenant] = now_us;
    if (model.overloaded[tenant] && now_us >= model.last_old_us[tenant] + HG_TICKETLINE_WINDOW_US) {
        model.overloaded[tenant] = false;
        model.slow_since_us[tenant] = now_us;
    } else if (now_us >= model.slow_since_us[tenant] + HG_TICKETLINE_WINDOW_US) {
        model.overloaded[tenant] = true;
    }
}

static void model_look_at_all(uint64_t now_us)
{
    if (model.count == 0)
        return;
    if (now_us - waiters[model.in[0]].since_us >= HG_TICKETLINE_TARGET_US)
        model.last_late_us = now_us;
    if (model.stalled && now_us >= model.last_late_us + HG_TICKETLINE_WINDOW_US) {
        model.stalled = false;
        model.served_us = now_us;
    } else if (now_us >= model.served_us + HG_TICKETLINE_WINDOW_US) {
        model.stalled = true;
    }
}

static bool take_from(uint32_t *list, uint32_t *n, uint32_t tenant)
{
    uint32_t at = 0;
    while (at < *n && list[at] != tenant)
        at++;
    if (at == *n)
        return false;
    --*n;
    memmove(list + at, list + at + 1, (*n - at) * sizeof list[0]);
    return true;
}

static void model_push(uint32_t waiter, uint32_t tenant, uint64_t now_us)
{
    if (model.count == 0)
        model.served_us = now_us;
    if (model_oldest(tenant) == model.count) {
        model.slow_since_us[tenant] = now_us;
        if (take_from(model.round, &model.n_round, tenant))
            model.round[model.n_round++] = tenant;
        else
            model.fresh[model.n_fresh++] = tenant;
    }
    model.in[model.count] = waiter;
    model.of[model.count++] = tenant;
    model_look_at(tenant, now_us);
    model_look_at_all(now_us);
}

static void model_take_out(uint32_t at)
{
    uint32_t tenant = model.of[at];
    model.count--;
    memmove(model.in + at, model.in + at + 1, (model.count - at) * sizeof model.in[0]);
    memmove(model.of + at, model.of + at + 1, (model.count - at) * sizeof model.of[0]);
    if (model_oldest(tenant) < model.count)
        return;
    if (take_from(model.fresh, &model.n_fresh, tenant) && model.in_turn[tenant])
        model.round[model.n_round++] = tenant;
    model.deficit[tenant] = 0;
    model.in_turn[tenant] = false;
    if (model.count == 0)
        model.n_round = 0;
}

static uint32_t model_find(const struct hg_ticketline_waiter *waiter)
{
    uint32_t at = 0;
    while (at < model.count && &waiters[model.in[at]] != waiter)
        at++;
    assert_true(at < model.count);
    return at;
}

static uint32_t model_whose_turn(void)
{
    if (model.n_fresh > 0)
        return model.fresh[0];
    while (model_oldest(model.round[0]) == model.count)
        take_from(model.round, &model.n_round, model.round[0]);
    return model.round[0];
}

/* The place of the one to be served. */
static uint32_t model_choose(uint64_t now_us)
{
    for (;;) {
        uint32_t tenant = model_whose_turn(), at = model_oldest(tenant);
        if (model_oldest_us(tenant, now_us) < HG_TICKETLINE_TARGET_US)
            model.slow_since_us[tenant] = now_us;
        model_look_at(tenant, now_us);
        for (uint32_t i = at; i < model.count; i++)
            if (model.of[i] == tenant && model.overloaded[tenant])
                at = i;
        if (!model.in_turn[tenant])
            model.deficit[tenant] += HG_TICKETLINE_QUANTUM;
        model.in_turn[tenant] = true;
        if (model.deficit[tenant] >= waiters[model.in[at]].cost) {
            model.deficit[tenant] -= waiters[model.in[at]].cost;
            return at;
        }
        model.in_turn[tenant] = false;
        if (!take_from(model.fresh, &model.n_fresh, tenant))
            take_from(model.round, &model.n_round, tenant);
        model.round[model.n_round++] = tenant;
    }
}

/* Time goes on: overload begins for any tenant, and ends for the one that would be cut first. */
static void model_look(uint64_t now_us)
{
    uint32_t tenant;
    model_look_at_all(now_us);
    for (tenant = 0; tenant < TENANTS; tenant++)
        if (!model.overloaded[tenant])
            model_look_at(tenant, now_us);
    do {
        uint64_t first_us = UINT64_MAX;
        tenant = TENANTS;
        for (uint32_t at = 0; at < model.count; at++)
            if (model.overloaded[model.of[at]] && waiters[model.in[at]].came_us < first_us) {
                tenant = model.of[at];
                first_us = waiters[model.in[at]].came_us;
            }
        if (tenant < TENANTS)
            model_look_at(tenant, now_us);
    } while (tenant < TENANTS && !model.overloaded[tenant]);
}

static uint64_t model_end_us(uint32_t at)
{
    const struct hg_ticketline_waiter *waiter = &waiters[model.in[at]];
    uint64_t cut_us = waiter->came_us + conf.overload_wait_us;
    return (model.stalled || model.overloaded[model.of[at]]) && cut_us < waiter->deadline_us
               ? cut_us
               : waiter->deadline_us;
}

/* ---- against it ---- */

static struct {
    uint64_t pushed, served, removed, late, newest_first, some_overloaded, stalled;
} seen;

static void push_one(uint32_t n_tenants, uint64_t now_us)
{
    uint32_t w = (uint32_t)hg_prng_below(&dice, 300);
    uint32_t tenant = (uint32_t)hg_prng_below(&dice, 1 + hg_prng_below(&dice, n_tenants));
    if (waiters[w].tenant != NULL)
        return;
    waiters[w].since_us = now_us;
    // No two are of the same age: the model would have to know which the line finds first.
    waiters[w].came_us = (now_us - hg_prng_below(&dice, 15000)) / 512 * 512 - 512 + w;
    waiters[w].deadline_us = now_us + hg_prng_below(&dice, 300000);
    waiters[w].cost = 1 + (uint32_t)hg_prng_below(&dice, hg_prng_below(&dice, 8) == 0 ? 200 : 6);
    hg_ticketline_push(&line, &tenants[tenant], &waiters[w], now_us);
    model_push(w, tenant, now_us);
    seen.pushed++;
}

static void pop_one(uint64_t now_us)
{
    struct hg_ticketline_waiter *waiter = hg_ticketline_pop(&line, now_us);
    if (waiter == NULL) {
        assert_int_equal(model.count, 0);
        return;
    }
    uint32_t at = model_choose(now_us);
    model.stalled = false;
    model.served_us = now_us;
    assert_ptr_equal(waiter, &waiters[model.in[at]]);
    seen.newest_first += model.overloaded[model.of[at]];
    model_take_out(at);
    seen.served++;
}

static void remove_one(uint64_t now_us)
{
    if (model.count == 0)
        return;
    uint32_t at = (uint32_t)hg_prng_below(&dice, model.count);
    model_look_at(model.of[at], now_us);
    model_look_at_all(now_us);
    hg_ticketline_remove(&line, &waiters[model.in[at]], now_us);
    model_take_out(at);
    seen.removed++;
}

static void expire_all(uint64_t now_us)
{
    for (;;) {
        struct hg_ticketline_waiter *waiter = hg_ticketline_expire(&line, &conf, now_us);
        model_look(now_us);
        if (waiter == NULL)
            break;
        uint32_t at = model_find(waiter);
        assert_true(model_end_us(at) <= now_us);
        if (waiter->deadline_us > now_us) // for the sake of overload
            model.last_old_us[model.of[at]] = model.last_late_us = now_us;
        model_look_at(model.of[at], now_us);
        model_take_out(at);
        seen.late++;
    }
    for (uint32_t at = 0; at < model.count; at++)
        assert_true(model_end_us(at) > now_us);
    assert_true(hg_ticketline_next_us(&line, &conf) > now_us);
}

static void compare(void)
{
    uint64_t next_us = UINT64_MAX;
    bool some = false, all = true;
    assert_int_equal(line.count, model.count);
    assert_int_equal(seen.pushed, seen.served + seen.removed + seen.late + model.count);
    for (uint32_t at = 0; at < model.count; at++) {
        bool overloaded = model.overloaded[model.of[at]];
        assert_int_equal(tenants[model.of[at]].overloaded, overloaded);
        some = some || overloaded;
        all = all && overloaded;
        if (model_end_us(at) < next_us)
            next_us = model_end_us(at);
    }
    assert_int_equal(line.stalled, model.stalled);
    assert_true(line.overloaded >= (some || model.stalled));
    seen.stalled += model.stalled && !all;
    seen.some_overloaded += some && !all;
    if (all || model.stalled)
        assert_int_equal(hg_ticketline_next_us(&line, &conf), next_us);
    else
        assert_true(hg_ticketline_next_us(&line, &conf) <= next_us);
}

static void test_random_steps(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t now_us = 1000000;
        uint32_t n_tenants = 1 + (uint32_t)seed % 7;
        memset(&model, 0, sizeof model);
        memset(&seen, 0, sizeof seen);
        dice = (struct hg_prng){seed};
        conf.overload_wait_us = 20000;
        setup();
        for (uint32_t i = 0; i < 6000; i++) {
            // More come than go, then fewer, so that overload begins and ends.
            uint64_t what = hg_prng_below(&dice, 100), load = i / 1000 % 2 == 0 ? 60 : 15;
            now_us += hg_prng_below(&dice, 4) == 0 ? hg_prng_below(&dice, 4000) : 0;
            if (what < load)
                push_one(n_tenants, now_us);
            else if (what < 90 && i % 2000 < 1700) // or the store has stopped
                pop_one(now_us);
            else if (what >= 90 && what < 94)
                remove_one(now_us);
            else if (what >= 90 && what < 99)
                expire_all(now_us);
            else if (what == 99)
                conf.overload_wait_us = hg_prng_below(&dice, 60000);
            compare();
        }
        assert_true(seen.served > 1000 && seen.removed > 100 && seen.late > 100);
        assert_true(seen.stalled > 20 || n_tenants == 1);
        assert_true(seen.some_overloaded > 100 || n_tenants == 1);
        assert_true(seen.newest_first > 100 && seen.newest_first < seen.served - 100);
    }
}

/* ---- shares ---- */

#define SERVICE_US 500 // one store that can do 2000 a second
#define RUN_US     10000000

static struct {
    uint64_t offered[TENANTS], served[TENANTS], wait_us[TENANTS];
} flow;

static struct hg_ticketline_waiter *free_waiter(uint32_t *from)
{
    for (uint32_t i = 0; i < WAITERS; i++) {
        *from = (*from + 1) % WAITERS;
        if (waiters[*from].tenant == NULL)
            return &waiters[*from];
    }
    fail_msg("more wait than thought");
    return NULL;
}

/* Tenant 0 offers 100 times what each of the others offers, Poisson; one is served each 500 us. */
static void simulate(double each_per_s)
{
    double due_us[TENANTS];
    uint32_t from = 0;
    dice = (struct hg_prng){42};
    conf.overload_wait_us = 20000;
    memset(&flow, 0, sizeof flow);
    setup();
    for (uint32_t t = 0; t < TENANTS; t++)
        due_us[t] = 1000000;
    for (uint64_t now_us = 1000000; now_us < 1000000 + RUN_US; now_us += SERVICE_US) {
        struct hg_ticketline_waiter *waiter;
        for (uint32_t t = 0; t < TENANTS; t++) {
            double mean_us = 1e6 / (t == 0 ? 100 * each_per_s : each_per_s);
            for (; due_us[t] <= (double)now_us;
                 due_us[t] -= mean_us * log1p(-(double)(hg_prng_next(&dice) >> 11) * 0x1p-53)) {
                waiter = free_waiter(&from);
                waiter->since_us = waiter->came_us = now_us;
                waiter->deadline_us = now_us + 1000000;
                waiter->cost = 1;
                hg_ticketline_push(&line, &tenants[t], waiter, now_us);
                flow.offered[t]++;
            }
        }
        while ((waiter = hg_ticketline_expire(&line, &conf, now_us)) != NULL)
            ;
        uint32_t before[TENANTS];
        for (uint32_t t = 0; t < TENANTS; t++)
            before[t] = tenants[t].count;
        waiter = hg_ticketline_pop(&line, now_us);
        for (uint32_t t = 0; t < TENANTS && waiter != NULL; t++)
            if (tenants[t].count < before[t]) {
                flow.served[t]++;
                flow.wait_us[t] += now_us - waiter->since_us;
            }
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
    // More than one share, as the others, whose waits are cut, do not wait in each of their turns.
    assert_true(flow.served[0] < RUN_US / SERVICE_US / TENANTS * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_steps),
        cmocka_unit_test(test_a_flood_takes_nothing_from_others),
        cmocka_unit_test(test_a_flood_has_what_others_leave_over),
        cmocka_unit_test(test_shares_are_equal_under_overload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
