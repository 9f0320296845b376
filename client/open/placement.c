/*
 * placement.c - reserves the addresses of segments as a struct ps_placement asks, and names in
 * errors what occupies them. map.c calls it. It must never replace a mapping that is not the
 * store's or the caller's own.
 */
#include "placement.h"

#include "../core/retained.h"
#include "../core/segment.h"
#include "../core/grown_segment.h"
#include "../host/mappings.h"
#include "../../proto/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef unsigned long long number;

static bool ranges_overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

static int check_mapped_address(const struct perseas *p, const struct ps_segment *segment,
                                const struct ps_placement *placement)
{
	const uint64_t base = ps_segment_start_address(segment);

	const bool is_told = placement->where == PS_PLACE_AT || placement->where == PS_PLACE_OVER;

	if (placement->where == PS_PLACE_ANY || (is_told && placement->address == base) ||
	    (placement->where == PS_PLACE_RECORDED && segment->address == base))
		return 0;
	if (is_told)
		return ps_fail(p, PERSEAS_EADDRESS,
		               "segment '%s' is mapped at 0x%llx: unmap it to map it at 0x%llx",
		               segment->name, (number)base, (number)placement->address);
	return ps_fail(p, PERSEAS_EADDRESS,
	               "segment '%s' is recorded at 0x%llx, and perseas_map_at mapped it at "
	               "0x%llx, where pointers in it are not valid: perseas_map_at "
	               "gives its address, and PERSEAS_HEAP_MOVED opens a heap there",
	               segment->name, (number)segment->address, (number)base);
}

/* Writes into text what occupies these addresses, as a noun phrase for an error message. */
static void describe_occupant(const struct perseas *p, uint64_t start, uint64_t size, char *text,
                              size_t room)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *other = &p->segments[i];

		if (!other->base ||
		    !ranges_overlap(start, size, ps_segment_start_address(other), other->size))
			continue;
		ps_text_format(text, room, "segment '%s' of the store", other->name);
		return;
	}
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *other = &p->segments[i];

		if (other->growth_range_size &&
		    ranges_overlap(start, size, (uint64_t)(uintptr_t)other->growth_range,
		                   other->growth_range_size)) {
			ps_text_format(text, room, "the room that segment '%s' has to grow",
			               other->name);
			return;
		}
		for (unsigned k = 0; k < p->reserved_ranges.count; k++) {
			if (p->reserved_ranges.list[k].address != other->address ||
			    !ranges_overlap(start, size, other->address, other->size))
				continue;
			ps_text_format(text, room, "the place that is kept for segment '%s'",
			               other->name);
			return;
		}
	}
	ps_mapping_name(start, start + size, text, room);
}

