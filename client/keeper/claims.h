/*
 * claims.h - what an open and a renewal share: noting what mirrors show, judging it, and claiming
 * the mirrors of a set (I5, I6). Callers hold admin, or the store is not open yet.
 */
#ifndef PERSEAS_CLIENT_CLAIMS_H
#define PERSEAS_CLIENT_CLAIMS_H

#include "../core/mirror.h"

struct ps_round;

/* Clears what is known about a mirror. */
void ps_probe_result_clear(struct ps_mirror *m);

/* Notes a mirror's answer to a Status, or the error if `reply` is NULL. */
void ps_probe_result_set(struct ps_mirror *m, const Perseas__Reply *reply,
                         const struct ps_error *error);

/* What struct ps_probe_result notes of each mirror, as sets of mirrors. */
struct ps_probe_sets {
	uint32_t showed_image_set; /* have shown an image */
	uint32_t linked_set;       /* have a session with a data path */
	/* These are as in struct ps_probe_result. */
	uint32_t claimed_set, listed_set, counted_set, candidate_set, adopted_set,
		broken_session_set;
};

struct ps_probe_sets ps_probe_sets(const struct perseas *p);

/* Returns the mirrors that are claimed and whose images a roster lists. */
uint32_t ps_claimed_and_listed(const struct perseas *p);

/* Fills in what the mirrors have shown, for proto/control/judge.h. `told` points into the
 * handle. */
void ps_fill_what_mirrors_told(const struct perseas *p, struct ps_told told[PS_MIRRORS_MAX]);

/* Judges the listed images of the mirrors of `set`. Notes which of them count toward R, and which
 * are candidates: the newest state may be chosen from these. Returns the mirrors that count. */
uint32_t ps_judge_images(struct perseas *p, uint32_t set);

/* Returns true if the mirror is a candidate with exactly this state. */
bool ps_candidate_is_at(const struct ps_mirror *m, const struct ps_image_position *at);

/* Returns true if the operator accepted this state, or an earlier attempt adopted the state that
 * the operator accepted. */
bool ps_state_is_accepted(const struct perseas *p, const struct ps_image_position *state);

/* Claims the mirrors of `set`, which answered a Status on their present connections, under the next
 * higher p->epoch. Notes for each mirror that it is claimed and has a data path, or probe.code.
 * Gives up on mirrors that do not answer within `timeout_ns` once the others are R, and on all
 * when p->opening times out. The answers are in *round, which the caller frees. */
void ps_claims_send_and_await(struct perseas *p, uint32_t set, uint64_t timeout_ns,
                              struct ps_round *round);

/* Asks the mirrors of `set` whether they are still claimed over sessions that never broke. Returns
 * those that are not, and those that were adopted on and lost their data path. */
uint32_t ps_claims_ask_and_find_lost(struct perseas *p, uint32_t set);

#endif
