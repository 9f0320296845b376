/*
 * logged_record.h - reads the records of a mirror's log over its link, from a record to the one
 * before it. The repairs of an open call it.
 */
#ifndef PERSEAS_CLIENT_LOGGED_RECORD_H
#define PERSEAS_CLIENT_LOGGED_RECORD_H

#include "../../proto/image/log_reader.h"
#include "../core/handle.h"

/* One record of a mirror's log. Set `back` and zero the rest before the first read. */
struct ps_logged_record {
	/* Position of the record to read next; each read moves it one record back. */
	struct ps_log_back back;
	/* The record that was read, checked, in `bytes`; NULL: history begins here. */
	const struct ps_record *record;
	uint8_t *bytes; /* buffer of `capacity` bytes; the caller frees it */
	size_t capacity, read_length;
};

/* Reads the record at step->back. Returns 0; 1 if the log no longer has the record; or -1 if the
 * link broke. */
int ps_logged_record_read_back(struct perseas *p, struct ps_mirror *m,
                               struct ps_logged_record *step);

/* Returns true if the store has the segment that `range` names, and `range` lies inside that
 * segment. */
bool ps_range_exists(struct perseas *p, const struct ps_range *range);

#endif
