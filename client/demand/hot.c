/*
 * hot.c - what the newest transactions changed is likely to be touched next: the open reads their
 * records from a mirror's log, and what they name is fetched before the rest. This is a guess. It
 * decides the order in which memory comes, and nothing else, so a log that cannot be read, or that
 * lies, does no harm.
 */
#include "demand.h"

#include "../core/mirror.h"
#include "../../proto/image/log_reader.h"

#include <stdlib.h>

enum {
	LOG = 256 << 10, /* bytes of log that are read: this is on the way to the first commit */
	RANGES = 4096,   /* that are kept */
};

/* The end of a log: bytes of one lap. */
struct tail {
	uint64_t position;
	uint8_t *bytes;
};

/* Everything before it counts as no longer there. */
static int view(void *source, uint64_t position, uint64_t length, const void **bytes)
{
	const struct tail *tail = source;

	(void)length;
	if (position < tail->position)
		return 1;
	*bytes = tail->bytes + (position - tail->position);
	return 0;
}

static void keep(struct ps_demand *d, const struct ps_record *record)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *before;

	ps_record_begin_walk(record, &cursor);
	while (d->hot_count < RANGES && ps_record_next(&cursor, &range, &before))
		if (range->length)
			d->hot[d->hot_count++] = *range;
}

/* The newest record first, so that it is the old ones for which there is no room. */
static void keep_all(struct perseas *p, struct tail *tail)
{
	struct ps_log_back back = ps_log_back_from(p->epoch, p->commit.seq, p->commit.next_position,
	                                           p->commit.last_position, p->log_size);
	const struct ps_record *record;

	while (p->demand->hot_count < RANGES &&
	       ps_log_back(&back, p->log_size, view, tail, &record) == 0)
		keep(p->demand, record);
}

static struct ps_mirror *find_mirror(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].active && p->mirrors[i].state == PERSEAS_MIRROR_LIVE)
			return &p->mirrors[i];
	return NULL;
}

/* Where the tail begins: at the start of the lap of the newest record, or later. */
static uint64_t begin_of(const struct perseas *p)
{
	const uint64_t lap = p->commit.last_position - p->commit.last_position % p->log_size;
	const uint64_t end = p->commit.next_position;

	return end - lap > LOG ? end - LOG : lap;
}

void ps_hot_read(struct perseas *p)
{
	struct ps_demand *d = p->demand;
	struct tail tail = { 0 };
	struct ps_mirror *m = find_mirror(p);

	if (!m || !p->commit.last_position || p->commit.next_position <= p->commit.last_position)
		return;
	tail.position = begin_of(p);
	tail.bytes = malloc(LOG);
	d->hot = calloc(RANGES, sizeof(*d->hot));
	if (tail.bytes && d->hot && tail.position <= p->commit.last_position &&
	    !ps_mirror_read(p, m, PS_REGION_LOG, PS_RING_OFFSET + tail.position % p->log_size,
	                    tail.bytes, p->commit.next_position - tail.position))
		keep_all(p, &tail);
	free(tail.bytes);
}

void ps_hot_mark(struct ps_demand *d, struct ps_mapping *mapping)
{
	for (unsigned i = 0; i < d->hot_count; i++) {
		const struct ps_range *range = &d->hot[i];

		if (range->segment != mapping->segment || !ps_range_inside(range, mapping->size))
			continue;
		for (uint64_t g = range->offset / d->ops->granule;
		     g <= (range->offset + range->length - 1) / d->ops->granule; g++)
			ps_granule_soon(mapping, g);
	}
}
