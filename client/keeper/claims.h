/*
 * claims.h - what an open and a renewal do alike to have claims: they note what mirrors tell,
 * examine it, and claim the mirrors of a set (I5, I6). Admin, or before open.
 */
#ifndef PERSEAS_CLIENT_CLAIMS_H
#define PERSEAS_CLIENT_CLAIMS_H

#include "../core/mirror.h"

struct ps_round;

/* Nothing is known of a mirror any more. */
void ps_found_forget(struct ps_mirror *m);

/* Notes a mirror's answer to a Status, or why the mirror did not answer (reply NULL). */
void ps_found_note_status(struct ps_mirror *m, const Perseas__Reply *reply,
                          const struct ps_error *error);

/* The notes in struct ps_found of all mirrors, as sets of mirrors. */
struct ps_noted {
	uint32_t told;   /* their images */
	uint32_t linked; /* have a session with a data path */
	uint32_t claimed, listed, counts, candidates, good, broke;
};

struct ps_noted ps_noted(const struct perseas *p);

/* The listed images that are claimed. */
uint32_t ps_claimed(const struct perseas *p);

/* Fills in what the mirrors told, for proto/control/judge.h. `told` points into the handle. */
void ps_examine_told(const struct perseas *p, struct ps_told told[PS_MIRRORS_MAX]);

/* Notes what the listed images of a set are worth. Returns those with a voice. */
uint32_t ps_examine(struct perseas *p, uint32_t set);

/* Is it a candidate at this very state? */
bool ps_stands_at(const struct ps_mirror *m, const struct ps_standing *at);

/* Did the operator name this state? Or is it that one, adopted by an attempt before this? */
bool ps_accepted(const struct perseas *p, const struct ps_standing *state);

/*
 * Claims the mirrors of a set, which answered a Status over the connections that they have, with an
 * epoch above p->epoch, which becomes this owner's. Notes for each mirror that it is claimed and
 * has a data path, or found.code. Mirrors that do not answer within `patience` are given up once
 * the others are R, or p->opening's time is over. round: the answers, which the caller frees.
 */
void ps_claims_run(struct perseas *p, uint32_t set, uint64_t patience, struct ps_round *round);

/* Asks the mirrors of a set whether they are still claimed over sessions that never broke. Returns
 * those that are not, and those that were adopted on and lost their data path. */
uint32_t ps_claims_broken(struct perseas *p, uint32_t set);

#endif
