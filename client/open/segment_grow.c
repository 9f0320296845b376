/*
 * segment_grow.c - perseas_map_reserve and perseas_segment_grow. A segment grows by another
 * segment, its next part (proto/control/segment_parts.h), which is mapped where the segment ends
 * and has a publish of its own. So the segment has either its old or its new size whenever its
 * owner dies, and mapped memory never moves.
 */
#include "map.h"
#include "placement.h"
#include "../core/segment.h"
#include "../core/grown_segment.h"
#include "../../proto/control/segment_parts.h"
#include "../core/cancel.h"

#include <string.h>

typedef unsigned long long number;

int perseas_map_reserve(perseas_t *p, const char *segment, size_t size, size_t most, void **addr,
                        size_t *whole)
{
	PS_UNCANCELLED;
	const struct ps_placement placement = { .where = PS_PLACE_RECORDED,
		                                .accepts_any_size = true,
		                                .reserve_size = most };

	if (addr)
		*addr = NULL;
	if (whole)
		*whole = 0;
	if (size % PS_PAGE || most % PS_PAGE || most > PS_SEGMENT_MAX || (most && size > most))
		return ps_fail(p, PERSEAS_EINVAL,
		               "a segment that can grow has whole pages: size and most are "
		               "multiples of %d, up to 1 TiB, and size is not above most",
		               PS_PAGE);
	return ps_map_with_placement(p, segment, size, &placement, addr, NULL, whole);
}

/* One call of perseas_segment_grow. */
struct growing {
	struct perseas *p;
	const char *name;
	uint64_t size; /* size to which the segment must grow */
	struct ps_new_segments new_segments;
	struct ps_placement placement;
	int rc;       /* why the segment cannot grow; 0: it can */
	uint64_t seq; /* seq of the publish that already gave the segment this size; 0: none */
};

/* Returns true if the segment is one of the two of a heap's extent. The heap may be closed. */
static bool is_heap_extent(struct perseas *p, const char *name)
{
	static const char *const parts[] = { ".heap.", ".meta." };
	char other[PS_NAME_MAX + 1];

	for (unsigned i = 0; i < 2; i++) {
		const char *dot = strrchr(name, '.');

		if (!dot || dot - name < 5 || strncmp(dot - 5, parts[i], 6) != 0)
			continue;
		memcpy(other, name, strlen(name) + 1);
		memcpy(other + (dot - 5 - name), parts[!i], 6);
		return ps_segment_by_name(p, other) != NULL;
	}
	return false;
}

static int check_can_grow(struct perseas *p, const char *name, struct ps_segment *head)
{
	if (!head)
		return ps_fail(p, PERSEAS_ENOSEGMENT, "store '%s' has no segment '%s'", p->store,
		               name);
	if (ps_segment_part_is_name(name))
		return ps_fail(
			p, PERSEAS_EINVAL,
			"'%s' is the name of a part of a grown segment: name the segment itself",
			name);
	if (!head->born)
		return ps_fail(p, PERSEAS_EUNPUBLISHED,
		               "segment '%s' is not published: publish it before it grows", name);
	if (!head->base)
		return ps_fail(p, PERSEAS_EINVAL,
		               "segment '%s' is not mapped: map it before it grows", name);
	if (is_heap_extent(p, name))
		return ps_fail(p, PERSEAS_ECONFLICT,
		               "segment '%s' is a part of a heap, which grows by itself", name);
	return 0;
}

/* Sets *more to the number of bytes that the segment must grow by, or to 0 if it already has the
 * size. */
static int compute_growth(struct perseas *p, const struct ps_segment *head, uint64_t size,
                          uint64_t *more)
{
	const uint64_t whole = ps_grown_size(p, head);

	*more = 0;
	if (size == whole)
		return 0;
	if (size < whole)
		return ps_fail(p, PERSEAS_ESIZE,
		               "segment '%s' has %llu bytes, and cannot shrink to %llu", head->name,
		               (number)whole, (number)size);
	*more = size - whole;
	return 0;
}

