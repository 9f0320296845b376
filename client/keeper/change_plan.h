/*
 * change_plan.h - what a change of the roster is to be, and the roster that it leads to. change.c
 * alone calls it, with admin. Nothing here tells a mirror anything, or moves the change on.
 */
#ifndef PERSEAS_CLIENT_CHANGE_PLAN_H
#define PERSEAS_CLIENT_CHANGE_PLAN_H

#include "../core/handle.h"

/* Fills p->upkeep.change in with what is wanted; a mirror that joins gets its place here. 0; or a
 * code, with a sentence. */
int ps_plan_make(struct perseas *p, const struct perseas_roster_change *wanted, char *text,
                 size_t size);

/* Does the daemon at the new mirror's address show the image of the member that leaves, and its
 * identity, if both are known? Then that member only gets another address. */
bool ps_plan_moves(struct perseas *p, const Perseas__Header *header);

/* The member of the roster that leaves gets the new mirror's address instead, and that mirror is
 * no other. Returns false if there is no memory. */
bool ps_plan_readdress(struct perseas *p);

/* The roster that the change leads to, from the one that is there now; NULL: out of memory. */
Perseas__Roster *ps_plan_roster(struct perseas *p);

/*
 * Those of the old roster that can be told of the change, where `told` answer. Of two, the one that
 * is gone need not be: no open can be through it alone. Of more, an open may have been through it
 * and through another before it was gone, and only the others can tell.
 */
uint32_t ps_plan_reach(const struct perseas *p, uint32_t told);

/* May it begin, or go on? `answered` can be told of it, and `live` can hold transactions. 0; or a
 * code, with a sentence. */
int ps_plan_admit(struct perseas *p, uint32_t answered, uint32_t live, char *text, size_t size);

#endif
