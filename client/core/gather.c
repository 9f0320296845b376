/*
 * gather.c - group commit; see gather.h. The group is a set of lines of 64 bytes, each with its
 * contents before the first transaction and after the last: so adding a transaction does not cost
 * more the more the group has. commit.c adds transactions; functions that must not wait behind the
 * group post it. Memory that a transaction left behind is never read after its commit, since a
 * later one may change it.
 */
#include "gather.h"

#include "bytes.h"
#include "commit.h"
#include "deferred_stores.h"
#include "mirror.h"
#include "shadow.h"
#include "tx.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINE = PS_GATHER_LINE,
	LINES_MAX = PS_GATHER_LINES,
	PLACES = PS_GATHER_PLACES,
	/* Space per entry besides its bytes, which are in both record and ring. */
	ENTRY_OVERHEAD = sizeof(struct ps_range) + 7,
	PIECE_OVERHEAD = ENTRY_OVERHEAD + sizeof(struct ps_write),
	GROUP_OVERHEAD = sizeof(struct ps_record) + sizeof(struct ps_ring_entry) +
	                 sizeof(struct ps_write) + 16 + PS_ALIGN + PS_RECORD_SLACK,
};

/* --- how much fits --- */

static uint64_t group_entry_length(uint64_t pieces, uint64_t bytes)
{
	return ps_align64(GROUP_OVERHEAD + pieces * PIECE_OVERHEAD + 2 * bytes);
}

/* Returns an upper bound for the entries that the transaction adds. */
static uint64_t max_record_entries_of(const struct perseas_tx *tx)
{
	const uint64_t ranges = (uint64_t)tx->range_count + tx->deferred_store_count;

	return 2 * ranges +
	       (tx->cover.covered_bytes + (uint64_t)tx->deferred_store_count * PS_DEFERRED_LENGTH) /
	               LINE;
}

static uint64_t max_changed_bytes_of(const struct perseas_tx *tx)
{
	return tx->cover.covered_bytes + (uint64_t)tx->deferred_store_count * PS_DEFERRED_LENGTH;
}

static bool fits_group(const struct ps_gather *g, uint64_t pieces, uint64_t bytes)
{
	return pieces <= LINES_MAX && group_entry_length(pieces, bytes) <= g->entry_limit_bytes;
}

bool ps_gather_can_hold(const struct perseas_tx *tx)
{
	return fits_group(tx->p->commit.gather, max_record_entries_of(tx),
	                  max_changed_bytes_of(tx));
}

void ps_gather_send_unless_tx_joins(const struct perseas_tx *tx, unsigned flags)
{
	struct perseas *p = tx->p;
	const struct ps_gather *g = p->commit.gather;

	assert(p->commit.has_gathered);
	if (!(flags & PS_MAY_GATHER) ||
	    !fits_group(g, g->entry_count_limit + max_record_entries_of(tx),
	                g->changed_bytes + max_changed_bytes_of(tx)))
		ps_gather_send(p);
}

uint64_t ps_gather_entry_length(const struct perseas_tx *tx)
{
	const struct ps_gather *g = tx->p->commit.gather;

	if (!ps_gather_can_hold(tx))
		return ps_tx_entry_length(tx);
	return group_entry_length(g->entry_count_limit + max_record_entries_of(tx),
	                          g->changed_bytes + max_changed_bytes_of(tx));
}

/* --- begin and end --- */

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The times commit_timeout_ms and flush_within_ms count from the commit, so a commit is held back
 * for at most half of either. */
static uint64_t max_hold_ns(const struct perseas_options *o)
{
	const uint64_t asked = (uint64_t)o->gather_us * 1000;
	const uint64_t most = smaller_of(asked, ps_ms(o->commit_timeout_ms) / 2);

	return o->flush_within_ms ? smaller_of(most, ps_ms(o->flush_within_ms) / 2) : most;
}

bool ps_gather_allocate(struct perseas *p)
{
	struct ps_gather *g = p->commit.gather;
	struct ps_record *record;
	uint64_t limit;

	if (g)
		return true;
	ps_assert_locked(p);
	/* Reserves the writes of the largest group's chain. It needs none while transactions go
	 * through the ring, but they may no longer do so when a group is posted. */
	if (ps_commit_reserve_writes(p, LINES_MAX + 1))
		return false;
	limit = smaller_of(p->options.gather_bytes, p->commit.ring.size / 4);
	limit = smaller_of(limit, ps_record_limit(p->log_size)) / PS_ALIGN * PS_ALIGN;
	g = calloc(1, sizeof(*g));
	record = aligned_alloc(PS_ALIGN, limit + PS_RECORD_SLACK);
	if (!g || !record) {
		free(g);
		free(record);
		return false;
	}
	memset(record, 0, sizeof(*record));
	g->record = record;
	g->entry_limit_bytes = limit;
	g->max_hold_ns = max_hold_ns(&p->options);
	p->commit.gather = g;
	return true;
}

