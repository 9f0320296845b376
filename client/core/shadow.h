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
void ps_shadow_free(struct ps_segment *segment);

/* Notes which pages of the segment were written. Locked. */
void ps_shadow_look(struct perseas *p, struct ps_segment *segment);

/* The first page, from *offset on, that is not like its shadow: *offset becomes where it begins,
 * and *length its bytes. False: there is none. Since ps_shadow_look; locked. */
bool ps_shadow_next(struct ps_segment *segment, uint64_t *offset, uint64_t *length);

/* The shadow gets what a transaction changed that is over then. The spans of its cover become those
 * of the shadow. Locked. */
void ps_shadow_take(struct perseas_tx *tx);

/* As ps_commit_send, for a transaction that is over then. Its shadow gets what it changed, and that
 * is sent. Locked. */
int ps_shadow_send(struct perseas_tx *tx, struct ps_outgoing *out);

#endif
