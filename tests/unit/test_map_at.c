/*
 * test_map_at.c - segments that are mapped elsewhere than the store has recorded them: all that is
 * done with memory works there, the record stays, and nobody's memory is taken.
 */
#include "owner.h"

#include "../../client/heap/format.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

enum { PAGE = 4096, ROOM = 64 * PAGE, POINT = 7 };

/* Finds room far from where the kernel puts the memory of threads that begin meanwhile. */
static uint8_t *find_room(size_t size)
{
	static uintptr_t next = 0x5a0000000000;
	uint8_t *room = mmap((void *)next, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_equal(room, (void *)next);
	assert_int_equal(munmap(room, size), 0);
	next += size + ROOM;
	return room;
}

/* Something of the application's that is there. */
static uint8_t *occupy(void *at, size_t size)
{
	uint8_t *there = mmap(at, size, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(there, at);
	memset(there, 0x5a, size);
	return there;
}

static void assert_untouched(const uint8_t *there, size_t size)
{
	for (size_t i = 0; i < size; i++)
		assert_int_equal(there[i], 0x5a);
}

static int map_at(struct owner *o, void *at, ptrdiff_t *moved)
{
	void *addr = o;
	int rc = perseas_map_at(o->p, "accounts", 0, at, &addr, moved);

	o->bytes = addr;
	return rc;
}

static struct perseas_segment_info info_of(struct owner *o, const char *name)
{
	struct perseas_segment_info info;

	assert_int_equal(perseas_segment(o->p, name, &info), 0);
	return info;
}

/* The next owner, with the segment at another address. Returns how far that is. */
static ptrdiff_t reopen_elsewhere(struct owner *o, uint32_t flags)
{
	uint8_t *at = find_room(ROOM);
	ptrdiff_t moved;

	assert_int_equal(owner_open(o, flags | PERSEAS_TAKEOVER), 0);
	if (map_at(o, at, &moved))
		fail_msg("%s", perseas_message(o->p));
	assert_ptr_equal(o->bytes, at);
	assert_true(moved != 0);
	assert_ptr_equal((uint8_t *)info_of(o, "accounts").address + moved, at);
	return moved;
}

/* --- what works there --- */

TEST(commits_reach_every_owner, struct owner *o)
{
	uint8_t expected[SIZE];
	uint64_t savepoint;
	perseas_tx_t *tx;

	memcpy(expected, o->bytes, SIZE);
	for (unsigned staged = 0; staged < 2; staged++) {
		o->d->staged = staged;
		reopen_elsewhere(o, staged ? PERSEAS_CHECK_OVERLAP : 0);
		assert_memory_equal(o->bytes, expected, SIZE);
		assert_int_equal(owner_put(o, 0, 10, (uint8_t)(1 + staged)), 0);
		assert_int_equal(owner_put(o, SIZE - 5, 5, (uint8_t)(3 + staged)), 0);
		memset(expected, (int)(1 + staged), 10);
		memset(expected + SIZE - 5, (int)(3 + staged), 5);
		tx = owner_begin_put(o, 100, 100, 9);
		assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
		assert_int_equal(perseas_set_range(tx, o->bytes + 150, 100), 0);
		memset(o->bytes + 150, 8, 100);
		assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
		assert_int_equal(o->bytes[150], 9);
		assert_int_equal(perseas_abort(tx), 0);
		assert_memory_equal(o->bytes, expected, SIZE);
		/* Where the record has it, there is nothing. */
		assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
		assert_int_equal(perseas_set_range(tx, info_of(o, "accounts").address, 1),
		                 PERSEAS_ERANGE);
		assert_int_equal(perseas_abort(tx), 0);
		owner_reopen(o);
		assert_ptr_equal(o->bytes, info_of(o, "accounts").address);
		assert_memory_equal(o->bytes, expected, SIZE);
	}
}

/* A mirror that is back without its memory gets what is here. */
TEST(mirrors_are_copied_from_there, struct owner *o)
{
	uint64_t size;

	reopen_elsewhere(o, 0);
	direct_crash(o->d, 1);
	assert_int_equal(owner_put(o, 0, 100, 77), 0);
	memory_heap_lose(o->d->mirrors[1].memory, NULL);
	direct_start(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_put(o, 100, 100, 78), 0);
	assert_memory_equal(memory_heap_piece(o->d->mirrors[1].memory, STORE, "segment-0.1", &size),
	                    o->bytes, SIZE);
}

/* CHECK_WRITES says which byte of the segment it was. */
TEST(undeclared_writes_are_found, struct owner *o)
{
	perseas_tx_t *tx;

	reopen_elsewhere(o, PERSEAS_CHECK_WRITES);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, o->bytes + 2000, 10), 0);
	o->bytes[2005] ^= 1;
	o->bytes[1234] ^= 1;
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 1234 of segment 'accounts'");
	o->bytes[1234] ^= 1;
	assert_int_equal(perseas_commit(tx, 0), 0);
}

