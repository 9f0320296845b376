/*
 * rights.h - the rights that each request needs (access.h).
 */
#ifndef PERSEAS_SERVER_RIGHTS_H
#define PERSEAS_SERVER_RIGHTS_H

#include "store.h"

/* The rights that a request needs. */
struct needed_rights {
	unsigned rights;   /* bits of enum right, all of which are needed; 0: always allowed */
	const char *store; /* the store on which they are needed; NULL: all stores */
};

/* Returns the rights that a request in this session needs. */
struct needed_rights rights_needed(const Perseas__Request *request, const struct session *session);

/* Checks whether the session's identity has the rights that the request needs. Returns 0, or
 * -STATUS_DENIED with a sentence. Looks only at the request and at the store that the session
 * holds, so that a denial does not reveal whether a store exists. */
int rights_check(const struct stores *stores, const struct session *session,
                 const Perseas__Request *request, struct why *why);

/* Checks the right to create, which a Rebuild needs in addition if this mirror does not have the
 * store. */
int rights_check_create(const struct stores *stores, const struct session *session,
                        const char *store, struct why *why);

#endif
