/*
 * shadow.h - the committed contents of mapped segments, which are kept beside their memory where
 * the options ask for it. Commits compare the two (checked.c), and send what they send from the
 * shadow, as do whole copies: so it holds what the mirrors were sent, whoever else writes to memory
 * meanwhile. Publish alone reads memory twice, for the mirrors and for the shadow: what is written
 * between the two is not found.
 *
 * Only pages that may differ are compared, where the process can tell which were written
 * (written.h). A page is such a one from when it was written until it was found to be like its
 * shadow. So a commit that is refused, or that leaves out what other transactions declared, loses
 * nothing.
 */
#ifndef PERSEAS_CLIENT_SHADOW_H
#define PERSEAS_CLIENT_SHADOW_H

#include "demand.h"
#include "handle.h"

struct ps_outgoing;

/* Flags that ask for shadows. */
enum { PS_SHADOWED = PERSEAS_CHECK_WRITES | PERSEAS_TRACKED };

/* Decides how commits find what was written, and says it in the handle's report, where the options
 * ask for shadows; and the end of it, when nothing is mapped any more. */
void ps_shadow_begin(struct perseas *p);
void ps_shadow_end(struct perseas *p);

/* A shadow of a segment, where the options ask for it: its memory is what is committed. Commits are
 * held back. 0 or ENOMEM. */
int ps_shadow_make(struct perseas *p, struct ps_segment *segment);

/* The same in two steps, for memory that is fetched on demand, of which each page comes to the
 * shadow first (demand.h): room for it, the caller's, or NULL where the options ask for none; and
 * then it is the segment's. watched: pages are noted that are written. 0 or ENOMEM. */
int ps_shadow_reserve(struct perseas *p, const struct ps_segment *segment, uint8_t **room);
void ps_shadow_take_room(struct perseas *p, struct ps_segment *segment, uint8_t *room,
                         bool watched);
/* Frees room that no segment took. Does nothing if room is NULL. */
void ps_shadow_give_back(const struct ps_segment *segment, uint8_t *room);
void ps_shadow_free(struct ps_segment *segment);

/* For the thread that commits or aborts, which holds nothing: it may have stored to a page that is
 * still coming, by what others are told. 0; or EINVAL in a child of fork, which has neither the
 * memory nor the thread that it would wait for. The first is for handles with shadows. */
int ps_shadow_await(struct perseas *p);
static inline int ps_shadow_settle(struct perseas *p)
{
	return p->options.flags & PS_SHADOWED ? ps_shadow_await(p) : 0;
}

/* Notes which pages of the segment were written, of those that are here. Locked. */
void ps_shadow_look(struct perseas *p, struct ps_segment *segment);

/* Finds the next bytes, from *offset on, of a written page that differs from its shadow: sets
 * *offset and *length to the part of the page that is here. Returns false if no page differs. Call
 * ps_shadow_look first; the caller holds p->lock. */
bool ps_shadow_next(struct perseas *p, struct ps_segment *segment, uint64_t *offset,
                    uint64_t *length);

/* The shadow gets what a transaction changed that is over then. The spans of its cover become those
 * of the shadow. Locked. */
void ps_shadow_take(struct perseas_tx *tx);

/* As ps_commit_send, for a transaction that is over then. Its shadow gets what it changed, and that
 * is sent. Locked. */
int ps_shadow_send(struct perseas_tx *tx, struct ps_outgoing *out);

#endif
