/*
 * owner_report.h - what a live owner tells of its mirrors, for perseas status.
 */
#ifndef PERSEAS_COMMAND_OWNER_REPORT_H
#define PERSEAS_COMMAND_OWNER_REPORT_H

#include "census.h"
#include "../../proto/json.h"

/* The mirror that knows of the live owner of the highest epoch, or -1. Of several that know of it,
 * the one that heard from it last. */
int ps_owner_at(const struct ps_census *census);

/* status is that mirror's. */
void ps_owner_print(const Perseas__StoreStatus *status);
void ps_owner_json(struct ps_json *json, const Perseas__StoreStatus *status);

#endif
