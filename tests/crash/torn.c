/*
 * torn.c - images after a write that was cut short, and after writes whose order the fabric does
 * not guarantee. The function that a claim uses recovers these images, without a daemon around it.
 */
#include "crash.h"

#include "../../proto/image/crc32c.h"

enum { SUBSETS_MAX = 6 }; /* groups of up to so many writes are tried in every subset */

/* An image of one's own, which can be set back. */
struct frozen {
	struct ps_image from; /* the mirror's */
	struct ps_image image;
	uint8_t *bytes, *kept;
	uint64_t size;
};

static void place(struct frozen *frozen, uint8_t **base, const uint8_t *from, uint64_t length)
{
	*base = frozen->bytes + frozen->size;
	memcpy(*base, from, length);
	frozen->size += ps_align64(length);
}

static void freeze(struct frozen *frozen, const struct ps_image *from)
{
	uint64_t size = PS_RING_OFFSET + from->ring_size;

	for (unsigned i = 0; i < PS_SEGMENTS_MAX; i++)
		size += ps_align64(from->segments[i].size);
	frozen->from = frozen->image = *from;
	frozen->bytes = calloc(2, size);
	assert(frozen->bytes);
	frozen->kept = frozen->bytes + size;
	frozen->size = 0;
	place(frozen, &frozen->image.log, from->log, PS_RING_OFFSET + from->ring_size);
	for (unsigned i = 0; i < PS_SEGMENTS_MAX; i++)
		if (from->segments[i].base)
			place(frozen, &frozen->image.segments[i].base, from->segments[i].base,
			      from->segments[i].size);
	memcpy(frozen->kept, frozen->bytes, frozen->size);
}

static void set_back(struct frozen *frozen)
{
	memcpy(frozen->bytes, frozen->kept, frozen->size);
}

static void thaw(struct frozen *frozen)
{
	free(frozen->bytes);
}

static uint8_t *target(const struct ps_image *image, const struct event *event)
{
	if (event->region == PS_REGION_LOG)
		return image->log + event->offset;
	return image->segments[event->region - PS_REGION_SEGMENT].base + event->offset;
}

/* Recovers the image as it is, twice, and sets it back. */
static void check_frozen(struct checker *checker, struct frozen *frozen, int floor)
{
	struct ps_slot slot, again;
	enum ps_recovery recovery = ps_image_recover(&frozen->image, &slot);

	checker->states++;
	if (recovery < 0) {
		fault(checker, "the image cannot be recovered (%d)", recovery);
	} else if (check_image(checker, &frozen->image, &slot, floor) >= 0) {
		ps_image_recover(&frozen->image, &again);
		if (memcmp(&slot, &again, sizeof(slot)) != 0)
			fault(checker, "the second recovery found another slot");
		check_image(checker, &frozen->image, &again, floor);
	}
	set_back(frozen);
}

/* A mistake that is made on purpose: the record's checksum fits what arrived of it. */
static void patch_record(uint8_t *at)
{
	struct ps_record *record = (struct ps_record *)at;

	record->sum = ps_record_sum(record);
	record->crc = 0;
	record->crc = ps_crc32c(0, record, record->length);
}

static void check_cuts(struct checker *checker, struct frozen *frozen, const struct event *event,
                       int floor)
{
	uint8_t *to = target(&frozen->image, event);

	for (uint64_t length = 1; length < event->length; length++) {
		memcpy(to, event->bytes, length);
		if (checker->patch_crc && event->part == DIRECT_UNDO &&
		    length >= sizeof(struct ps_record))
			patch_record(to);
		check_frozen(checker, frozen, floor);
	}
}

/* Lists the chain's writes of data, which all go to the same mirror. */
static unsigned group(const struct journal *journal, size_t first, const struct event **writes)
{
	const struct event *head = &journal->events[first];
	unsigned count = 0;

	for (size_t i = first; i < journal->count; i++) {
		const struct event *event = &journal->events[i];

		if (event->kind != EVENT_WRITE || event->mirror != head->mirror ||
		    event->chain != head->chain || event->part != DIRECT_DATA)
			break;
		if (count < WORK_RANGES)
			writes[count] = event;
		count++;
	}
	return count;
}

static void put(struct frozen *frozen, const struct event *event)
{
	memcpy(target(&frozen->image, event), event->bytes, event->length);
}

/* Every subset of a small group. */
static void check_subsets(struct checker *checker, struct frozen *frozen,
                          const struct event **writes, unsigned count, int floor)
{
	for (unsigned subset = 1; subset < 1u << count; subset++) {
		for (unsigned i = 0; i < count; i++)
			if (subset & 1u << i)
				put(frozen, writes[i]);
		check_frozen(checker, frozen, floor);
	}
}

/* For a large group: tries each write alone, and each prefix with one write missing. */
static void check_missing(struct checker *checker, struct frozen *frozen,
                          const struct event **writes, unsigned count, int floor)
{
	for (unsigned end = 0; end < count; end++) {
		put(frozen, writes[end]);
		check_frozen(checker, frozen, floor);
		for (unsigned missing = 0; missing < end; missing++) {
			for (unsigned i = 0; i <= end; i++)
				if (i != missing)
					put(frozen, writes[i]);
			check_frozen(checker, frozen, floor);
		}
	}
}

static void check_group(struct checker *checker, const struct ps_image *image, size_t first,
                        int floor)
{
	static const struct event *writes[WORK_RANGES];
	unsigned count = group(&checker->work->journal, first, writes);
	struct frozen frozen;

	freeze(&frozen, image);
	if (count <= SUBSETS_MAX)
		check_subsets(checker, &frozen, writes, count, floor);
	else
		check_missing(checker, &frozen, writes, count, floor);
	thaw(&frozen);
}

static void check_write(struct checker *checker, const struct replica *replica, size_t at,
                        bool every_byte)
{
	const struct event *event = &checker->work->journal.events[at];
	const struct event *before = at ? event - 1 : NULL;
	struct frozen frozen;
	struct ps_image image;

	if (!replica_hits(replica, event) || !replica_image(replica, &image))
		return;
	if (every_byte || checker->patch_crc) {
		freeze(&frozen, &image);
		check_cuts(checker, &frozen, event, replica->floor);
		thaw(&frozen);
	}
	if (event->part == DIRECT_DATA &&
	    !(before && before->kind == EVENT_WRITE && before->part == DIRECT_DATA &&
	      before->mirror == event->mirror && before->chain == event->chain))
		check_group(checker, &image, at, replica->floor);
}

void check_torn(struct checker *checker, bool every_byte)
{
	const struct work *w = checker->work;

	for (unsigned mirror = 0; mirror < w->d->count; mirror++) {
		struct replica replica;

		replica_init(&replica, w, mirror);
		for (size_t i = 0; i < w->journal.count; i++) {
			const struct event *event = &w->journal.events[i];

			if (i >= w->from && event->kind == EVENT_WRITE && event->mirror == mirror)
				check_write(checker, &replica, i, every_byte);
			replica_apply(&replica, mirror, event);
		}
		replica_free(&replica);
	}
}
