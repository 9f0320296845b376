/*
 * losses.h - the smallest losses of mirrors that a store does not survive, as far as this daemon
 * knows: by its image's rosters and by what the live owner reported last. status_json.c and
 * metrics.c call it. It must never ask another daemon; perseas status, which does, may know more.
 */
#ifndef PERSEAS_SERVER_LOSSES_H
#define PERSEAS_SERVER_LOSSES_H

#include "control.pb-c.h"
#include "../../proto/control/loss.h"

struct watch_losses {
	struct ps_spot spots[PS_MIRRORS_MAX]; /* places of the mirrors that the owner reported */
	unsigned count;
	/* The mirrors that are live now suffice for a commit, and for an open. */
	bool can_commit, can_open;
	/* Smallest losses after which they no longer suffice; unset if they do not suffice now. */
	struct ps_loss commit, open;
};

/* Finds the smallest losses of a store. Without reports of an owner nothing is known, and both
 * booleans are false. The result points into the status. */
void watch_losses_find(struct watch_losses *losses, const Perseas__StoreStatus *status);

/* Returns a word for the smallest loss after which a store can no longer do something: "mirror",
 * "host", "machine", "rack" or "zone"; "none" if it survives each, "unknown" if it may not survive
 * a host that is not known, and "now" if it `can` not do it. */
const char *watch_loss_word(bool can, const struct ps_loss *loss);

#endif
