/*
 * change_plan.h - plans a change of the roster: who leaves, who joins, W, and the roster that
 * results. Only change.c calls this; callers hold admin. Nothing here tells a mirror anything or
 * moves the change on.
 */
#ifndef PERSEAS_CLIENT_CHANGE_PLAN_H
#define PERSEAS_CLIENT_CHANGE_PLAN_H

#include "../core/handle.h"

/* Fills in p->upkeep.change from the wanted change, and adds the mirror that joins to the handle.
 * Returns 0, or an error code with a sentence in `text`. */
int ps_change_plan_make(struct perseas *p, const struct perseas_roster_change *wanted, char *text,
                        size_t size);

/* Returns true if the member that leaves is at the joining mirror's address: the daemon there shows
 * that member's image and, if both are known, its identity. Then only the member's address
 * changes. */
bool ps_change_plan_only_changes_address(struct perseas *p, const Perseas__Header *header);

/* Gives the joining mirror's address to the member that should leave, and drops the joining mirror
 * from the plan. Returns false if out of memory. */
bool ps_change_plan_set_new_address(struct perseas *p);

/* Returns the roster that the change leads to, which the caller frees, or NULL if out of memory. */
Perseas__Roster *ps_change_plan_roster(struct perseas *p);

/* Returns the mirrors of the old roster that can be told of the change if those in `told` answer.
 * If the old roster has two members, a mirror that is gone for good counts as told: no open can
 * succeed through it alone. With more members, an open may have succeeded earlier through that
 * mirror and another one, and only the others can tell. */
uint32_t ps_change_plan_reachable(const struct perseas *p, uint32_t told);

/* Returns 0 if the change may begin or go on, or an error code with a sentence in `text`.
 * `answered`: mirrors that can be told. `live`: mirrors that can hold transactions. */
int ps_change_check_plan(struct perseas *p, uint32_t answered, uint32_t live, char *text,
                         size_t size);

#endif
