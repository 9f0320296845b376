/*
 * change_admission.h - decides whether a change of the roster may begin or be taken back. Commits
 * need W of both rosters while the change is joint. A change that could not be settled would hold
 * them all back until a dead mirror returns. So would an old roster that counts alone again with
 * fewer than W mirrors.
 */
#ifndef PERSEAS_CLIENT_CHANGE_ADMISSION_H
#define PERSEAS_CLIENT_CHANGE_ADMISSION_H

#include "../core/handle.h"

struct ps_admission {
	const Perseas__Roster *next_roster; /* the roster after the change */
	uint32_t tellable_mirrors; /* mirrors that can be told of the change, or need not be */
	/* Mirrors that hold every transaction, or are just being sent them. */
	uint32_t live_mirrors;
	bool unblocks_commits; /* the mirror that leaves is not live: commits no longer need it */
};

/* Returns 0 if the change may begin. Returns PERSEAS_EQUORUM with a sentence that names the roster
 * with too few mirrors, or PERSEAS_EBLOCKED while a commit is in doubt. Takes p->lock. */
int ps_change_check_may_begin(struct perseas *p, const struct ps_admission *asked, char *text,
                              size_t size);

/* Returns 0 if the change may be taken back with these mirrors connected: W of the old roster can
 * record that. Otherwise returns PERSEAS_EQUORUM with a sentence. */
int ps_change_check_may_cancel(struct perseas *p, uint32_t connected, char *text, size_t size);

#endif
