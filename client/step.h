/*
 * step.h - steps through a mirror's log, from a record to the one before it. Before open.
 */
#ifndef PERSEAS_CLIENT_STEP_H
#define PERSEAS_CLIENT_STEP_H

#include "handle.h"

/* A record that was read from a mirror's log. All zeros but the position to begin with. */
struct ps_step {
	struct ps_record *record; /* checked; NULL: the beginning of history */
	uint8_t *bytes;           /* what it lies in; the caller frees it */
	size_t capacity;
	uint64_t seq;
	uint64_t position; /* of the record to read; then of the one before it */
};

/* Reads the record of `seq` at step->position. 0, 1: it is no longer there, -1: link broken. */
int ps_step_read(struct perseas *p, struct ps_mirror *m, struct ps_step *step, uint64_t seq);

/* Does the store have the bytes that a record names? */
bool ps_step_names(struct perseas *p, const struct ps_range *range);

#endif
