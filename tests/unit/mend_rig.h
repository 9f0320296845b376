/*
 * mend_rig.h - stores whose mirrors differ when they are opened again, and what must be so then.
 */
#ifndef PERSEAS_TESTS_UNIT_MEND_RIG_H
#define PERSEAS_TESTS_UNIT_MEND_RIG_H

#include "owner.h"

/* Sets up two mirrors with W = 2. */
static inline int setup_two(void **state)
{
	return owner_setup(state, 2, 2);
}

static inline void put_many(struct owner *o, unsigned count, uint8_t value)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(owner_put(o, i * 97 % (SIZE - 50), 50, (uint8_t)(value + i)), 0);
}

/* The owner dies, and the next one finds a mirror again that was down. */
static inline void come_back(struct owner *o, unsigned mirror)
{
	owner_die(o);
	direct_start(o->d, mirror);
	owner_reopen(o);
}

/* The store's header on a mirror; the caller frees it. */
static inline Perseas__Header *header_of(struct owner *o, unsigned mirror)
{
	uint64_t size;
	const uint8_t *bytes = memory_heap_piece(o->d->mirrors[mirror].memory, STORE, "header",
	                                         &size);
	const char *why;

	assert_non_null(bytes);
	return ps_header_unpack(bytes, size, &why);
}

/* Checks how many mirrors the open brought up to date in each way. */
static inline void assert_mended(struct owner *o, unsigned forward, unsigned delta, unsigned whole)
{
	const struct perseas_stat stat = owner_stat(o);

	assert_int_equal(stat.mended_forward, forward);
	assert_int_equal(stat.mended_delta, delta);
	assert_int_equal(stat.mended_whole, whole);
}

/* Every byte of the segment is on the mirror, in the image that it serves. */
static inline void assert_mirrored(struct owner *o, unsigned mirror)
{
	Perseas__Header *header = header_of(o, mirror);
	char name[40];
	uint8_t *bytes;

	snprintf(name, sizeof(name), "segment-0.%llu", (unsigned long long)header->generation);
	bytes = memory_heap_piece(o->d->mirrors[mirror].memory, STORE, name, NULL);
	assert_non_null(bytes);
	assert_memory_equal(bytes, o->bytes, SIZE);
	assert_int_equal(header->state, PERSEAS__STATE__STATE_CONSISTENT);
	/* Header, log, promise, one segment: nothing is left over. */
	assert_int_equal(memory_heap_pieces(o->d->mirrors[mirror].memory), 4);
	perseas__header__free_unpacked(header, NULL);
}

/* The store is opened without mirror `other`, so that the mended one must do its part. */
static inline void assert_carries(struct owner *o, unsigned mended, unsigned other)
{
	uint8_t contents[SIZE];

	assert_mirrored(o, mended);
	put_many(o, 5, 0x50);
	memcpy(contents, o->bytes, SIZE);
	owner_die(o);
	direct_crash(o->d, other);
	owner_reopen(o);
	assert_memory_equal(o->bytes, contents, SIZE);
	assert_mirrored(o, mended);
}

/* Commits transactions in doubt, which only the mirrors that still take writes hold. */
static inline void put_in_doubt(struct owner *o, uint64_t offset, uint64_t length, uint8_t value)
{
	/* Clears the mark of a doubt, because commits behind the first one are open at the same
	 * time. */
	o->p->commit.in_doubt_seq = 0;
	assert_int_equal(owner_put(o, offset, length, value), PERSEAS_EINDOUBT);
}

#endif
