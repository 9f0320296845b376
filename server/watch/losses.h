/*
 * losses.h - the smallest losses that a store does not survive, as far as this daemon knows: by its
 * image's rosters and by what the live owner reported last. status_json.c calls it. It must never
 * ask another daemon; perseas status, which does, may know more.
 */
#ifndef PERSEAS_SERVER_LOSSES_H
#define PERSEAS_SERVER_LOSSES_H

#include "control.pb-c.h"
#include "../../proto/control/loss.h"

struct watch_losses {
	struct ps_spot spots[PS_MIRRORS_MAX]; /* of the owner's reports, in order */
	unsigned count;
	/* True if enough mirrors are live for a commit, and for an open even without more of them.
	 * The losses are unset where this is false. */
	bool can_commit, can_open;
	struct ps_loss commit, open;
};

/* Finds the losses. Without reports of an owner nothing is known, and both booleans are false. The
 * result points into the status. */
void watch_losses_find(struct watch_losses *losses, const Perseas__StoreStatus *status);

#endif
