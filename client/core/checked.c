/*
 * checked.c - the checked modes: detect overlapping transactions, and writes without set_range.
 * They cost time and a second copy of the data, and are meant for tests of applications.
 */
#include "segment.h"
#include "shadow.h"
#include "tx.h"

#include <stdlib.h>
#include <string.h>

int ps_check_overlap(struct perseas_tx *tx, uint64_t start, uint64_t end)
{
	struct perseas *p = tx->p;
	const struct perseas_tx *other = p->commit.open_list;

	if (!(p->options.flags & PERSEAS_CHECK_OVERLAP))
		return 0;
	for (; other; other = other->next)
		if (other != tx && ps_cover_overlaps(&other->cover, start, end))
			return ps_fail(p, PERSEAS_ECONFLICT,
			               "%llu bytes at 0x%llx overlap a range of another open "
			               "transaction: the application must keep its transactions "
			               "apart",
			               (unsigned long long)(end - start),
			               (unsigned long long)start);
	return 0;
}

/* Returns the first span of the transaction that ends after `at`, or NULL. */
static const struct ps_span *span_ending_after(const struct perseas_tx *tx, uint64_t at)
{
	return ps_cover_span_from(&tx->cover, at + 1);
}

/* Returns the end of a span that contains `at` and that any open transaction declared; or `at` if
 * no span contains it. */
static uint64_t skip_declared(const struct perseas *p, uint64_t at)
{
	const struct perseas_tx *tx = p->commit.open_list;

	for (; tx; tx = tx->next) {
		const struct ps_span *span = span_ending_after(tx, at);

		if (span && span->start <= at)
			return span->end;
	}
	return at;
}

/* Returns where the next span begins that any open transaction declared; `end` if none begins
 * before. No declared span may contain `at`. */
static uint64_t find_next_declared(const struct perseas *p, uint64_t at, uint64_t end)
{
	const struct perseas_tx *tx = p->commit.open_list;

	for (; tx; tx = tx->next) {
		const struct ps_span *span = span_ending_after(tx, at);

		if (span && span->start < end)
			end = span->start;
	}
	return end;
}

static int fail_undeclared(struct perseas *p, const struct ps_segment *s, uint64_t from,
                           uint64_t to)
{
	const uint64_t offset = from - ps_segment_start_address(s);
	const uint8_t *now = (const uint8_t *)from, *then = s->shadow + offset;
	uint64_t i = 0;

	while (i < to - from - 1 && now[i] == then[i])
		i++;
	return ps_fail(p, PERSEAS_EUNDECLARED,
	               "byte %llu of segment '%s' (%p) was changed, and no open transaction "
	               "declared it: call perseas_set_range before the store",
	               (unsigned long long)offset + i, s->name, (const void *)(now + i));
}

/* Checks [at, end), in a page that differs from its shadow, for bytes that no open transaction
 * declared. */
static int check_page_for_undeclared(struct perseas *p, const struct ps_segment *s, uint64_t at,
                                     uint64_t end)
{
	const uint64_t base = ps_segment_start_address(s);

	while (at < end) {
		uint64_t next = skip_declared(p, at);

		if (next == at) {
			next = find_next_declared(p, at, end);
			if (memcmp((const void *)at, s->shadow + (at - base), next - at) != 0)
				return fail_undeclared(p, s, at, next);
		}
		at = next;
	}
	return 0;
}

static int check_segment_for_undeclared(struct perseas *p, struct ps_segment *s)
{
	uint64_t offset = 0, length;

	ps_shadow_collect_written(p, s);
	for (; ps_shadow_next_difference(p, s, &offset, &length); offset += length) {
		const uint64_t at = ps_segment_start_address(s) + offset;
		int rc = check_page_for_undeclared(p, s, at, at + length);

		if (rc)
			return rc;
	}
	return 0;
}

int ps_check_undeclared(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;
	int rc = 0;

	/* While a tracked transaction is open there is no other: all changes are its own, and need
	 * no set_range. */
	if (tx->traits & PS_TX_TRACKED)
		return 0;
	for (unsigned i = 0; i < p->segment_count && !rc; i++)
		if (p->segments[i].base && p->segments[i].born && p->segments[i].shadow)
			rc = check_segment_for_undeclared(p, &p->segments[i]);
	return rc;
}
