/*
 * rejoin.h - what a mirror is asked while its image is made again: in place, where that harms
 * nobody (I8), or beside what it has; and at the end, that it counts. Admin, or before open.
 */
#ifndef PERSEAS_CLIENT_REJOIN_H
#define PERSEAS_CLIENT_REJOIN_H

#include "../core/handle.h"

/* The image is about to be changed in place, of which the caller knows that W others hold all that
 * was acknowledged. whole: all of it is. 0 or a code. */
int ps_rejoin_in_place(struct perseas *p, struct ps_mirror *m, bool whole, struct ps_error *error);

/* An empty image of this store is made beside what is there, and the link leads to it. It bears the
 * id of the one that it replaces, where that was loaded from a spill: to bear its parent's again
 * would take the image out of a roster that somebody recorded since. */
int ps_rejoin_beside(struct perseas *p, struct ps_mirror *m, struct ps_error *error);

/* The image is whole: it counts from now on. */
int ps_rejoin_finish(struct perseas *p, struct ps_mirror *m, struct ps_error *error);

/* Segments that are mapped here and not published are made again: a claim drops them. */
int ps_rejoin_unpublished(struct perseas *p, struct ps_mirror *m, struct ps_error *error);

/* The same, sent only: the answer is the caller's to take (ps_answer), and the grant that Rebuild
 * and AddSegments bring. */
int ps_rejoin_ask_in_place(struct perseas *p, struct ps_mirror *m, bool whole,
                           struct ps_error *error);
int ps_rejoin_ask_beside(struct perseas *p, struct ps_mirror *m, struct ps_error *error);
bool ps_rejoin_has_unpublished(const struct perseas *p);
int ps_rejoin_ask_unpublished(struct perseas *p, struct ps_mirror *m, struct ps_error *error);
void ps_rejoin_finish_request(Perseas__FinishRequest *finish, Perseas__Request *request);

#endif
