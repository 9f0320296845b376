/*
 * test_grow.c - perseas_segment_grow and perseas_map_reserve: a segment that grows stays where it
 * is, and remains one segment for its users.
 */
#include "grow_rig.h"

#include "../../client/core/segment.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

/* --- what it is then --- */

/* The segment grows where it is, by zeros; a later owner maps all of it in one piece. */
TEST(it_grows_where_it_is, struct owner *o)
{
	struct perseas_segment_info info;
	uint8_t *table = make(o, "table", 2, 7), *again;

	assert_int_equal(grow(o, "table", 5), 0);
	assert_int_equal(grow(o, "table", 6), 0);
	assert_int_equal(grow(o, "table", 6), 0);
	assert_ptr_equal(map(o, "table"), table);
	assert_int_equal(size_of(o, "table"), 6 * PAGE);
	assert_bytes(table, 2 * PAGE, 7);
	assert_bytes(table + 2 * PAGE, 4 * PAGE, 0);
	assert_int_equal(put(o, table + 2 * PAGE - 10, 20, 1), 0);
	assert_int_equal(put(o, table + 5 * PAGE - 1, PAGE + 1, 2), 0);
	for (unsigned again_mapped = 0; again_mapped < 2; again_mapped++) {
		if (again_mapped)
			unmap(o, table);
		else
			owner_reopen(o);
		again = map(o, "table");
		assert_ptr_equal(again, table);
		assert_int_equal(size_of(o, "table"), 6 * PAGE);
		assert_bytes(again, 2 * PAGE - 10, 7);
		assert_bytes(again + 2 * PAGE - 10, 20, 1);
		assert_bytes(again + 2 * PAGE + 10, 3 * PAGE - 11, 0);
		assert_bytes(again + 5 * PAGE - 1, PAGE + 1, 2);
	}
	/* It is still one segment, the second of the store. */
	assert_int_equal(perseas_segment_at(o->p, 1, &info), 0);
	assert_string_equal(info.name, "table");
	assert_int_equal(info.size, 6 * PAGE);
	assert_int_equal(perseas_segment_at(o->p, 2, &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_segment(o->p, "table.grown.1", &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(owner_stat(o).live, 3);
}

/* perseas_map takes the size of all of it, and perseas_map_reserve any. */
TEST(its_size_is_that_of_all, struct owner *o)
{
	size_t whole;
	void *addr;

	make(o, "table", 2, 7);
	assert_int_equal(grow(o, "table", 5), 0);
	owner_reopen(o);
	assert_int_equal(perseas_map(o->p, "table", 2 * PAGE, &addr), PERSEAS_ESIZE);
	assert_says(o, "has 20480 bytes");
	assert_int_equal(perseas_map(o->p, "table", 6 * PAGE, &addr), PERSEAS_ESIZE);
	assert_says(o, "perseas_segment_grow");
	assert_int_equal(perseas_map(o->p, "table", 5 * PAGE, &addr), 0);
	unmap(o, addr);
	assert_int_equal(perseas_map_reserve(o->p, "table", 2 * PAGE, 9 * PAGE, &addr, &whole), 0);
	assert_int_equal(whole, 5 * PAGE);
}

/* Ranges in several parts: kept for aborts and savepoints, found to overlap, and refused as one. */
TEST(ranges_go_on_in_parts, struct owner *o)
{
	perseas_tx_t *tx, *other;
	uint64_t savepoint;
	uint8_t *table;

	o->options.flags = PERSEAS_CHECK_OVERLAP;
	owner_reopen(o);
	table = make(o, "table", 1, 7);
	assert_int_equal(grow(o, "table", 2), 0);
	assert_int_equal(grow(o, "table", 4), 0);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, table + 100, 3 * PAGE), 0);
	memset(table + 100, 1, 3 * PAGE);
	assert_int_equal(perseas_begin(o->p, 0, &other), 0);
	assert_int_equal(perseas_set_range(other, table + 3 * PAGE, 200), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_set_range(other, table + PAGE, 1), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_set_range(other, table + 3 * PAGE + 100, PAGE - 100), 0);
	assert_int_equal(perseas_abort(other), 0);
	assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
	assert_int_equal(perseas_set_range(tx, table + PAGE - 50, 2 * PAGE), 0);
	assert_int_equal(perseas_set_range(tx, table, 4 * PAGE), 0);
	memset(table, 2, 4 * PAGE);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	assert_bytes(table, 100, 7);
	assert_bytes(table + 100, 3 * PAGE, 1);
	assert_bytes(table + 3 * PAGE + 100, PAGE - 100, 0);
	/* Beyond its end, and not even in part. */
	assert_int_equal(perseas_set_range(tx, table + 4 * PAGE - 1, 2), PERSEAS_ERANGE);
	assert_int_equal(perseas_set_range(tx, table - 1, 3 * PAGE), PERSEAS_ERANGE);
	assert_int_equal(perseas_abort(tx), 0);
	assert_bytes(table, PAGE, 7);
	assert_bytes(table + PAGE, 3 * PAGE, 0);
	assert_int_equal(put(o, table + 1, 4 * PAGE - 2, 3), 0);
	owner_reopen(o);
	table = map(o, "table");
	assert_int_equal(table[0], 7);
	assert_bytes(table + 1, 4 * PAGE - 2, 3);
	assert_int_equal(table[4 * PAGE - 1], 0);
}

/* Memory without what open transactions changed, over the places where it ended. */
TEST(a_copy_of_it_goes_on_in_parts, struct owner *o)
{
	static uint8_t copy[4 * PAGE];
	uint8_t *table = make(o, "table", 1, 7);
	struct perseas_piece piece = { .from = table + 10, .to = copy, .len = 3 * PAGE };
	perseas_tx_t *tx;

	assert_int_equal(grow(o, "table", 2), 0);
	assert_int_equal(grow(o, "table", 4), 0);
	assert_int_equal(put(o, table + PAGE - 5, PAGE + 10, 3), 0);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, table, 4 * PAGE), 0);
	memset(table, 9, 4 * PAGE);
	assert_int_equal(perseas_copy_committed(o->p, &piece, 1, NULL), 0);
	assert_bytes(copy, PAGE - 15, 7);
	assert_bytes(copy + PAGE - 15, PAGE + 10, 3);
	assert_bytes(copy + 2 * PAGE - 5, PAGE + 5, 0);
	piece.len = 4 * PAGE - 9;
	assert_int_equal(perseas_copy_committed(o->p, &piece, 1, NULL), PERSEAS_ERANGE);
	assert_int_equal(perseas_abort(tx), 0);
}

