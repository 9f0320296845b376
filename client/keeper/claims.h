/*
 * claims.h - what an open and a renewal do alike to have claims: they note what mirrors tell,
 * examine it, and claim the mirrors of a set (I5, I6). Admin, or before open.
 */
#ifndef PERSEAS_CLIENT_CLAIMS_H
#define PERSEAS_CLIENT_CLAIMS_H

#include "../core/mirror.h"

/* Notes a mirror's answer to a Status, or why there is none (reply NULL). */
void ps_found_note_status(struct ps_mirror *m, const Perseas__Reply *reply,
                          const struct ps_error *error);

/* What the mirrors told, for proto/control/judge.h. It points into the handle. */
void ps_examine_told(const struct perseas *p, struct ps_told told[PS_MIRRORS_MAX]);

/* Notes what the listed images of a set are worth. Returns those with a voice. */
uint32_t ps_examine(struct perseas *p, uint32_t set);

/*
 * Claims the mirrors of a set, which answered a Status over the connections that they have, with
 * p->epoch, and notes what each of them said: found.claimed, with its data path, or found.code.
 * Mirrors that do not answer within `patience` are given up once the others are R, or p->opening's
 * time is over. round: the answers, which the caller frees.
 */
void ps_claims_run(struct perseas *p, uint32_t set, uint64_t patience, struct ps_round *round);

#endif
