/*
 * logged_record.c - reads records of a mirror's log over its link, the newest first. mend_forward.c
 * and mend_delta.c call it before the store is open. It has one record at a time in memory, however
 * large the log is.
 */
#include "logged_record.h"

#include "../core/mirror.h"

#include <stdlib.h>
#include <string.h>

enum { PEEK = 1024 }; /* bytes that one look at a log reads: most records are less */

static int grow(struct ps_step *step, size_t need)
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
	struct ps_step *step;
};

/* Of a record that is new, as much as a look brings; of one whose head is there, the rest. */
static int view(void *source, uint64_t position, uint64_t length, const void **bytes)
{
	const struct reading *reading = source;
	struct perseas *p = reading->p;
	struct ps_step *step = reading->step;
	const uint64_t at = position % p->log_size, rest = p->log_size - at;

	if (step->have == 0)
		length = rest < PEEK ? rest : PEEK;
	if (grow(step, length))
		return 1;
	*bytes = step->bytes;
	if (length <= step->have)
		return 0;
	if (ps_mirror_read(p, reading->m, PS_REGION_LOG, PS_RING_OFFSET + at + step->have,
	                   step->bytes + step->have, length - step->have))
		return -1;
	step->have = length;
	return 0;
}

int ps_step_read(struct perseas *p, struct ps_mirror *m, struct ps_step *step)
{
	struct reading reading = { p, m, step };

	step->have = 0;
	return ps_log_back(&step->back, p->log_size, view, &reading, &step->record);
}

bool ps_step_names(struct perseas *p, const struct ps_range *range)
{
	const struct ps_segment *s = ps_segment_by_id(p, range->segment);

	return s && ps_range_inside(range, s->size);
}
