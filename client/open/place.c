/*
 * place.c - reserves memory for segments where it is wanted (place.h), and says who is in the way.
 * map.c calls it. It never takes memory from anybody else.
 */
#include "place.h"

#include "../core/segment.h"
#include "../host/mappings.h"
#include "../../proto/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef unsigned long long number;

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

int ps_place_is_good(const struct perseas *p, const struct ps_segment *segment,
                     const struct ps_wish *wish)
{
	const uint64_t base = ps_segment_start(segment);

	const bool is_told = wish->where == PS_WHERE_AT || wish->where == PS_WHERE_OVER;

	if (wish->where == PS_WHERE_ANY || (is_told && wish->address == base) ||
	    (wish->where == PS_WHERE_RECORDED && segment->address == base))
		return 0;
	if (is_told)
		return ps_fail(p, PERSEAS_EADDRESS,
		               "segment '%s' is mapped at 0x%llx: unmap it to map it at 0x%llx",
		               segment->name, (number)base, (number)wish->address);
	return ps_fail(p, PERSEAS_EADDRESS,
	               "segment '%s' is recorded at 0x%llx, and perseas_map_at mapped it at "
	               "0x%llx, where pointers in it are not good as they are: perseas_map_at "
	               "gives its address, and PERSEAS_HEAP_MOVED opens a heap there",
	               segment->name, (number)segment->address, (number)base);
}

/* Who is there, as a part of a sentence. */
static void name_holder(const struct perseas *p, uint64_t start, uint64_t size, char *text,
                        size_t room)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *other = &p->segments[i];

		if (!other->base || !overlap(start, size, ps_segment_start(other), other->size))
			continue;
		ps_text_format(text, room, "segment '%s' of the store", other->name);
		return;
	}
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *other = &p->segments[i];

		for (unsigned k = 0; k < p->kept_count; k++) {
			if (p->kept[k].address != other->address ||
			    !overlap(start, size, other->address, other->size))
				continue;
			ps_text_format(text, room, "the place that is kept for segment '%s'",
			               other->name);
			return;
		}
	}
	ps_mapping_name(start, start + size, text, room);
}

/* Would the kernel give nobody the last page before `end`? */
static bool is_beyond(uint64_t end)
{
	void *got = mmap((void *)(uintptr_t)(end - PS_PAGE), PS_PAGE, PROT_NONE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == MAP_FAILED)
		return errno == ENOMEM;
	munmap(got, PS_PAGE);
	return false;
}

static int fail_at(const struct perseas *p, const struct ps_segment *segment, uint64_t address,
                   int error)
{
	const uint64_t size = (segment->size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
	char holder[320];

	if (error == EEXIST) {
		name_holder(p, address, size, holder, sizeof(holder));
		return ps_fail(p, PERSEAS_EADDRESS,
		               "segment '%s' of %llu bytes cannot be mapped at 0x%llx: %s is there",
		               segment->name, (number)segment->size, (number)address, holder);
	}
	if (error != ENOMEM || is_beyond(address + size))
		return ps_fail(p, PERSEAS_EADDRESS,
		               "segment '%s' of %llu bytes cannot be mapped at 0x%llx: the kernel "
		               "gives nobody this address (%s)",
		               segment->name, (number)segment->size, (number)address,
		               strerror(error));
	return ps_fail(p, PERSEAS_ENOMEM, "no memory for the %llu bytes of segment '%s': %s",
	               (number)segment->size, segment->name, strerror(error));
}

static int place_at(struct perseas *p, struct ps_segment *segment, uint64_t address)
{
	const int error = ps_segment_reserve(p, segment, address);

	return error ? fail_at(p, segment, address, error) : 0;
}

static int place_anywhere(struct perseas *p, struct ps_segment *segment)
{
	int error = ps_segment_reserve(p, segment, segment->address);

	if (error == EEXIST || error == EINVAL || error == EPERM)
		error = ps_segment_reserve_anywhere(p, segment);
	return error ? ps_segment_fail_anywhere(p, segment, error) : 0;
}

static int place_over(struct perseas *p, struct ps_segment *segment, uint64_t address)
{
	int error;

	if (segment->address != address)
		return ps_fail(p, PERSEAS_EADDRESS,
		               "segment '%s' is recorded at 0x%llx, not 0x%llx", segment->name,
		               (number)segment->address, (number)address);
	error = ps_segment_reserve_over(segment);
	return error ? fail_at(p, segment, address, error) : 0;
}

int ps_place_old(struct perseas *p, struct ps_segment *segment, const struct ps_wish *wish)
{
	if (wish->where == PS_WHERE_OVER)
		return place_over(p, segment, wish->address);
	if (wish->where == PS_WHERE_AT)
		return place_at(p, segment, wish->address);
	return wish->where == PS_WHERE_ANY ? place_anywhere(p, segment)
	                                   : ps_segment_place(p, segment);
}

/* Two segments that are recorded at one address could never be mapped together. */
static int check_record(const struct perseas *p, const struct ps_segment *segment, uint64_t address)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *other = &p->segments[i];

		if (other != segment &&
		    overlap(address, segment->size, other->address, other->size))
			return ps_fail(p, PERSEAS_EADDRESS,
			               "segment '%s' of %llu bytes cannot be made at 0x%llx: "
			               "segment '%s' of the store is recorded there",
			               segment->name, (number)segment->size, (number)address,
			               other->name);
	}
	return 0;
}

int ps_place_new(struct perseas *p, struct ps_segment *segment, const struct ps_wish *wish)
{
	int rc;

	if (wish->where != PS_WHERE_AT)
		return ps_segment_choose(p, segment);
	rc = check_record(p, segment, wish->address);
	if (rc)
		return rc;
	segment->address = wish->address;
	return place_at(p, segment, wish->address);
}
