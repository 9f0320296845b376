/*
 * grow_rig.h - segments that grow, for tests of what becomes of them.
 */
#ifndef PERSEAS_TESTS_GROW_RIG_H
#define PERSEAS_TESTS_GROW_RIG_H

#include "owner.h"

#include "../../server/store/store_private.h"

enum { PAGE = 4096 };

/* Makes a published segment of `pages` pages, with `value` in every byte. */
static inline uint8_t *make(struct owner *o, const char *name, unsigned pages, uint8_t value)
{
	void *addr;

	if (perseas_map(o->p, name, (size_t)pages * PAGE, &addr))
		fail_msg("%s", perseas_message(o->p));
	memset(addr, value, (size_t)pages * PAGE);
	assert_int_equal(perseas_publish(o->p), 0);
	return addr;
}

static inline uint8_t *map(struct owner *o, const char *name)
{
	void *addr;

	if (perseas_map(o->p, name, 0, &addr))
		fail_msg("%s", perseas_message(o->p));
	return addr;
}

static inline int grow(struct owner *o, const char *name, unsigned pages)
{
	return perseas_segment_grow(o->p, name, (size_t)pages * PAGE);
}

static inline uint64_t size_of(struct owner *o, const char *name)
{
	struct perseas_segment_info info;

	assert_int_equal(perseas_segment(o->p, name, &info), 0);
	return info.size;
}

static inline void assert_bytes(const uint8_t *bytes, size_t size, uint8_t value)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != value)
			fail_msg("byte %zu is %u, not %u", i, bytes[i], value);
}

/* Sets the bytes to `value` in one transaction with one range. */
static inline int put(struct owner *o, uint8_t *at, size_t length, uint8_t value)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(o->p, 0, &tx);

	if (rc)
		return rc;
	if (perseas_set_range(tx, at, length))
		fail_msg("%s", perseas_message(o->p));
	memset(at, value, length);
	rc = perseas_commit(tx, 0);
	if (rc == PERSEAS_EBLOCKED)
		perseas_abort(tx);
	return rc;
}

static inline void unmap(struct owner *o, void *addr)
{
	if (perseas_unmap(o->p, addr))
		fail_msg("%s", perseas_message(o->p));
}

static inline const Perseas__Header *header_on(struct owner *o, unsigned mirror)
{
	return store_find(o->d->mirrors[mirror].stores, STORE)->header;
}

static inline unsigned segments_on(struct owner *o, unsigned mirror)
{
	return (unsigned)header_on(o, mirror)->n_segments;
}

/* Something of the application's. */
static inline void *occupy(void *at)
{
	void *there = mmap(at, PAGE, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(there, at);
	memset(there, 0x5a, PAGE);
	return there;
}

static inline bool is_free(void *at)
{
	void *got = mmap(at, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
	                 0);

	if (got != at)
		return false;
	munmap(got, PAGE);
	return true;
}

#endif
