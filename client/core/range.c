/*
 * range.c - perseas_set_range: saves the before-image of a range that a transaction is about to
 * change in its local undo log (PERSEAS, section 3, step 1 of figure 3). The log is built in the
 * very form in which commit sends it.
 */
#include "tx.h"

#include "bytes.h"
#include "demand.h"
#include "deferred_stores.h"
#include "segment.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum { FAST_LENGTH = PS_COPY_SHORT }; /* ranges below this many bytes take the fast path */

/* Returns the mapped extent that contains the byte, or NULL. */
static const struct ps_mapped_extent *find_extent(const struct ps_layout *layout, uint64_t at)
{
	unsigned low = 0, high = layout ? layout->extent_count : 0;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (layout->extents[middle].end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return layout && low < layout->extent_count && layout->extents[low].start <= at
	               ? &layout->extents[low]
	               : NULL;
}

/* Returns the extent that contains [start, end); if only a segment and its parts together do, the
 * first of them (grown_segment.h); or NULL. */
static const struct ps_mapped_extent *locate_range(struct perseas_tx *tx, uint64_t start,
                                                   uint64_t end)
{
	const struct ps_layout *layout = tx->p->layout;
	const struct ps_mapped_extent *first, *last;

	if (tx->layout == layout && tx->last_extent && start >= tx->last_extent->start &&
	    end <= tx->last_extent->end && end > start)
		return tx->last_extent;
	first = last = end > start ? find_extent(layout, start) : NULL;
	while (last && end > last->end) {
		last++;
		if (last == &layout->extents[layout->extent_count] || !last->is_continuation)
			last = NULL;
	}
	if (!last)
		return NULL;
	tx->layout = layout;
	tx->last_extent = first;
	/* Parts are published in order, so only the last one may be unpublished. */
	return last->is_published ? first : last;
}

/* Notes that the transaction has ranges in the segment. Only its own thread calls this. */
static inline void mark_segment_touched(struct perseas_tx *tx, uint32_t segment)
{
	_Atomic uint64_t *touched = &tx->touched_segments[segment / 64];

	atomic_store_explicit(touched,
	                      atomic_load_explicit(touched, memory_order_relaxed) |
	                              (uint64_t)1 << segment % 64,
	                      memory_order_relaxed);
}

static int fail_range(struct perseas_tx *tx, const void *addr, size_t len,
                      const struct ps_mapped_extent *segment)
{
	if (!segment)
		return ps_fail(tx->p, PERSEAS_ERANGE,
		               "%zu bytes at %p are not wholly inside one mapped segment of "
		               "store '%s': map the segment, and declare only bytes inside it",
		               len, addr, tx->p->store);
	return ps_fail(tx->p, PERSEAS_EUNPUBLISHED,
	               "%p is in a segment that is not published: call perseas_publish first",
	               addr);
}

/* Makes room for `more` bytes of record, `bytes` of after-images, and a span. Returns 0, ETOOBIG or
 * ENOMEM. */
static inline int make_room_for_range(struct perseas_tx *tx, uint64_t more, uint64_t bytes)
{
	if (more <= tx->record_room && tx->record_length + more <= tx->record_room &&
	    tx->cover.span_count < tx->cover.span_capacity)
		return 0;
	return ps_tx_make_room(tx, more, bytes, 1);
}

/* Appends the before-image of [start, end) to the record. Extends the last entry if the range
 * continues it. */
static void log_before_image(struct perseas_tx *tx, const struct ps_mapped_extent *segment,
                             uint64_t start, uint64_t end, const void *before)
{
	struct ps_range *last = (struct ps_range *)(tx->record + tx->last_entry_offset);
	uint64_t offset = start - segment->start;
	uint32_t length = (uint32_t)(end - start);
	uint8_t *image;

	if (tx->last_entry_offset && last->segment == segment->segment_id &&
	    last->offset + last->length == offset) {
		image = (uint8_t *)(last + 1) + last->length;
		last->length += length;
	} else {
		tx->last_entry_offset = tx->record_length;
		tx->range_count++;
		last = (struct ps_range *)(tx->record + tx->last_entry_offset);
		ps_put_pair(&last->segment, segment->segment_id, length);
		last->offset = offset;
		image = (uint8_t *)(last + 1);
	}
	ps_copy(image, before, length);
	image += length;
	tx->record_length = ps_align8((uint64_t)(image - tx->record));
	if (image < tx->record + tx->record_length)
		memset(image, 0, (size_t)(tx->record + tx->record_length - image));
}

/* Counts bytes that were declared again and are sent only once. */
static void count_redeclared_bytes(struct perseas_tx *tx, uint64_t bytes)
{
	tx->redeclared_bytes += bytes;
	tx->traits |= PS_TX_REDECLARED;
}

/* Adds a range that is partly covered already, or touches spans on both sides. */
static int add_overlapping_range(struct perseas_tx *tx, const struct ps_mapped_extent *segment,
                                 uint64_t start, uint64_t end)
{
	struct ps_span span = { start, end, segment->start, segment->segment_id };
	uint64_t from, gap_start, gap_end, more = 0, bytes = 0;
	int rc;

	for (from = start; ps_cover_find_gap(&tx->cover, from, end, &gap_start, &gap_end);
	     from = gap_end) {
		more += sizeof(struct ps_range) + ps_align8(gap_end - gap_start);
		bytes += gap_end - gap_start;
	}
	rc = make_room_for_range(tx, more, bytes);
	if (rc)
		return rc;
	for (from = start; ps_cover_find_gap(&tx->cover, from, end, &gap_start, &gap_end);
	     from = gap_end)
		log_before_image(tx, segment, gap_start, gap_end, (const void *)gap_start);
	ps_cover_add_and_merge_span(&tx->cover, &span);
	if (bytes < end - start)
		count_redeclared_bytes(tx, end - start - bytes);
	return 0;
}

/* Covers a range that is PS_FIT_DISJOINT or PS_FIT_EXTENDS. */
static inline void add_span_to_cover(struct perseas_tx *tx, enum ps_fit fit, unsigned place,
                                     const struct ps_span *span)
{
	if (fit == PS_FIT_EXTENDS)
		ps_cover_extend_span(&tx->cover, place, span->end);
	else
		ps_cover_insert_span(&tx->cover, place, span);
}

static int add_range(struct perseas_tx *tx, const struct ps_mapped_extent *segment, uint64_t start,
                     uint64_t end)
{
	unsigned place;
	const enum ps_fit fit = ps_cover_fit(&tx->cover, segment->start, start, end, &place);
	int rc;

	if (fit == PS_FIT_INSIDE) {
		count_redeclared_bytes(tx, end - start);
		return 0;
	}
	if (fit == PS_FIT_OVERLAPS)
		return add_overlapping_range(tx, segment, start, end);
	rc = make_room_for_range(tx, sizeof(struct ps_range) + ps_align8(end - start), end - start);
	if (rc)
		return rc;
	log_before_image(tx, segment, start, end, (const void *)start);
	add_span_to_cover(tx, fit, place,
	                  &(struct ps_span){ start, end, segment->start, segment->segment_id });
	return 0;
}

/* Adds a range to a transaction with savepoints: the present contents are saved for the newest
 * savepoint, too. The fast path below needs no such copy: its bytes were not declared before, so
 * the record has them. */
static int add_range_and_save_contents(struct perseas_tx *tx,
                                       const struct ps_mapped_extent *segment, uint64_t start,
                                       uint64_t end)
{
	int rc = ps_savepoint_before_range(tx, start, end, 1);

	if (!rc)
		rc = add_range(tx, segment, start, end);
	ps_savepoint_after_range(
		tx, &(struct ps_span){ start, end, segment->start, segment->segment_id }, rc);
	return rc;
}

/* --- ranges that extend over parts of a grown segment --- */

/* Returns the part of [start, end) that lies in this extent. */
static inline struct ps_span range_part_in_extent(const struct ps_mapped_extent *extent,
                                                  uint64_t start, uint64_t end)
{
	return (struct ps_span){ start > extent->start ? start : extent->start,
		                 end < extent->end ? end : extent->end, extent->start,
		                 extent->segment_id };
}

/* Makes room for all pieces, so that either all are added or none. Each piece is counted with
 * alignment, since later pieces are checked against the then longer record. */
static int make_room_for_parts(struct perseas_tx *tx, const struct ps_mapped_extent *extent,
                               uint64_t start, uint64_t end)
{
	uint64_t more = 0, bytes = PS_ALIGN, gap_start, gap_end;
	unsigned spans = 0;

	for (; start < end; start = (extent++)->end) {
		const struct ps_span piece = range_part_in_extent(extent, start, end);

		for (uint64_t from = piece.start;
		     ps_cover_find_gap(&tx->cover, from, piece.end, &gap_start, &gap_end);
		     from = gap_end) {
			more += sizeof(struct ps_range) + ps_align8(gap_end - gap_start);
			bytes += ps_align8(gap_end - gap_start) + sizeof(struct ps_write);
		}
		spans++;
	}
	return ps_tx_make_room(tx, more, bytes, spans);
}

static int add_range_across_parts(struct perseas_tx *tx, const struct ps_mapped_extent *extent,
                                  uint64_t start, uint64_t end)
{
	unsigned pieces = 1;
	int rc = make_room_for_parts(tx, extent, start, end);

	while (extent[pieces - 1].end < end)
		pieces++;
	if (!rc && tx->traits & PS_TX_SAVEPOINTS)
		rc = ps_savepoint_before_range(tx, start, end, pieces);
	if (rc)
		return rc;
	for (; start < end; start = (extent++)->end) {
		const struct ps_span piece = range_part_in_extent(extent, start, end);

		rc = add_range(tx, extent, piece.start, piece.end);
		assert(!rc);
		if (tx->traits & PS_TX_SAVEPOINTS)
			ps_savepoint_after_range(tx, &piece, 0);
	}
	return 0;
}

static inline int add_extent_range(struct perseas_tx *tx, const struct ps_mapped_extent *segment,
                                   uint64_t start, uint64_t end)
{
	if (end > segment->end)
		return add_range_across_parts(tx, segment, start, end);
	return tx->traits & PS_TX_SAVEPOINTS ? add_range_and_save_contents(tx, segment, start, end)
	                                     : add_range(tx, segment, start, end);
}

int ps_tx_add_found_range(struct perseas_tx *tx, const struct ps_segment *segment, uint64_t offset,
                          uint64_t length)
{
	const uint64_t base = ps_segment_start_address(segment), start = base + offset;
	const uint64_t end = start + length;
	const struct ps_mapped_extent extent = { .start = base,
		                                 .end = base + segment->size,
		                                 .segment_id = segment->id };
	unsigned place;
	const enum ps_fit fit = ps_cover_fit(&tx->cover, base, start, end, &place);
	const int rc = make_room_for_range(tx, sizeof(struct ps_range) + ps_align8(length), length);

	assert(fit == PS_FIT_DISJOINT || fit == PS_FIT_EXTENDS);
	if (rc)
		return rc;
	log_before_image(tx, &extent, start, end, segment->shadow + offset);
	add_span_to_cover(tx, fit, place,
	                  &(struct ps_span){ start, end, extent.start, extent.segment_id });
	return 0;
}

/* Adds a range with p->lock, because another thread may read this transaction: in the checked
 * modes, and during a resync. */
static int add_range_locked(struct perseas_tx *tx, const struct ps_mapped_extent *segment,
                            uint64_t start, uint64_t end)
{
	struct perseas *p = tx->p;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = ps_check_overlap(tx, start, end);
	if (!rc)
		rc = add_extent_range(tx, segment, start, end);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* Reserves space for deferred stores if that needs no allocation. Returns false otherwise. */
static inline bool reserve_deferred_without_allocating(struct perseas_tx *tx, unsigned pieces)
{
	const uint64_t record = (uint64_t)pieces * PS_DEFERRED_RECORD;

	/* In the ring, a deferred store takes no more than a range with as many bytes of record. */
	static_assert(PS_DEFERRED_ENTRY <= 3 * PS_DEFERRED_RECORD,
	              "a deferred store's part of the ring");
	if (tx->record_length + record > tx->record_room ||
	    !ps_cover_has_extra_spans(&tx->cover, pieces))
		return false;
	tx->cover.extra_capacity += pieces;
	tx->deferred_store_count += pieces;
	tx->record_room -= record;
	return true;
}

static __attribute__((noinline)) int reserve_deferred(struct perseas_tx *tx, unsigned pieces)
{
	const uint64_t record = (uint64_t)pieces * PS_DEFERRED_RECORD;
	int rc;

	if (reserve_deferred_without_allocating(tx, pieces))
		return 0;
	rc = ps_tx_make_room(tx, record, (uint64_t)pieces * PS_DEFERRED_ENTRY - record, 1);
	if (rc)
		return rc;
	rc = ps_cover_reserve_extra_spans(&tx->cover, pieces);
	if (rc < 0)
		return ps_fail(tx->p, PERSEAS_ENOMEM, "no memory for %u changes at the commit",
		               pieces);
	if (rc)
		__atomic_fetch_add(&tx->p->commit.stat.allocations, 1, __ATOMIC_RELAXED);
	tx->deferred_store_count += pieces;
	ps_tx_update_room(tx);
	return 0;
}

/* Returns true if other threads read open transactions, which then change under p->lock only. The
 * caller has entered tx->set_range_section, the section that this closes (section.h). */
static inline bool is_tx_observed(const struct perseas_tx *tx)
{
	return atomic_load_explicit(&tx->p->observing.has_observers, memory_order_acquire);
}

static int add_range_unlocked(struct perseas_tx *tx, const struct ps_mapped_extent *segment,
                              uint64_t start, uint64_t end)
{
	int rc;

	ps_section_enter(&tx->set_range_section);
	if (is_tx_observed(tx)) {
		ps_section_leave(&tx->set_range_section);
		return add_range_locked(tx, segment, start, end);
	}
	rc = add_extent_range(tx, segment, start, end);
	ps_section_leave(&tx->set_range_section);
	return rc;
}

/* The slow path of ps_deferred_reserve. */
static __attribute__((noinline)) int reserve_deferred_slowly(struct perseas_tx *tx, unsigned pieces)
{
	int rc;

	if (tx->traits & PS_TX_TRACKED)
		return ps_fail(
			tx->p, PERSEAS_EINVAL,
			"a transaction with PERSEAS_TRACK cannot allocate or free objects of "
			"a heap: what it changed is found when it commits");
	ps_section_enter(&tx->set_range_section);
	if (!is_tx_observed(tx)) {
		rc = reserve_deferred(tx, pieces);
		ps_section_leave(&tx->set_range_section);
		return rc;
	}
	ps_section_leave(&tx->set_range_section);
	pthread_mutex_lock(&tx->p->lock);
	rc = reserve_deferred(tx, pieces);
	pthread_mutex_unlock(&tx->p->lock);
	return rc;
}

int ps_deferred_reserve(struct perseas_tx *tx, unsigned pieces)
{
	bool kept;

	if (tx->traits & PS_TX_TRACKED)
		return reserve_deferred_slowly(tx, pieces);
	ps_section_enter(&tx->set_range_section);
	kept = !is_tx_observed(tx) && reserve_deferred_without_allocating(tx, pieces);
	ps_section_leave(&tx->set_range_section);
	return kept ? 0 : reserve_deferred_slowly(tx, pieces);
}

void ps_deferred_store(struct perseas_tx *tx, const struct ps_mapped_extent *segment, void *at,
                       const void *bytes, uint32_t length)
{
	const uint64_t start = (uint64_t)(uintptr_t)at;
	const struct ps_span span = { start, start + length, segment->start, segment->segment_id };
	unsigned place;
	const enum ps_fit fit = ps_cover_fit(&tx->cover, span.base, start, span.end, &place);

	assert(length <= PS_DEFERRED_LENGTH && start % 8 == 0 && length % 8 == 0);
	/* Bytes that an earlier deferred store of this transaction covers have their before-image
	 * already. */
	if (fit != PS_FIT_INSIDE) {
		assert(tx->deferred_store_count > 0);
		log_before_image(tx, segment, start, span.end, (const void *)start);
		ps_cover_release_extra_spans(&tx->cover);
		if (fit == PS_FIT_OVERLAPS)
			ps_cover_add_and_merge_span(&tx->cover, &span);
		else
			add_span_to_cover(tx, fit, place, &span);
		tx->deferred_store_count--;
	}
	ps_copy_short(at, bytes, length);
}

/* Waits until all memory of the range is here (demand.h), while the thread holds nothing that
 * others may wait for: fetching memory may take long. */
static int fetch_range(struct perseas_tx *tx, const struct ps_mapped_extent *extent, uint64_t start,
                       uint64_t end)
{
	int rc = 0;

	for (; start < end && !rc; start = (extent++)->end) {
		mark_segment_touched(tx, extent->segment_id);
		if (!extent->is_ready)
			rc = ps_demand_await(tx->p, start,
			                     range_part_in_extent(extent, start, end).end);
	}
	return rc;
}

static int set_range_slowly(struct perseas_tx *tx, const void *addr, size_t len)
{
	uint64_t start = (uint64_t)(uintptr_t)addr, end = start + len;
	const struct ps_mapped_extent *segment;
	int rc;

	if (!tx)
		return ps_fail(NULL, PERSEAS_EINVAL, "tx is NULL");
	if (!tx->is_open)
		return ps_fail(tx->p, PERSEAS_EENDED,
		               "the transaction has been committed or aborted: begin another");
	if (!len)
		return 0;
	segment = locate_range(tx, start, end);
	if (!segment || !segment->is_published)
		return fail_range(tx, addr, len, segment);
	if (tx->traits & PS_TX_TRACKED)
		return 0;
	rc = fetch_range(tx, segment, start, end);
	if (rc)
		return rc;
	return add_range_unlocked(tx, segment, start, end);
}

/* Returns true if the fast path may add the range: it is short and lies in the segment of the
 * previous range, like most. `end` less a short length cannot wrap; the sum of `start` and `len`
 * can. */
static inline bool is_fast_range(const struct perseas_tx *tx, uint64_t start, size_t len)
{
	const struct ps_mapped_extent *segment = tx->last_extent;

	return tx->is_open && !(tx->traits & PS_TX_TRACKED) && len - 1 < FAST_LENGTH && segment &&
	       tx->layout == tx->p->layout && start >= segment->start &&
	       start <= segment->end - len && segment->is_ready &&
	       tx->record_length + sizeof(struct ps_range) + ps_align8(len) <= tx->record_room &&
	       tx->cover.span_count < tx->cover.span_capacity;
}

/* Returns true if the range continues the last entry, which is then worth extending. */
static inline bool continues_last_entry(const struct perseas_tx *tx, uint64_t start)
{
	const struct ps_range *last = (const struct ps_range *)(tx->record + tx->last_entry_offset);

	return tx->last_entry_offset && last->segment == tx->last_extent->segment_id &&
	       last->offset + last->length == start - tx->last_extent->start;
}

static inline struct ps_span fast_span(const struct perseas_tx *tx, uint64_t start, size_t len)
{
	return (struct ps_span){ start, start + len, tx->last_extent->start,
		                 tx->last_extent->segment_id };
}

/* Logs a range of the fast path, without a call. */
static inline __attribute__((always_inline)) void log_fast_range(struct perseas_tx *tx,
                                                                 uint64_t start, size_t len)
{
	const struct ps_mapped_extent *segment = tx->last_extent;
	struct ps_range *range = (struct ps_range *)(tx->record + tx->record_length);
	uint8_t *image = (uint8_t *)(range + 1), *end = image + ps_align8(len);

	mark_segment_touched(tx, segment->segment_id);
	tx->last_entry_offset = tx->record_length;
	tx->range_count++;
	ps_put_pair(&range->segment, segment->segment_id, (uint32_t)len);
	range->offset = start - segment->start;
	/* The padding must be zero. */
	memset(end - 8, 0, 8);
	ps_copy_short(image, (const void *)start, len);
	tx->record_length = (uint64_t)(end - tx->record);
}

/* Adds a range of the fast path that does not lie behind all others. Returns false if it needs the
 * slow path: it overlaps others, or extends the last entry. */
static inline bool add_fast_range(struct perseas_tx *tx, uint64_t start, size_t len)
{
	const struct ps_span span = fast_span(tx, start, len);
	unsigned place;
	const enum ps_fit fit = ps_cover_fit(&tx->cover, span.base, start, span.end, &place);

	if (fit == PS_FIT_INSIDE && !(tx->traits & PS_TX_SAVEPOINTS)) {
		count_redeclared_bytes(tx, len);
		return true;
	}
	if (fit == PS_FIT_INSIDE || fit == PS_FIT_OVERLAPS ||
	    (fit == PS_FIT_EXTENDS && continues_last_entry(tx, start)))
		return false;
	add_span_to_cover(tx, fit, place, &span);
	log_fast_range(tx, start, len);
	return true;
}

/* This is a function of its own so that appending a range saves no registers. */
static __attribute__((noinline)) int add_fast_range_in_section(struct perseas_tx *tx,
                                                               uint64_t start, size_t len)
{
	bool added;

	ps_section_enter(&tx->set_range_section);
	added = !is_tx_observed(tx) && add_fast_range(tx, start, len);
	ps_section_leave(&tx->set_range_section);
	return added ? 0 : set_range_slowly(tx, (const void *)start, len);
}

int perseas_set_range(perseas_tx_t *tx, const void *addr, size_t len)
{
	const uint64_t start = (uint64_t)(uintptr_t)addr;
	struct ps_span span;

	if (!tx || !is_fast_range(tx, start, len))
		return set_range_slowly(tx, addr, len);
	if (!ps_cover_is_behind_all_spans(&tx->cover, start))
		return add_fast_range_in_section(tx, start, len);
	ps_section_enter(&tx->set_range_section);
	if (is_tx_observed(tx)) {
		ps_section_leave(&tx->set_range_section);
		return set_range_slowly(tx, addr, len);
	}
	span = fast_span(tx, start, len);
	ps_cover_append_span(&tx->cover, &span);
	log_fast_range(tx, start, len);
	ps_section_leave(&tx->set_range_section);
	return 0;
}
