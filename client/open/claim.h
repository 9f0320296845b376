/*
 * claim.h - the steps of perseas_open, one function each. They run before the handle is open:
 * one thread, no keeper. Each returns 0, a PERSEAS_E… code with the handle's message set, or
 * PS_AGAIN: a session broke, or another claimer was faster, and the attempt starts again with a
 * higher epoch and no candidates (I6).
 */
#ifndef PERSEAS_CLIENT_CLAIM_H
#define PERSEAS_CLIENT_CLAIM_H

#include "../core/handle.h"

enum { PS_AGAIN = 1 };

/* probe.c: asks every mirror, read-only, what it has. */
int ps_probe(struct perseas *p);
/* Decides which store is meant, and which roster is the newest. EBUSY for a live owner. */
int ps_probe_judge(struct perseas *p);
/* Finds the newest rosters and who is which member, from the headers as they are known. */
int ps_probe_roster(struct perseas *p);
/* What the mirrors told, for proto/control/judge.h. It points into the handle. */
void ps_probe_told(const struct perseas *p, struct ps_told told[PS_MIRRORS_MAX]);

/* claim.c: I5, I6. */
int ps_claim(struct perseas *p);
int ps_choose(struct perseas *p, struct ps_standing *chosen);
int ps_confirm(struct perseas *p);
/* Is a mirror whose session broke still claimed by this owner, with the image that was examined? It
 * is claimed again with the same epoch, and has no data path. */
bool ps_claim_stands(struct perseas *p, struct ps_mirror *m);
/* What the listed images of a set are worth: candidates for the state, voices towards R, or
 * nothing. Those with a voice. */
uint32_t ps_examine(struct perseas *p, uint32_t set);
/* The highest (epoch, seq) among the candidates, or NULL. */
const struct ps_standing *ps_newest(const struct perseas *p);
/* EQUORUM, or why it is so: only these mirrors counted; the newest state seen, or NULL. */
int ps_too_few(struct perseas *p, uint32_t counted, const struct ps_standing *state);
/* 0, or EQUORUM: with these listed images it cannot be opened at that state, and may adopt on none.
 * R are enough to know the state; but an open that touches fewer than T cannot end well, and a
 * change of the roster may go on that it does not see. Fewer than R, accepted, must be W with those
 * that are made anew. */
int ps_adoptable(struct perseas *p, uint32_t claimed, const struct ps_standing *state);
/* Has this member no image that counts: none at all, or one that the roster no longer lists? */
bool ps_empty(const struct perseas *p, const struct ps_mirror *m);
/* Did the operator name this state? Or is it that one, adopted by an attempt before this? */
bool ps_accepted(const struct perseas *p, const struct ps_standing *state);
uint32_t ps_claimed(const struct perseas *p); /* the listed images that are claimed */
bool ps_stands_at(const struct ps_mirror *m, const struct ps_standing *at);

/* adopt.c: I7 to I9. */
int ps_adopt(struct perseas *p, const struct ps_standing *chosen);

/* forward.c: what a mirror that is behind missed, transaction by transaction. 0; 1: the log does
 * not reach, or it stands in another history; -1: a session broke. */
int ps_mend_forward(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m);

/* mend.c: a delta in place. 0; 1: the logs do not reach, or more changed than there is;
 * -1: a session broke. */
int ps_mend_delta(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m);

/* create.c, with the mirrors probed: makes the store on all of them. PS_AGAIN: another create was
 * in the way, or how it ended must be asked. */
int ps_create_probed(struct perseas *p);

#endif