/* A range that is too large is refused before any part of it is declared. */
TEST(a_range_is_declared_in_all_parts_or_none, struct owner *o)
{
	struct perseas_transaction listed;
	perseas_tx_t *tx;
	uint8_t *table;
	size_t open;

	table = make(o, "table", 1, 7);
	assert_int_equal(grow(o, "table", 2), 0);
	assert_int_equal(grow(o, "table", 10), 0);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, table + 5, 10), 0);
	assert_int_equal(perseas_set_range(tx, table, 10 * PAGE), PERSEAS_ETOOBIG);
	assert_int_equal(perseas_open_transactions(o->p, &listed, 1, &open), 0);
	assert_int_equal(listed.bytes, 10);
	assert_int_equal(listed.ranges, 1);
	assert_int_equal(perseas_set_range(tx, table, 2 * PAGE), 0);
	assert_int_equal(perseas_open_transactions(o->p, &listed, 1, &open), 0);
	assert_int_equal(listed.bytes, 2 * PAGE);
	assert_int_equal(perseas_abort(tx), 0);
}

/* `small` ranges, and then one that goes on in a part, by so much on either side. */
static int declare_across(struct owner *o, uint8_t *table, unsigned small, size_t before,
                          size_t behind)
{
	perseas_tx_t *tx;
	int rc;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	for (unsigned i = 0; i < small; i++)
		assert_int_equal(perseas_set_range(tx, table + (size_t)i * 64, 8), 0);
	rc = perseas_set_range(tx, table + 10 * PAGE - before, before + behind);
	assert_int_equal(perseas_abort(tx), 0);
	return rc;
}

/* Ranges that just fit into the ring fit in any parts, whatever alignment takes between them. */
TEST(ranges_in_parts_fill_the_ring, struct owner *o)
{
	enum { HERE = 15 * 1024, LEAST = 16 * 1024, MOST = 18 * 1024 };
	uint8_t *table = make(o, "table", 10, 7);

	assert_int_equal(grow(o, "table", 20), 0);
	for (unsigned small = 0; small < 8; small++)
		for (size_t before = HERE; before < HERE + 64; before += 8) {
			size_t behind = LEAST;
			int rc;

			while (!(rc = declare_across(o, table, small, before, behind)))
				behind += 8;
			assert_int_equal(rc, PERSEAS_ETOOBIG);
			assert_true(behind > LEAST && behind < MOST);
		}
}

