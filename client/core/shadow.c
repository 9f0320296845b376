/*
 * shadow.c - see shadow.h. map.c makes shadows; commit.c, checked.c and track.c use them. A page
 * may be taken as equal to its shadow only after it was compared, and only if the written pages
 * were collected (written.h) before the comparison. Missing memory (demand.h) is never touched or
 * asked about here; its shadow arrives together with it.
 */
#include "shadow.h"

#include "serialization.h"
#include "commit.h"
#include "written.h"
#include "../../proto/base/core_dump.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

enum { WORD = PS_WRITTEN_WORD };

static const char *shadow_flag_name(const struct perseas *p)
{
	return p->options.flags & PERSEAS_TRACKED ? "PERSEAS_TRACKED" : "PERSEAS_CHECK_WRITES";
}

void ps_shadow_end_tracking(struct perseas *p)
{
	if (p->written)
		p->env->written->end(p->written);
	p->written = NULL;
}

/* Begins to track written pages. If that is not possible, *error says why. */
static void begin_write_tracking(struct perseas *p, struct ps_error *error)
{
	const struct ps_written_ops *ops = p->env->written;

	if (!ops) {
		ps_error_set(error, PERSEAS_ESYSTEM, "PERSEAS_WRITTEN_PAGES=off is set");
		return;
	}
	p->written = ops->begin(p->env, error);
	if (!p->written || ps_demand_can_track_stores(p))
		return;
	ops->end(p->written);
	p->written = NULL;
	ps_error_set(error, PERSEAS_ESYSTEM,
	             "this kernel cannot track stores to memory that is fetched on demand");
}

void ps_shadow_begin_tracking(struct perseas *p)
{
	struct ps_error error = { 0 };
	const char *what = shadow_flag_name(p);

	if (!(p->options.flags & PS_SHADOW_FLAGS))
		return;
	begin_write_tracking(p, &error);
	if (p->written)
		ps_report_add_line(p, "%s: commits compare the pages that were written", what);
	else
		ps_report_add_line(p, "%s: commits compare all memory: %s", what, error.text);
}

int ps_shadow_await(struct perseas *p)
{
	int rc = ps_check_same_process(p);

	if (!rc)
		ps_demand_await_fill(p);
	return rc;
}

static uint64_t bitmap_word_count(const struct ps_segment *segment)
{
	return segment->size / PS_PAGE / WORD + 1;
}

static size_t room_size(const struct ps_segment *segment)
{
	return ps_align8(segment->size) + bitmap_word_count(segment) * sizeof(uint64_t);
}

void ps_shadow_free_room(const struct ps_segment *segment, uint8_t *room)
{
	if (room)
		munmap(room, room_size(segment));
}

int ps_shadow_reserve(struct perseas *p, const struct ps_segment *segment, uint8_t **room)
{
	*room = NULL;
	if (!(p->options.flags & PS_SHADOW_FLAGS) || !segment->base)
		return 0;
	*room = mmap(NULL, room_size(segment), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	             -1, 0);
	if (*room != MAP_FAILED) {
		ps_core_dump_omit(*room, room_size(segment));
		return 0;
	}
	*room = NULL;
	return ps_fail(p, PERSEAS_ENOMEM,
	               "no memory for the second copy of segment '%s' (%llu bytes) that %s needs: "
	               "give the process more memory, or open without that flag",
	               segment->name, (unsigned long long)segment->size, shadow_flag_name(p));
}

void ps_shadow_install(struct perseas *p, struct ps_segment *segment, uint8_t *room,
                       bool tracks_stores)
{
	uint64_t *may_differ = NULL;

	if (!room)
		return;
	assert(segment->base);
	if (tracks_stores)
		may_differ = memset(room + ps_align8(segment->size), 0,
		                    bitmap_word_count(segment) * sizeof(uint64_t));
	pthread_mutex_lock(&p->lock);
	ps_shadow_free(segment);
	segment->shadow = room;
	segment->pages_may_differ = may_differ;
	pthread_mutex_unlock(&p->lock);
}

int ps_shadow_make_from_memory(struct perseas *p, struct ps_segment *segment)
{
	uint8_t *room;
	bool tracks_stores;
	int rc = ps_shadow_reserve(p, segment, &room);

	if (rc || !room)
		return rc;
	/* Tracking begins before the copy, so that a store after the copy is noted. */
	tracks_stores = p->written &&
	                !p->env->written->watch(p->written, segment->base, segment->size);
	memcpy(room, segment->base, segment->size);
	/* The segment gets its shadow only when that is complete, since an abort restores memory
	 * from it. */
	ps_shadow_install(p, segment, room, tracks_stores);
	return 0;
}

