/*
 * rights.h - which right each request needs (access.h).
 */
#ifndef PERSEAS_SERVER_RIGHTS_H
#define PERSEAS_SERVER_RIGHTS_H

#include "store.h"

/* 0, or -STATUS_DENIED with a sentence. Looks at the request and at what the session holds, and at
 * no store: what is denied is denied in the same words whether the store is there or not. */
int rights_check(const struct stores *stores, const struct session *session,
                 const Perseas__Request *request, struct why *why);

#endif