TEST(what_was_changed_is_tracked, struct owner *o)
{
	const uint8_t first = (uint8_t)~o->bytes[0], last = (uint8_t)~o->bytes[SIZE - 1];
	perseas_tx_t *tx;

	reopen_elsewhere(o, PERSEAS_TRACKED);
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), 0);
	o->bytes[0] = first;
	o->bytes[SIZE - 1] = last;
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), 0);
	memset(o->bytes, 0, SIZE);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(o->bytes[0], first);
	owner_reopen(o);
	assert_int_equal(o->bytes[0], first);
	assert_int_equal(o->bytes[SIZE - 1], last);
}

TEST(a_mirror_that_lags_is_not_read, struct owner *o)
{
	uint8_t *here;

	o->d->staged = true;
	owner_reopen(o);
	assert_int_equal(perseas_unmap(o->p, o->bytes), 0);
	assert_int_equal(map_at(o, find_room(ROOM), NULL), 0);
	o->d->mirrors[0].hold = DIRECT_HOLD_WRITES;
	assert_int_equal(owner_put(o, 0, 10, 99), 0);
	/* Cuts the writes in flight, so that the mirror lags for good. */
	here = o->bytes;
	direct_cut(o->d, 0);
	assert_int_equal(perseas_unmap(o->p, here), 0);
	assert_int_equal(map_at(o, find_room(ROOM), NULL), 0);
	assert_int_equal(o->bytes[9], 99);
	assert_int_equal(perseas_unmap(o->p, o->bytes), 0);
	owner_map(o);
	assert_int_equal(o->bytes[9], 99);
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
}

/* --- pointers --- */

/* A stored list is found elsewhere by perseas_here or by what is added, and stays as recorded. */
TEST(pointers_are_found, struct owner *o)
{
	uint8_t **links = (uint8_t **)(void *)o->bytes, *stored[3];
	ptrdiff_t moved;
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, links, sizeof(stored)), 0);
	for (unsigned i = 0; i < 3; i++)
		stored[i] = links[i] = o->bytes + 800 * (size_t)i;
	assert_ptr_equal(perseas_here(o->p, stored[1]), stored[1]);
	assert_ptr_equal(perseas_recorded(o->p, stored[1]), stored[1]);
	assert_int_equal(perseas_commit(tx, 0), 0);
	moved = reopen_elsewhere(o, 0);
	links = (uint8_t **)(void *)o->bytes;
	assert_memory_equal(links, stored, sizeof(stored));
	for (unsigned i = 0; i < 3; i++) {
		assert_ptr_equal(perseas_here(o->p, links[i]), o->bytes + 800 * (size_t)i);
		assert_ptr_equal(links[i] + moved, o->bytes + 800 * (size_t)i);
		assert_ptr_equal(perseas_recorded(o->p, o->bytes + 800 * (size_t)i), stored[i]);
	}
}

/* Looks up bytes at and next to the edges of segments whose order here differs from the recorded
 * one. */
TEST(here_knows_the_edges, struct owner *o)
{
	uint8_t *room = find_room(8 * ROOM), *base[4], *record[4];
	char name[] = "s0";
	void *addr;

	for (unsigned i = 0; i < 4; i++) {
		name[1] = (char)('0' + i);
		assert_int_equal(perseas_map(o->p, name, 5000, &addr), 0);
		record[i] = addr;
	}
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_null(perseas_here(o->p, record[0]));
	assert_null(perseas_recorded(o->p, record[0]));
	for (unsigned i = 0; i < 4; i++) {
		name[1] = (char)('0' + i);
		base[i] = room + (3 - i) * ROOM;
		assert_int_equal(perseas_map_at(o->p, name, 0, base[i], &addr, NULL), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned at = 0; at < 5000; at += 4999) {
			assert_ptr_equal(perseas_here(o->p, record[i] + at), base[i] + at);
			assert_ptr_equal(perseas_recorded(o->p, base[i] + at), record[i] + at);
		}
		assert_null(perseas_here(o->p, record[i] - 1));
		assert_null(perseas_here(o->p, record[i] + 5000));
		assert_null(perseas_recorded(o->p, base[i] - 1));
		assert_null(perseas_recorded(o->p, base[i] + 5000));
	}
	assert_null(perseas_here(o->p, NULL));
	assert_null(perseas_here(NULL, record[0]));
	assert_null(perseas_recorded(o->p, NULL));
	assert_null(perseas_recorded(NULL, base[0]));
	assert_int_equal(perseas_unmap(o->p, base[1]), 0);
	assert_null(perseas_here(o->p, record[1]));
	assert_ptr_equal(perseas_here(o->p, record[2]), base[2]);
}

