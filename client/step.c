#include "step.h"

#include "mirror.h"

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

int ps_step_read(struct perseas *p, struct ps_mirror *m, struct ps_step *step, uint64_t seq)
{
	uint64_t at = step->position % p->log_size, rest = p->log_size - at;
	uint64_t length = rest < PEEK ? rest : PEEK;
	struct ps_record head;

	if (!step->position || step->position % PS_ALIGN || rest < sizeof(head) || grow(step, PEEK))
		return 1;
	if (ps_mirror_read(p, m, PS_REGION_LOG, PS_RING_OFFSET + at, step->bytes, length))
		return -1;
	memcpy(&head, step->bytes, sizeof(head));
	if (head.magic != PS_RECORD_MAGIC || head.seq != seq || head.position != step->position ||
	    head.length > rest || head.length < sizeof(head) || grow(step, head.length))
		return 1;
	if (head.length > length &&
	    ps_mirror_read(p, m, PS_REGION_LOG, PS_RING_OFFSET + at + length, step->bytes + length,
	                   head.length - length))
		return -1;
	step->record = (struct ps_record *)step->bytes;
	if (ps_record_check(step->bytes, head.length))
		return 1;
	step->seq = seq;
	step->position = step->record->previous;
	return 0;
}

bool ps_step_names(struct perseas *p, const struct ps_range *range)
{
	const struct ps_segment *s = ps_segment_by_id(p, range->segment);

	return s && range->offset <= s->size && range->length <= s->size - range->offset;
}
