/*
 * shadow.h - shadows: copies of the committed contents of mapped segments, kept if the options ask
 * for them. Commits compare memory with the shadow (checked.c, track.c), and the shadow is what
 * they and whole copies send. So mirrors get what the shadow holds, even if other threads write to
 * memory meanwhile. Only publish reads memory twice, for the mirrors and for the shadow: a store
 * between the two reads is not detected.
 *
 * If the process can track written pages (written.h), only pages that may differ from the shadow
 * are compared. A page may differ from when it was written until a comparison finds it equal. So a
 * refused commit, or one that skips bytes declared by other transactions, loses track of nothing.
 */
#ifndef PERSEAS_CLIENT_SHADOW_H
#define PERSEAS_CLIENT_SHADOW_H

#include "demand.h"
#include "handle.h"

struct ps_outgoing;

/* Option flags that ask for shadows. */
enum { PS_SHADOW_FLAGS = PERSEAS_CHECK_WRITES | PERSEAS_TRACKED };

/* ps_shadow_begin_tracking decides how commits find written pages, and reports it.
 * ps_shadow_end_tracking ends the tracking, after everything was unmapped. Both do nothing if the
 * options ask for no shadows. */
void ps_shadow_begin_tracking(struct perseas *p);
void ps_shadow_end_tracking(struct perseas *p);

/* Gives a segment a shadow, if the options ask for one; its memory is what is committed. Caller
 * holds commits back. Returns 0 or ENOMEM. */
int ps_shadow_make_from_memory(struct perseas *p, struct ps_segment *segment);

/* ps_shadow_make_from_memory in two steps, for memory that is fetched on demand, where each page
 * reaches the shadow first (demand.h). ps_shadow_reserve allocates *room, which the caller owns, or
 * sets it to NULL if the options ask for no shadow; returns 0 or ENOMEM. ps_shadow_install makes it
 * the segment's shadow; tracks_stores: stores to the segment are tracked. */
int ps_shadow_reserve(struct perseas *p, const struct ps_segment *segment, uint8_t **room);
void ps_shadow_install(struct perseas *p, struct ps_segment *segment, uint8_t *room,
                       bool tracks_stores);
/* ps_shadow_free_room frees room that no segment took, and accepts NULL. ps_shadow_free frees a
 * segment's shadow. */
void ps_shadow_free_room(const struct ps_segment *segment, uint8_t *room);
void ps_shadow_free(struct ps_segment *segment);

/* Called by a thread that commits or aborts: waits until every page that it may have stored to
 * counts as here (ps_demand_await_fill). Returns 0; or EINVAL in a child of fork, which has neither
 * the memory nor the thread to wait for. ps_shadow_await is for handles with shadows. Caller holds
 * no lock. */
int ps_shadow_await(struct perseas *p);
static inline int ps_shadow_await_fill(struct perseas *p)
{
	return p->options.flags & PS_SHADOW_FLAGS ? ps_shadow_await(p) : 0;
}

/* Finds out which pages of the segment were written, among those that are here. Caller holds
 * p->lock. */
void ps_shadow_collect_written(struct perseas *p, struct ps_segment *segment);

/* Finds the next bytes, from *offset on, that differ from their shadow, in pages that were written.
 * Sets *offset and *length to a run of bytes within one page, all of which are here (none is
 * missing, demand.h). Returns false if no page differs. Call ps_shadow_collect_written first.
 * Caller holds p->lock. */
bool ps_shadow_next_difference(struct perseas *p, struct ps_segment *segment, uint64_t *offset,
                               uint64_t *length);

/* Copies a transaction's changes to the shadows, when it can no longer fail. The spans of its cover
 * become spans of the shadows. Caller holds p->lock. */
void ps_shadow_copy_changes(struct perseas_tx *tx);

/* Does what ps_commit_send does, and copies the transaction's changes to the shadows, from which
 * they are sent. Caller holds p->lock. */
int ps_shadow_send(struct perseas_tx *tx, struct ps_outgoing *out);

#endif
