/*
 * truncate.c - rvm_truncate: writes what was committed to external data segments. The name is
 * RVM's, where that makes room in the log; here nothing waits for it.
 *
 * Which pages a file lacks is noted when they are declared (tx.c). The notes are taken away first,
 * and then memory is copied without what is not committed. A transaction that is open in between
 * may have noted its pages before, and commit after: so the notes of regions that an open
 * transaction touches are put back at once. What it touches is seen before its first note is, and
 * until it has ended. One that has ended by then may be held back, which the copy would leave out:
 * so the store is flushed between the two. And one that noted a page when the notes were gone may
 * have been committed before the copy, which has the rest of it: so where a page has been added the
 * notes are taken again, until the copy has all that was committed by its moment.
 *
 * A process that has lost the store may not know of it yet, and what it has is older than what the
 * next owner writes. So each file is locked, which the next owner does, too, and only then mirrors
 * are asked, by a commit, whether the store is still this process's. If it is, the next owner's
 * first truncation comes after, and writes everything; if not, nothing is written.
 *
 * A segment's name comes from the store, and whoever can write to that can put any path there. So
 * only files are written that the program itself has named, in rvm_map.
 */
#include "data_file.h"
#include "fail.h"
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PATIENCE_MS = 5000 };

/* A row, and the pages that its file lacks. */
struct part {
	unsigned row;
	uint64_t *taken; /* its notes, those of each time */
	uint64_t words;
	char *from;        /* its memory */
	bool borrowed;     /* it was mapped to be written only */
	size_t first, end; /* its runs */
};

struct truncation {
	perseas_t *store;
	struct part parts[PS_RVM_PIECES];
	unsigned count;
	struct perseas_piece *runs; /* of pages, each of memory and its copy */
	size_t run_count;
	char *copy;
	size_t copy_length;
};

static rvm_return_t no_memory(void)
{
	return ps_rvm_fail(RVM_ENO_MEMORY, "no memory for a copy of what has changed");
}

/* --- notes --- */

static rvm_return_t begin_part(struct truncation *t, unsigned row)
{
	const uint64_t grain = (uint64_t)PS_RVM_PAGE * PS_RVM_WORD;
	struct part *part = &t->parts[t->count];

	*part = (struct part){ .row = row,
		               .words = (ps_rvm.pieces[row].length + grain - 1) / grain };
	part->taken = calloc(part->words, sizeof(*part->taken));
	if (!part->taken)
		return no_memory();
	t->count++;
	return RVM_SUCCESS;
}

static rvm_return_t begin_parts(struct truncation *t)
{
	rvm_return_t code = RVM_SUCCESS;

	for (unsigned i = 0; i < PS_RVM_PIECES && code == RVM_SUCCESS; i++)
		if (ps_rvm.pieces[i].dirty && ps_rvm.named[ps_rvm.table->pieces[i].segment])
			code = begin_part(t, i);
	return code;
}

static void take_notes(struct part *part)
{
	struct ps_rvm_piece *piece = &ps_rvm.pieces[part->row];

	for (uint64_t i = 0; i < part->words; i++)
		if (atomic_load(&piece->dirty[i]))
			part->taken[i] |= atomic_exchange(&piece->dirty[i], 0);
}

static void put_notes_back(const struct part *part)
{
	for (uint64_t i = 0; i < part->words; i++)
		if (part->taken[i])
			atomic_fetch_or(&ps_rvm.pieces[part->row].dirty[i], part->taken[i]);
}

static bool is_touched(unsigned row)
{
	struct ps_rvm_slot *slot;

	for (uint32_t i = 0; (slot = ps_rvm_slot_at(i)); i++)
		if (ps_rvm_slot_touches(slot, row))
			return true;
	return false;
}

static void take_all_notes(struct truncation *t)
{
	for (unsigned i = 0; i < t->count; i++)
		take_notes(&t->parts[i]);
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; i < t->count; i++)
		if (is_touched(t->parts[i].row))
			put_notes_back(&t->parts[i]);
}

/* Is one noted that was not, when notes were taken? */
static bool pages_are_added(const struct truncation *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		const struct part *part = &t->parts[i];

		for (uint64_t word = 0; word < part->words; word++)
			if (atomic_load(&ps_rvm.pieces[part->row].dirty[word]) & ~part->taken[word])
				return true;
	}
	return false;
}

/* --- memory --- */

static rvm_return_t find_memory(struct truncation *t, struct part *part)
{
	const uint64_t id = ps_rvm.table->pieces[part->row].id;
	void *base = part->borrowed ? part->from : ps_rvm.pieces[part->row].base;
	int rc;

	if (!base) {
		rc = perseas_map_at(t->store, ps_rvm_piece_name(id).text, 0, NULL, &base, NULL);
		if (rc)
			return ps_rvm_fail_store(t->store, rc, "a region cannot be read");
		part->borrowed = true;
	}
	part->from = base;
	return RVM_SUCCESS;
}

