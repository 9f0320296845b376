/*
 * warm.c - the pages of a copy that a standby keeps (warm.h). It knows nothing of mirrors, and of
 * the log only what its records name. The thread that fetches memory calls what looks at pages: so
 * that calls no malloc.
 */
#include "warm.h"

#include "../../proto/image/image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	LOOKED_AT = 1 << 16, /* pages, for one of ps_warm_next */
	LARGE = 2 << 20,
};

struct ps_warm *ps_warm_new(const uint8_t store_id[PS_ID_SIZE])
{
	struct ps_warm *warm = calloc(1, sizeof(*warm));

	if (warm)
		memcpy(warm->store_id, store_id, PS_ID_SIZE);
	return warm;
}

static uint64_t bytes_of(const struct ps_warm_part *part)
{
	return part->pages * PS_WARM_PAGE;
}

static void part_free(struct ps_warm_part *part)
{
	if (part->bytes)
		munmap(part->bytes, bytes_of(part));
	if (part->state)
		munmap(part->state, part->pages * sizeof(*part->state));
}

void ps_warm_free(struct ps_warm *warm)
{
	for (unsigned i = 0; warm && i < warm->count; i++)
		part_free(&warm->parts[i]);
	free(warm);
}

/* Pages that are never used take no memory. */
static void *map_pages(uint64_t length)
{
	void *got = mmap(NULL, length, PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return got == MAP_FAILED ? NULL : got;
}

bool ps_warm_add(struct ps_warm *warm, uint32_t segment, uint64_t born, uint64_t size,
                 uint64_t since)
{
	struct ps_warm_part part = { .segment = segment,
		                     .born = born,
		                     .size = size,
		                     .pages = (size + PS_WARM_PAGE - 1) / PS_WARM_PAGE,
		                     .since = since };

	if (warm->count == PS_SEGMENTS_MAX || !size)
		return false;
	part.bytes = map_pages(bytes_of(&part));
	part.state = map_pages(part.pages * sizeof(*part.state));
	if (!part.bytes || !part.state) {
		part_free(&part);
		return false;
	}
	madvise(part.bytes, bytes_of(&part), MADV_DONTFORK);
	if (size >= LARGE)
		madvise(part.bytes, bytes_of(&part), MADV_HUGEPAGE);
	warm->parts[warm->count++] = part;
	return true;
}

struct ps_warm_part *ps_warm_part(struct ps_warm *warm, uint32_t segment)
{
	for (unsigned i = 0; warm && i < warm->count; i++)
		if (warm->parts[i].segment == segment)
			return &warm->parts[i];
	return NULL;
}

void ps_warm_forget(struct ps_warm *warm, uint32_t segment)
{
	struct ps_warm_part *part = ps_warm_part(warm, segment);

	if (!part)
		return;
	part_free(part);
	*part = warm->parts[--warm->count];
}

/* --- what the log says --- */

static void change_range(struct ps_warm *warm, const struct ps_range *range, uint64_t seq)
{
	struct ps_warm_part *part = ps_warm_part(warm, range->segment);

	if (!part || !range->length || !ps_range_inside(range, part->size))
		return;
	for (uint64_t page = range->offset / PS_WARM_PAGE;
	     page <= (range->offset + range->length - 1) / PS_WARM_PAGE; page++)
		if (part->state[page] >= PS_WARM_HERE || part->state[page] < seq)
			part->state[page] = seq;
}

void ps_warm_change(struct ps_warm *warm, const struct ps_record *record)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *before;

	/* What a publish names, the copy has not got yet. */
	if (record->kind != PS_RECORD_TRANSACTION)
		return;
	ps_record_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &before))
		change_range(warm, range, record->seq);
}

/* --- reading --- */

static bool is_due(const struct ps_warm_part *part, uint64_t page, uint64_t seq)
{
	const uint64_t state = part->state[page];

	/* As long as no slot covers it, what is read may be rolled back. */
	return state < PS_WARM_HERE && (state ? state : part->since) <= seq;
}

