/*
 * segment.c - segments are mapped at the same address in every owner, so that native pointers stay
 * valid, unless the application asks for another address. Addresses come from a range that neither
 * the kernel nor common runtimes hand out by default, below programs and their heaps, and are never
 * taken from another mapping.
 */
#include "segment.h"

#include "change_map.h"
#include "demand.h"
#include "../../proto/base/memory_limit.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/segment_table.h"
#include "shadow.h"
#include "grown_segment.h"
#include "../../proto/base/core_dump.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_ADDRESS ((uint64_t)0x200000000000)
#define LAST_ADDRESS ((uint64_t)0x550000000000)
#define STORE_STRIDE ((uint64_t)1 << 36) /* distance between the ranges of different stores */
#define STORE_PLACES ((LAST_ADDRESS - FIRST_ADDRESS) / STORE_STRIDE)
#define SEGMENT_ALIGN ((uint64_t)2 << 20)
#define SEGMENT_GUARD SEGMENT_ALIGN /* unmapped space between segments */
#define ADDRESS_TRIES 4096

static struct ps_segment *find_overlapping(struct perseas *p, uint64_t address, uint64_t size)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		struct ps_segment *s = &p->segments[i];

		if (address < s->address + s->size + SEGMENT_GUARD &&
		    s->address < address + size + SEGMENT_GUARD)
			return s;
	}
	return NULL;
}

struct ps_segment *ps_segment_add(struct perseas *p, const char *name, uint64_t size)
{
	struct ps_segment *segment;
	uint32_t id = 0;

	ps_assert_admin(p);
	if (p->segment_count == PS_SEGMENTS_MAX)
		return NULL;
	while (ps_segment_by_id(p, id))
		id++;
	segment = &p->segments[p->segment_count];
	memset(segment, 0, sizeof(*segment));
	segment->id = id;
	segment->size = size;
	snprintf(segment->name, sizeof(segment->name), "%s", name);
	/* Tests the settled level: a raise that is not settled may be taken back, and level 0 has
	 * no random ids. */
	if (p->roster->level > 0)
		p->env->ops->random(p->env, segment->random_id, PS_ID_SIZE);
	p->segment_count++;
	p->upkeep.unpublished_generation++;
	return segment;
}

/* Gives the addresses of a part that is given up back to the segment's growth range, for the next
 * part. */
static void return_to_growth_range(struct perseas *p, struct ps_segment *part)
{
	struct ps_segment *head = ps_grown_head(p, part);

	if (head == part || !part->base || part->base + part->size != head->growth_range)
		return;
	/* If a call fails, the range stays reserved all the same, with readable zeros. */
	(void)madvise(part->base, part->size, MADV_DONTNEED);
	(void)mprotect(part->base, part->size, PROT_NONE);
	head->growth_range = part->base;
	head->growth_range_size += part->size;
	part->base = NULL;
}

void ps_segment_forget(struct perseas *p, struct ps_segment *segment)
{
	ps_assert_admin(p);
	assert(segment >= p->segments && segment < p->segments + p->segment_count);
	return_to_growth_range(p, segment);
	ps_segment_unmap(segment);
	ps_change_map_drop(p, segment->id);
	memmove(segment, segment + 1,
	        (size_t)(&p->segments[p->segment_count] - (segment + 1)) * sizeof(*segment));
	p->segment_count--;
	p->upkeep.unpublished_generation++;
}

/* Maps memory at `address`. is_over_reservation: over an existing reservation; otherwise nothing
 * may be mapped there. Returns 0 or an errno. */
static int map_memory_at(uint64_t address, uint64_t size, int prot, bool is_over_reservation)
{
	void *got = mmap((void *)address, size, prot,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
	                         (is_over_reservation ? MAP_FIXED : MAP_FIXED_NOREPLACE),
	                 -1, 0);

	if (got == MAP_FAILED)
		return errno;
	if (got != (void *)address) {
		/* Kernels before 4.17 take the address as a hint. */
		munmap(got, size);
		return EEXIST;
	}
	madvise(got, size, MADV_DONTFORK);
	ps_core_dump_omit(got, size);
	return 0;
}

/* --- reserved addresses --- */

static struct ps_reserved_range *find_exact_reserved_range(struct perseas *p, uint64_t address,
                                                           uint64_t size)
{
	for (unsigned i = 0; i < p->reserved_ranges.count; i++)
		if (p->reserved_ranges.list[i].address == address &&
		    p->reserved_ranges.list[i].size == size)
			return &p->reserved_ranges.list[i];
	return NULL;
}

static void forget_reserved_range(struct perseas *p, struct ps_reserved_range *kept)
{
	*kept = p->reserved_ranges.list[--p->reserved_ranges.count];
}

static bool is_range_of_a_segment(const Perseas__Header *header,
                                  const struct ps_reserved_range *kept)
{
	for (size_t i = 0; header && i < header->n_segments; i++)
		if (header->segments[i]->born && header->segments[i]->address == kept->address &&
		    header->segments[i]->size == kept->size)
			return true;
	return false;
}

