/*
 * known_store.h - what a standby knows of its store, kept from one thread to the next: the settled
 * roster that it saw last, the store's id, and mirrors that its list does not name. A thread takes
 * all of this when it begins, and puts it back when it ends. A handle that the standby opened puts
 * its own roster there when it is freed, because the roster may have changed while this process was
 * the owner. No open may rely on the mirrors, since they may have left the store.
 */
#ifndef PERSEAS_CLIENT_KNOWN_STORE_H
#define PERSEAS_CLIENT_KNOWN_STORE_H

#include "../core/handle.h"

/* The newest settled roster that was seen of a store. */
struct ps_settled_store {
	uint8_t id[PS_ID_SIZE];  /* the store's id */
	Perseas__Roster *roster; /* NULL: no settled image of a store was seen */
};

struct ps_known_store;

/* Returns an object that knows of no store, or NULL if there is no memory. */
struct ps_known_store *ps_known_store_new(void);
/* Drops the caller's reference. A handle that borrowed the object may live longer. NULL is
 * allowed. */
void ps_known_store_release(struct ps_known_store *known);

/* Has the handle, which is not open yet, put its last rosters there when it is freed, if it was
 * open by then. Without memory, it puts nothing. */
void ps_known_store_learn_from(struct ps_known_store *known, struct perseas *p);

/* Moves everything that is known into *places and *settled, or from them, and leaves the source
 * empty. Ignores and frees what is put if a newer settled roster of the same store is known by
 * then. Any thread may call these functions. */
void ps_known_store_take(struct ps_known_store *known, struct ps_roster_places *places,
                         struct ps_settled_store *settled);
void ps_known_store_put(struct ps_known_store *known, const struct ps_roster_places *places,
                        struct ps_settled_store *settled);

#endif