/* Adds a page to the last run, or begins another. False: memory is out. */
static bool add_page(struct truncation *t, const struct part *part, uint64_t page)
{
	const uint64_t offset = page * PS_RVM_PAGE, rest = ps_rvm.pieces[part->row].length - offset;
	const size_t length = rest < PS_RVM_PAGE ? rest : PS_RVM_PAGE;
	struct perseas_piece *last = t->run_count > part->first ? &t->runs[t->run_count - 1] : NULL;

	if (last && (const char *)last->from + last->len == part->from + offset) {
		last->len += length;
		return true;
	}
	/* One less than a power of two. */
	if (!t->runs || !(t->run_count & (t->run_count + 1))) {
		struct perseas_piece *more = realloc(t->runs,
		                                     2 * (t->run_count + 1) * sizeof(*more));

		if (!more)
			return false;
		t->runs = more;
	}
	t->runs[t->run_count++] = (struct perseas_piece){ part->from + offset, length, NULL };
	return true;
}

static rvm_return_t find_runs(struct truncation *t, struct part *part)
{
	part->first = t->run_count;
	for (uint64_t i = 0; i < part->words; i++)
		for (uint64_t bits = part->taken[i]; bits; bits &= bits - 1)
			if (!add_page(t, part, i * PS_RVM_WORD + (uint64_t)__builtin_ctzll(bits)))
				return no_memory();
	part->end = t->run_count;
	return RVM_SUCCESS;
}

/* All runs as of one moment, which W mirrors hold. */
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
		return no_memory();
	}
	for (size_t i = 0, at = 0; i < t->run_count; at += t->runs[i++].len)
		t->runs[i].to = t->copy + at;
	rc = perseas_copy_committed(t->store, t->runs, t->run_count, &token);
	if (!rc)
		rc = perseas_wait(t->store, &token, PATIENCE_MS);
	return rc ? ps_rvm_fail_store(t->store, rc, "what has changed cannot be copied")
	          : RVM_SUCCESS;
}

static bool is_clean(const struct part *part)
{
	for (uint64_t i = 0; i < part->words; i++)
		if (part->taken[i])
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

static rvm_return_t copy_all(struct truncation *t)
{
	rvm_return_t code = RVM_SUCCESS;

	drop_copy(t);
	for (unsigned i = 0; i < t->count && code == RVM_SUCCESS; i++) {
		if (is_clean(&t->parts[i]))
			continue;
		code = find_memory(t, &t->parts[i]);
		if (code == RVM_SUCCESS)
			code = find_runs(t, &t->parts[i]);
	}
	return code == RVM_SUCCESS ? copy_runs(t) : code;
}

/* --- files --- */

/* Is the store still this process's? Only a commit tells for sure: it changes nothing. */
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

static rvm_return_t write_part(const struct truncation *t, const struct part *part)
{
	const struct ps_rvm_piece_row *row = &ps_rvm.table->pieces[part->row];
	struct ps_rvm_file file;
	rvm_return_t code;

	if (part->first == part->end)
		return RVM_SUCCESS;
	code = ps_rvm_file_make(&file, ps_rvm.table->segments[row->segment].name);
	if (code != RVM_SUCCESS)
		return code;
	code = ps_rvm_file_lock(&file);
	if (code == RVM_SUCCESS)
		code = confirm_owner(t->store);
	for (size_t i = part->first; i < part->end && code == RVM_SUCCESS; i++) {
		const struct perseas_piece *run = &t->runs[i];
		const uint64_t at = (uint64_t)((const char *)run->from - part->from);

		code = ps_rvm_file_write(&file, row->offset + at, run->to, run->len);
	}
	if (code == RVM_SUCCESS)
		code = ps_rvm_file_sync(&file);
	ps_rvm_file_unlock(&file);
	ps_rvm_file_close(&file);
	return code;
}

static void end(struct truncation *t, rvm_return_t code)
{
	for (unsigned i = 0; i < t->count; i++) {
		struct part *part = &t->parts[i];

		if (code != RVM_SUCCESS)
			put_notes_back(part);
		if (part->borrowed)
			perseas_unmap(t->store, part->from);
		free(part->taken);
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

/* What was committed by one moment, with the pages that it changed. How many times it takes grows
 * with the logarithm of the pages: whoever adds to them adds more while more are copied. */
static rvm_return_t copy_whole(struct truncation *t)
{
	rvm_return_t code = begin_parts(t);

	while (code == RVM_SUCCESS) {
		take_all_notes(t);
		code = flush_store(t->store);
		if (code == RVM_SUCCESS)
			code = copy_all(t);
		if (!pages_are_added(t))
			break;
	}
	return code;
}

static rvm_return_t truncate_locked(struct truncation *t)
{
	rvm_return_t code = ps_rvm_ready(&t->store);
	uint64_t begun = ps_rvm_now(), copied;

	if (code != RVM_SUCCESS)
		return code;
	code = copy_whole(t);
	copied = ps_rvm_now();
	for (unsigned i = 0; i < t->count && code == RVM_SUCCESS; i++)
		code = write_part(t, &t->parts[i]);
	end(t, code);
	if (code == RVM_SUCCESS)
		ps_rvm_count_truncation(copied - begun, ps_rvm_now() - copied);
	return code;
}

rvm_return_t rvm_truncate(void)
{
	struct truncation *t = calloc(1, sizeof(*t));
	rvm_return_t code;

	if (!t)
		return no_memory();
	pthread_mutex_lock(&ps_rvm.lock);
	code = truncate_locked(t);
	pthread_mutex_unlock(&ps_rvm.lock);
	free(t);
	return code;
}
