/*
 * named_list.h - an open that began with the mirrors for which the list's name stood before, while
 * the name was still being looked up. An open that these mirrors do not let succeed, and one that
 * makes a store, must go by what the name stands for now.
 */
#ifndef PERSEAS_CLIENT_NAMED_LIST_H
#define PERSEAS_CLIENT_NAMED_LIST_H

#include "../core/handle.h"

/* Waits for the lookup, within its limit, unless it was waited for before. Returns 0 if the
 * handle's mirrors are those of the list; PS_AGAIN if the handle has other mirrors now, which were
 * not asked yet; or an error of ps_env_list with *error. */
int ps_named_list_await(struct perseas *p, struct ps_error *error);

/* Drops the lookup, if there is one. */
void ps_named_list_drop(struct perseas *p);

/* Forgets the mirrors from number `first` on, with what they told. */
void ps_mirrors_leave(struct perseas *p, unsigned first);

#endif
