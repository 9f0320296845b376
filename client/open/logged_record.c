/*
 * logged_record.c - reads records of a mirror's log over its link, the newest first. mend_forward.c
 * and mend_delta.c call it before the store is open. It has one record at a time in memory, however
 * large the log is.
 */
#include "logged_record.h"

#include "../core/mirror.h"

#include <stdlib.h>
#include <string.h>

enum { PEEK_BYTES = 1024 }; /* bytes of a first read: most records are smaller */

static int grow_buffer(struct ps_logged_record *step, size_t need)
{
	uint8_t *grown;

	if (need <= step->capacity)
		return 0;
	grown = realloc(step->bytes, need);
	if (!grown)
		return 1;
	step->bytes = grown;
	step->capacity = need;
	return 0;
}

struct reading {
	struct perseas *p;
	struct ps_mirror *m;
	struct ps_logged_record *step;
};

/* Provides bytes of the log to ps_log_back. Reads PEEK_BYTES of a new record at once, and later
 * only the rest. */
static int provide_log_bytes(void *source, uint64_t position, uint64_t length, const void **bytes)
{
	const struct reading *reading = source;
	struct perseas *p = reading->p;
	struct ps_logged_record *step = reading->step;
	const uint64_t at = position % p->log_size, rest = p->log_size - at;

	if (step->read_length == 0)
		length = rest < PEEK_BYTES ? rest : PEEK_BYTES;
	if (grow_buffer(step, length))
		return 1;
	*bytes = step->bytes;
	if (length <= step->read_length)
		return 0;
	if (ps_mirror_read(p, reading->m, PS_REGION_LOG, PS_RING_OFFSET + at + step->read_length,
	                   step->bytes + step->read_length, length - step->read_length))
		return -1;
	step->read_length = length;
	return 0;
}

int ps_logged_record_read_back(struct perseas *p, struct ps_mirror *m,
                               struct ps_logged_record *step)
{
	struct reading reading = { p, m, step };

	step->read_length = 0;
	return ps_log_back(&step->back, p->log_size, provide_log_bytes, &reading, &step->record);
}

bool ps_range_exists(struct perseas *p, const struct ps_range *range)
{
	const struct ps_segment *s = ps_segment_by_id(p, range->segment);

	return s && ps_range_inside(range, s->size);
}
