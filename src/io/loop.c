// loop - one thread's event loop, cut into turns
// SPDX-License-Identifier: BSD-3-Clause
#include "io/loop.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

int hg_loop_init(struct hg_loop *loop)
{
    memset(loop, 0, sizeof *loop);
    for (unsigned s = 0; s < HG_STAGES; s++)
        hg_list_init(&loop->hooks[s]);
    struct event_config *config = event_config_new();
    if (config == NULL)
        return -ENOMEM;
    /* No changelist: where it merges the end of an edge-triggered event with the beginning of a
       level-triggered one on the same descriptor, the new one is edge-triggered too. */
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    loop->base = event_base_new_with_config(config);
    event_config_free(config);
    if (loop->base == NULL)
        return -ENOMEM;
    loop->clock = hg_now_us;
    loop->now_us = loop->clock();
    return 0;
}

void hg_loop_fini(struct hg_loop *loop)
{
    if (loop->base != NULL)
        event_base_free(loop->base);
    loop->base = NULL;
}

void hg_loop_stamp_slow(struct hg_loop *loop)
{
    loop->now_us = loop->clock();
    loop->stamped_turn = loop->turns;
}

void hg_loop_turn(struct hg_loop *loop, bool wait)
{
    int flags = EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY;
    if (!wait || loop->again)
        flags |= EVLOOP_NONBLOCK;
    loop->again = false;
    loop->turns++;
    event_base_loop(loop->base, flags);
    hg_loop_stamp(loop);
    for (unsigned s = 0; s < HG_STAGES; s++) {
        struct hg_list *node = loop->hooks[s].next;
        for (; node != &loop->hooks[s]; node = loop->next_hook) {
            struct hg_hook *hook = HG_CONTAINER_OF(node, struct hg_hook, node);
            loop->next_hook = node->next;
            hook->fn(hook);
        }
    }
}

void hg_loop_run(struct hg_loop *loop)
{
    loop->stopped = false;
    while (!loop->stopped)
        hg_loop_turn(loop, true);
}

void hg_loop_stop(struct hg_loop *loop)
{
    loop->stopped = true;
    loop->again = true;
}

void hg_loop_hook(struct hg_loop *loop, enum hg_stage stage, struct hg_hook *hook,
                  void (*fn)(struct hg_hook *))
{
    hook->fn = fn;
    hook->loop = loop;
    hg_list_append(&loop->hooks[stage], &hook->node);
}

void hg_loop_unhook(struct hg_hook *hook)
{
    if (hook->loop->next_hook == &hook->node)
        hook->loop->next_hook = hook->node.next;
    hg_list_remove(&hook->node);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct hg_timer *timer = arg;
    hg_loop_stamp(timer->loop);
    timer->fn(timer);
}

int hg_loop_timer_arm(struct hg_timer *timer, uint64_t us)
{
    struct timeval tv = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
    return event_add(&timer->event, &tv) == 0 ? 0 : -ENOMEM;
}

int hg_loop_timer_init(struct hg_loop *loop, struct hg_timer *timer, uint64_t every_us,
                       void (*fn)(struct hg_timer *))
{
    timer->fn = fn;
    timer->loop = loop;
    if (event_assign(&timer->event, loop->base, -1, every_us > 0 ? EV_PERSIST : 0, on_timer,
                     timer) != 0)
        return -EINVAL;
    return every_us > 0 ? hg_loop_timer_arm(timer, every_us) : 0;
}

void hg_loop_timer_fini(struct hg_timer *timer)
{
    event_del(&timer->event);
}
