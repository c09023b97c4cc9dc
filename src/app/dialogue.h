// dialogue - one SASL exchange with a client, from its first message to the verdict
// SPDX-License-Identifier: BSD-3-Clause
//
//   PLAIN   name and password ─► verdict
//   SCRAM   name ─► salt, count ─► proof ─► verdict, with the server's own proof
//
// Nothing tells a name that exists from one that does not: both get a salt and a count, both cost
// the same derivations, both fail alike. An authorisation name must be empty or the name itself;
// channel binding is not served. SCRAM is libgsasl's; PLAIN is cut here, because libgsasl
// normalises names in it, and not in SCRAM.
//
// A step may cost milliseconds of computing: never on a worker's loop. One thread at a time.
#ifndef HG_APP_DIALOGUE_H
#define HG_APP_DIALOGUE_H

#include <gsasl.h>
#include <stdbool.h>
#include <stddef.h>

#include "app/users.h"
#include "base/attr.h"
#include "base/span.h"

/* The strongest first: the order in which they are listed. */
enum hg_mechanism {
    HG_MECHANISM_SCRAM_SHA_256,
    HG_MECHANISM_SCRAM_SHA_1,
    HG_MECHANISM_PLAIN,
    HG_MECHANISMS
};

#define HG_MECHANISMS_TEXT 64 /* bytes for the list, with the zero byte */

const char *hg_mechanism_name(enum hg_mechanism mechanism);
/* Finds one by its exact name; false, and nothing written, when there is none. */
HG_MUST_USE bool hg_mechanism_parse(struct hg_span name, enum hg_mechanism *ret);
/* Whether somebody could log in by it. */
bool hg_mechanism_is_served(const struct hg_users *users, enum hg_mechanism mechanism);
/* The served ones, a space between them; the length. */
size_t hg_mechanisms_list(const struct hg_users *users, char out[HG_MECHANISMS_TEXT]);

enum hg_dialogue_result { HG_DIALOGUE_MORE, HG_DIALOGUE_OK, HG_DIALOGUE_FAILED };

struct hg_dialogue;

/* libgsasl, set up for dialogues; one serves all threads, and gsasl_done ends it. 0 or -ENOMEM. */
HG_MUST_USE int hg_dialogue_library(Gsasl **ret);

/* NULL when memory is out. */
HG_MUST_USE struct hg_dialogue *hg_dialogue_new(Gsasl *gsasl, enum hg_mechanism mechanism);
void hg_dialogue_free(struct hg_dialogue *dialogue);

/* Takes the client's next message. With MORE and OK, *ret_reply is what to send (free() it; NULL
   for nothing). The users are looked at in the first step only; after OK or FAILED there is none.
 */
HG_MUST_USE enum hg_dialogue_result hg_dialogue_step(struct hg_dialogue *dialogue,
                                                     const struct hg_users *users,
                                                     struct hg_span message, char **ret_reply,
                                                     size_t *ret_len);

enum hg_mechanism hg_dialogue_mechanism(const struct hg_dialogue *dialogue);
/* Whether the next message carries the proof, so that the next step may be a wrong guess. */
bool hg_dialogue_is_at_proof(const struct hg_dialogue *dialogue);
/* The name that the client gave; "" before that. */
const char *hg_dialogue_name(const struct hg_dialogue *dialogue);
/* Whether the name is one of the users. For the log only. */
bool hg_dialogue_knows_user(const struct hg_dialogue *dialogue);
/* After OK: the user in these users, perhaps newer ones, if the secret that was checked is still
   the user's; else NULL. */
const struct hg_user *hg_dialogue_user(const struct hg_dialogue *dialogue,
                                       const struct hg_users *users);

#endif