void ps_segments_reserve_addresses(struct perseas *p, const Perseas__Header *header, char *warning,
                                   size_t size)
{
	for (unsigned i = p->reserved_ranges.count; i-- > 0;) {
		struct ps_reserved_range kept = p->reserved_ranges.list[i];

		if (is_range_of_a_segment(header, &kept))
			continue;
		munmap((void *)kept.address, kept.size);
		forget_reserved_range(p, &p->reserved_ranges.list[i]);
	}
	for (size_t i = 0; header && i < header->n_segments; i++) {
		const Perseas__Segment *segment = header->segments[i];

		if (!segment->born || p->reserved_ranges.count == PS_SEGMENTS_MAX ||
		    find_exact_reserved_range(p, segment->address, segment->size))
			continue;
		if (map_memory_at(segment->address, segment->size, PROT_NONE, false))
			snprintf(warning, size,
			         "segment '%s' must lie at 0x%llx, which this process uses for "
			         "something else",
			         segment->name, (unsigned long long)segment->address);
		else
			p->reserved_ranges.list[p->reserved_ranges.count++] =
				(struct ps_reserved_range){ segment->address, segment->size };
	}
}

/* --- placing --- */

/* Maps memory for a segment, and sets *base. is_over: over what is mapped there; otherwise nothing
 * may be mapped there. Returns 0 or an errno. */
static int map_segment(uint64_t address, uint64_t size, bool is_over, uint8_t **base)
{
	void *got = (void *)address;
	int error = map_memory_at(address, size, PROT_READ | PROT_WRITE, is_over);

	if (error)
		return error;
	/* Transactions touch memory at random: large pages save address translations. */
	if (size >= SEGMENT_ALIGN)
		madvise(got, size, MADV_HUGEPAGE);
	*base = got;
	return 0;
}

int ps_segment_map_at(struct perseas *p, struct ps_segment *segment, uint64_t address)
{
	struct ps_reserved_range *kept = address == segment->address
	                                         ? find_exact_reserved_range(p, address,
	                                                                     segment->size)
	                                         : NULL;
	int error;

	assert(!segment->base);
	error = map_segment(address, segment->size, kept, &segment->base);
	/* If mapping failed, the reserved range may already be gone; do not unmap it again. */
	if (kept)
		forget_reserved_range(p, kept);
	return error;
}

int ps_segment_map_over(struct ps_segment *segment)
{
	return map_segment(segment->address, segment->size, true, &segment->base);
}

int ps_segment_fail_memory(const struct perseas *p, const struct ps_segment *segment, int error)
{
	const struct ps_memory_limits limits = ps_memory_limits();
	char text[PS_MEMORY_LIMIT_TEXT];

	return ps_fail(p, PERSEAS_ENOMEM, "no memory for the %llu bytes of segment '%s': %s; %s",
	               (unsigned long long)segment->size, segment->name, strerror(error),
	               ps_memory_limit_text(&limits, text));
}

int ps_segment_map_at_recorded(struct perseas *p, struct ps_segment *segment)
{
	int error = ps_segment_map_at(p, segment, segment->address);

	if (!error)
		return 0;
	if (error == EEXIST || error == EINVAL)
		return ps_fail(p, PERSEAS_EADDRESS,
		               "segment '%s' must lie at 0x%llx, which this process uses for "
		               "something else: open the store before other mappings are made",
		               segment->name, (unsigned long long)segment->address);
	return ps_segment_fail_memory(p, segment, error);
}

void ps_segment_unmap(struct ps_segment *segment)
{
	if (segment->base)
		munmap(segment->base, segment->size);
	if (segment->growth_range_size)
		munmap(segment->growth_range, segment->growth_range_size);
	segment->base = segment->growth_range = NULL;
	segment->growth_range_size = 0;
	segment->memory_outlives_handle = false;
	ps_shadow_free(segment);
}

void ps_segment_move_memory(struct perseas *p, struct ps_segment *segment,
                            struct ps_segment *hidden)
{
	ps_assert_locked(p);
	*hidden = *segment;
	segment->base = segment->growth_range = NULL;
	segment->growth_range_size = 0;
	segment->shadow = NULL;
	segment->pages_may_differ = NULL;
	segment->memory_outlives_handle = false;
}

int ps_segment_map_anywhere(struct perseas *p, struct ps_segment *segment)
{
	uint64_t place, address, size = segment->size;

	memcpy(&place, p->store_id, sizeof(place));
	address = FIRST_ADDRESS + place % STORE_PLACES * STORE_STRIDE;
	for (unsigned i = 0; i < ADDRESS_TRIES; i++) {
		const struct ps_segment *there = find_overlapping(p, address, size);
		int error = there ? EEXIST : map_segment(address, size, false, &segment->base);

		if (error != EEXIST)
			return error;
		address = there ? there->address + there->size : address + size;
		address = (address + SEGMENT_GUARD + SEGMENT_ALIGN - 1) & ~(SEGMENT_ALIGN - 1);
		if (address + size > LAST_ADDRESS)
			address = FIRST_ADDRESS;
	}
	return EEXIST;
}

