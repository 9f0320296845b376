/*
 * logged_record.h - reads the records of a mirror's log over its link, from a record to the one
 * before it. The repairs of an open call it.
 */
#ifndef PERSEAS_CLIENT_LOGGED_RECORD_H
#define PERSEAS_CLIENT_LOGGED_RECORD_H

#include "../../proto/image/log_reader.h"
#include "../core/handle.h"

/* A record that was read from a mirror's log. All zeros but `back` to begin with. */
struct ps_step {
	struct ps_log_back back;        /* the record to read; then the one before it */
	const struct ps_record *record; /* checked; NULL: the beginning of history */
	uint8_t *bytes;                 /* what it lies in; the caller frees it */
	size_t capacity, have;
};

/* Reads the record that step->back tells of. 0, 1: it is no longer there, -1: link broken. */
int ps_step_read(struct perseas *p, struct ps_mirror *m, struct ps_step *step);

/* Does the store have the bytes that a record names? */
bool ps_step_names(struct perseas *p, const struct ps_range *range);

#endif