void ps_shadow_free(struct ps_segment *segment)
{
	ps_shadow_free_room(segment, segment->shadow);
	segment->shadow = NULL;
	segment->pages_may_differ = NULL;
}

/* Adds to segment->may_differ the pages that were written, among those that are here: asking about
 * a missing page would mark it (written.h). Returns false if any page may have been written. */
static bool collect_written(struct perseas *p, const struct ps_segment *segment)
{
	bool here = true;

	for (uint64_t at = 0, run = segment->size; at < segment->size; at += run) {
		if (segment->has_missing_pages)
			run = ps_demand_uniform_run(p, segment, at, segment->size - at, &here);
		if (here && p->env->written->take(p->written, segment->base, at, run,
		                                  segment->pages_may_differ))
			return false;
	}
	return true;
}

void ps_shadow_collect_written(struct perseas *p, struct ps_segment *segment)
{
	ps_assert_locked(p);
	segment->has_missing_pages = ps_demand_has_missing(p, segment);
	if (segment->pages_may_differ && !collect_written(p, segment))
		segment->pages_may_differ = NULL;
}

/* Returns the next page, from `page` on, that may differ from its shadow; a page past the end if
 * none does. */
static uint64_t find_page_to_compare(const struct ps_segment *segment, uint64_t page)
{
	const uint64_t *set = segment->pages_may_differ;
	uint64_t rest;

	if (!set)
		return page;
	for (uint64_t word = page / WORD; word < bitmap_word_count(segment);
	     word++, page = word * WORD) {
		rest = set[word] >> page % WORD;
		if (rest)
			return page + (uint64_t)__builtin_ctzll(rest);
	}
	return segment->size / PS_PAGE + 1;
}

/* Finds the next bytes of [*at, end) that are here and differ from the shadow. Sets *at and
 * *length. Returns false if no bytes do. */
static bool find_difference_from_shadow(struct perseas *p, const struct ps_segment *segment,
                                        uint64_t *at, uint64_t end, uint64_t *length)
{
	bool here = true;

	for (; *at < end; *at += *length) {
		*length = end - *at;
		if (segment->has_missing_pages)
			*length = ps_demand_uniform_run(p, segment, *at, end - *at, &here);
		if (here && memcmp(segment->base + *at, segment->shadow + *at, *length) != 0)
			return true;
	}
	return false;
}

bool ps_shadow_next_difference(struct perseas *p, struct ps_segment *segment, uint64_t *offset,
                               uint64_t *length)
{
	uint64_t page = find_page_to_compare(segment, *offset / PS_PAGE), at, from;

	assert(segment->base && segment->shadow);
	for (; (at = page * PS_PAGE) < segment->size;
	     page = find_page_to_compare(segment, page + 1)) {
		const uint64_t rest = segment->size - at;

		from = at < *offset ? *offset : at;
		if (find_difference_from_shadow(p, segment, &from,
		                                at + (rest < PS_PAGE ? rest : PS_PAGE), length)) {
			*offset = from;
			return true;
		}
		/* If the search began in the middle of the page, the part before may still
		 * differ. */
		if (segment->pages_may_differ && at >= *offset)
			segment->pages_may_differ[page / WORD] &= ~((uint64_t)1 << page % WORD);
	}
	return false;
}

void ps_shadow_copy_changes(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;

	for (unsigned i = 0; i < tx->cover.span_count; i++) {
		struct ps_span *span = &tx->cover.spans[i];
		const struct ps_segment *segment = ps_segment_by_id(p, span->segment);
		const uint64_t shadow = (uint64_t)(uintptr_t)segment->shadow;
		const uint64_t length = span->end - span->start;
		uint8_t *to = segment->shadow + (span->start - span->base);

		memcpy(to, (const void *)span->start, length);
		span->start = (uint64_t)(uintptr_t)to;
		span->end = span->start + length;
		span->base = shadow;
	}
}

int ps_shadow_send(struct perseas_tx *tx, struct ps_outgoing *out)
{
	struct perseas *p = tx->p;
	int rc = ps_commit_reserve_chain(p, out);

	if (rc)
		return rc;
	/* From here on nothing can fail, so the shadows may get the changes. */
	ps_shadow_copy_changes(tx);
	rc = ps_commit_send(p, out);
	assert(!rc);
	return rc;
}
