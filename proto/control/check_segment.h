/*
 * check_segment.h - what is wrong with an entry of a segment table, apart from its id and name, for
 * the table of messages (check.c). No I/O.
 */
#ifndef PERSEAS_PROTO_CHECK_SEGMENT_H
#define PERSEAS_PROTO_CHECK_SEGMENT_H

#include "control.pb-c.h"

/* Returns NULL if nothing is. */
const char *ps_segment_fault(const Perseas__Segment *segment);

#endif
