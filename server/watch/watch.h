/*
 * watch.h - the state of the daemon and its stores for monitoring (metrics.c and status_json.c).
 * Nothing here changes anything.
 */
#ifndef PERSEAS_SERVER_WATCH_H
#define PERSEAS_SERVER_WATCH_H

#include "../store/store.h"
#include "../../proto/base/text.h"

struct daemon;

enum { WATCH_REASON = 256, WATCH_STATUS_NAME = 32 };

enum watch_state {
	WATCH_CREATING,
	WATCH_CONSISTENT,
	WATCH_JOINING,
	WATCH_DAMAGED,
	WATCH_UNREAD,
	WATCH_STATES
};

/* Returns true if the daemon serves owners and can take new stores. Otherwise `why` says why
 * not. */
bool watch_is_ready(const struct daemon *daemon, char *why, size_t size);

/* Lists all stores like stores_view(). The list is empty while images are loaded or spilled, and if
 * memory is out. */
void watch_stores(struct daemon *daemon, const struct store_view **views, size_t *count);

/* Returns the state of the store's image: damaged, or the state in its header. */
enum watch_state watch_state(const struct store_view *view);
const char *watch_state_name(enum watch_state state);
/* Returns the fabric of the owner's data path: "rdma", "shm", "tcp" or "none". */
const char *watch_fabric(const struct store_view *view);
/* Formats the name of a refusal's status in lower case, such as "busy". Returns name. */
const char *watch_status_name(char name[WATCH_STATUS_NAME], unsigned status);

/* Returns the state of a mirror in an owner's report if this version knows it, else "unknown". The
 * report is unchecked text of a peer. */
const char *watch_mirror_state(const Perseas__MirrorReport *report);
/* Returns by how many transactions the mirror was behind the newest one when the owner reported. */
uint64_t watch_lag(const Perseas__StoreStatus *status, const Perseas__MirrorReport *report);
/* Returns true if no earlier report has the same address as the one at `index`. */
bool watch_is_first_report(const Perseas__StoreStatus *status, size_t index);

/* Formats a name of this machine that is the same for all daemons on it. Returns text, which is ""
 * if the boot is unknown. The name is a hash of the boot id: HTTP has no access rules, and only
 * clients that may read a store may know the boot id itself. */
const char *watch_machine(char text[PS_HEX_TEXT], struct daemon *daemon);

/* Returns true if the store's owner says that it runs on this machine. */
bool watch_owner_is_local(const Perseas__StoreStatus *status);

#endif