static void take_run(struct ps_warm *warm, struct ps_warm_part *part, uint64_t seq, unsigned most,
                     struct ps_range *range)
{
	const uint64_t first = warm->next_page;
	uint64_t end;

	while (warm->next_page < part->pages && warm->next_page - first < most &&
	       is_due(part, warm->next_page, seq))
		part->state[warm->next_page++] = PS_WARM_READING;
	end = warm->next_page * PS_WARM_PAGE;
	if (end > part->size)
		end = part->size;
	*range = (struct ps_range){ part->segment, (uint32_t)(end - first * PS_WARM_PAGE),
		                    first * PS_WARM_PAGE };
}

/* How many pages, and ends of segments, are looked at: each of them once at most. */
static uint64_t looks_of(const struct ps_warm *warm)
{
	uint64_t looks = warm->count;

	for (unsigned i = 0; i < warm->count; i++)
		looks += warm->parts[i].pages;
	return looks < LOOKED_AT ? looks : LOOKED_AT;
}

bool ps_warm_next(struct ps_warm *warm, uint64_t seq, unsigned most, struct ps_range *range)
{
	const uint64_t most_looks = looks_of(warm);

	for (uint64_t looks = 0; looks < most_looks; looks++) {
		struct ps_warm_part *part = &warm->parts[warm->next_part % warm->count];

		if (warm->next_page >= part->pages) {
			warm->next_part = (warm->next_part + 1) % warm->count;
			warm->next_page = 0;
		} else if (is_due(part, warm->next_page, seq)) {
			take_run(warm, part, seq, most, range);
			return true;
		} else {
			warm->next_page++;
		}
	}
	return false;
}

void ps_warm_arrived(struct ps_warm *warm, const struct ps_range *range, const uint8_t *bytes)
{
	struct ps_warm_part *part = ps_warm_part(warm, range->segment);

	for (uint32_t done = 0; part && done < range->length; done += PS_WARM_PAGE) {
		const uint64_t at = range->offset + done;
		const uint32_t rest = range->length - done;

		if (part->state[at / PS_WARM_PAGE] != PS_WARM_READING)
			continue;
		memcpy(part->bytes + at, bytes + done, rest < PS_WARM_PAGE ? rest : PS_WARM_PAGE);
		part->state[at / PS_WARM_PAGE] = PS_WARM_HERE;
	}
}

/* --- what it holds --- */

void ps_warm_figures(const struct ps_warm *warm, uint64_t *here, uint64_t *total)
{
	*here = *total = 0;
	for (unsigned i = 0; i < warm->count; i++) {
		const struct ps_warm_part *part = &warm->parts[i];
		uint64_t pages = 0;

		for (uint64_t page = 0; page < part->pages; page++)
			pages += part->state[page] == PS_WARM_HERE;
		*total += part->size;
		*here += pages * PS_WARM_PAGE;
		/* The last one may be shorter. */
		if (part->state[part->pages - 1] == PS_WARM_HERE)
			*here -= bytes_of(part) - part->size;
	}
}

bool ps_warm_holds(const struct ps_warm_part *part, uint64_t offset, uint64_t length)
{
	for (uint64_t page = offset / PS_WARM_PAGE; page <= (offset + length - 1) / PS_WARM_PAGE;
	     page++)
		if (part->state[page] != PS_WARM_HERE)
			return false;
	return true;
}

void ps_warm_spent(struct ps_warm_part *part, uint64_t offset, uint64_t length)
{
	const uint64_t first = (offset + PS_WARM_PAGE - 1) / PS_WARM_PAGE;
	const uint64_t end = (offset + length) / PS_WARM_PAGE;

	for (uint64_t page = first; page < end; page++)
		part->state[page] = 0;
	if (first < end)
		madvise(part->bytes + first * PS_WARM_PAGE, (end - first) * PS_WARM_PAGE,
		        MADV_DONTNEED);
}

void ps_warm_leave(struct ps_warm *warm, uint32_t segment)
{
	struct ps_warm_part *part = ps_warm_part(warm, segment);

	if (!part || part->left)
		return;
	part->left = true;
	ps_warm_spent(part, 0, bytes_of(part));
}