void ps_gather_free(struct perseas *p)
{
	struct ps_gather *g = p->commit.gather;

	if (!g)
		return;
	free(g->record);
	free(g);
	p->commit.gather = NULL;
}

uint64_t ps_gather_due_at(const struct perseas *p)
{
	return p->commit.has_gathered ? p->commit.gather->must_post_at : PS_NEVER;
}

/* --- adding a transaction --- */

static unsigned find_or_add_line(struct ps_gather *g, uint32_t segment, uint64_t number)
{
	uint32_t place = (uint32_t)(((number + segment) * 0x9e3779b97f4a7c15u) >> 40);
	struct ps_gather_line *line;

	for (;; place++) {
		const uint32_t at = g->hash_index[place %= PLACES];

		if (!at)
			break;
		if (g->lines[at - 1].line_number == number &&
		    g->lines[at - 1].segment_id == segment)
			return at - 1;
	}
	assert(g->line_count < LINES_MAX);
	line = &g->lines[g->line_count];
	*line = (struct ps_gather_line){ .line_number = number,
		                         .segment_id = segment,
		                         .index_place = place };
	g->hash_index[place] = ++g->line_count;
	return g->line_count - 1;
}

static unsigned count_bits(uint64_t bits)
{
	unsigned count = 0;

	for (; bits; bits &= bits - 1)
		count++;
	return count;
}

/* Adds bytes of one line. Their before-image counts only where no earlier transaction of the group
 * changed them. */
static void add_bytes_to_line(struct ps_gather *g, uint32_t segment, uint64_t offset,
                              unsigned length, const uint8_t *before, const uint8_t *after)
{
	const unsigned at = find_or_add_line(g, segment, offset / LINE), from = offset % LINE;
	const uint64_t bits = (length == LINE ? UINT64_MAX : ((uint64_t)1 << length) - 1) << from;
	uint64_t fresh = bits & ~g->lines[at].changed_bits;

	g->entry_count_limit += fresh != 0;
	g->changed_bytes += fresh == bits ? length : count_bits(fresh);
	g->lines[at].changed_bits |= bits;
	ps_copy_short(g->after_images[at] + from, after, length);
	if (fresh == bits) {
		ps_copy_short(g->before_images[at] + from, before, length);
		return;
	}
	for (; fresh; fresh &= fresh - 1) {
		const unsigned bit = (unsigned)__builtin_ctzll(fresh);

		g->before_images[at][bit] = before[bit - from];
	}
}

static void add_range_to_lines(struct ps_gather *g, const struct ps_range *range,
                               const uint8_t *before, const uint8_t *after)
{
	uint64_t done = 0;

	while (done < range->length) {
		const uint64_t offset = range->offset + done;
		const uint64_t length = smaller_of(LINE - offset % LINE, range->length - done);

		add_bytes_to_line(g, range->segment, offset, (unsigned)length, before + done,
		                  after + done);
		done += length;
	}
}

/* Adds all declared ranges with their present contents. They come from the shadow if the segment
 * has one, because that is what must be sent. */
static void add_ranges(struct ps_gather *g, const struct perseas_tx *tx)
{
	struct ps_cursor cursor = { tx->record + sizeof(struct ps_record),
		                    tx->record + tx->record_length, tx->range_count, true };
	const struct ps_range *range;
	const void *before;

	while (ps_record_next(&cursor, &range, &before)) {
		const struct ps_segment *segment = ps_segment_by_id(tx->p, range->segment);
		const uint8_t *bytes = segment->shadow ? segment->shadow : segment->base;

		add_range_to_lines(g, range, before, bytes + range->offset);
	}
}

void ps_gather_add_tx(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;
	struct ps_gather *g = p->commit.gather;

	/* A thread that sets one of these flags posts the group first, and no transaction joins a
	 * group until the flag is cleared. */
	assert(!p->is_gate_raised && !p->is_renewing && !p->commit.in_doubt_seq);
	if (p->options.flags & PS_SHADOW_FLAGS)
		ps_shadow_copy_changes(tx);
	g->last_added_at = ps_now(p);
	if (!p->commit.has_gathered)
		g->must_post_at = g->last_added_at + g->max_hold_ns;
	p->commit.has_gathered = true;
	g->declared_bytes += tx->cover.covered_bytes;
	add_ranges(g, tx);
	assert(fits_group(g, g->entry_count_limit, g->changed_bytes));
	/* A mirror that comes back must not be replayed from entries that the group will
	 * overwrite. */
	ps_ring_drop_overwritten(&p->commit.ring,
	                         group_entry_length(g->entry_count_limit, g->changed_bytes));
	p->commit.stat.gathered++;
	if (g->last_added_at >= g->must_post_at)
		ps_gather_send(p);
}

/* --- posting --- */

/* The group's undo record while it is being built. */
struct record_builder {
	uint8_t *end;
	struct ps_range *last;
	unsigned count;
};

/* Ends the last entry. The padding must be zero. */
static void pad_entry(struct record_builder *to)
{
	while ((uintptr_t)to->end % 8)
		*to->end++ = 0;
}

