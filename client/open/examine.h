/*
 * examine.h - judges the images that mirrors reported: which of them may be the newest state, which
 * count towards R, and whether they suffice to open the store. Every function here needs a handle
 * that is not open yet.
 */
#ifndef PERSEAS_CLIENT_EXAMINE_H
#define PERSEAS_CLIENT_EXAMINE_H

#include "../keeper/claims.h"

/* Returns the state with the highest (epoch, seq) among the candidates, or NULL if there is no
 * candidate. */
const struct ps_image_position *ps_newest_state(const struct perseas *p);

/* Returns true if mirror `m` has an image of a fork of the store (ps_image_is_forked), so that
 * other rosters may still rely on the image. */
bool ps_mirror_is_forked(const struct perseas *p, const struct ps_mirror *m);

/* Returns true if mirror `m` is a member whose image may be replaced by a new one: it has none, or
 * has one that no roster lists and that is not of a fork. The caller still must check I9
 * (ps_quorum_can_remake_mirror). */
bool ps_mirror_can_get_new_image(const struct perseas *p, const struct ps_mirror *m);

/* Fails because only the mirrors in `counted` count towards R. state: the newest state that was
 * seen, for the message, or NULL. Returns PERSEAS_EQUORUM, or the code with which all mirrors
 * failed, if waiting for more of them is useless. */
int ps_fail_too_few_mirrors(struct perseas *p, uint32_t counted,
                            const struct ps_image_position *state);

/* Fails because no mirror has the transaction that fills the store. Returns PERSEAS_EUNFINISHED. */
int ps_fail_restore_unfinished(struct perseas *p);

/* Returns 0 if an open that has claimed the mirrors in `claimed` can adopt `state`, or
 * PERSEAS_EQUORUM. R claimed mirrors suffice to know the state, but adopting it needs T of them:
 * with fewer it could not end well, and could miss a change of the roster. If the operator accepted
 * fewer than R, the claimed mirrors and those that may be made anew must together be W. */
int ps_check_state_adoptable(struct perseas *p, uint32_t claimed,
                             const struct ps_image_position *state);

#endif