int ps_segment_reserve_growth(struct ps_segment *head, uint64_t whole, uint64_t room)
{
	const uint64_t kept = whole + head->growth_range_size;
	int error = 0;

	assert(head->base && whole % PS_PAGE == 0 && room % PS_PAGE == 0);
	if (room <= kept)
		return 0;
	error = map_memory_at(ps_segment_start_address(head) + kept, room - kept, PROT_NONE, false);
	if (error)
		return error;
	head->growth_range = head->base + whole;
	head->growth_range_size += room - kept;
	return 0;
}

int ps_segment_map_part(struct ps_segment *head, struct ps_segment *part)
{
	assert(!part->base && part->size <= head->growth_range_size && part->size % PS_PAGE == 0);
	if (mprotect(head->growth_range, part->size, PROT_READ | PROT_WRITE))
		return errno;
	if (part->size >= SEGMENT_ALIGN)
		madvise(head->growth_range, part->size, MADV_HUGEPAGE);
	part->base = head->growth_range;
	head->growth_range += part->size;
	head->growth_range_size -= part->size;
	return 0;
}

int ps_segment_fail_map(const struct perseas *p, const struct ps_segment *segment, int error)
{
	if (error == EEXIST)
		return ps_fail(p, PERSEAS_EADDRESS,
		               "no free address for a segment of %llu bytes: unmap other memory",
		               (unsigned long long)segment->size);
	return ps_segment_fail_memory(p, segment, error);
}

int ps_segment_map_new(struct perseas *p, struct ps_segment *segment, uint64_t room)
{
	struct ps_segment all = *segment;
	int error;

	/* Keeps find_overlapping from finding the segment itself. */
	segment->address = UINT64_MAX / 2;
	all.size = room > segment->size ? room : segment->size;
	error = ps_segment_map_anywhere(p, &all);
	if (error)
		return ps_segment_fail_map(p, &all, error);
	segment->base = all.base;
	segment->address = ps_segment_start_address(segment);
	if (all.size > segment->size) {
		segment->growth_range = all.base + segment->size;
		segment->growth_range_size = all.size - segment->size;
		(void)mprotect(segment->growth_range, segment->growth_range_size, PROT_NONE);
	}
	return 0;
}

static int compare_starts(const void *a, const void *b)
{
	const struct ps_mapped_extent *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Sorts extents_by_recorded. By insertion, since few segments are mapped. */
static void sort_by_recorded(struct ps_layout *layout)
{
	for (unsigned i = 0; i < layout->extent_count; i++) {
		unsigned at = i;

		for (; at > 0; at--) {
			const unsigned before = layout->extents_by_recorded[at - 1];

			if (layout->extents[before].recorded_start <
			    layout->extents[i].recorded_start)
				break;
			layout->extents_by_recorded[at] = (uint8_t)before;
		}
		layout->extents_by_recorded[at] = (uint8_t)i;
	}
}

/* Returns true if the segment is a part that is mapped right behind the one before, so that a range
 * may extend over both. */
static bool is_mapped_behind_previous(struct perseas *p, const struct ps_segment *segment)
{
	const struct ps_segment *before = ps_grown_previous_part(p, segment);

	return before && before->base && before->base + before->size == segment->base;
}

/* Makes the change maps of all mapped segments, because any commit may change these. Returns 0, or
 * -1 if out of memory. */
static int make_change_maps(struct perseas *p)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (p->segments[i].base && ps_change_map_make(p, &p->segments[i]))
			return -1;
	return 0;
}

int ps_layout_refresh(struct perseas *p)
{
	ps_assert_admin(p);
	struct ps_layout *layout = calloc(1, sizeof(*layout) +
	                                             PS_SEGMENTS_MAX * sizeof(layout->extents[0]));

	if (!layout || make_change_maps(p)) {
		free(layout);
		return ps_fail(p, PERSEAS_ENOMEM, "no memory for the list of mapped segments");
	}
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *s = &p->segments[i];

		if (s->base)
			layout->extents[layout->extent_count++] = (struct ps_mapped_extent){
				.start = ps_segment_start_address(s),
				.end = ps_segment_start_address(s) + s->size,
				.segment_id = s->id,
				.is_published = s->born != 0,
				.is_ready = s->born != 0 && !ps_demand_has_missing(p, s),
				.is_continuation = is_mapped_behind_previous(p, s),
				.recorded_start = s->address,
			};
	}
	qsort(layout->extents, layout->extent_count, sizeof(layout->extents[0]), compare_starts);
	for (unsigned i = 1; i < layout->extent_count; i++)
		assert(layout->extents[i - 1].end <= layout->extents[i].start);
	sort_by_recorded(layout);
	layout->older = p->layout;
	p->layout = layout;
	return 0;
}