/* --- where --- */

TEST(the_recorded_address_comes_first, struct owner *o)
{
	uint8_t *record = o->bytes, *there;
	ptrdiff_t moved = 1;

	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(map_at(o, NULL, &moved), 0);
	assert_ptr_equal(o->bytes, record);
	assert_int_equal(moved, 0);
	/* The segment is mapped: that is its address, named or not. */
	assert_int_equal(map_at(o, record, &moved), 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	there = occupy(record, PAGE);
	assert_int_equal(map_at(o, NULL, &moved), 0);
	assert_true(o->bytes != record);
	assert_ptr_equal(record + moved, o->bytes);
	assert_int_equal(owner_put(o, 0, 10, 50), 0);
	assert_untouched(there, PAGE);
	assert_int_equal(map_at(o, NULL, NULL), 0);
	assert_int_equal(map_at(o, o->bytes, NULL), 0);
	assert_int_equal(munmap(there, PAGE), 0);
	owner_reopen(o);
	assert_ptr_equal(o->bytes, record);
	assert_int_equal(o->bytes[9], 50);
}

/* Two stores with the same id, as where the mirrors of one were copied, in one process. */
TEST(a_copy_of_a_store_is_open_beside_it, struct owner *o)
{
	struct owner *copy = owner_new(3);
	void *addr;

	if (owner_open(copy, PERSEAS_CREATE))
		fail_msg("%s", copy->error.text);
	assert_int_equal(perseas_map_at(copy->p, "accounts", SIZE, o->bytes, &addr, NULL),
	                 PERSEAS_EADDRESS);
	assert_null(addr);
	assert_int_equal(perseas_map_at(copy->p, "accounts", SIZE, NULL, &addr, NULL), 0);
	assert_true(addr != o->bytes);
	memset(addr, 0x11, SIZE);
	assert_int_equal(perseas_publish(copy->p), 0);
	copy->bytes = addr;
	assert_int_equal(owner_put(copy, 0, 10, 2), 0);
	assert_int_equal(owner_put(o, 0, 10, 3), 0);
	owner_free(copy);
}

/* Nothing is replaced, and the sentence names what is there. */
TEST(who_is_in_the_way_is_named, struct owner *o)
{
	uint8_t *room = find_room(2 * ROOM), *there;
	char program[32];
	void *addr;

	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	there = occupy(room, PAGE);
	assert_int_equal(map_at(o, there, NULL), PERSEAS_EADDRESS);
	assert_null(o->bytes);
	assert_says(o, "other memory of this process (0x");
	assert_untouched(there, PAGE);
	assert_int_equal(info_of(o, "accounts").mapped, 0);
	/* Some of the program itself: the page of a function. */
	addr = (void *)((uintptr_t)who_is_in_the_way_is_named & ~(uintptr_t)(PAGE - 1));
	snprintf(program, sizeof(program), "/test_map_at (0x");
	assert_int_equal(map_at(o, addr, NULL), PERSEAS_EADDRESS);
	assert_says(o, "the file /");
	assert_says(o, program);
	/* Another segment of the store. */
	assert_int_equal(perseas_map_at(o->p, "other", 100, room + ROOM, &addr, NULL), 0);
	assert_int_equal(map_at(o, room + ROOM, NULL), PERSEAS_EADDRESS);
	assert_says(o, "segment 'other' of the store is there");
	assert_int_equal(munmap(there, PAGE), 0);
	assert_int_equal(map_at(o, room, NULL), 0);
}

/* Addresses that a standby keeps for unmapped segments are given to no other segment. */
TEST(what_is_kept_is_given_to_nobody_else, struct owner *o)
{
	uint8_t *record;
	void *addr;

	assert_int_equal(perseas_map(o->p, "other", SIZE, &addr), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	record = addr;
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_ptr_equal(mmap(record, SIZE, PROT_NONE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
	                 record);
	o->p->reserved_ranges.list[o->p->reserved_ranges.count++] = (struct ps_reserved_range){
		(uintptr_t)record, SIZE
	};
	assert_int_equal(map_at(o, record, NULL), PERSEAS_EADDRESS);
	assert_says(o, "the place that is kept for segment 'other' is there");
	assert_int_equal(map_at(o, NULL, NULL), 0);
	assert_int_equal(perseas_map_at(o->p, "other", 0, NULL, &addr, NULL), 0);
	assert_ptr_equal(addr, record);
	assert_int_equal(o->p->reserved_ranges.count, 0);
}

TEST(bad_addresses_are_refused, struct owner *o)
{
	ptrdiff_t moved = 5;
	void *addr = o;

	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(map_at(o, (void *)(uintptr_t)100, &moved), PERSEAS_EINVAL);
	assert_int_equal(moved, 0);
	assert_says(o, "0x64 is not a multiple of 4096");
	assert_int_equal(map_at(o, (void *)(UINTPTR_MAX - PAGE + 1), NULL), PERSEAS_EINVAL);
	assert_int_equal(map_at(o, (void *)((uintptr_t)1 << 60), NULL), PERSEAS_EADDRESS);
	assert_says(o, "the kernel does not allow this address");
	assert_int_equal(perseas_map_at(NULL, "accounts", 0, NULL, &addr, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_map_at(o->p, "accounts", 0, NULL, NULL, &moved), PERSEAS_EINVAL);
	assert_int_equal(perseas_map_at(o->p, "a/b", 0, NULL, &addr, NULL), PERSEAS_EINVAL);
	assert_null(addr);
	assert_int_equal(perseas_map_at(o->p, "accounts", 7, NULL, &addr, NULL), PERSEAS_ESIZE);
	assert_int_equal(perseas_map_at(o->p, "none", 0, NULL, &addr, NULL), PERSEAS_ENOSEGMENT);
}

/* A segment has one address at a time, and a program that relies on the recorded one gets no
 * other. */
TEST(a_mapped_segment_stays, struct owner *o)
{
	uint8_t *record = info_of(o, "accounts").address, *here;
	void *addr = o;

	assert_int_equal(map_at(o, find_room(ROOM), NULL), PERSEAS_EADDRESS);
	assert_says(o, "unmap it to map it at");
	o->bytes = record;
	reopen_elsewhere(o, 0);
	here = o->bytes;
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), PERSEAS_EADDRESS);
	assert_null(addr);
	assert_says(o, "perseas_map_at gives its address");
	assert_int_equal(owner_put(o, 5, 5, 5), 0);
	assert_int_equal(perseas_unmap(o->p, record), PERSEAS_ERANGE);
	assert_int_equal(perseas_unmap(o->p, here), 0);
	occupy(here, PAGE);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
	assert_ptr_equal(addr, record);
	assert_int_equal(record[9], 5);
	assert_int_equal(munmap(here, PAGE), 0);
}

/* A new one is recorded where it is made; two are never recorded at the same address. */
TEST(a_new_segment_is_recorded_there, struct owner *o)
{
	uint8_t *at = find_room(ROOM), *accounts = o->bytes;
	ptrdiff_t moved = 1;
	void *addr;

	assert_int_equal(perseas_map_at(o->p, "new", 5000, at, &addr, &moved), 0);
	assert_ptr_equal(addr, at);
	assert_int_equal(moved, 0);
	at[4999] = 42;
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(perseas_map(o->p, "new", 0, &addr), 0);
	assert_ptr_equal(addr, at);
	assert_int_equal(at[4999], 42);
	/* Nothing is mapped at the address of "accounts", which has it all the same. */
	assert_int_equal(perseas_map_at(o->p, "more", 100, accounts, &addr, NULL),
	                 PERSEAS_EADDRESS);
	assert_says(o, "segment 'accounts' of the store is recorded there");
	assert_int_equal(perseas_map_at(o->p, "more", 2 * PAGE, accounts - PAGE, &addr, NULL),
	                 PERSEAS_EADDRESS);
	assert_int_equal(perseas_map_at(o->p, "more", PAGE, accounts - PAGE, &addr, NULL), 0);
	owner_map(o);
}

TEST(what_fails_leaves_nothing, struct owner *o)
{
	uint8_t *at = find_room(ROOM);
	void *addr;

	for (unsigned i = 0; i < 3; i++)
		o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_ADD_SEGMENTS;
	assert_int_equal(perseas_map_at(o->p, "new", 5000, at, &addr, NULL), PERSEAS_EUNREACHABLE);
	assert_null(addr);
	assert_int_equal(munmap(occupy(at, ROOM), ROOM), 0);
}

/* --- heaps --- */

struct point {
	struct point *next;
	uint64_t number;
};

static int open_heap(struct owner *o, uint32_t flags, perseas_heap_t **heap)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;

	options.flags = flags;
	options.first = 2 * PS_CHUNK;
	return perseas_heap_open(o->p, "h", &options, heap);
}

/* Adds a point to the front of a list from a root, whose pointers are kept as recorded. */
static void put_in_front(struct owner *o, perseas_heap_t *heap, uint64_t number, size_t size)
{
	struct point *first, *point;
	perseas_tx_t *tx;
	void *addr;

	assert_int_equal(perseas_root(heap, "points", POINT, &addr), 0);
	first = addr;
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_alloc(tx, heap, size, POINT, &addr), 0);
	point = addr;
	point->next = perseas_recorded(o->p, first);
	point->number = number;
	assert_int_equal(perseas_root_set(tx, heap, "points", POINT, point), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

static void assert_points(struct owner *o, perseas_heap_t *heap, uint64_t count)
{
	const struct point *point;
	void *addr;

	assert_int_equal(perseas_heap_check(heap), 0);
	assert_int_equal(perseas_root(heap, "points", POINT, &addr), 0);
	for (point = addr; point; point = perseas_here(o->p, point->next))
		assert_int_equal(point->number, count--);
	assert_int_equal(count, 0);
}

/* A heap whose place is taken opens only if the program relocates; then all of it works. */
TEST(a_heap_is_used_elsewhere, struct owner *o)
{
	struct perseas_object object;
	perseas_heap_t *heap, *again;
	perseas_tx_t *tx;
	uint8_t *there;
	void *addr;

	assert_int_equal(open_heap(o, PERSEAS_HEAP_CREATE, &heap), 0);
	for (uint64_t i = 1; i <= 20; i++)
		put_in_front(o, heap, i, sizeof(struct point));
	assert_points(o, heap, 20);
	there = info_of(o, "h.heap.0").address;
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	occupy(there, PAGE);
	assert_int_equal(open_heap(o, 0, &heap), PERSEAS_EADDRESS);
	assert_null(heap);
	/* Its metadata is mapped by now, where the record has it. */
	assert_int_equal(open_heap(o, PERSEAS_HEAP_MOVED, &heap), 0);
	assert_points(o, heap, 20);
	assert_int_equal(open_heap(o, 0, &again), PERSEAS_EADDRESS);
	assert_says(o, "give PERSEAS_HEAP_MOVED");
	assert_null(again);
	assert_int_equal(open_heap(o, PERSEAS_HEAP_MOVED, &again), 0);
	assert_ptr_equal(again, heap);
	/* Behind the first extent, which is elsewhere, comes one that is not. */
	for (uint64_t i = 21; i <= 30; i++)
		put_in_front(o, heap, i, 20000);
	assert_points(o, heap, 30);
	assert_int_equal(perseas_root(heap, "points", POINT, &addr), 0);
	assert_int_equal(perseas_object(heap, addr, &object), 0);
	/* No object begins where its first one is recorded. */
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_free(tx, heap, there), PERSEAS_EOBJECT);
	assert_int_equal(perseas_alloc(tx, heap, 100, POINT, &addr), 0);
	assert_int_equal(perseas_abort(tx), 0);
	assert_points(o, heap, 30);
	assert_untouched(there, PAGE);
	assert_int_equal(munmap(there, PAGE), 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(open_heap(o, 0, &heap), 0);
	assert_points(o, heap, 30);
}

/* Its metadata is elsewhere, too, since the program put it there. */
TEST(a_heap_is_opened_where_its_segments_are, struct owner *o)
{
	uint8_t *room = find_room(1 << 20);
	perseas_heap_t *heap;
	void *addr;

	assert_int_equal(open_heap(o, PERSEAS_HEAP_CREATE, &heap), 0);
	put_in_front(o, heap, 1, sizeof(struct point));
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(perseas_map_at(o->p, "h.meta.0", 0, room, &addr, NULL), 0);
	assert_int_equal(open_heap(o, 0, &heap), PERSEAS_EADDRESS);
	assert_says(o, "PERSEAS_HEAP_MOVED opens a heap there");
	assert_int_equal(open_heap(o, PERSEAS_HEAP_MOVED, &heap), 0);
	put_in_front(o, heap, 2, sizeof(struct point));
	put_in_front(o, heap, 3, 20000);
	assert_points(o, heap, 3);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(open_heap(o, 0, &heap), 0);
	assert_points(o, heap, 3);
}
