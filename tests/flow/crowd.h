// crowd - several users of one server with few connections, in the test's own time
// SPDX-License-Identifier: BSD-3-Clause
//
// Nothing happens by itself: crowd_pass moves the clock of the workers, and each 10 ms of it is a
// tick of every domain.
#ifndef CROWD_H
#define CROWD_H

#include "solo.h"

#include "back/domain.h"

#define CROWD_MAX 12

struct crowd {
    struct solo solo;
    uint32_t users;
    uint32_t ids[CROWD_MAX]; /* identities of "u0", "u1" ... */
};

/* Sets everything up but the stores, so that the configuration can be changed; the server lets
   everybody in and answers nothing else. */
void crowd_init(struct crowd *crowd, uint32_t workers, uint32_t depth);
/* Makes the stores; the server allows so many connections. */
void crowd_start(struct crowd *crowd, uint32_t users, uint32_t connections);
void crowd_fini(struct crowd *crowd);

/* The clock of the workers. */
uint64_t crowd_now_us(void);
/* Lets time pass, in steps of at most 1 ms. */
void crowd_pass(struct crowd *crowd, uint64_t us);
/* The workers stand still for so long: they hear nothing and miss ticks. */
void crowd_stall(struct crowd *crowd, uint64_t us);
/* What is under way arrives. */
void crowd_settle(struct crowd *crowd);

struct hg_domain *crowd_domain(struct crowd *crowd, uint32_t worker);
struct hg_pool *crowd_pool(struct crowd *crowd, uint32_t worker, uint32_t user);
/* A get of that user. */
enum hg_submit crowd_ask_of(struct crowd *crowd, uint32_t worker, uint32_t user, struct note *note,
                            const char *key);
enum hg_submit crowd_ask(struct crowd *crowd, uint32_t user, struct note *note, const char *key);
/* Answers the newest request for the key; it is there. */
void crowd_answer(struct crowd *crowd, const char *key);
uint64_t crowd_stat(struct crowd *crowd, uint32_t user, enum hg_pool_stat stat);

#endif