/* Segments that only happen to lie behind one another are two. */
TEST(neighbours_are_no_parts, struct owner *o)
{
	uint8_t *first = make(o, "first", 2, 1);
	perseas_tx_t *tx;
	void *second;

	assert_int_equal(perseas_map_at(o->p, "second", PAGE, first + 2 * PAGE, &second, NULL), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, first + PAGE, 2 * PAGE), PERSEAS_ERANGE);
	assert_int_equal(perseas_abort(tx), 0);
}

TEST(open_transactions_go_on, struct owner *o)
{
	uint8_t *table = make(o, "table", 1, 7);
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, table, 10), 0);
	memset(table, 1, 10);
	assert_int_equal(grow(o, "table", 3), 0);
	assert_int_equal(perseas_set_range(tx, table + PAGE - 10, 20), 0);
	memset(table + PAGE - 10, 2, 20);
	assert_int_equal(perseas_unmap(o->p, table), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_commit(tx, 0), 0);
	owner_reopen(o);
	table = map(o, "table");
	assert_bytes(table, 10, 1);
	assert_bytes(table + 10, PAGE - 20, 7);
	assert_bytes(table + PAGE - 10, 20, 2);
	assert_bytes(table + PAGE + 10, 2 * PAGE - 10, 0);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, table + 2 * PAGE, 10), 0);
	/* In a part alone. */
	assert_int_equal(perseas_unmap(o->p, table), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(tx), 0);
	unmap(o, table);
}

/* The modes that compare memory with what was committed know of every part. */
TEST(what_is_found_is_found_in_parts, struct owner *o)
{
	perseas_tx_t *tx;
	uint8_t *table;

	o->options.flags = PERSEAS_CHECK_WRITES | PERSEAS_TRACKED;
	owner_reopen(o);
	table = make(o, "table", 1, 7);
	assert_int_equal(grow(o, "table", 2), 0);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, table + PAGE - 4, 8), 0);
	memset(table + PAGE - 4, 1, 9);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EUNDECLARED);
	table[PAGE + 4] = 0;
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), 0);
	memset(table + PAGE - 20, 2, 40);
	assert_int_equal(perseas_abort(tx), 0);
	assert_bytes(table + PAGE - 4, 8, 1);
	assert_bytes(table + PAGE + 4, 20, 0);
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), 0);
	memset(table + PAGE - 20, 2, 40);
	assert_int_equal(perseas_commit(tx, 0), 0);
	owner_reopen(o);
	assert_bytes(map(o, "table") + PAGE - 20, 40, 2);
}

/* --- where it is --- */

