/*
 * broken_copy.h - whole copies to a mirror that did not end. A link that is slower than the
 * transactions breaks every copy, each of which sends the whole image in vain: so the next copy
 * waits, twice as long after each one, and operators are told which rate the link lacks.
 */
#ifndef PERSEAS_CLIENT_BROKEN_COPY_H
#define PERSEAS_CLIENT_BROKEN_COPY_H

#include "handle.h"

/* Notes that the copy of this mirror begins. The caller holds p->lock. */
void ps_broken_copy_begin(struct perseas *p, struct ps_mirror *m);

/* Notes that it broke, and how long the next one waits. Returns a sentence for people in `text`,
 * which begins with why it broke. The caller holds p->lock. */
const char *ps_broken_copy_note(struct perseas *p, struct ps_mirror *m, const char *why, char *text,
                                size_t size);

/* Returns until when no copy begins while commits end without the mirror; 0: none broke. */
static inline uint64_t ps_broken_copy_until(const struct ps_mirror *m)
{
	return m->broken.count ? m->broken.broke_at + m->broken.pause : 0;
}

/* Returns when to connect to the mirror again: not before m->retry.at, nor before the pause since
 * its last broken copy is over. */
static inline uint64_t ps_broken_copy_due(const struct ps_mirror *m)
{
	const uint64_t until = ps_broken_copy_until(m);

	return until > m->retry.at ? until : m->retry.at;
}

/* Returns ps_broken_copy_due, with a shorter pause if commits cannot end without the mirror. Takes
 * the lock. */
uint64_t ps_broken_copy_retry_at(struct perseas *p, const struct ps_mirror *m);

#endif