/* Appends `length` bytes of a line, from offset `from` in it: as a new entry, or to the last
 * one. */
static void append_changed_run(struct ps_gather *g, struct record_builder *to, unsigned line_index,
                               unsigned from, unsigned length)
{
	const struct ps_gather_line *line = &g->lines[line_index];
	const uint64_t offset = line->line_number * LINE + from,
		       after = (uintptr_t)g->after_images[line_index] + from;
	struct ps_span *span = &g->spans[to->count];

	/* The run continues the last entry, which ended at the end of the line before. */
	if (to->count && to->last->segment == line->segment_id &&
	    to->last->offset + to->last->length == offset) {
		assert(span[-1].end == after);
		to->last->length += length;
		span[-1].end += length;
	} else {
		pad_entry(to);
		to->last = (struct ps_range *)to->end;
		*to->last = (struct ps_range){ line->segment_id, length, offset };
		to->end += sizeof(*to->last);
		*span = (struct ps_span){ after, after + length, after - offset, line->segment_id };
		to->count++;
	}
	ps_copy_short(to->end, g->before_images[line_index] + from, length);
	to->end += length;
}

static void append_changed_bytes_of_line(struct ps_gather *g, struct record_builder *to,
                                         unsigned line_index)
{
	uint64_t rest = g->lines[line_index].changed_bits;
	unsigned from = 0, length;

	while (rest) {
		const unsigned gap = (unsigned)__builtin_ctzll(rest);

		from += gap;
		rest >>= gap;
		length = rest == UINT64_MAX ? LINE : (unsigned)__builtin_ctzll(~rest);
		append_changed_run(g, to, line_index, from, length);
		from += length;
		rest = length == LINE ? 0 : rest >> length;
	}
}

static struct ps_outgoing build_record(struct ps_gather *g)
{
	struct record_builder to = { .end = (uint8_t *)(g->record + 1) };
	struct ps_outgoing out = { .record = g->record,
		                   .record_kind = PS_RECORD_TRANSACTION,
		                   .spans = g->spans,
		                   .changed_bytes = g->changed_bytes };

	for (unsigned i = 0; i < g->line_count; i++)
		append_changed_bytes_of_line(g, &to, i);
	pad_entry(&to);
	out.record_length = (uint64_t)(to.end - (uint8_t *)g->record);
	out.range_count = out.span_count = to.count;
	out.entry_length = ps_entry_length(out.record_length, to.count, out.changed_bytes);
	assert(out.entry_length <= group_entry_length(g->entry_count_limit, g->changed_bytes));
	return out;
}

static void empty_group(struct ps_gather *g)
{
	for (unsigned i = 0; i < g->line_count; i++)
		g->hash_index[g->lines[i].index_place] = 0;
	g->line_count = g->entry_count_limit = 0;
	g->changed_bytes = g->declared_bytes = 0;
}

/* Restarts the timeout of unawaited commits if the group is posted late, for example because this
 * process was stopped: mirrors could not have completed it in time. Counts its age as if it had
 * been posted when it was due. */
static void restart_doubt_timeout(struct perseas *p)
{
	const struct ps_gather *g = p->commit.gather;
	const uint64_t now = ps_now(p), slack = ps_ms(p->options.commit_timeout_ms) / 4;
	struct ps_unwaited *u = &p->commit.unwaited;

	if (u->last_unawaited_seq && p->commit.durable_seq >= p->commit.seq &&
	    now >= g->must_post_at + slack)
		u->durable_progress_at = now - g->max_hold_ns;
}

void ps_gather_send(struct perseas *p)
{
	struct ps_gather *g = p->commit.gather;
	struct ps_outgoing out;
	int rc;

	ps_assert_locked(p);
	assert(p->commit.has_gathered);
	out = build_record(g);
	p->commit.has_gathered = false;
	restart_doubt_timeout(p);
	rc = ps_commit_send(p, &out);
	assert(!rc);
	(void)rc;
	p->commit.stat.groups++;
	p->commit.stat.range_bytes += g->changed_bytes;
	p->commit.stat.saved_between += g->declared_bytes - g->changed_bytes;
	empty_group(g);
}

void ps_gather_restore_window(const struct perseas *p, const struct ps_window *window)
{
	const struct ps_gather *g = p->commit.gather;

	if (!p->commit.has_gathered)
		return;
	for (unsigned i = 0; i < g->line_count; i++) {
		const struct ps_gather_line *line = &g->lines[i];
		const uint64_t offset = line->line_number * LINE;

		if (line->segment_id != window->segment || offset + LINE <= window->offset ||
		    offset >= window->offset + window->length)
			continue;
		for (uint64_t rest = line->changed_bits; rest; rest &= rest - 1) {
			const unsigned bit = (unsigned)__builtin_ctzll(rest);
			const uint64_t at = offset + bit - window->offset;

			if (offset + bit >= window->offset && at < window->length)
				window->bytes[at] = g->before_images[i][bit];
		}
	}
}
