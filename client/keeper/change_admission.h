/*
 * change_admission.h - may a change of the roster begin, or be taken back? While it is joint,
 * commits need W of both rosters: one that could not be settled would hold all of them back until a
 * dead mirror returns, and so would a roster that counts alone again and has fewer than W.
 */
#ifndef PERSEAS_CLIENT_CHANGE_ADMISSION_H
#define PERSEAS_CLIENT_CHANGE_ADMISSION_H

#include "../core/handle.h"

struct ps_admission {
	const Perseas__Roster *next; /* the roster as it would be */
	uint32_t answered; /* mirrors that can be told of it, with those that need not be */
	uint32_t live;     /* mirrors that hold every transaction, or are just being sent it */
	bool cures;        /* the mirror that leaves holds transactions no longer */
};

/* 0; or EQUORUM, or EBLOCKED while a commit is in doubt, with a sentence that names the roster that
 * is short. Takes the lock. */
int ps_change_admit(struct perseas *p, const struct ps_admission *asked, char *text, size_t size);

/* May the change be taken back, with these mirrors connected? The roster as it was would count
 * alone, and W of it must record that. 0; or EQUORUM with a sentence. */
int ps_change_admit_cancel(struct perseas *p, uint32_t connected, char *text, size_t size);

#endif