/* Something lies behind it: it is named, and nothing changes. */
TEST(nothing_else_is_replaced, struct owner *o)
{
	uint8_t *table = make(o, "table", 2, 7);
	void *there = occupy(table + 3 * PAGE);
	void *addr;

	assert_int_equal(grow(o, "table", 4), PERSEAS_EADDRESS);
	assert_says(o, "has no room");
	assert_bytes(there, PAGE, 0x5a);
	assert_int_equal(size_of(o, "table"), 2 * PAGE);
	assert_int_equal(segments_on(o, 0), 2);
	assert_int_equal(perseas_map_reserve(o->p, "table", 0, 4 * PAGE, &addr, NULL),
	                 PERSEAS_EADDRESS);
	assert_int_equal(grow(o, "table", 3), 0);
	assert_int_equal(munmap(there, PAGE), 0);
	assert_int_equal(grow(o, "table", 4), 0);
	/* Another segment of the store, which is mapped, and which is not. */
	assert_int_equal(perseas_map_at(o->p, "other", PAGE, table + 6 * PAGE, &addr, NULL), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	for (unsigned mapped = 2; mapped-- > 0;) {
		assert_int_equal(grow(o, "table", 7), PERSEAS_EADDRESS);
		assert_says(o, "segment 'other'");
		if (mapped)
			unmap(o, addr);
	}
	assert_int_equal(grow(o, "table", 6), 0);
}

/* Addresses that are kept are nobody else's until it is unmapped, and take no memory. */
TEST(what_is_kept_is_there_to_grow_into, struct owner *o)
{
	uint8_t *table, *other;
	size_t whole = 1;
	void *addr;

	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(perseas_map_reserve(o->p, "table", 2 * PAGE, 16 * PAGE, &addr,
		                                     &whole),
		                 0);
		assert_int_equal(whole, (round ? 9 : 2) * PAGE);
		table = addr;
		if (!round)
			assert_int_equal(perseas_publish(o->p), 0);
		for (unsigned i = round ? 9 : 2; i < 16; i++)
			assert_false(is_free(table + i * PAGE));
		assert_true(is_free(table + 16 * PAGE));
		other = make(o, round ? "b" : "a", 1, 1);
		assert_true(other >= table + 16 * PAGE || other + PAGE <= table);
		assert_int_equal(grow(o, "table", round ? 16 : 9), 0);
		assert_int_equal(put(o, table + PAGE, 3 * PAGE, (uint8_t)round), 0);
		unmap(o, table);
		for (unsigned i = 0; i < 16; i++)
			assert_true(is_free(table + i * PAGE));
		owner_reopen(o);
	}
	/* A mapped segment gets more room, and never loses any. */
	table = map(o, "table");
	assert_int_equal(perseas_map_reserve(o->p, "table", 0, 20 * PAGE, &addr, &whole), 0);
	assert_int_equal(perseas_map_reserve(o->p, "table", 0, 17 * PAGE, &addr, &whole), 0);
	assert_int_equal(whole, 16 * PAGE);
	assert_false(is_free(table + 19 * PAGE));
	assert_int_equal(grow(o, "table", 21), 0);
	owner_close(o);
	for (unsigned i = 0; i < 21; i++)
		assert_true(is_free(table + i * PAGE));
}

/* The program maps all of it at an address of its own that has room. */
TEST(it_is_mapped_elsewhere_with_all_parts, struct owner *o)
{
	uint8_t *table = make(o, "table", 2, 7), *at;
	ptrdiff_t moved;
	void *addr, *there;

	assert_int_equal(grow(o, "table", 3), 0);
	assert_int_equal(grow(o, "table", 5), 0);
	assert_int_equal(put(o, table + 2 * PAGE - 1, 2 * PAGE, 3), 0);
	unmap(o, table);
	/* Behind it something is in the way. */
	there = occupy(table + 4 * PAGE);
	assert_int_equal(perseas_map(o->p, "table", 0, &addr), PERSEAS_EADDRESS);
	for (unsigned i = 0; i < 4; i++)
		assert_true(is_free(table + i * PAGE));
	for (unsigned by_name = 0; by_name < 2; by_name++) {
		at = by_name ? table + (1 << 24) : NULL;
		assert_int_equal(perseas_map_at(o->p, "table", 0, at, &addr, &moved), 0);
		assert_true(!at || addr == at);
		at = addr;
		assert_ptr_equal(table + moved, at);
		assert_bytes(at + 2 * PAGE - 1, 2 * PAGE, 3);
		assert_ptr_equal(perseas_here(o->p, table + 4 * PAGE), at + 4 * PAGE);
		assert_ptr_equal(perseas_recorded(o->p, at + 2 * PAGE), table + 2 * PAGE);
		assert_int_equal(put(o, at + 2 * PAGE - 1, 2 * PAGE, 3), 0);
		assert_int_equal(grow(o, "table", 6 + by_name), 0);
		assert_int_equal(put(o, at + 4 * PAGE, 2 * PAGE, 4), 0);
		unmap(o, at);
	}
	assert_int_equal(munmap(there, PAGE), 0);
	at = map(o, "table");
	assert_ptr_equal(at, table);
	assert_bytes(at + 4 * PAGE, 2 * PAGE, 4);
	assert_bytes(at + 6 * PAGE, PAGE, 0);
}

/* A damaged mirror tells of a part that nobody published: it has addresses of its own as well. */
TEST(a_part_that_was_never_published_has_a_place, struct owner *o)
{
	uint8_t *table = make(o, "table", 2, 7), *at;
	struct ps_segment *part;
	uint64_t born;
	void *addr, *there;

	assert_int_equal(grow(o, "table", 4), 0);
	unmap(o, table);
	there = occupy(table);
	part = ps_segment_by_name(o->p, "table.grown.1");
	born = part->born;
	part->born = 0;
	assert_int_equal(perseas_map_at(o->p, "table", 0, NULL, &addr, NULL), 0);
	at = addr;
	for (unsigned i = 0; i < 4; i++)
		assert_false(is_free(at + i * PAGE));
	part->born = born;
	unmap(o, at);
	assert_int_equal(munmap(there, PAGE), 0);
}

