/*
 * claim.h - the steps of perseas_open, one function each. They run before the handle is open:
 * one thread, no keeper. Each returns 0, a PERSEAS_E… code with the handle's message set, or
 * PS_AGAIN: a session broke, or another claimer was faster, and the attempt starts again with a
 * higher epoch and no candidates (I6).
 */
#ifndef PERSEAS_CLIENT_CLAIM_H
#define PERSEAS_CLIENT_CLAIM_H

#include "handle.h"

enum { PS_AGAIN = 1 };

/* probe.c: asks every mirror, read-only, what it has. */
int ps_probe(struct perseas *p);
/* .. decides which store is meant, and which roster is the newest. EBUSY for a live owner. */
int ps_probe_judge(struct perseas *p);
/* .. newest roster and memberships, from the headers as they are known. */
int ps_probe_roster(struct perseas *p);

/* claim.c: I5, I6. */
int ps_claim(struct perseas *p);
int ps_choose(struct perseas *p, struct ps_standing *chosen);
int ps_confirm(struct perseas *p);
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

/* create.c, with the mirrors probed: makes the store on all of them. */
int ps_create_probed(struct perseas *p);

#endif
