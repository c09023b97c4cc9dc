// conf_tickets - the rules about tickets and their number
// SPDX-License-Identifier: BSD-3-Clause
#include "app/conf_build.h"

#include <inttypes.h>

#include "core/ticket.h"

#define FEW 5 /* fixed tickets below this are seldom meant: MongoDB refuses them */

static const char *option_name(enum hg_conf_upstream_option index)
{
    return hg_conf_scopes[HG_CONF_SCOPE_UPSTREAM].options[index].name;
}

/* The line of an option, else of another one that it is at odds with. */
static unsigned line_of(const struct hg_conf_upstream *upstream, enum hg_conf_upstream_option index,
                        enum hg_conf_upstream_option other)
{
    return upstream->lines[index] ? upstream->lines[index] : upstream->lines[other];
}

static void check_fixed(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                        enum hg_conf_upstream_option index, uint64_t tickets,
                        struct hg_conf_errors *errs)
{
    if (upstream->execution_control != HG_CONF_EXECUTION_CONTROL_FIXED || tickets >= FEW)
        return;
    HG_CONF_WARN(conf, upstream->lines[index],
                 tickets == 0 ? "%s %" PRIu64 " of upstream '%s' lets no request in"
                              : "%s %" PRIu64
                                " of upstream '%s' is very few: a slow request keeps others out",
                 option_name(index), tickets, upstream->name);
}

static void check_probing(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                          struct hg_conf_errors *errs)
{
    uint64_t min = upstream->throughput_probing_min_concurrency;
    uint64_t max = upstream->throughput_probing_max_concurrency;
    uint64_t initial = upstream->throughput_probing_initial_concurrency;
    if (min > max) {
        HG_CONF_ERROR(conf,
                      line_of(upstream, HG_CONF_UPSTREAM_throughput_probing_min_concurrency,
                              HG_CONF_UPSTREAM_throughput_probing_max_concurrency),
                      "throughput_probing_min_concurrency '%" PRIu64
                      "' of upstream '%s' exceeds throughput_probing_max_concurrency (accepted: 1 "
                      "to %" PRIu64 ")",
                      min, upstream->name, max);
        return;
    }
    if (initial != 0 && (initial < 2 * min || initial > 2 * max))
        HG_CONF_WARN(conf,
                     line_of(upstream, HG_CONF_UPSTREAM_throughput_probing_initial_concurrency,
                             HG_CONF_UPSTREAM_throughput_probing_min_concurrency),
                     "throughput_probing_initial_concurrency %" PRIu64
                     " of upstream '%s' is %s: %" PRIu64 " is taken",
                     initial, upstream->name,
                     initial < 2 * min ? "less than twice throughput_probing_min_concurrency"
                                       : "more than twice throughput_probing_max_concurrency",
                     initial < 2 * min ? 2 * min : 2 * max);
}

/* A cluster's servers are not known before it is asked. */
static void check_cap(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                      struct hg_conf_errors *errs)
{
    uint64_t cap = upstream->upstream_tickets, count = upstream->servers_count;
    uint64_t least = HG_TICKET_KINDS * (count > 0 ? count : 1);
    if (cap != 0 && cap < least)
        HG_CONF_ERROR(conf, upstream->lines[HG_CONF_UPSTREAM_upstream_tickets],
                      "upstream_tickets '%" PRIu64
                      "' of upstream '%s' is less than a read and a write ticket for each of its "
                      "servers (accepted: 0 for no limit, or %" PRIu64 " and more)",
                      cap, upstream->name, least);
}

/* A default that queue_timeout_ms is below needs no word: there is no flood then. */
static void check_flood(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                        struct hg_conf_errors *errs)
{
    unsigned line = upstream->lines[HG_CONF_UPSTREAM_flood_wait_ms];
    if (line != 0 && upstream->flood_wait_ms > upstream->queue_timeout_ms)
        HG_CONF_ERROR(conf, line,
                      "flood_wait_ms '%" PRIu64
                      "' of upstream '%s' exceeds queue_timeout_ms, %" PRIu64
                      " (accepted: at least 10 and at most queue_timeout_ms)",
                      upstream->flood_wait_ms, upstream->name, upstream->queue_timeout_ms);
    line = upstream->lines[HG_CONF_UPSTREAM_overload_wait_ms];
    if (line != 0)
        HG_CONF_WARN(conf, line,
                     "overload_wait_ms of upstream '%s' has no effect: what it did is now done by "
                     "admission by predicted wait, see flood_wait_ms",
                     upstream->name);
}

void hg_conf_check_tickets(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    unsigned line = conf->lines[HG_CONF_SERVER_ingress_tickets];
    if (conf->ingress_enabled && conf->ingress_tickets < FEW)
        HG_CONF_WARN(conf, line,
                     conf->ingress_tickets == 0 ? "ingress_tickets %" PRIu64 " lets no request in"
                                                : "ingress_tickets %" PRIu64
                                                  " is very few: a slow request keeps others out",
                     conf->ingress_tickets);
    line = conf->lines[HG_CONF_SERVER_ingress_overload_wait_ms];
    if (line != 0)
        HG_CONF_WARN(conf, line,
                     "ingress_overload_wait_ms has no effect: what it did is now done by admission "
                     "by predicted wait, see ingress_queue_timeout_ms");
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        const struct hg_conf_upstream *upstream = &conf->upstreams[i];
        check_fixed(conf, upstream, HG_CONF_UPSTREAM_read_tickets, upstream->read_tickets, errs);
        check_fixed(conf, upstream, HG_CONF_UPSTREAM_write_tickets, upstream->write_tickets, errs);
        check_probing(conf, upstream, errs);
        check_cap(conf, upstream, errs);
        check_flood(conf, upstream, errs);
    }
}