/* Writes the name of the next part into `part`, after dropping a last part that was never
 * published. Fails if another segment has that name. Pointers to struct ps_segment may be invalid
 * afterwards. */
static int prepare_part_name(struct perseas *p, const struct growing *growing, char *part)
{
	uint32_t ids[PS_SEGMENTS_MAX];
	unsigned count = ps_grown_part_ids(p, ps_segment_by_id(p, growing->placement.head_id), ids);
	struct ps_segment *last = ps_segment_by_id(p, ids[count - 1]);
	int rc = 0;

	if (!last->born) {
		rc = ps_map_drop_unpublished(p, last);
		count--;
	}
	if (rc)
		return rc;
	if (!ps_segment_part_name(part, PS_NAME_MAX + 1, growing->name, count))
		return ps_fail(p, PERSEAS_EINVAL,
		               "segment '%s' has too long a name to grow: its parts have names of "
		               "at most %d bytes, which end with .grown.NUMBER",
		               growing->name, PS_NAME_MAX);
	if (ps_segment_by_name(p, part))
		return ps_fail(
			p, PERSEAS_EEXIST,
			"store '%s' has a segment '%s' that is not a part of '%s' but has the "
			"name of its next part: destroy it",
			p->store, part, growing->name);
	return 0;
}

/* Returns the seq that published the newest published part of the segment. */
static uint64_t last_published_seq(struct perseas *p, const struct ps_segment *head)
{
	uint64_t born = 0;

	for (; head && head->born; head = ps_grown_next_part(p, head))
		born = head->born;
	return born;
}

static int prepare_growth(struct growing *growing, uint64_t *more)
{
	struct perseas *p = growing->p;
	struct ps_segment *head = ps_segment_by_name(p, growing->name);
	int rc = check_can_grow(p, growing->name, head);

	if (!rc)
		rc = compute_growth(p, head, growing->size, more);
	if (!rc && !*more)
		growing->seq = last_published_seq(p, head);
	if (rc || !*more)
		return rc;
	growing->placement.head_id = head->id;
	growing->new_segments.segments[0].size = *more;
	return prepare_part_name(p, growing, growing->new_segments.segments[0].name);
}

static bool is_growth_wanted(void *arg)
{
	struct growing *growing = arg;
	uint64_t more = 0;

	growing->rc = prepare_growth(growing, &more);
	return !growing->rc && more;
}

/* New memory is all zeros already. */
static void leave_zeros(const struct ps_new_segments *new_segments, void *arg)
{
	(void)new_segments;
	(void)arg;
}

/* If the segment's memory outlives the handle, so does that of the new part. */
static void inherit_retained(const struct ps_new_segments *new_segments, void *arg)
{
	const struct growing *growing = arg;

	ps_segment_by_name(growing->p, new_segments->segments[0].name)->memory_outlives_handle =
		ps_segment_by_id(growing->p, growing->placement.head_id)->memory_outlives_handle;
}

int perseas_segment_grow(perseas_t *p, const char *segment, size_t size)
{
	PS_UNCANCELLED;
	struct growing growing = {
		.p = p,
		.name = segment,
		.size = size,
		.new_segments = { .count = 1,
		                  .is_wanted = is_growth_wanted,
		                  .fill = leave_zeros,
		                  .on_published = inherit_retained },
		.placement = { .where = PS_PLACE_BEHIND },
	};
	int rc;

	if (!p || !segment || !ps_name_valid(segment))
		return ps_fail(p, PERSEAS_EINVAL, "grow needs a handle and the name of a segment");
	if (!size || size % PS_PAGE || size > PS_SEGMENT_MAX)
		return ps_fail(
			p, PERSEAS_EINVAL,
			"segment '%s' cannot grow to %zu bytes: sizes are multiples of %d, up "
			"to 1 TiB",
			segment, size, PS_PAGE);
	growing.new_segments.arg = &growing;
	growing.new_segments.placement = &growing.placement;
	rc = ps_map_create_and_publish_segments(p, &growing.new_segments);
	if (!rc && growing.seq)
		rc = ps_map_await_ever_durable(p, growing.seq);
	return growing.rc ? growing.rc : rc;
}
