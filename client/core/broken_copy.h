/*
 * broken_copy.h - whole copies to a mirror that broke before the end. A link that is slower than
 * the transactions breaks every copy, and each has sent its part of the image in vain. Therefore
 * the pause before the next copy doubles each time, and operators are told what rate the link
 * needs.
 */
#ifndef PERSEAS_CLIENT_BROKEN_COPY_H
#define PERSEAS_CLIENT_BROKEN_COPY_H

#include "handle.h"

/* Notes that a copy to this mirror begins. Caller holds p->lock. */
void ps_broken_copy_note_begin(struct perseas *p, struct ps_mirror *m);

/* Notes that the copy to this mirror broke, and sets the pause before the next copy. Writes a
 * sentence for people into `text`, and returns `text`: it begins with `why`, counts the broken
 * copies, and says when the next copy begins. Caller holds p->lock. */
const char *ps_broken_copy_note_and_explain(struct perseas *p, struct ps_mirror *m, const char *why,
                                            char *text, size_t size);

/* Writes why the copy is about to break into `text`: the mirror fell behind, so its link is slower
 * than the transactions, whose rate it names. Returns `text`, or `why` if the rate is 0. */
const char *ps_broken_copy_blame_link(struct perseas *p, const struct ps_mirror *m, const char *why,
                                      char *text, size_t size);

/* Returns when the pause after the last broken copy to this mirror ends; 0 if no copy broke. The
 * pause applies while commits succeed without the mirror. */
static inline uint64_t ps_broken_copy_pause_end(const struct ps_mirror *m)
{
	return m->broken_copies.broken_copy_count
	               ? m->broken_copies.last_broke_at + m->broken_copies.pause_before_next_ns
	               : 0;
}

/* Returns when to connect to the mirror again: not before m->retry.next_try_at, nor before the
 * pause after its last broken copy ends. */
static inline uint64_t ps_broken_copy_reconnect_at(const struct ps_mirror *m)
{
	const uint64_t until = ps_broken_copy_pause_end(m);

	return until > m->retry.next_try_at ? until : m->retry.next_try_at;
}

/* Returns ps_broken_copy_reconnect_at, or an earlier time if commits cannot succeed without the
 * mirror. Takes p->lock. */
uint64_t ps_broken_copy_retry_at(struct perseas *p, const struct ps_mirror *m);

#endif
