/*
 * cut.c - makes pieces of segments (cut.h). Each new piece is a new segment of the store: it is
 * filled, published, and then entered into the table. Only then the pieces that it replaces are
 * destroyed. A crash leaves segments that no row of the table names (table.h).
 */
#include "cut.h"

#include "data_file.h"
#include "fail.h"

#include <string.h>

/* A new piece, or an old piece that new ones replace. */
struct part {
	uint64_t id, offset, length;
	char *base;
	int row; /* row in the table; -1 if it has none yet */
};

struct cut {
	perseas_t *store;
	const struct ps_rvm_wanted_part *want;
	uint64_t next_id; /* id that the next new piece gets */
	/* New pieces. The first is the wanted piece; the others get the rests of old pieces. */
	struct part made[PS_RVM_PIECES];
	unsigned made_count;
	struct part old[PS_RVM_PIECES]; /* existing pieces that have bytes of the wanted part */
	unsigned old_count;
	bool published; /* the new pieces are published, and must be destroyed after a failure */
};

static rvm_return_t fail_store(const struct cut *cut, int rc)
{
	return ps_rvm_fail_store(cut->store, rc, "the region cannot be created in the store");
}

/* --- planning ---  */

static void find_overlapping_pieces(struct cut *cut)
{
	const struct ps_rvm_wanted_part *want = cut->want;

	for (int i = 0; i < PS_RVM_PIECES && want->segment >= 0; i++) {
		const struct ps_rvm_piece_row *row = &ps_rvm.table->pieces[i];

		if (row->id && row->segment == (uint32_t)want->segment &&
		    row->offset < want->offset + want->length &&
		    want->offset < row->offset + row->length)
			cut->old[cut->old_count++] = (struct part){ row->id, row->offset,
				                                    row->length, NULL, i };
	}
}

/* Adds a new piece to the plan. Returns false if the table has no free row for it. */
static bool plan_piece(struct cut *cut, uint64_t offset, uint64_t end)
{
	int free = 0;

	for (int i = 0; i < PS_RVM_PIECES; i++)
		free += !ps_rvm.table->pieces[i].id;
	if (cut->made_count == (unsigned)free)
		return false;
	cut->made[cut->made_count++] = (struct part){ 0, offset, end - offset, NULL, -1 };
	return true;
}

static bool plan_pieces(struct cut *cut)
{
	const uint64_t start = cut->want->offset, end = start + cut->want->length;
	bool fits = plan_piece(cut, start, end);

	for (unsigned i = 0; i < cut->old_count && fits; i++) {
		const struct part *old = &cut->old[i];

		if (old->offset < start)
			fits = plan_piece(cut, old->offset, start);
		if (fits && old->offset + old->length > end)
			fits = plan_piece(cut, end, old->offset + old->length);
	}
	return fits;
}

/* --- contents --- */

static int map_old_pieces(struct cut *cut)
{
	for (unsigned i = 0; i < cut->old_count; i++) {
		void *base;
		const int rc = perseas_map_at(cut->store, ps_rvm_piece_name(cut->old[i].id).text, 0,
		                              NULL, &base, NULL);

		if (rc)
			return rc;
		cut->old[i].base = base;
	}
	return 0;
}

static int map_new_pieces(struct cut *cut)
{
	struct perseas_segment_info info;

	for (unsigned i = 0; i < cut->made_count; i++) {
		struct part *part = &cut->made[i];
		void *base;
		int rc;

		do
			part->id = cut->next_id++;
		while (!perseas_segment(cut->store, ps_rvm_piece_name(part->id).text, &info));
		rc = perseas_map_at(cut->store, ps_rvm_piece_name(part->id).text, part->length,
		                    NULL, &base, NULL);
		if (rc)
			return rc;
		part->base = base;
	}
	return 0;
}

/* Returns true if the old pieces together have every byte of the wanted part. */
static bool old_pieces_cover_all(const struct cut *cut)
{
	uint64_t had = 0;

	for (unsigned i = 0; i < cut->old_count; i++)
		had += cut->old[i].length;
	for (unsigned i = 1; i < cut->made_count; i++)
		had -= cut->made[i].length;
	return had == cut->want->length;
}

static rvm_return_t fill_from_file(struct cut *cut)
{
	struct ps_rvm_file file;
	rvm_return_t code = ps_rvm_file_open(&file, cut->want->name, NULL);

	if (code != RVM_SUCCESS)
		return code;
	code = ps_rvm_file_read(&file, cut->want->offset, cut->made[0].base, cut->want->length);
	ps_rvm_file_close(&file);
	return code;
}

static void copy_part(const struct part *to, const struct part *from)
{
	const uint64_t start = to->offset > from->offset ? to->offset : from->offset;
	const uint64_t to_end = to->offset + to->length, from_end = from->offset + from->length;
	const uint64_t end = to_end < from_end ? to_end : from_end;

	if (start < end)
		memcpy(to->base + (start - to->offset), from->base + (start - from->offset),
		       end - start);
}

static rvm_return_t fill_pieces(struct cut *cut)
{
	rvm_return_t code = old_pieces_cover_all(cut) ? RVM_SUCCESS : fill_from_file(cut);

	for (unsigned i = 0; i < cut->made_count && code == RVM_SUCCESS; i++)
		for (unsigned j = 0; j < cut->old_count; j++)
			copy_part(&cut->made[i], &cut->old[j]);
	return code;
}

/* --- the table --- */

