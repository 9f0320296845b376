/*
 * test_api.c - what perseas.h promises of one owner on sound mirrors: arguments, segments,
 * transactions, checked modes, salvage, figures.
 */
#include "owner.h"

static int setup_empty(void **state)
{
	*state = owner_new(1);
	return 0;
}

struct unit_fixture unit_fixture = { owner_setup_one, owner_teardown };

/* Segments must stay clear of the area where a program and its heap may lie: Linux loads programs
 * at random from two thirds of the address space on. */
TEST_WITH(test_addresses_are_not_where_programs_lie, setup_empty, owner_teardown)
{
	const uint64_t programs = 0x7ffffffff000 / 3 * 2;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct owner *each = owner_new(1);

		each->d->seed = seed;
		owner_begin(each);
		assert_true((uintptr_t)each->bytes + SIZE <= programs);
		owner_free(each);
	}
}

/* NULL for required arguments, and undefined flags. */
TEST(test_bad_arguments_are_refused, struct owner *o)
{
	struct perseas_segment_info info;
	struct perseas_mirror_stat mirror;
	perseas_tx_t *tx = (perseas_tx_t *)o;
	void *addr = o;

	assert_int_equal(perseas_begin(NULL, 0, &tx), PERSEAS_EINVAL);
	assert_null(tx);
	assert_int_equal(perseas_begin(o->p, 0, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_begin(o->p, 1u << 31, &tx), PERSEAS_EINVAL);
	assert_int_equal(perseas_set_range(NULL, o->bytes, 1), PERSEAS_EINVAL);
	assert_int_equal(perseas_commit(NULL, 0), PERSEAS_EINVAL);
	assert_int_equal(perseas_abort(NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_flush(NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_publish(NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_map(NULL, "x", 1, &addr), PERSEAS_EINVAL);
	assert_int_equal(perseas_map(o->p, "x", 1, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_map(o->p, NULL, 1, &addr), PERSEAS_EINVAL);
	assert_null(addr);
	assert_int_equal(perseas_unmap(NULL, o->bytes), PERSEAS_EINVAL);
	assert_int_equal(perseas_stat(NULL, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_stat(o->p, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_mirror_stat(o->p, 0, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_mirror_stat(o->p, 1, &mirror), PERSEAS_EINVAL);
	assert_int_equal(perseas_segment_at(NULL, 0, &info), PERSEAS_EINVAL);
	assert_int_equal(perseas_segment(o->p, NULL, &info), PERSEAS_EINVAL);
	assert_int_equal(perseas_close(NULL), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_commit(tx, 2), PERSEAS_EINVAL);
	assert_int_equal(perseas_abort(tx), 0);
}

/* Names and sizes that a segment cannot have. */
TEST(test_bad_segments_are_refused, struct owner *o)
{
	static const char *const names[] = { "", ".hidden", "a/b", "a b", "\xc3\xa9" };
	char name[PS_NAME_MAX + 2];
	void *addr;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(perseas_map(o->p, names[i], 100, &addr), PERSEAS_EINVAL);
	memset(name, 'n', sizeof(name));
	name[PS_NAME_MAX + 1] = 0;
	assert_int_equal(perseas_map(o->p, name, 100, &addr), PERSEAS_EINVAL);
	assert_int_equal(perseas_map(o->p, "x", PS_SEGMENT_MAX + 1, &addr), PERSEAS_EINVAL);
	name[PS_NAME_MAX] = 0;
	assert_int_equal(perseas_map(o->p, name, 100, &addr), 0);
}

/* The library's own entry points, before any mirror is spoken to. */
TEST_WITH(test_open_checks_its_arguments, setup_empty, owner_teardown)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	perseas_t *p = NULL;

	assert_int_equal(perseas_open("bank", "sim://0", NULL, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_open("a/b", "127.0.0.1:1", NULL, &p), PERSEAS_EINVAL);
	assert_null(p);
	assert_non_null(strstr(perseas_message(NULL), "cannot name a store"));
	assert_int_equal(perseas_open(NULL, "127.0.0.1:1", NULL, &p), PERSEAS_EINVAL);
	assert_int_equal(perseas_open("bank", NULL, NULL, &p), PERSEAS_EINVAL);
	assert_int_equal(perseas_open("bank", "127.0.0.1:1,127.0.0.1:1", NULL, &p), PERSEAS_EINVAL);
	assert_int_equal(perseas_create("bank", "", NULL), PERSEAS_EINVAL);
	options.size = 1000;
	assert_int_equal(perseas_create("bank", "127.0.0.1:1", &options), PERSEAS_EINVAL);
	options = (struct perseas_options)PERSEAS_OPTIONS_INIT;
	options.flags = 1u << 31;
	assert_int_equal(perseas_create("bank", "127.0.0.1:1", &options), PERSEAS_EINVAL);
	options.flags = 0;
	options.log_size = 4095;
	assert_int_equal(perseas_create("bank", "127.0.0.1:1", &options), PERSEAS_EINVAL);
	options.log_size = 0;
	options.ring_size = 65535;
	assert_int_equal(perseas_create("bank", "127.0.0.1:1", &options), PERSEAS_EINVAL);
	assert_non_null(strstr(perseas_message(NULL), "ring_size"));
}

static void *look_elsewhere(void *arg)
{
	struct owner *o = arg;
	char text[100] = "?";
	int code = 7;

	assert_int_equal(perseas_error(o->p, text, sizeof(text), &code), 0);
	assert_int_equal(code, 0);
	assert_string_equal(text, "");
	return NULL;
}

/* The sentence of an error is copied, with its code: what fails later does not change it. What
 * does not fit loses words, and no byte behind the buffer is touched. */
TEST(test_errors_are_copied, struct owner *o)
{
	char text[300], small[16];
	pthread_t other;
	int code = 7;

	assert_int_equal(perseas_map(o->p, "none", 0, (void *[]){ NULL }), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_error(o->p, text, sizeof(text), &code), 0);
	assert_int_equal(code, PERSEAS_ENOSEGMENT);
	assert_string_equal(text, perseas_message(o->p));
	assert_non_null(strstr(text, "none"));
	memset(small, 'x', sizeof(small));
	assert_int_equal(perseas_error(o->p, small, 12, NULL), 0);
	assert_true(strlen(small) < 12 && small[0] == text[0]);
	assert_memory_equal(small + 12, "xxxx", 4);
	assert_int_equal(perseas_unmap(o->p, text), PERSEAS_ERANGE);
	assert_null(strstr(perseas_message(o->p), "none"));
	assert_non_null(strstr(text, "none"));
	/* Where nothing is asked for, or cannot be had, the error stays as it was. */
	assert_int_equal(perseas_error(o->p, NULL, 1, &code), PERSEAS_EINVAL);
	assert_int_equal(perseas_error(o->p, NULL, 0, &code), 0);
	assert_int_equal(code, PERSEAS_ERANGE);
	/* Each thread has its own, and so has what failed without a handle. */
	assert_int_equal(pthread_create(&other, NULL, look_elsewhere, o), 0);
	pthread_join(other, NULL);
	assert_int_equal(perseas_error(NULL, text, sizeof(text), &code), 0);
	assert_int_equal(code, 0);
	assert_string_equal(text, "");
	assert_int_equal(perseas_flush(NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_error(NULL, text, sizeof(text), &code), 0);
	assert_int_equal(code, PERSEAS_EINVAL);
	assert_string_equal(text, "p is NULL");
}

/* More acknowledgements than mirrors cannot come. */
TEST_WITH(test_acks_beyond_the_mirrors, setup_empty, owner_teardown, struct owner *o)
{
	o->options.acks = 2;
	assert_int_equal(direct_create(o->d, STORE, &o->options, &o->error), PERSEAS_EINVAL);
	assert_error_says(o, "acknowledgements");
}

TEST(test_ended_transactions_do_nothing, struct owner *o)
{
	perseas_tx_t *tx;

	/* Once by commit, once by abort. */
	for (int i = 0; i < 2; i++) {
		tx = owner_tx(o);
		assert_int_equal(i ? perseas_commit(tx, 0) : perseas_abort(tx), 0);
		assert_int_equal(perseas_set_range(tx, o->bytes, 1), PERSEAS_EENDED);
		assert_int_equal(perseas_commit(tx, 0), PERSEAS_EENDED);
		assert_int_equal(perseas_abort(tx), PERSEAS_EENDED);
	}
	assert_says(o, "has ended");
}

/* Declares ranges next to, across and around the segment; the transaction goes on after each
 * refusal. */
TEST(test_ranges_outside_are_refused, struct owner *o)
{
	perseas_tx_t *tx = owner_tx(o);

	assert_int_equal(perseas_set_range(tx, o->bytes - 1, 1), PERSEAS_ERANGE);
	assert_int_equal(perseas_set_range(tx, o->bytes - 1, 2), PERSEAS_ERANGE);
	assert_int_equal(perseas_set_range(tx, o->bytes, SIZE + 1), PERSEAS_ERANGE);
	assert_int_equal(perseas_set_range(tx, o->bytes + SIZE, 1), PERSEAS_ERANGE);
	assert_int_equal(perseas_set_range(tx, o->bytes + SIZE - 1, SIZE_MAX), PERSEAS_ERANGE);
	assert_int_equal(perseas_set_range(tx, &tx, sizeof(tx)), PERSEAS_ERANGE);
	assert_int_equal(perseas_set_range(tx, NULL, 1), PERSEAS_ERANGE);
	assert_says(o, "inside one mapped segment");
	assert_int_equal(perseas_set_range(tx, o->bytes, SIZE), 0);
	/* With the segment found before, too. */
	assert_int_equal(perseas_set_range(tx, o->bytes + SIZE, 1), PERSEAS_ERANGE);
	assert_int_equal(perseas_set_range(tx, o->bytes + 1, SIZE_MAX), PERSEAS_ERANGE);
	/* MAP_FAILED, which a failed mmap returns, is the last address. */
	for (size_t len = 1; len <= 64; len++)
		assert_int_equal(perseas_set_range(tx, MAP_FAILED, len), PERSEAS_ERANGE);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* Mapped and not published: it takes no transactions, and does not exist for the next owner. */
TEST(test_unpublished_segments, struct owner *o)
{
	struct perseas_segment_info info;
	perseas_tx_t *tx;
	void *addr, *again;

	assert_int_equal(perseas_map(o->p, "new", 100, &addr), 0);
	assert_int_equal(perseas_map(o->p, "new", 0, &again), 0);
	assert_ptr_equal(addr, again);
	tx = owner_tx(o);
	assert_int_equal(perseas_set_range(tx, addr, 1), PERSEAS_EUNPUBLISHED);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(perseas_segment(o->p, "new", &info), 0);
	assert_true(info.mapped && !info.published && info.address == addr && info.size == 100);
	owner_reopen(o);
	assert_int_equal(perseas_segment(o->p, "new", &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(memory_heap_pieces(o->d->mirrors[0].memory), 4);
}

/* Maps, unmaps and drops segments, and reads the table of segments. */
TEST(test_map_and_unmap, struct owner *o)
{
	struct perseas_segment_info info;
	uint8_t *before = o->bytes, first = o->bytes[1];
	void *addr, *other;

	assert_int_equal(perseas_map(o->p, "missing", 0, &addr), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_map(o->p, "accounts", SIZE + 1, &addr), PERSEAS_ESIZE);
	assert_null(addr);
	assert_int_equal(perseas_map(o->p, "accounts", SIZE, &addr), 0);
	assert_ptr_equal(addr, before);
	assert_int_equal(perseas_map(o->p, "other", 5000, &other), 0);
	assert_int_equal(((uint8_t *)other)[4999], 0);
	assert_int_equal((uintptr_t)other % 4096, 0);
	assert_int_equal(perseas_unmap(o->p, NULL), PERSEAS_ERANGE);
	assert_int_equal(perseas_unmap(o->p, (uint8_t *)other + 1), PERSEAS_ERANGE);
	assert_int_equal(perseas_unmap(o->p, other), 0);
	assert_int_equal(perseas_unmap(o->p, other), PERSEAS_ERANGE);
	assert_int_equal(perseas_segment(o->p, "other", &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(memory_heap_pieces(o->d->mirrors[0].memory), 4);
	assert_int_equal(perseas_unmap(o->p, before), 0);
	assert_int_equal(perseas_segment_at(o->p, 0, &info), 0);
	assert_true(!strcmp(info.name, "accounts") && !info.mapped && info.published);
	assert_int_equal(perseas_segment_at(o->p, 1, &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
	assert_ptr_equal(addr, before);
	assert_int_equal(before[1], first);
}

/* An unmapped segment has ranges in an open transaction, which would be lost. */
TEST(test_unmap_waits_for_transactions, struct owner *o)
{
	perseas_tx_t *tx = owner_tx(o);
	void *addr;

	assert_int_equal(perseas_set_range(tx, o->bytes + 5, 1), 0);
	assert_int_equal(perseas_unmap(o->p, o->bytes), PERSEAS_ECONFLICT);
	o->bytes[5] = 77;
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_unmap(o->p, o->bytes), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_set_range(tx, o->bytes + 5, 1), PERSEAS_ERANGE);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
	assert_int_equal(o->bytes[5], 77);
}

/* Something else lies where the segment must be. */
TEST(test_taken_address, struct owner *o)
{
	uint8_t *at = o->bytes;
	void *taken, *addr;

	assert_int_equal(perseas_unmap(o->p, at), 0);
	taken = mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_ptr_equal(taken, at);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), PERSEAS_EADDRESS);
	assert_null(addr);
	munmap(taken, 4096);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
}

/* 128 segments, published together, and not one more. */
TEST(test_segment_limit, struct owner *o)
{
	char name[16];
	void *addr;

	for (int i = 1; i < PS_SEGMENTS_MAX; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		assert_int_equal(perseas_map(o->p, name, 10, &addr), 0);
		memset(addr, i, 10);
	}
	assert_int_equal(perseas_map(o->p, "more", 10, &addr), PERSEAS_ELIMIT);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(perseas_map(o->p, "more", 10, &addr), PERSEAS_ELIMIT);
	owner_reopen(o);
	assert_int_equal(perseas_map(o->p, "s127", 0, &addr), 0);
	assert_int_equal(*(uint8_t *)addr, 127);
}

/* The mirror's limit is reached: nothing is left of the segment, here or there, and less than
 * that fits. */
TEST(test_mirror_memory_limit, struct owner *o)
{
	struct memory *memory = o->d->mirrors[0].memory;
	unsigned pieces = memory_heap_pieces(memory);
	struct perseas_segment_info info;
	void *addr;

	memory_heap_set_limit(memory, memory->ops->used(memory) + 10000);
	assert_int_equal(perseas_map(o->p, "large", 20000, &addr), PERSEAS_EMIRRORMEM);
	assert_says(o, "sim://0");
	assert_null(addr);
	assert_int_equal(perseas_segment(o->p, "large", &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(memory_heap_pieces(memory), pieces);
	assert_int_equal(perseas_map(o->p, "large", 5000, &addr), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
}

/* Open transactions that overlap: only where that is asked to be found out. */
TEST(test_check_overlap, struct owner *o)
{
	perseas_tx_t *one, *two;

	for (int checked = 0; checked < 2; checked++) {
		assert_int_equal(owner_open(o, checked ? PERSEAS_CHECK_OVERLAP : 0), 0);
		owner_map(o);
		perseas_begin(o->p, 0, &one);
		perseas_begin(o->p, 0, &two);
		assert_int_equal(perseas_set_range(one, o->bytes + 100, 50), 0);
		assert_int_equal(perseas_set_range(two, o->bytes + 150, 50), 0);
		assert_int_equal(perseas_set_range(two, o->bytes + 149, 1),
		                 checked ? PERSEAS_ECONFLICT : 0);
		assert_int_equal(perseas_set_range(one, o->bytes + 120, 10), 0);
		assert_int_equal(perseas_abort(one), 0);
		assert_int_equal(perseas_set_range(two, o->bytes + 100, 50), 0);
		assert_int_equal(perseas_commit(two, 0), 0);
	}
}

/* A store to memory that no transaction declared, seen by the next commit of any; what other
 * transactions have declared, and what is put back, is no fault. */
TEST(test_check_writes, struct owner *o)
{
	perseas_tx_t *one, *two;

	assert_int_equal(owner_open(o, PERSEAS_CHECK_WRITES), 0);
	owner_map(o);
	perseas_begin(o->p, 0, &one);
	perseas_begin(o->p, 0, &two);
	assert_int_equal(perseas_set_range(one, o->bytes + 100, 50), 0);
	assert_int_equal(perseas_set_range(two, o->bytes + 200, 50), 0);
	memset(o->bytes + 100, 1, 50);
	memset(o->bytes + 200, 2, 50);
	o->bytes[150] ^= 1;
	assert_int_equal(perseas_commit(one, 0), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 150 of segment 'accounts'");
	o->bytes[150] ^= 1;
	assert_int_equal(perseas_commit(one, 0), 0);
	assert_int_equal(perseas_abort(two), 0);
	assert_int_equal(owner_put(o, 100, 50, 3), 0);
	o->bytes[SIZE - 1] ^= 1;
	one = owner_tx(o);
	assert_int_equal(perseas_commit(one, 0), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 2999");
	assert_int_equal(perseas_abort(one), 0);
}

/* A segment that is published in that mode is checked from then on. */
TEST(test_check_writes_of_a_new_segment, struct owner *o)
{
	perseas_tx_t *tx;
	void *addr;

	assert_int_equal(owner_open(o, PERSEAS_CHECK_WRITES), 0);
	owner_map(o);
	assert_int_equal(perseas_map(o->p, "new", 100, &addr), 0);
	memset(addr, 5, 100);
	assert_int_equal(owner_put(o, 0, 1, 1), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_put(o, 0, 1, 2), 0);
	((uint8_t *)addr)[7] = 6;
	tx = owner_tx(o);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 7 of segment 'new'");
	assert_int_equal(perseas_abort(tx), 0);
}

/* Opened for salvage: everything can be read, nothing can be changed, not even at the mirrors. */
TEST(test_salvage, struct owner *o)
{
	perseas_tx_t *tx;
	uint64_t chains;
	void *addr;

	assert_int_equal(owner_put(o, 10, 10, 9), 0);
	owner_close(o);
	chains = o->d->chain_count;
	assert_int_equal(owner_open(o, PERSEAS_SALVAGE), 0);
	owner_map(o);
	assert_int_equal(o->bytes[10], 9);
	assert_int_equal(perseas_begin(o->p, 0, &tx), PERSEAS_ESALVAGE);
	assert_int_equal(perseas_publish(o->p), PERSEAS_ESALVAGE);
	assert_int_equal(perseas_map(o->p, "new", 10, &addr), PERSEAS_ESALVAGE);
	assert_int_equal(perseas_map(o->p, "missing", 0, &addr), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_unmap(o->p, o->bytes), 0);
	assert_true(o->d->chain_count == chains);
	owner_reopen(o);
	assert_int_equal(owner_put(o, 10, 10, 8), 0);
}

/* Publishing a segment that was published before is no transaction. */
TEST(test_publish_of_nothing, struct owner *o)
{
	uint64_t seq = owner_stat(o).seq;

	assert_int_equal(perseas_publish(o->p), 0);
	assert_true(owner_stat(o).seq == seq);
}

/* The next owner maps the segment at the same address, with the same bytes. */
TEST(test_reopen_maps_at_the_same_address, struct owner *o)
{
	uint8_t *before = o->bytes, contents[SIZE];
	void *addr, *second;

	assert_int_equal(perseas_map(o->p, "second", 100000, &second), 0);
	memcpy(second, &second, sizeof(second));
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_put(o, 500, 100, 0xaa), 0);
	memcpy(contents, o->bytes, SIZE);
	owner_reopen(o);
	assert_ptr_equal(o->bytes, before);
	assert_memory_equal(o->bytes, contents, SIZE);
	assert_int_equal(perseas_map(o->p, "second", 100000, &addr), 0);
	assert_ptr_equal(addr, second);
	assert_ptr_equal(*(void **)addr, second);
}

TEST(test_figures, struct owner *o)
{
	struct perseas_stat before = owner_stat(o), after;
	struct perseas_mirror_stat mirror;
	perseas_tx_t *tx;

	for (int i = 0; i < 5; i++)
		assert_int_equal(owner_put(o, 0, 100, (uint8_t)i), 0);
	perseas_begin(o->p, 0, &tx);
	perseas_abort(tx);
	after = owner_stat(o);
	assert_true(after.commits == before.commits + 5 && after.aborts == before.aborts + 1);
	assert_true(after.seq == before.seq + 5 && after.durable_seq == after.seq);
	/* Each time a record with one range and 104 bytes of image, which ends at 192, the zeros
	 * behind it, 100 bytes, and a slot. */
	assert_true(after.bytes_sent - before.bytes_sent == 5 * (192 + 64 + 100 + 40));
	assert_true(after.mirrors == 1 && after.acks == 1 && after.live == 1 && !after.in_doubt);
	assert_int_equal(perseas_mirror_stat(o->p, 0, &mirror), 0);
	assert_string_equal(mirror.address, "sim://0");
	assert_string_equal(mirror.fabric, "sim");
	assert_string_equal(mirror.trouble, "");
	assert_true(mirror.state == PERSEAS_MIRROR_LIVE && mirror.seq == after.seq);
	assert_non_null(strstr(perseas_report(o->p), "adopted"));
	assert_string_equal(perseas_report(NULL), "");
}

/* The same for a fabric that copies at once, so that nothing goes through the ring. */
TEST(test_figures_of_a_direct_fabric, struct owner *o)
{
	struct perseas_stat before, after;

	o->d->staged = false;
	owner_reopen(o);
	before = owner_stat(o);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	after = owner_stat(o);
	assert_true(after.bytes_sent - before.bytes_sent == 192 + 64 + 100 + 40);
}
