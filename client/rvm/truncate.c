/*
 * truncate.c - rvm_truncate: writes what was committed to external data segments. In RVM it makes
 * room in the log; here nothing waits for it.
 *
 * rvm_set_range marks pages dirty: their file may lack a change (tx.c). A truncation takes the
 * dirty bits, which clears them, and then copies the pages without uncommitted bytes. Three races
 * need care:
 * - A transaction may have marked its pages before the bits were taken, and commit after the
 *   copy. So the bits of regions that an open transaction touches are put back at once. A slot
 *   shows which regions its transaction touches from before the first page is marked until the
 *   transaction has ended.
 * - A transaction that ended before the bits were taken may still be delayed
 *   (RVM_COALESCE_TRANS), and the copy would lack it. So the store is flushed between taking
 *   the bits and copying.
 * - A transaction that marks a page after the bits were taken may commit before the copy, which
 *   then has only a part of it. So if a page has become dirty, the bits are taken again, until
 *   the copy has all of every transaction that it contains.
 *
 * A process may have lost the store and not know it yet; its memory is then older than the files
 * that the next owner writes. So each file is locked, as the next owner does too, and only then a
 * commit asks the mirrors whether this process still owns the store. If it does, the next owner's
 * first truncation comes later and writes everything. If it does not, nothing is written.
 *
 * Segment names come from the store, and a client that can write to the store could put any path
 * there. So the library only writes files that the program itself has named in rvm_map.
 */
#include "cancel.h"
#include "data_file.h"
#include "fail.h"
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PATIENCE_MS = 5000 };

/* A piece that may have dirty pages. */
struct part {
	unsigned row;     /* the piece's row in the table */
	uint64_t *dirty;  /* the dirty bits that were taken from the piece, in all rounds */
	uint64_t words;   /* length of `dirty` */
	char *memory;     /* the piece's memory */
	bool mapped_here; /* mapped by the truncation, which unmaps it at the end */
	size_t first_run, end_run; /* the piece's runs are runs[first_run] to runs[end_run - 1] */
};

struct truncation {
	perseas_t *store;
	struct part parts[PS_RVM_PIECES];
	unsigned count;
	/* Runs of contiguous dirty pages: their address, length, and the address of the copy. */
	struct perseas_piece *runs;
	size_t run_count;
	char *copy;
	size_t copy_length;
};

static rvm_return_t fail_no_memory(void)
{
	return ps_rvm_fail(RVM_ENO_MEMORY, "no memory for a copy of the changed pages");
}

/* --- dirty bits --- */

static rvm_return_t add_part(struct truncation *t, unsigned row)
{
	const uint64_t grain = (uint64_t)PS_RVM_PAGE * PS_RVM_WORD;
	struct part *part = &t->parts[t->count];

	*part = (struct part){ .row = row,
		               .words = (ps_rvm.pieces[row].length + grain - 1) / grain };
	part->dirty = calloc(part->words, sizeof(*part->dirty));
	if (!part->dirty)
		return fail_no_memory();
	t->count++;
	return RVM_SUCCESS;
}

static rvm_return_t add_parts(struct truncation *t)
{
	rvm_return_t code = RVM_SUCCESS;

	for (unsigned i = 0; i < PS_RVM_PIECES && code == RVM_SUCCESS; i++)
		if (ps_rvm.pieces[i].dirty && ps_rvm.named[ps_rvm.table->pieces[i].segment])
			code = add_part(t, i);
	return code;
}

/* Moves the piece's dirty bits to part->dirty. */
static void take_dirty_bits(struct part *part)
{
	struct ps_rvm_piece *piece = &ps_rvm.pieces[part->row];

	for (uint64_t i = 0; i < part->words; i++)
		if (atomic_load(&piece->dirty[i]))
			part->dirty[i] |= atomic_exchange(&piece->dirty[i], 0);
}

/* Sets the piece's dirty bits again for all pages in part->dirty. */
static void put_dirty_bits_back(const struct part *part)
{
	for (uint64_t i = 0; i < part->words; i++)
		if (part->dirty[i])
			atomic_fetch_or(&ps_rvm.pieces[part->row].dirty[i], part->dirty[i]);
}

static bool is_row_touched(unsigned row)
{
	struct ps_rvm_slot *slot;

	for (uint32_t i = 0; (slot = ps_rvm_slot_at(i)); i++)
		if (ps_rvm_slot_touches(slot, row))
			return true;
	return false;
}

