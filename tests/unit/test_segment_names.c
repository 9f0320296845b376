/*
 * test_segment_names.c - two owners give the same id and seq to segments of different names: no
 * mirror may keep the one's name over the other's bytes, and no owner may adopt an image that does.
 */
#include "owner.h"

#include "../../server/store/store_private.h"

static int setup_empty(void **state)
{
	struct owner *o = owner_new(3);

	if (owner_open(o, PERSEAS_CREATE))
		fail_msg("%s", o->error.text);
	*state = o;
	return 0;
}

struct unit_fixture unit_fixture = { setup_empty, owner_teardown };

static void *map(struct owner *o, const char *name, uint64_t size)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, name, size, &addr), 0);
	return addr;
}

/* A segment of SIZE bytes, all of this value. */
static void make(struct owner *o, const char *name, uint8_t value)
{
	memset(map(o, name, SIZE), value, SIZE);
	assert_int_equal(perseas_publish(o->p), 0);
}

static Perseas__Header *header_on(struct owner *o, unsigned mirror)
{
	return store_find(o->d->mirrors[mirror].stores, STORE)->header;
}

static void assert_named(struct owner *o, unsigned mirror, const char *name)
{
	assert_int_equal(header_on(o, mirror)->n_segments, 1);
	assert_string_equal(header_on(o, mirror)->segments[0]->name, name);
}

/* The store has segment `name`, with this value in every byte, and no segment `other`. */
static void assert_only(struct owner *o, const char *name, uint8_t value, const char *other)
{
	struct perseas_segment_info info;
	const uint8_t *bytes = map(o, name, 0);

	for (unsigned i = 0; i < SIZE; i++)
		assert_int_equal(bytes[i], value);
	assert_int_equal(perseas_segment(o->p, other, &info), PERSEAS_ENOSEGMENT);
}

/* An owner publishes "b" on mirror 0 alone and dies; the next one does not reach that mirror, and
 * publishes "a", of the same size, as the same transaction. */
static void publish_twice(struct owner *o)
{
	memset(map(o, "b", SIZE), 2, SIZE);
	o->d->mirrors[1].hold = o->d->mirrors[2].hold = DIRECT_HOLD_WRITES;
	assert_int_equal(perseas_publish(o->p), PERSEAS_EINDOUBT);
	owner_die(o);
	direct_crash(o->d, 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	make(o, "a", 1);
}

/* The mirror returns while the owner of "a" runs. */
TEST(a_copy_takes_the_name_with_it, struct owner *o)
{
	publish_twice(o);
	direct_start(o->d, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	assert_named(o, 0, "a");
	owner_die(o);
	direct_crash(o->d, 1);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_only(o, "a", 1, "b");
}

/* The mirror returns for the next open, whose owner repairs it. */
TEST(an_open_takes_the_name_with_it, struct owner *o)
{
	publish_twice(o);
	owner_die(o);
	direct_start(o->d, 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	owner_keep_all(o);
	assert_named(o, 0, "a");
	assert_only(o, "a", 1, "b");
}

/* Both owners call it "a": of all that a header says only the random id differs. The image is not
 * taken for one that has the second owner's segment, so it is copied whole. */
TEST(a_segment_made_anew_is_another_one, struct owner *o)
{
	uint8_t first[PS_ID_SIZE];

	memset(map(o, "a", SIZE), 2, SIZE);
	o->d->mirrors[1].hold = o->d->mirrors[2].hold = DIRECT_HOLD_WRITES;
	assert_int_equal(perseas_publish(o->p), PERSEAS_EINDOUBT);
	memcpy(first, header_on(o, 0)->segments[0]->random_id.data, PS_ID_SIZE);
	owner_die(o);
	direct_crash(o->d, 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	make(o, "a", 1);
	direct_start(o->d, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(header_on(o, i)->segments[0]->random_id.len, PS_ID_SIZE);
		assert_memory_not_equal(header_on(o, i)->segments[0]->random_id.data, first,
		                        PS_ID_SIZE);
	}
}

/* Makes the state that the previous version left: the bytes of "a" under the name of "b". */
static void misname(struct owner *o, unsigned mirror)
{
	assert_named(o, mirror, "a");
	strcpy(header_on(o, mirror)->segments[0]->name, "b");
}

/* W mirrors agree on the name: the mirror that does not is copied whole. */
TEST(an_image_of_another_name_is_not_adopted, struct owner *o)
{
	make(o, "a", 1);
	owner_die(o);
	misname(o, 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_STALE);
	owner_keep_all(o);
	assert_only(o, "a", 1, "b");
	for (unsigned i = 0; i < 3; i++)
		assert_named(o, i, "a");
}

/* With two mirrors nobody can tell which one is right, so neither may be overwritten. */
TEST(an_open_does_not_guess_a_name, struct owner *o)
{
	make(o, "a", 1);
	owner_die(o);
	misname(o, 0);
	direct_crash(o->d, 2);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), PERSEAS_EDAMAGED);
	assert_error_says(o, "have different segments");
	assert_named(o, 0, "b");
	assert_named(o, 1, "a");
	direct_start(o->d, 2);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_only(o, "a", 1, "b");
}

/* The session of such a mirror breaks: it is not taken up again from where the image stands. */
TEST(an_image_of_another_name_is_not_replayed_to, struct owner *o)
{
	make(o, "a", 1);
	misname(o, 0);
	direct_cut(o->d, 0);
	o->bytes = map(o, "a", 0);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	assert_named(o, 0, "a");
	assert_only(o, "a", 1, "b");
}
