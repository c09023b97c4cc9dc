// process_ticks - what the main thread does at its times: credit slots, epochs of hot keys, tickets
// SPDX-License-Identifier: BSD-3-Clause
#include "app/gates.h"
#include "app/process.h"
#include "app/process_own.h"
#include "base/clock.h"
#include "base/log.h"

#define EPOCH_LOOK_US 500000 /* at hotkey_epoch_ms, which may have been changed */

static void note_overcommitment(struct hg_process *process, const struct hg_credit_tick *tick)
{
    if (tick->overcommitted && !process->overcommitted)
        hg_log_warn("reserved=%llu msg=\"the reservations exceed node_capacity: all are honoured, "
                    "and the free pool is empty\"",
                    (unsigned long long)tick->reserved_sum);
    process->overcommitted = tick->overcommitted;
}

void hg_process_tick(struct hg_process *process)
{
    struct hg_credit_tick done;
    pthread_mutex_lock(&process->lock);
    const struct hg_directory *directory = process->directory;
    for (size_t i = 0; i < directory->bucket_count; i++)
        process->tick_buckets[i] = &directory->buckets[i]->credit;
    hg_credit_tick(&process->node, process->tick_buckets, directory->bucket_count,
                   process->tick_scratch, hg_now_us(), &done);
    pthread_mutex_unlock(&process->lock);
    if (done.slot) {
        hg_counter_add(&process->ticks, 1);
        note_overcommitment(process, &done);
    }
    for (uint64_t poke = done.poke; poke != 0; poke &= poke - 1)
        hg_worker_give_tick(&process->workers[__builtin_ctzll(poke)]);
}

static void arm_tick(struct hg_process *process)
{
    uint64_t now_us = hg_now_us(), due_us = hg_credit_due_us(&process->node);
    if (hg_loop_timer_arm(&process->tick_timer, due_us > now_us ? due_us - now_us : 1) != 0)
        hg_log_error("msg=\"cannot set the tick's timer\"");
}

static void on_tick(struct hg_timer *timer)
{
    struct hg_process *process = HG_CONTAINER_OF(timer, struct hg_process, tick_timer);
    hg_process_tick(process);
    arm_tick(process);
}

/* ---- epochs of hot keys ---- */

static uint64_t epoch_due_us(const struct hg_process *process)
{
    return process->hot_begin_us +
           (uint64_t)atomic_load((_Atomic uint32_t *)&process->front.hot.epoch_ms) * 1000;
}

static void arm_epoch(struct hg_process *process)
{
    uint64_t now_us = hg_now_us(), due_us = epoch_due_us(process);
    uint64_t wait_us = due_us > now_us ? due_us - now_us : 1;
    /* Its length may be changed meanwhile. */
    if (wait_us > EPOCH_LOOK_US)
        wait_us = EPOCH_LOOK_US;
    atomic_store(&process->front.hot.epoch_end_us, due_us);
    if (hg_loop_timer_arm(&process->hot_timer, wait_us) != 0)
        hg_log_error("msg=\"cannot set the timer of hot-key epochs\"");
}

/* After a time in which nothing ran there is one end, however many were missed. */
static void on_epoch(struct hg_timer *timer)
{
    struct hg_process *process = HG_CONTAINER_OF(timer, struct hg_process, hot_timer);
    uint64_t now_us = hg_now_us(), due_us = epoch_due_us(process);
    if (now_us >= due_us) {
        process->hot_begin_us = due_us;
        bool stood_still = epoch_due_us(process) <= now_us;
        if (stood_still)
            process->hot_begin_us = now_us;
        /* What was sent while the machine stood still comes now and belongs to that time: the
           long epoch takes it in, and ends a usual epoch later. */
        process->hot_prolonged = stood_still && !process->hot_prolonged;
        if (!process->hot_prolonged)
            hg_hotkeys_end_epoch(&process->hotkeys, now_us, hg_wall_s(), epoch_due_us(process));
    }
    arm_epoch(process);
}

/* ---- tickets ---- */

static void arm_gates(struct hg_process *process)
{
    uint64_t now_us = hg_now_us(), due_us = hg_gates_tick(process, now_us);
    if (hg_loop_timer_arm(&process->gate_timer, due_us > now_us ? due_us - now_us : 1) != 0)
        hg_log_error("msg=\"cannot set the timer of the tickets\"");
}

static void on_gates(struct hg_timer *timer)
{
    arm_gates(HG_CONTAINER_OF(timer, struct hg_process, gate_timer));
}

/* ---- all three ---- */

int hg_process_init_ticks(struct hg_process *process)
{
    int rc = hg_loop_timer_init(&process->loop, &process->tick_timer, 0, on_tick);
    if (rc == 0)
        rc = hg_loop_timer_init(&process->loop, &process->hot_timer, 0, on_epoch);
    if (rc == 0)
        rc = hg_loop_timer_init(&process->loop, &process->gate_timer, 0, on_gates);
    if (rc == 0)
        (void)hg_gates_tick(process, hg_now_us()); /* the sizes, before anybody comes */
    return rc;
}

void hg_process_begin_ticks(struct hg_process *process)
{
    arm_tick(process);
    process->hot_begin_us = hg_now_us();
    arm_epoch(process);
    arm_gates(process);
}
