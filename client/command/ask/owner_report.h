/*
 * owner_report.h - what a live owner reports about its mirrors, for perseas status.
 */
#ifndef PERSEAS_COMMAND_OWNER_REPORT_H
#define PERSEAS_COMMAND_OWNER_REPORT_H

#include "ask.h"
#include "../../../proto/base/json.h"

enum { PS_OWNER_SILENT_MS = 2000 }; /* an owner that was not heard for longer is silent */

/* Returns for how long a commit has been in doubt, by the owner's last report, or 0 if no commit is
 * in doubt. */
uint64_t ps_owner_doubt_ms(const Perseas__StoreStatus *status);

/* Returns about how many bytes of its memory the live owner still has to read from mirrors. */
uint64_t ps_owner_missing_bytes(const Perseas__StoreStatus *status);

/* Returns the mirrors whose image the live owner calls lost: an older copy of it was put back, so
 * it lacks commits that it acknowledged. */
uint32_t ps_owner_lost_mirror_set(const struct ps_images *images);

/* Print what the live owner reported to the mirror with this status, as text or as JSON. */
void ps_owner_print(const Perseas__StoreStatus *status);
void ps_owner_json(struct ps_json *json, const Perseas__StoreStatus *status);

#endif