/* A retained segment has grown elsewhere: what lies behind the retained memory stays. */
TEST(it_is_mapped_over_nothing_but_what_was_left, struct owner *o)
{
	uint8_t *table = make(o, "table", 2, 7);
	void *addr, *there;

	assert_int_equal(perseas_retain(o->p, table), 0);
	owner_reopen(o);
	assert_int_equal(perseas_map_over(o->p, "table", table), 0);
	assert_int_equal(perseas_retain(o->p, table), 0);
	owner_reopen(o);
	there = occupy(table + 2 * PAGE);
	assert_int_equal(perseas_map_at(o->p, "table", 0, NULL, &addr, NULL), 0);
	assert_int_equal(grow(o, "table", 3), 0);
	unmap(o, addr);
	assert_int_equal(perseas_map_over(o->p, "table", table), PERSEAS_EADDRESS);
	assert_says(o, "perseas_retain left no memory of 4096 bytes");
	assert_bytes(there, PAGE, 0x5a);
	assert_int_equal(munmap(table, 3 * PAGE), 0);
	table = map(o, "table");
	assert_int_equal(perseas_retain(o->p, table), 0);
	owner_reopen(o);
	assert_int_equal(perseas_map_over(o->p, "table", table), 0);
	assert_bytes(table, 2 * PAGE, 7);
}

/* --- where it is refused --- */

TEST(it_is_refused_with_a_sentence, struct owner *o)
{
	char name[64];
	size_t whole = 1;
	void *addr;

	assert_int_equal(perseas_segment_grow(NULL, "table", PAGE), PERSEAS_EINVAL);
	assert_int_equal(perseas_segment_grow(o->p, NULL, PAGE), PERSEAS_EINVAL);
	assert_int_equal(grow(o, "nothing", 1), PERSEAS_ENOSEGMENT);
	assert_int_equal(grow(o, "accounts", 0), PERSEAS_EINVAL);
	assert_int_equal(perseas_segment_grow(o->p, "accounts", PAGE + 1), PERSEAS_EINVAL);
	assert_int_equal(perseas_segment_grow(o->p, "accounts", ((size_t)1 << 40) + PAGE),
	                 PERSEAS_EINVAL);
	/* The segment has 3000 bytes. */
	assert_int_equal(grow(o, "accounts", 1), PERSEAS_EINVAL);
	assert_says(o, "whole pages");
	assert_int_equal(perseas_map_reserve(o->p, "accounts", 0, PAGE, &addr, &whole),
	                 PERSEAS_EINVAL);
	assert_null(addr);
	assert_int_equal(whole, 0);
	make(o, "table", 2, 7);
	assert_int_equal(grow(o, "table", 1), PERSEAS_ESIZE);
	assert_says(o, "cannot shrink");
	assert_int_equal(perseas_map(o->p, "new", PAGE, &addr), 0);
	assert_int_equal(grow(o, "new", 2), PERSEAS_EUNPUBLISHED);
	unmap(o, addr);
	unmap(o, map(o, "table"));
	assert_int_equal(grow(o, "table", 3), PERSEAS_EINVAL);
	assert_says(o, "map it");
	for (unsigned bad = 0; bad < 4; bad++) {
		const size_t sizes[][2] = { { 1, PAGE },
			                    { PAGE, 1 },
			                    { 2 * PAGE, PAGE },
			                    { PAGE, ((size_t)1 << 40) + PAGE } };

		assert_int_equal(perseas_map_reserve(o->p, "more", sizes[bad][0], sizes[bad][1],
		                                     &addr, &whole),
		                 PERSEAS_EINVAL);
	}
	assert_int_equal(perseas_map_reserve(o->p, "more", 0, PAGE, &addr, NULL),
	                 PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_map_reserve(o->p, "more", PAGE, PAGE, NULL, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_map_reserve(NULL, "more", PAGE, PAGE, &addr, NULL),
	                 PERSEAS_EINVAL);
	/* The name leaves room for one digit. */
	memset(name, 'n', sizeof(name));
	name[55] = '\0';
	make(o, name, 1, 1);
	assert_int_equal(grow(o, name, 2), 0);
	name[55] = 'n';
	name[56] = '\0';
	make(o, name, 1, 1);
	assert_int_equal(grow(o, name, 2), PERSEAS_EINVAL);
	assert_says(o, "too long a name");
}

/* Names of parts are made by growth alone; one that is there and no part is in the way, by name. */
TEST(names_of_parts_are_kept, struct owner *o)
{
	static const char *const good[] = { "t.grown",      "t.grown.0", "t.grown.01", "t.grown.x",
		                            "t.grown.1000", "grown.1",   "t.grown.1.x" };
	struct ps_segment *part;
	uint8_t *table;
	void *addr;

	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(perseas_map(o->p, good[i], 10, &addr), 0);
		unmap(o, addr);
	}
	assert_int_equal(perseas_map(o->p, "t.grown.1", PAGE, &addr), PERSEAS_EINVAL);
	assert_says(o, "choose another");
	assert_int_equal(perseas_map_at(o->p, "t.grown.127", PAGE, NULL, &addr, NULL),
	                 PERSEAS_EINVAL);
	table = make(o, "t", 1, 1);
	assert_int_equal(grow(o, "t", 2), 0);
	assert_int_equal(perseas_map(o->p, "t.grown.1", 0, &addr), PERSEAS_EINVAL);
	assert_says(o, "behind 't'");
	assert_int_equal(grow(o, "t.grown.1", 2), PERSEAS_EINVAL);
	assert_int_equal(perseas_unmap(o->p, table + PAGE), PERSEAS_ERANGE);
	unmap(o, table);
	assert_int_equal(perseas_segment_destroy(o->p, "t.grown.1"), PERSEAS_EINVAL);
	assert_says(o, "destroy that segment");
	/* Makes the part look like one that an older version, which knows no parts, made. */
	part = ps_segment_by_name(o->p, "t.grown.1");
	part->address += 64 * PAGE;
	table = map(o, "t");
	assert_int_equal(size_of(o, "t"), PAGE);
	assert_int_equal(size_of(o, "t.grown.1"), PAGE);
	assert_int_equal(grow(o, "t", 2), PERSEAS_EEXIST);
	assert_int_equal(perseas_segment_destroy(o->p, "t.grown.1"), 0);
	assert_int_equal(grow(o, "t", 2), 0);
	assert_bytes(table + PAGE, PAGE, 0);
}

