/*
 * rights.h - the rights that each request needs (access.h).
 */
#ifndef PERSEAS_SERVER_RIGHTS_H
#define PERSEAS_SERVER_RIGHTS_H

#include "store.h"

/* store NULL: the rights are needed on all stores. rights 0: the request is always allowed. */
struct demand {
	unsigned rights; /* all of these bits are needed */
	const char *store;
};

/* Returns what a request in this session needs. */
struct demand rights_demand(const Perseas__Request *request, const struct session *session);

/* Returns 0, or -STATUS_DENIED with a sentence. Looks only at the request and at what the session
 * holds: a denial is worded the same whether the store exists or not. */
int rights_check(const struct stores *stores, const struct session *session,
                 const Perseas__Request *request, struct why *why);

/* Checks the additional right to create, which a Rebuild needs if this mirror does not have the
 * store. */
int rights_to_make(const struct stores *stores, const struct session *session, const char *store,
                   struct why *why);

#endif
