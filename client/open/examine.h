/*
 * examine.h - what the images that mirrors told of are worth for an open: candidates for the state,
 * voices towards R, or nothing; and whether they are enough. Before the handle is open.
 */
#ifndef PERSEAS_CLIENT_EXAMINE_H
#define PERSEAS_CLIENT_EXAMINE_H

#include "../keeper/claims.h"

/* The highest (epoch, seq) among the candidates, or NULL. */
const struct ps_standing *ps_newest(const struct perseas *p);

/* Has the mirror an image of a fork (ps_image_forked), on which others may count? */
bool ps_forked(const struct perseas *p, const struct ps_mirror *m);

/* May this member be made anew, as far as what it has goes: nothing, or an image that counts for
 * nobody? */
bool ps_empty(const struct perseas *p, const struct ps_mirror *m);

/* EQUORUM, or why it is so: only these mirrors counted; the newest state seen, or NULL. */
int ps_too_few(struct perseas *p, uint32_t counted, const struct ps_standing *state);

/* Fails with EUNFINISHED: no mirror has the transaction that fills the store. */
int ps_fail_unfilled(struct perseas *p);

/* 0, or EQUORUM: with these listed images it cannot be opened at that state, and may adopt on none.
 * R are enough to know the state; but an open that touches fewer than T cannot end well, and a
 * change of the roster may go on that it does not see. Fewer than R, accepted, must be W with those
 * that are made anew. */
int ps_adoptable(struct perseas *p, uint32_t claimed, const struct ps_standing *state);

#endif
