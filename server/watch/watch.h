/*
 * watch.h - the daemon as monitoring sees it: what metrics.c and status_json.c have in common.
 * Nothing here changes anything.
 */
#ifndef PERSEAS_SERVER_WATCH_H
#define PERSEAS_SERVER_WATCH_H

#include "../store/store.h"
#include "../../proto/base/text.h"

struct daemon;

enum { WATCH_REASON = 256, WATCH_STATUS_NAME = 32 };

enum watch_state { WATCH_CREATING, WATCH_CONSISTENT, WATCH_JOINING, WATCH_DAMAGED, WATCH_STATES };

/* Does it serve owners, and can it take new stores? False: `why` says why not. */
bool watch_ready(const struct daemon *daemon, char *why, size_t size);

/* As stores_view(); none while images are loaded or spilled, or when there is no memory. */
void watch_stores(struct daemon *daemon, const struct store_view **views, size_t *count);

enum watch_state watch_state(const struct store_view *view);
const char *watch_state_name(enum watch_state state);
/* "rdma", "shm", "tcp" or "none". */
const char *watch_fabric(const struct store_view *view);
/* Of a refusal, in lower case: "busy". */
const char *watch_status_name(char name[WATCH_STATUS_NAME], unsigned status);

/* What an owner reported of its mirrors is text of a peer; its state is one of those that this
 * version knows, or "unknown". */
const char *watch_mirror_state(const Perseas__MirrorReport *report);
/* By how many transactions it was behind the furthest one when the owner reported. */
uint64_t watch_lag(const Perseas__StoreStatus *status, const Perseas__MirrorReport *report);
/* Is no report before the one at `index` of the same address? */
bool watch_first(const Perseas__StoreStatus *status, size_t index);

/* Writes a name that daemons on one machine share, and returns it; "" if the boot of the host is
 * not known. The name is a hash: HTTP knows no rights, and the boot's id is told to those only who
 * may read a store. */
const char *watch_machine(char text[PS_HEX_TEXT], struct daemon *daemon);

/* Returns true if the owner says that it runs on this machine. */
bool watch_owner_here(const Perseas__StoreStatus *status);

#endif
