/*
 * test_retain.c - perseas_retain: memory of a segment that stays when its handle is closed.
 */
#include "owner.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

enum { PAGE = 4096 };

/* Something of the application's that is there. */
static uint8_t *occupy(void *at, size_t size)
{
	uint8_t *there = mmap(at, size, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(there, at);
	memset(there, 0x5a, size);
	return there;
}

/* An application may follow its pointers after the store is closed: a retained segment has its
 * bytes, is writable, and is not mapped over. One that was unmapped earlier is gone like any
 * other. */
TEST(a_retained_segment_outlives_its_handle, struct owner *o)
{
	uint8_t *bytes = o->bytes;
	void *addr;

	assert_int_equal(perseas_retain(NULL, bytes), PERSEAS_EINVAL);
	assert_int_equal(perseas_retain(o->p, NULL), PERSEAS_ERANGE);
	assert_int_equal(perseas_retain(o->p, bytes + PAGE), PERSEAS_ERANGE);
	owner_put(o, 7, 100, 0x77);
	assert_int_equal(perseas_retain(o->p, bytes), 0);
	assert_int_equal(perseas_unmap(o->p, bytes), 0);
	assert_int_equal(munmap(occupy(bytes, PAGE), PAGE), 0);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
	assert_ptr_equal(addr, bytes);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(munmap(occupy(bytes, PAGE), PAGE), 0);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
	assert_int_equal(perseas_retain(o->p, addr), 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(bytes[7], 0x77);
	bytes[7] = 0x78;
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), PERSEAS_EADDRESS);
	assert_int_equal(munmap(bytes, SIZE), 0);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
	assert_int_equal(((uint8_t *)addr)[7], 0x77);
}

static void begin_over(struct owner *o)
{
	assert_int_equal(perseas_retain(o->p, o->bytes), 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
}

/* The next handle has it at the same address: what points there sees its commits. Once it is mapped
 * so, the memory goes with the handle. */
TEST(a_segment_is_mapped_over_what_was_left, struct owner *o)
{
	uint8_t *bytes = o->bytes;

	begin_over(o);
	bytes[7] = 0x55;
	assert_int_equal(perseas_map_over(o->p, "accounts", bytes), 0);
	assert_int_equal(bytes[7], (uint8_t)(7 * 7));
	assert_int_equal(perseas_map_over(o->p, "accounts", bytes), 0);
	o->bytes = bytes;
	assert_int_equal(owner_put(o, 7, 1, 0x78), 0);
	owner_reopen(o);
	assert_ptr_equal(o->bytes, bytes);
	assert_int_equal(bytes[7], 0x78);
}

/* Whatever fails, the memory remains. */
TEST(what_cannot_be_mapped_over_stays, struct owner *o)
{
	uint8_t *bytes = o->bytes;

	begin_over(o);
	assert_int_equal(perseas_map_over(o->p, "accounts", NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_map_over(o->p, "nothing", bytes), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_map_over(o->p, "accounts", bytes + PAGE), PERSEAS_EADDRESS);
	assert_int_equal(perseas_map_over(o->p, "accounts", bytes + 1), PERSEAS_EINVAL);
	assert_int_equal(perseas_map_over(NULL, "accounts", bytes), PERSEAS_EINVAL);
	for (unsigned i = 0; i < 3; i++)
		direct_crash(o->d, i);
	assert_int_not_equal(perseas_map_over(o->p, "accounts", bytes), 0);
	bytes[7] = 1;
	owner_close(o);
	bytes[7] = 2;
	assert_int_equal(munmap(bytes, SIZE), 0);
}

/* Memory of the handle, mapped or reserved for a segment to grow, is not replaced. */
TEST(what_the_handle_has_is_not_replaced, struct owner *o)
{
	uint8_t *bytes = o->bytes, *other;
	void *addr;

	assert_int_equal(perseas_map_at(o->p, "other", 2 * PAGE, bytes - 2 * PAGE, &addr, NULL), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(perseas_map_at(o->p, "other", 0, bytes - PAGE, &addr, NULL), 0);
	other = addr;
	other[PAGE] = 0x11;
	assert_int_equal(perseas_map_over(o->p, "accounts", bytes), PERSEAS_EADDRESS);
	assert_says(o, "segment 'other'");
	assert_int_equal(other[PAGE], 0x11);
	assert_int_equal(perseas_unmap(o->p, other), 0);
	assert_int_equal(perseas_map_reserve(o->p, "other", 0, 3 * PAGE, &addr, NULL), 0);
	assert_int_equal(perseas_map_over(o->p, "accounts", bytes), PERSEAS_EADDRESS);
	assert_says(o, "room that segment 'other' has to grow");
	assert_int_equal(perseas_unmap(o->p, addr), 0);
	assert_int_equal(perseas_map(o->p, "other", 0, &addr), 0);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
}
