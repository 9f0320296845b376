/*
 * named_list.h - opens of a mirror list that has a name. Such an open begins with the mirrors that
 * the name last stood for, while the name is looked up. If the open does not succeed with these
 * mirrors, or creates a store, it must use the mirrors that the name stands for now.
 */
#ifndef PERSEAS_CLIENT_NAMED_LIST_H
#define PERSEAS_CLIENT_NAMED_LIST_H

#include "../core/handle.h"

/* Waits for the lookup until its time limit, unless an earlier call did. Returns 0 if the handle's
 * mirrors are those of the list; PS_AGAIN if this call replaced the handle's mirrors, so that they
 * must be probed; or an error of ps_env_resolve_list with *error. */
int ps_mirror_list_await_name_lookup(struct perseas *p, struct ps_error *error);

/* Drops the lookup, if there is one. */
void ps_mirror_list_drop_name_lookup(struct perseas *p);

/* Disconnects and forgets all mirrors with an index of `first` or more. */
void ps_mirrors_forget_from_index(struct perseas *p, unsigned first);

#endif
