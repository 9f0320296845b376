/*
 * known_store.h - mirrors of a standby's store that its list does not name, kept from one
 * thread to the next. The standby stores those that it followed. While a handle that the standby
 * opened borrows the struct, the handle's last roster is stored when the handle is freed, because
 * the roster may have moved away from the list while this process was the owner. No open may rely
 * on these mirrors, since they may have left the store.
 */
#ifndef PERSEAS_CLIENT_KNOWN_STORE_H
#define PERSEAS_CLIENT_KNOWN_STORE_H

#include "../core/handle.h"

struct ps_known_store;

/* Returns a new, empty set of mirrors, or NULL if there is no memory. */
struct ps_known_store *ps_known_store_new(void);
/* Drops the caller's reference. A handle that borrowed the struct may live longer. NULL is
 * allowed. */
void ps_known_store_release(struct ps_known_store *known);

/* Has the handle, which is not open yet, store its last roster when it is freed. Without memory, it
 * stores nothing. */
void ps_known_store_learn_from(struct ps_known_store *known, struct perseas *p);

/* Replace all mirrors of the set, or read them. Any thread may call these functions. */
void ps_known_store_set(struct ps_known_store *known, const struct ps_roster_places *places);
void ps_known_store_get(struct ps_known_store *known, struct ps_roster_places *places);

#endif
