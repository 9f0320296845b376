/*
 * shadow.c - see shadow.h. map.c makes shadows, and commit.c and checked.c use them. A page may be
 * taken for like its shadow only after it was compared, and only if it was compared after the means
 * of written.h was asked.
 */
#include "shadow.h"

#include "commit.h"
#include "written.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = PS_WRITTEN_WORD };

void ps_shadow_begin(struct perseas *p)
{
	const char *what = p->options.flags & PERSEAS_TRACKED ? "PERSEAS_TRACKED"
	                                                      : "PERSEAS_CHECK_WRITES";
	struct ps_error error = { PERSEAS_ESYSTEM, "PERSEAS_WRITTEN_PAGES=off is set" };

	if (!(p->options.flags & PS_SHADOWED))
		return;
	if (p->env->written)
		p->written = p->env->written->begin(p->env, &error);
	if (p->written)
		ps_report(p, "%s: commits compare the pages that were written", what);
	else
		ps_report(p, "%s: commits compare all memory: %s", what, error.text);
}

void ps_shadow_end(struct perseas *p)
{
	if (p->written)
		p->env->written->end(p->written);
	p->written = NULL;
}

static uint64_t words(const struct ps_segment *segment)
{
	return segment->size / PS_PAGE / WORD + 1;
}

int ps_shadow_make(struct perseas *p, struct ps_segment *segment)
{
	const uint64_t set = words(segment) * sizeof(uint64_t), at = ps_align8(segment->size);
	uint64_t *unlike = NULL;
	uint8_t *shadow;

	if (!(p->options.flags & PS_SHADOWED) || !segment->base)
		return 0;
	shadow = malloc(at + set);
	if (!shadow)
		return ps_fail(p, PERSEAS_ENOMEM,
		               "%s needs a second copy of segment '%s' (%llu bytes)",
		               p->options.flags & PERSEAS_TRACKED ? "PERSEAS_TRACKED"
		                                                  : "PERSEAS_CHECK_WRITES",
		               segment->name, (unsigned long long)segment->size);
	/* First, so that a store behind the copy is noted. */
	if (p->written && !p->env->written->watch(p->written, segment->base, segment->size))
		unlike = memset(shadow + at, 0, set);
	memcpy(shadow, segment->base, segment->size);
	/* Whole, for an abort takes back what is not as in the copy. */
	pthread_mutex_lock(&p->lock);
	ps_shadow_free(segment);
	segment->shadow = shadow;
	segment->unlike = unlike;
	pthread_mutex_unlock(&p->lock);
	return 0;
}

void ps_shadow_free(struct ps_segment *segment)
{
	free(segment->shadow);
	segment->shadow = NULL;
	segment->unlike = NULL;
}

void ps_shadow_look(struct perseas *p, struct ps_segment *segment)
{
	ps_assert_locked(p);
	if (segment->unlike &&
	    p->env->written->take(p->written, segment->base, segment->size, segment->unlike))
		segment->unlike = NULL;
}

/* The next page from there on that may differ; or one behind the last. */
static uint64_t find_page(const struct ps_segment *segment, uint64_t page)
{
	const uint64_t *set = segment->unlike;
	uint64_t rest;

	if (!set)
		return page;
	for (uint64_t word = page / WORD; word < words(segment); word++, page = word * WORD) {
		rest = set[word] >> page % WORD;
		if (rest)
			return page + (uint64_t)__builtin_ctzll(rest);
	}
	return segment->size / PS_PAGE + 1;
}

bool ps_shadow_next(struct ps_segment *segment, uint64_t *offset, uint64_t *length)
{
	uint64_t page = find_page(segment, (*offset + PS_PAGE - 1) / PS_PAGE), at;

	for (; (at = page * PS_PAGE) < segment->size; page = find_page(segment, page + 1)) {
		*length = segment->size - at < PS_PAGE ? segment->size - at : PS_PAGE;
		if (memcmp(segment->base + at, segment->shadow + at, *length) != 0) {
			*offset = at;
			return true;
		}
		if (segment->unlike)
			segment->unlike[page / WORD] &= ~((uint64_t)1 << page % WORD);
	}
	return false;
}

void ps_shadow_take(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;

	for (unsigned i = 0; i < tx->cover.count; i++) {
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
	int rc = ps_commit_reserve(p, out);

	if (rc)
		return rc;
	/* From here on nothing can fail. */
	ps_shadow_take(tx);
	rc = ps_commit_send(p, out);
	assert(!rc);
	return rc;
}
