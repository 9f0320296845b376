/*
 * test_place.c - places for segments where there is none: addresses that the kernel has not got, a
 * process that may have no more memory, and what was kept for a segment that is gone.
 */
#include "owner.h"

#include <sys/mman.h>
#include <sys/resource.h>

static int map_at(struct owner *o, void *at, ptrdiff_t *moved)
{
	void *addr = o;
	int rc = perseas_map_at(o->p, "accounts", 0, at, &addr, moved);

	o->bytes = addr;
	return rc;
}

/* The host that made the segment could have had more address bits, or smaller pages. */
static void a_record_that_this_kernel_has_not_got(void **state)
{
	static const uint64_t records[] = { (uint64_t)1 << 56, ((uint64_t)1 << 45) + 100 };
	struct owner *o = *state;
	ptrdiff_t moved;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
		o->p->segments[0].address = records[i];
		if (map_at(o, NULL, &moved))
			fail_msg("%s", perseas_message(o->p));
		assert_ptr_equal((uint8_t *)(uintptr_t)records[i] + moved, o->bytes);
	}
}

/* One who may have no more memory gets no address, and no address is to blame. */
static void without_memory_no_address_is_blamed(void **state)
{
	struct owner *o = *state;
	struct rlimit all, none;
	int at, anywhere, beyond;

	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &all), 0);
	none = (struct rlimit){ 4096, all.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	at = map_at(o, (void *)((uintptr_t)1 << 45), NULL);
	anywhere = map_at(o, NULL, NULL);
	o->p->segments[0].address = (uint64_t)1 << 56;
	beyond = map_at(o, NULL, NULL);
	assert_int_equal(setrlimit(RLIMIT_AS, &all), 0);
	assert_int_equal(at, PERSEAS_ENOMEM);
	assert_int_equal(anywhere, PERSEAS_ENOMEM);
	assert_int_equal(beyond, PERSEAS_ENOMEM);
	assert_says(o, "no memory for");
}

/* A segment that is destroyed before it was mapped here leaves nothing of its place. */
static void what_was_kept_for_the_destroyed_is_free(void **state)
{
	struct owner *o = *state;
	uint8_t *record;
	void *addr;

	assert_int_equal(perseas_map(o->p, "other", SIZE, &addr), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	record = addr;
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_ptr_equal(mmap(record, SIZE, PROT_NONE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
	                 record);
	o->p->kept[o->p->kept_count++] = (struct ps_kept){ (uintptr_t)record, SIZE };
	assert_int_equal(perseas_segment_destroy(o->p, "other"), 0);
	assert_int_equal(o->p->kept_count, 0);
	if (map_at(o, record, NULL))
		fail_msg("%s", perseas_message(o->p));
	assert_ptr_equal(o->bytes, record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, owner_setup_three, owner_teardown)
		TEST(a_record_that_this_kernel_has_not_got),
		TEST(without_memory_no_address_is_blamed),
		TEST(what_was_kept_for_the_destroyed_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
