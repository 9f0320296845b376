/*
 * test_random_ids.c - the random ids of segments: an owner draws one for each segment that it adds
 * at level 1, and every image of the segment keeps it.
 */
#include "level_rig.h"

#include "../../client/core/segment.h"

struct unit_fixture unit_fixture = { NULL, owner_teardown };

/* Publishes a new segment. */
static void *publish(struct owner *o, const char *name)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, name, SIZE, &addr), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	return addr;
}

static ProtobufCBinaryData id_on(struct owner *o, unsigned mirror, const char *name)
{
	const Perseas__Header *header = header_at(o, mirror);

	for (size_t i = 0; i < header->n_segments; i++)
		if (!strcmp(header->segments[i]->name, name))
			return header->segments[i]->random_id;
	fail_msg("mirror %u has no segment %s", mirror, name);
	return (ProtobufCBinaryData){ 0, NULL };
}

static void remember_id(struct owner *o, const char *name, uint8_t id[PS_ID_SIZE])
{
	assert_int_equal(id_on(o, 0, name).len, PS_ID_SIZE);
	memcpy(id, id_on(o, 0, name).data, PS_ID_SIZE);
}

/* The three mirrors and the owner have the segment with this id. */
static void assert_id(struct owner *o, const char *name, const uint8_t id[PS_ID_SIZE])
{
	for (unsigned i = 0; i < 3; i++)
		assert_true(ps_id_equal(id_on(o, i, name), id));
	assert_true(ps_segments_match_header(o->p, header_at(o, 0)));
}

static void assert_no_id(struct owner *o, const char *name)
{
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(id_on(o, i, name).len, 0);
	assert_true(ps_segments_match_header(o->p, header_at(o, 0)));
}

/* Two segments of one name have different ids as well: the owner destroys the first one, and reuses
 * its slot. */
TEST(every_segment_has_an_id_of_its_own)
{
	struct owner *o = begin_test(3, 2);
	uint8_t accounts[PS_ID_SIZE], first[PS_ID_SIZE], second[PS_ID_SIZE];
	void *addr = publish(o, "branches");

	remember_id(o, "accounts", accounts);
	remember_id(o, "branches", first);
	assert_id(o, "accounts", accounts);
	assert_id(o, "branches", first);
	assert_memory_not_equal(accounts, first, PS_ID_SIZE);
	assert_int_equal(perseas_unmap(o->p, addr), 0);
	assert_int_equal(perseas_segment_destroy(o->p, "branches"), 0);
	publish(o, "branches");
	remember_id(o, "branches", second);
	assert_id(o, "branches", second);
	assert_memory_not_equal(first, second, PS_ID_SIZE);
}

/* Neither the mirrors' headers nor the next owner get one at level 0. */
TEST(a_segment_of_level_0_has_none)
{
	struct owner *o = owner_of_test(begin_low());

	assert_no_id(o, "accounts");
	reopen(o);
	assert_no_id(o, "accounts");
}

/* The next owner has the ids that it finds, and a mirror that comes back is told no others. */
TEST(an_id_stays_with_its_segment)
{
	struct owner *o = begin_test(3, 2);
	uint8_t id[PS_ID_SIZE];

	remember_id(o, "accounts", id);
	reopen(o);
	assert_id(o, "accounts", id);
	direct_crash(o->d, 1);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	direct_start(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_id(o, "accounts", id);
}

/* Rebuild carries the table: a mirror that lost its memory gets the ids of the others. */
TEST(an_image_that_is_made_anew_has_the_ids)
{
	struct owner *o = begin_test(3, 2);
	uint8_t id[PS_ID_SIZE];

	remember_id(o, "accounts", id);
	direct_crash(o->d, 2);
	memory_heap_lose(o->d->mirrors[2].memory, NULL);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_id(o, "accounts", id);
}

/* The owner claims its mirrors again, after another owner claimed them and died. One of them lost
 * its memory meanwhile. */
TEST(a_renewal_keeps_the_ids)
{
	struct owner *o = begin_test(3, 2);
	uint8_t id[PS_ID_SIZE];

	remember_id(o, "accounts", id);
	owner_claimed_and_left(o);
	owner_lose(o, 2);
	OWNER_KEEP_UNTIL(o, owner_stat(o).renewals);
	for (unsigned i = 0; i < 3; i++)
		owner_keep(o, i, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	assert_id(o, "accounts", id);
	assert_int_equal(owner_stat(o).resyncs, 1);
}

/* Segments from before the raise have no id. Segments added before the raise is settled have none
 * either, since it may still be cancelled. */
TEST(a_raise_gives_ids_to_later_segments_only)
{
	struct owner *o = owner_of_test(begin_low());
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(owner_change(o, &raise_it), 0);
	owner_keep_stage(o, PS_CHANGE_JOINT);
	publish(o, "joint");
	assert_no_id(o, "joint");
	owner_keep_stage(o, PS_CHANGE_NONE);
	assert_raised(o);
	publish(o, "later");
	remember_id(o, "later", id);
	assert_id(o, "later", id);
	reopen(o);
	assert_int_equal(owner_stat(o).mended_whole, 0);
	assert_id(o, "later", id);
	assert_no_id(o, "joint");
	assert_no_id(o, "accounts");
}

/* A mirror that comes back after the raise has the old segments without ids, as the owner has. */
TEST(a_segment_without_an_id_is_compared_without_it)
{
	struct owner *o = owner_of_test(begin_low());

	raise_level(o);
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	direct_crash(o->d, 1);
	assert_int_equal(owner_put(o, 0, 100, 10), 0);
	direct_start(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_stat(o).resyncs, 0);
	assert_no_id(o, "accounts");
}
