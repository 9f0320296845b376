/*
 * check_segment.h - checks an entry of a segment table, except for its id and name, for the table
 * of messages (check.c). No I/O.
 */
#ifndef PERSEAS_PROTO_CHECK_SEGMENT_H
#define PERSEAS_PROTO_CHECK_SEGMENT_H

#include "control.pb-c.h"

/* Returns NULL, or a sentence that says what is wrong. */
const char *ps_segment_fault(const Perseas__Segment *segment);

#endif