static void take_all_dirty_bits(struct truncation *t)
{
	for (unsigned i = 0; i < t->count; i++)
		take_dirty_bits(&t->parts[i]);
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; i < t->count; i++)
		if (is_row_touched(t->parts[i].row))
			put_dirty_bits_back(&t->parts[i]);
}

/* Returns true if a page that is not in part->dirty has become dirty since the bits were taken. */
static bool has_new_dirty_pages(const struct truncation *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		const struct part *part = &t->parts[i];

		for (uint64_t word = 0; word < part->words; word++)
			if (atomic_load(&ps_rvm.pieces[part->row].dirty[word]) & ~part->dirty[word])
				return true;
	}
	return false;
}

/* --- memory --- */

static rvm_return_t find_piece_memory(struct truncation *t, struct part *part)
{
	const uint64_t id = ps_rvm.table->pieces[part->row].id;
	void *base = part->mapped_here ? part->memory : ps_rvm.pieces[part->row].base;
	int rc;

	if (!base) {
		rc = perseas_map_at(t->store, ps_rvm_piece_name(id).text, 0, NULL, &base, NULL);
		if (rc)
			return ps_rvm_fail_store(t->store, rc, "a region cannot be read");
		part->mapped_here = true;
	}
	part->memory = base;
	return RVM_SUCCESS;
}

/* Adds a page to the last run, or begins a new run. Returns false if out of memory. */
static bool add_page(struct truncation *t, const struct part *part, uint64_t page)
{
	const uint64_t offset = page * PS_RVM_PAGE, rest = ps_rvm.pieces[part->row].length - offset;
	const size_t length = rest < PS_RVM_PAGE ? rest : PS_RVM_PAGE;
	struct perseas_piece *last = t->run_count > part->first_run ? &t->runs[t->run_count - 1]
	                                                            : NULL;

	if (last && (const char *)last->from + last->len == part->memory + offset) {
		last->len += length;
		return true;
	}
	/* The array has room for one run less than a power of two. */
	if (!t->runs || !(t->run_count & (t->run_count + 1))) {
		struct perseas_piece *more = realloc(t->runs,
		                                     2 * (t->run_count + 1) * sizeof(*more));

		if (!more)
			return false;
		t->runs = more;
	}
	t->runs[t->run_count++] = (struct perseas_piece){ part->memory + offset, length, NULL };
	return true;
}

static rvm_return_t find_runs(struct truncation *t, struct part *part)
{
	part->first_run = t->run_count;
	for (uint64_t i = 0; i < part->words; i++)
		for (uint64_t bits = part->dirty[i]; bits; bits &= bits - 1)
			if (!add_page(t, part, i * PS_RVM_WORD + (uint64_t)__builtin_ctzll(bits)))
				return fail_no_memory();
	part->end_run = t->run_count;
	return RVM_SUCCESS;
}

/* Copies all runs of dirty pages as of one commit, and waits until W mirrors, the write quorum,
 * hold that commit. */
static rvm_return_t copy_runs(struct truncation *t)
{
	struct perseas_token token;
	int rc;

	for (size_t i = 0; i < t->run_count; i++)
		t->copy_length += t->runs[i].len;
	if (!t->copy_length)
		return RVM_SUCCESS;
	t->copy = mmap(NULL, t->copy_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	               -1, 0);
	if (t->copy == MAP_FAILED) {
		t->copy = NULL;
		return fail_no_memory();
	}
	for (size_t i = 0, at = 0; i < t->run_count; at += t->runs[i++].len)
		t->runs[i].to = t->copy + at;
	rc = perseas_copy_committed(t->store, t->runs, t->run_count, &token);
	if (!rc)
		rc = perseas_wait(t->store, &token, PATIENCE_MS);
	return rc ? ps_rvm_fail_store(t->store, rc, "what has changed cannot be copied")
	          : RVM_SUCCESS;
}

static bool has_no_dirty_pages(const struct part *part)
{
	for (uint64_t i = 0; i < part->words; i++)
		if (part->dirty[i])
			return false;
	return true;
}

static void drop_copy(struct truncation *t)
{
	if (t->copy)
		munmap(t->copy, t->copy_length);
	t->copy = NULL;
	t->copy_length = 0;
	t->run_count = 0;
}