/* Maps one page and unmaps it again. Returns 0 or an errno. */
static int try_to_map_page(void *at, int flags)
{
	void *got = mmap(at, PS_PAGE, PROT_NONE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (got == MAP_FAILED)
		return errno;
	munmap(got, PS_PAGE);
	return 0;
}

/* Returns true if the kernel never maps the last page before `end` (it lies beyond the address
 * space). The second try excludes a process that has no page left: it gets the same error at every
 * address. */
static bool is_beyond_address_space(uint64_t end)
{
	return try_to_map_page((void *)(uintptr_t)(end - PS_PAGE), MAP_FIXED_NOREPLACE) == ENOMEM &&
	       try_to_map_page(NULL, 0) == 0;
}

static int fail_cannot_map_at(const struct perseas *p, const struct ps_segment *segment,
                              uint64_t address, int error)
{
	const uint64_t size = (segment->size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
	char holder[320];

	if (error == EEXIST) {
		describe_occupant(p, address, size, holder, sizeof(holder));
		return ps_fail(p, PERSEAS_EADDRESS,
		               "segment '%s' of %llu bytes cannot be mapped at 0x%llx: %s is there",
		               segment->name, (number)segment->size, (number)address, holder);
	}
	if (error != ENOMEM || is_beyond_address_space(address + size))
		return ps_fail(p, PERSEAS_EADDRESS,
		               "segment '%s' of %llu bytes cannot be mapped at 0x%llx: the kernel "
		               "does not allow this address (%s)",
		               segment->name, (number)segment->size, (number)address,
		               strerror(error));
	return ps_segment_fail_memory(p, segment, error);
}

static int place_at_address(struct perseas *p, struct ps_segment *segment, uint64_t address)
{
	const int error = ps_segment_map_at(p, segment, address);

	return error ? fail_cannot_map_at(p, segment, address, error) : 0;
}

/* --- room to grow --- */

static int fail_no_room_behind(struct perseas *p, const struct ps_segment *head, uint64_t whole,
                               uint64_t room, int error)
{
	const uint64_t start = ps_segment_start_address(head);
	char holder[320];

	if (error != EEXIST)
		return fail_cannot_map_at(p, head, start + whole, error);
	describe_occupant(p, start + whole + head->growth_range_size,
	                  room - whole - head->growth_range_size, holder, sizeof(holder));
	return ps_fail(
		p, PERSEAS_EADDRESS,
		"segment '%s' of %llu bytes at 0x%llx has no room for %llu: %s is behind it; "
		"perseas_map_reserve keeps room before anything else is mapped there",
		head->name, (number)whole, (number)start, (number)room, holder);
}

static int fail_not_whole_pages(const struct perseas *p, const char *name, uint64_t size)
{
	return ps_fail(
		p, PERSEAS_EINVAL,
		"segment '%s' has %llu bytes, and only one of whole pages, a multiple of %d, "
		"can grow: make another one of such a size, and move what it holds",
		name, (number)size, PS_PAGE);
}

/* Extends the address space that is reserved behind a mapped segment to `room` bytes from its
 * start. Returns 0 or an error code. */
static int reserve_growth(struct perseas *p, struct ps_segment *head, uint64_t room)
{
	const uint64_t whole = ps_grown_size(p, head);
	int error = 0;

	if (room <= whole)
		return 0;
	if (whole % PS_PAGE)
		return fail_not_whole_pages(p, head->name, whole);
	error = ps_segment_reserve_growth(head, whole, room);
	return error ? fail_no_room_behind(p, head, whole, room, error) : 0;
}

/* --- segments that exist --- */

void ps_place_undo(struct perseas *p, struct ps_segment *segment)
{
	for (; segment; segment = ps_grown_next_part(p, segment))
		ps_segment_unmap(segment);
}

static int reserve_recorded_addresses(struct perseas *p, struct ps_segment *head)
{
	int error = 0;

	for (struct ps_segment *s = head; s && !error; s = ps_grown_next_part(p, s))
		error = ps_segment_map_at(p, s, s->address);
	if (error)
		ps_place_undo(p, head);
	return error;
}

/* Reserves one range for a segment and its parts, and assigns each its piece. Returns 0 or an
 * errno. */
static int reserve_anywhere(struct perseas *p, struct ps_segment *head)
{
	struct ps_segment all = *head;
	int error;

	/* Includes parts that a mirror reports as unpublished, which no owner leaves. */
	for (const struct ps_segment *s = head; s; s = ps_grown_next_part(p, s))
		all.size = s->address + s->size - head->address;
	error = ps_segment_map_anywhere(p, &all);
	for (struct ps_segment *s = head; s && !error; s = ps_grown_next_part(p, s))
		s->base = all.base + (s->address - head->address);
	return error;
}

static int place_anywhere(struct perseas *p, struct ps_segment *head)
{
	int error = reserve_recorded_addresses(p, head);

	if (error == EEXIST || error == EINVAL || error == EPERM)
		error = reserve_anywhere(p, head);
	return error ? ps_segment_fail_map(p, head, error) : 0;
}

/* Returns true if the handle has memory in this range, which the caller then must not replace. */
static bool overlaps_memory_of_handle(const struct perseas *p, uint64_t start, uint64_t size)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *s = &p->segments[i];
		const uint64_t pages = (s->size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);

		if ((s->base && ranges_overlap(start, size, ps_segment_start_address(s), pages)) ||
		    (s->growth_range_size &&
		     ranges_overlap(start, size, (uint64_t)(uintptr_t)s->growth_range,
		                    s->growth_range_size)))
			return true;
	}
	return false;
}

