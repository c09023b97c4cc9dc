// poolsim_balance - the planner of core/balance as a pool of the simulation: what tests look at
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TEST_POOLSIM_BALANCE_H
#define HG_TEST_POOLSIM_BALANCE_H

#include "core/balance.h"
#include "poolsim.h"

/* poolsim_own of a simulation of poolsim_balance. */
struct poolsim_balance_pool {
    struct poolsim *sim;
    struct poolsim_conf conf;
    struct hg_balance balance;
    struct hg_balance_block *blocks; // by db
    struct hg_balance_conn *conns;   // by index of the slot
    struct poolsim_conn **slots;
    bool ticking;
    void (*on_tick)(struct poolsim_balance_pool *pool); // before each tick; NULL
};

#endif