/* Segments of a heap cannot be grown. */
TEST(a_heaps_segments_are_its_own, struct owner *o)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 65536;
	assert_int_equal(perseas_heap_open(o->p, "h", &options, &heap), 0);
	for (unsigned open = 2; open-- > 0;) {
		assert_int_equal(perseas_segment_grow(o->p, "h.heap.0", 1 << 20),
		                 PERSEAS_ECONFLICT);
		assert_int_equal(perseas_segment_grow(o->p, "h.meta.0", 1 << 20),
		                 PERSEAS_ECONFLICT);
		owner_reopen(o);
		map(o, "h.heap.0");
		map(o, "h.meta.0");
	}
	/* Without the other one it is no heap's. */
	make(o, "x.heap.0", 1, 1);
	assert_int_equal(grow(o, "x.heap.0", 2), 0);
}

/* There is no place for another one, and the next try finds one. */
TEST(parts_are_counted, struct owner *o)
{
	uint8_t *table = make(o, "table", 1, 7);
	void *addr;

	for (unsigned i = 2; i < PS_SEGMENTS_MAX; i++)
		assert_int_equal(grow(o, "table", i), 0);
	assert_int_equal(grow(o, "table", PS_SEGMENTS_MAX), PERSEAS_ELIMIT);
	assert_int_equal(perseas_map(o->p, "more", 1, &addr), PERSEAS_ELIMIT);
	assert_bytes(table + PAGE, (PS_SEGMENTS_MAX - 2) * PAGE, 0);
	assert_int_equal(put(o, table, 7 * PAGE, 1), 0);
	owner_reopen(o);
	table = map(o, "table");
	assert_int_equal(size_of(o, "table"), (PS_SEGMENTS_MAX - 1) * PAGE);
	assert_bytes(table, 7 * PAGE, 1);
	unmap(o, table);
	assert_int_equal(perseas_segment_destroy(o->p, "table"), 0);
	assert_int_equal(segments_on(o, 0), 1);
}