static rvm_return_t copy_dirty_pages(struct truncation *t)
{
	rvm_return_t code = RVM_SUCCESS;

	drop_copy(t);
	for (unsigned i = 0; i < t->count && code == RVM_SUCCESS; i++) {
		if (has_no_dirty_pages(&t->parts[i]))
			continue;
		code = find_piece_memory(t, &t->parts[i]);
		if (code == RVM_SUCCESS)
			code = find_runs(t, &t->parts[i]);
	}
	return code == RVM_SUCCESS ? copy_runs(t) : code;
}

/* --- files --- */

/* Checks that this process still owns the store. Only a commit can tell, so it commits a
 * transaction that changes no bytes. */
static rvm_return_t confirm_owner(perseas_t *store)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(store, 0, &tx);

	if (rc)
		return ps_rvm_fail_store(store, rc, "no file is written");
	rc = perseas_set_range(tx, ps_rvm.table->magic, sizeof(ps_rvm.table->magic));
	if (!rc)
		rc = perseas_commit(tx, 0);
	if (!rc)
		return RVM_SUCCESS;
	if (rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return ps_rvm_fail_store(store, rc, "no file is written");
}

static rvm_return_t write_dirty_pages(const struct truncation *t, const struct part *part)
{
	const struct ps_rvm_piece_row *row = &ps_rvm.table->pieces[part->row];
	struct ps_rvm_file file;
	rvm_return_t code;

	if (part->first_run == part->end_run)
		return RVM_SUCCESS;
	code = ps_rvm_file_create(&file, ps_rvm.table->segments[row->segment].name);
	if (code != RVM_SUCCESS)
		return code;
	code = ps_rvm_file_lock(&file);
	if (code == RVM_SUCCESS)
		code = confirm_owner(t->store);
	for (size_t i = part->first_run; i < part->end_run && code == RVM_SUCCESS; i++) {
		const struct perseas_piece *run = &t->runs[i];
		const uint64_t at = (uint64_t)((const char *)run->from - part->memory);

		code = ps_rvm_file_write(&file, row->offset + at, run->to, run->len);
	}
	if (code == RVM_SUCCESS)
		code = ps_rvm_file_sync(&file);
	ps_rvm_file_unlock(&file);
	ps_rvm_file_close(&file);
	return code;
}

static void end_truncation(struct truncation *t, rvm_return_t code)
{
	for (unsigned i = 0; i < t->count; i++) {
		struct part *part = &t->parts[i];

		if (code != RVM_SUCCESS)
			put_dirty_bits_back(part);
		if (part->mapped_here)
			perseas_unmap(t->store, part->memory);
		free(part->dirty);
	}
	drop_copy(t);
	free(t->runs);
}

static rvm_return_t flush_store(perseas_t *store)
{
	const int rc = perseas_flush(store);

	return rc ? ps_rvm_fail_store(store, rc, "what is committed is not permanent yet")
	          : RVM_SUCCESS;
}

/* Copies the dirty pages as of one commit. Transactions may dirty further pages during a round, and
 * the next round copies these as well. The number of rounds grows with the logarithm of the number
 * of pages, because a round that takes longer leaves time for more of them. */
static rvm_return_t copy_committed(struct truncation *t)
{
	rvm_return_t code = add_parts(t);

	while (code == RVM_SUCCESS) {
		take_all_dirty_bits(t);
		code = flush_store(t->store);
		if (code == RVM_SUCCESS)
			code = copy_dirty_pages(t);
		if (!has_new_dirty_pages(t))
			break;
	}
	return code;
}

static rvm_return_t truncate_locked(struct truncation *t)
{
	rvm_return_t code = ps_rvm_require_store(&t->store);
	uint64_t begun = ps_rvm_now_ns(), copied;

	if (code != RVM_SUCCESS)
		return code;
	code = copy_committed(t);
	copied = ps_rvm_now_ns();
	for (unsigned i = 0; i < t->count && code == RVM_SUCCESS; i++)
		code = write_dirty_pages(t, &t->parts[i]);
	end_truncation(t, code);
	if (code == RVM_SUCCESS)
		ps_rvm_count_truncation(copied - begun, ps_rvm_now_ns() - copied);
	return code;
}

rvm_return_t rvm_truncate(void)
{
	PS_RVM_UNCANCELLED;
	struct truncation *t = calloc(1, sizeof(*t));
	rvm_return_t code;

	if (!t)
		return fail_no_memory();
	pthread_mutex_lock(&ps_rvm.lock);
	code = truncate_locked(t);
	pthread_mutex_unlock(&ps_rvm.lock);
	free(t);
	return code;
}