static int place_over_retained(struct perseas *p, struct ps_segment *segment, uint64_t address)
{
	int error;

	if (segment->address != address)
		return ps_fail(p, PERSEAS_EADDRESS,
		               "segment '%s' is recorded at 0x%llx, not 0x%llx", segment->name,
		               (number)segment->address, (number)address);
	if (overlaps_memory_of_handle(p, address, segment->size))
		return fail_cannot_map_at(p, segment, address, EEXIST);
	if (!ps_retained_covers_whole_range(address, segment->size))
		return ps_fail(p, PERSEAS_EADDRESS,
		               "perseas_retain left no memory of %llu bytes at 0x%llx, which "
		               "segment '%s' needs: map it with perseas_map instead",
		               (number)segment->size, (number)address, segment->name);
	error = ps_segment_map_over(segment);
	return error ? fail_cannot_map_at(p, segment, address, error) : 0;
}

static int place_all_parts(struct perseas *p, struct ps_segment *head,
                           const struct ps_placement *placement)
{
	int rc = 0;

	for (struct ps_segment *s = head; s && !rc; s = ps_grown_next_part(p, s))
		rc = placement->where == PS_PLACE_RECORDED ? ps_segment_map_at_recorded(p, s)
		     : placement->where == PS_PLACE_OVER
		             ? place_over_retained(p, s,
		                                   placement->address +
		                                           (s->address - head->address))
		             : place_at_address(p, s,
		                                placement->address + (s->address - head->address));
	return rc;
}

int ps_place_existing_segment(struct perseas *p, struct ps_segment *segment,
                              const struct ps_placement *placement)
{
	int rc = placement->where == PS_PLACE_ANY ? place_anywhere(p, segment)
	                                          : place_all_parts(p, segment, placement);

	if (!rc)
		rc = reserve_growth(p, segment, placement->reserve_size);
	for (struct ps_segment *s = segment; rc && s; s = ps_grown_next_part(p, s)) {
		if (placement->where == PS_PLACE_OVER)
			s->base = NULL; /* the memory belongs to the caller again */
		ps_segment_unmap(s);
	}
	return rc;
}

int ps_place_check_mapped(struct perseas *p, struct ps_segment *segment,
                          const struct ps_placement *placement)
{
	const int rc = check_mapped_address(p, segment, placement);

	return rc ? rc : reserve_growth(p, segment, placement->reserve_size);
}

/* Fails if another segment is recorded at these addresses: the two could never be mapped at the
 * same time. */
static int check_recorded_address_free(const struct perseas *p, const struct ps_segment *segment,
                                       uint64_t address)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *other = &p->segments[i];

		if (other != segment &&
		    ranges_overlap(address, segment->size, other->address, other->size))
			return ps_fail(p, PERSEAS_EADDRESS,
			               "segment '%s' of %llu bytes cannot be made at 0x%llx: "
			               "segment '%s' of the store is recorded there",
			               segment->name, (number)segment->size, (number)address,
			               other->name);
	}
	return 0;
}

/* Places a new part behind the segment `head`, which is mapped with all of its parts. */
static int place_behind(struct perseas *p, struct ps_segment *segment, struct ps_segment *head)
{
	const uint64_t whole = ps_grown_size(p, head);
	int rc = check_recorded_address_free(p, segment, head->address + whole), error;

	if (rc)
		return rc;
	rc = reserve_growth(p, head, whole + segment->size);
	if (rc)
		return rc;
	error = ps_segment_map_part(head, segment);
	if (error)
		return fail_cannot_map_at(p, segment, ps_segment_start_address(head) + whole,
		                          error);
	segment->address = head->address + whole;
	return 0;
}

int ps_place_new_segment(struct perseas *p, struct ps_segment *segment,
                         const struct ps_placement *placement)
{
	int rc;

	if (placement->where == PS_PLACE_BEHIND)
		return place_behind(p, segment, ps_segment_by_id(p, placement->head_id));
	if (placement->where != PS_PLACE_AT)
		return ps_segment_map_new(p, segment, placement->reserve_size);
	rc = check_recorded_address_free(p, segment, placement->address);
	if (rc)
		return rc;
	segment->address = placement->address;
	return place_at_address(p, segment, placement->address);
}
