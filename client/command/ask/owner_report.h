/*
 * owner_report.h - what a live owner tells of its mirrors, for perseas status.
 */
#ifndef PERSEAS_COMMAND_OWNER_REPORT_H
#define PERSEAS_COMMAND_OWNER_REPORT_H

#include "census.h"
#include "../../../proto/base/json.h"

enum { PS_OWNER_SILENT_MS = 2000 }; /* an owner is heard more often than that */

/* Does `a` know better than `b` (NULL: nothing) who the live owner is? The one of the higher epoch
 * is; of several that know of it, the one that heard from it last. */
bool ps_owner_better(const Perseas__StoreStatus *a, const Perseas__StoreStatus *b);

/* The mirror that knows best, or -1: none sees one. */
int ps_owner_at(const struct ps_census *census);

/* The mirror that a change of the roster, which the live owner makes now, is to bring. NULL: there
 * is none, or a roster lists it already: as a member it is known by its image, wherever it was
 * seen. */
const char *ps_owner_newcomer(const struct ps_census *census);

/* About so many bytes of its memory the live owner has still to read from mirrors. */
uint64_t ps_owner_missing(const Perseas__StoreStatus *status);

/* status is that mirror's. */
void ps_owner_print(const Perseas__StoreStatus *status);
void ps_owner_json(struct ps_json *json, const Perseas__StoreStatus *status);

#endif
