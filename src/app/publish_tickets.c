// publish_tickets - options of tickets and binds, put in force
// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include "app/gates.h"
#include "app/process.h"
#include "base/clock.h"
#include "front/gate.h"

_Static_assert((int)HG_CONF_TICKET_MODE_OFF == HG_MODE_OFF &&
                   (int)HG_CONF_TICKET_MODE_OBSERVE == HG_MODE_OBSERVE &&
                   (int)HG_CONF_TICKET_MODE_ENFORCE == HG_MODE_ENFORCE &&
                   (int)HG_CONF_BIND_MODE_OFF == HG_MODE_OFF &&
                   (int)HG_CONF_BIND_MODE_OBSERVE == HG_MODE_OBSERVE &&
                   (int)HG_CONF_BIND_MODE_ENFORCE == HG_MODE_ENFORCE,
               "modes of the file are those of a bucket");
_Static_assert((int)HG_CONF_EXECUTION_CONTROL_ADAPTIVE == HG_PROBE_ADAPTIVE &&
                   (int)HG_CONF_EXECUTION_CONTROL_PROBING == HG_PROBE_PROBING &&
                   (int)HG_CONF_EXECUTION_CONTROL_FIXED == HG_PROBE_FIXED,
               "controls of the file are those of a probe");

_Static_assert((int)HG_CONF_FAIR_BY_TENANT == HG_FAIR_BY_TENANT &&
                   (int)HG_CONF_FAIR_BY_USER == HG_FAIR_BY_USER &&
                   (int)HG_CONF_FAIR_BY_ADDRESS == HG_FAIR_BY_ADDRESS,
               "parties of the file are those of a bucket");

#define INGRESS_FLOOD_WAIT_MS 100 /* as flood_wait_ms of an upstream is by default */

static void set_line(struct hg_gate_holder *holder, uint64_t max_waiting, uint64_t timeout_ms,
                     uint64_t flood_ms, bool flood_newest)
{
    atomic_store(&holder->max_waiting, max_waiting);
    atomic_store(&holder->queue_timeout_us, timeout_ms * 1000);
    atomic_store(&holder->flood_wait_us, flood_ms * 1000);
    atomic_store(&holder->flood_newest, flood_newest);
}

void hg_publish_ingress(struct hg_front *front, const struct hg_conf *conf)
{
    struct hg_gate_holder *ingress = &front->ingress;
    set_line(ingress, conf->ingress_max_queue_depth, conf->ingress_queue_timeout_ms,
             INGRESS_FLOOD_WAIT_MS, false);
    atomic_store(&front->ingress_enabled, conf->ingress_enabled);
    if (hg_ticket_size(&ingress->ticket) != (int64_t)conf->ingress_tickets)
        hg_gate_poke(front,
                     hg_gate_holder_resize(ingress, (int64_t)conf->ingress_tickets, hg_now_us()));
}

static uint32_t count_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (uint32_t)cores : 1;
}

static struct hg_probe_conf probe_of(const struct hg_conf_upstream *conf)
{
    return (struct hg_probe_conf){
        .control = (enum hg_probe_control)conf->execution_control,
        .interval_us = (uint32_t)conf->throughput_probing_interval_ms * 1000,
        .read_tickets = (uint32_t)conf->read_tickets,
        .write_tickets = (uint32_t)conf->write_tickets,
        .initial = (uint32_t)conf->throughput_probing_initial_concurrency,
        .cores = count_cores(),
        .min = (uint32_t)conf->throughput_probing_min_concurrency,
        .max = (uint32_t)conf->throughput_probing_max_concurrency,
        .read_write_ratio = conf->throughput_probing_read_write_ratio,
        .weight = conf->throughput_probing_concurrency_moving_average_weight,
        .step = conf->throughput_probing_step_multiple,
    };
}

/* Numbers that somebody gave are of all servers together, as they were in 1.0, unless he says
   otherwise; those that nobody gave are of each server. */
static bool is_sum(const struct hg_conf_upstream *conf)
{
    return conf->tickets_scope == HG_CONF_TICKETS_SCOPE_UPSTREAM &&
           (conf->lines[HG_CONF_UPSTREAM_read_tickets] != 0 ||
            conf->lines[HG_CONF_UPSTREAM_write_tickets] != 0);
}

void hg_publish_execution(struct hg_front *front, struct hg_upstream *upstream,
                          const struct hg_conf_upstream *conf)
{
    const struct hg_gateset_conf wanted = {
        .probe = probe_of(conf),
        .max_waiting = conf->execution_max_queue_depth,
        .queue_timeout_us = conf->queue_timeout_ms * 1000,
        .flood_wait_us = conf->flood_wait_ms * 1000,
        .flood_newest = conf->flood_order == HG_CONF_FLOOD_ORDER_NEWEST,
        .tenant_window = (unsigned)conf->tenant_window,
        .slow_factor = (unsigned)conf->slow_server_factor,
        .key_share_pct =
            conf->bind_control == HG_CONF_BIND_CONTROL_SHARE ? (unsigned)conf->key_share_pct : 100,
        .bind_halves = conf->bind_mended == HG_CONF_BIND_MENDED_HALVE,
        .evict_longest = conf->bind_control == HG_CONF_BIND_CONTROL_HERA,
        .cap = conf->upstream_tickets,
        .is_sum = is_sum(conf),
    };
    hg_gateset_configure(upstream->gates, front, &wanted, hg_now_us());
}

struct hg_bind_settings hg_publish_binds(const struct hg_conf *conf)
{
    return (struct hg_bind_settings){
        .backlog_us = conf->bind_backlog_ms * 1000,
        .threshold_pct = (uint32_t)conf->bind_eviction_threshold_pct,
        .target_pct = (uint32_t)conf->bind_eviction_target_conn_pct,
        .decr_per_sec = conf->bind_eviction_decr_per_sec,
        .min_age_us = conf->eviction_min_age_ms * 1000,
        .evict_sent_writes = conf->bind_evict_sent_writes,
    };
}