static int declare_rows(const struct cut *cut, perseas_tx_t *tx, unsigned segment)
{
	struct ps_rvm_table *table = ps_rvm.table;
	int rc = perseas_set_range(tx, &table->next, sizeof(table->next));

	if (!rc)
		rc = perseas_set_range(tx, &table->segments[segment],
		                       sizeof(table->segments[segment]));
	for (unsigned i = 0; i < cut->old_count && !rc; i++)
		rc = perseas_set_range(tx, &table->pieces[cut->old[i].row],
		                       sizeof(table->pieces[0]));
	for (unsigned i = 0; i < cut->made_count && !rc; i++)
		rc = perseas_set_range(tx, &table->pieces[cut->made[i].row],
		                       sizeof(table->pieces[0]));
	return rc;
}

static void change_rows(const struct cut *cut, unsigned segment)
{
	struct ps_rvm_table *table = ps_rvm.table;
	struct ps_rvm_segment_row *row = &table->segments[segment];

	table->next = cut->next_id;
	strcpy(row->name, cut->want->name);
	if (row->length < cut->want->segment_length)
		row->length = cut->want->segment_length;
	for (unsigned i = 0; i < cut->old_count; i++)
		memset(&table->pieces[cut->old[i].row], 0, sizeof(table->pieces[0]));
	for (unsigned i = 0; i < cut->made_count; i++) {
		const struct part *part = &cut->made[i];

		table->pieces[part->row] = (struct ps_rvm_piece_row){ part->id, part->offset,
			                                              part->length, segment, 0 };
	}
}

/* Enters the new pieces into the table and removes the old ones, in a transaction. A commit in
 * doubt counts as done, because the next transaction waits until mirrors have it. */
static int change_table(struct cut *cut, unsigned segment)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(cut->store, 0, &tx);

	if (rc)
		return rc;
	rc = declare_rows(cut, tx, segment);
	if (!rc) {
		change_rows(cut, segment);
		rc = perseas_commit(tx, 0);
	}
	if (!rc || rc == PERSEAS_EINDOUBT)
		return 0;
	if (rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}

/* --- making and cleaning up --- */

/* Gives each new piece a row. Marks its pages dirty unless all of its contents came from the
 * external data segment. Returns false if out of memory. */
static bool assign_rows(struct cut *cut)
{
	int row = 0;

	for (unsigned i = 0; i < cut->made_count; i++, row++) {
		while (ps_rvm.table->pieces[row].id)
			row++;
		if (!ps_rvm_piece_init((unsigned)row, cut->made[i].length, cut->old_count > 0))
			return false;
		cut->made[i].row = row;
	}
	return true;
}

static void undo_cut(struct cut *cut)
{
	for (unsigned i = 0; i < cut->made_count; i++) {
		struct part *part = &cut->made[i];

		if (part->row >= 0)
			ps_rvm_piece_free((unsigned)part->row);
		if (part->base)
			perseas_unmap(cut->store, part->base);
		if (part->base && cut->published)
			perseas_segment_destroy(cut->store, ps_rvm_piece_name(part->id).text);
	}
	for (unsigned i = 0; i < cut->old_count; i++)
		if (cut->old[i].base)
			perseas_unmap(cut->store, cut->old[i].base);
}

/* Unmaps and destroys the replaced pieces. The next open destroys what could not be destroyed
 * now. */
static void destroy_old_pieces(struct cut *cut)
{
	for (unsigned i = 1; i < cut->made_count; i++)
		perseas_unmap(cut->store, cut->made[i].base);
	for (unsigned i = 0; i < cut->old_count; i++) {
		ps_rvm_piece_free((unsigned)cut->old[i].row);
		perseas_unmap(cut->store, cut->old[i].base);
		perseas_segment_destroy(cut->store, ps_rvm_piece_name(cut->old[i].id).text);
	}
}

static rvm_return_t make_pieces(struct cut *cut, unsigned segment)
{
	rvm_return_t code;
	int rc = map_old_pieces(cut);

	if (!rc)
		rc = map_new_pieces(cut);
	if (rc)
		return fail_store(cut, rc);
	code = fill_pieces(cut);
	if (code != RVM_SUCCESS)
		return code;
	if (!assign_rows(cut))
		return ps_rvm_fail(RVM_ENO_MEMORY, "no memory for the state of a region");
	rc = perseas_publish(cut->store);
	cut->published = !rc || rc == PERSEAS_EINDOUBT;
	if (!rc)
		rc = change_table(cut, segment);
	return rc ? fail_store(cut, rc) : RVM_SUCCESS;
}

rvm_return_t ps_rvm_make_piece(perseas_t *store, const struct ps_rvm_wanted_part *want,
                               unsigned *row, void **base)
{
	struct cut cut = { .store = store, .want = want, .next_id = ps_rvm.table->next };
	const int segment = want->segment >= 0 ? want->segment
	                                       : ps_rvm_table_find(ps_rvm.table, "");
	rvm_return_t code;

	ps_rvm_assert_locked();
	if (segment < 0)
		return ps_rvm_fail(RVM_ETOO_BIG,
		                   "the store has %d segments, the most that it can have",
		                   PS_RVM_SEGMENTS);
	find_overlapping_pieces(&cut);
	if (!plan_pieces(&cut))
		return ps_rvm_fail(RVM_ETOO_BIG,
		                   "the store has %d parts of segments, the most that it can "
		                   "have: map whole segments, or the same parts as before",
		                   PS_RVM_PIECES);
	code = make_pieces(&cut, (unsigned)segment);
	if (code != RVM_SUCCESS) {
		undo_cut(&cut);
		return code;
	}
	destroy_old_pieces(&cut);
	*row = (unsigned)cut.made[0].row;
	*base = cut.made[0].base;
	return RVM_SUCCESS;
}
