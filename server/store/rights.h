/*
 * rights.h - which right each request needs (access.h).
 */
#ifndef PERSEAS_SERVER_RIGHTS_H
#define PERSEAS_SERVER_RIGHTS_H

#include "store.h"

/* store NULL: all stores; rights 0: nothing, whatever it names. */
struct demand {
	unsigned rights; /* every one of these bits */
	const char *store;
};

/* What a request needs that comes in this session. */
struct demand rights_demand(const Perseas__Request *request, const struct session *session);

/* 0, or -STATUS_DENIED with a sentence. Looks at the request and at what the session holds, and at
 * no store: what is denied is denied in the same words whether the store is there or not. */
int rights_check(const struct stores *stores, const struct session *session,
                 const Perseas__Request *request, struct why *why);

/* For who has all that, and would make a store by a Rebuild that this mirror does not have: that
 * takes the right to create, too. */
int rights_to_make(const struct stores *stores, const struct session *session, const char *store,
                   struct why *why);

#endif
