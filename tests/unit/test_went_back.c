/*
 * test_went_back.c - a mirror whose memory is put back while an owner lives, in a way that its
 * daemon does not notice: it has forgotten what it acknowledged, and maybe promises. The owner
 * takes it for one that lost its memory.
 */
#include "resync_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* The bytes of the mirror's files as they are now. */
static struct memory *back_up(struct fixture *f, unsigned mirror)
{
	struct memory *copy = memory_heap_copy(f->o->d->mirrors[mirror].memory);

	assert_non_null(copy);
	return copy;
}

static void put_back(struct fixture *f, unsigned mirror, struct memory *copy)
{
	direct_crash(f->o->d, mirror);
	owner_keep(f->o, mirror, PERSEAS_MIRROR_DOWN);
	memory_heap_free(f->o->d->mirrors[mirror].memory);
	f->o->d->mirrors[mirror].memory = copy;
	direct_start(f->o->d, mirror);
}

static void note_id(struct fixture *f, unsigned mirror, uint8_t id[PS_ID_SIZE])
{
	Perseas__Header *header = header_of(f, mirror);

	memcpy(id, header->image_id.data, PS_ID_SIZE);
	perseas__header__free_unpacked(header, NULL);
}

/* Checks that the mirror got another id, so that the image that was put back no longer counts, and
 * has everything. */
static void assert_made_anew(struct fixture *f, unsigned mirror, const uint8_t before[PS_ID_SIZE])
{
	uint8_t id[PS_ID_SIZE];

	owner_keep(f->o, mirror, PERSEAS_MIRROR_LIVE);
	note_id(f, mirror, id);
	assert_memory_not_equal(id, before, PS_ID_SIZE);
	assert_image(f, mirror);
	assert_int_equal(owner_stat(f->o).resyncs, 1);
}

/* To a moment of this owner's time. */
TEST(test_a_mirror_behind_what_it_acknowledged_is_made_anew, struct fixture *f)
{
	uint8_t id[PS_ID_SIZE];
	struct memory *copy;

	assert_int_equal(put_big(f, 0, 300, 1), 0);
	copy = back_up(f, 1);
	note_id(f, 1, id);
	assert_int_equal(put_big(f, 5000, 300, 2), 0);
	put_back(f, 1, copy);
	assert_made_anew(f, 1, id);
	assert_carries(f, 0);
}

/* To a moment before this owner: the slot is of another epoch, as on a mirror that was away when
 * this owner opened the store. Such a mirror is copied whole under its id, and counts meanwhile. */
TEST(test_a_mirror_of_before_its_owner_is_made_anew, struct fixture *f)
{
	uint8_t id[PS_ID_SIZE];
	struct memory *copy;

	assert_int_equal(put_big(f, 0, 300, 1), 0);
	copy = back_up(f, 1);
	note_id(f, 1, id);
	owner_reopen(f->o);
	map_big(f);
	assert_int_equal(put_big(f, 5000, 300, 2), 0);
	put_back(f, 1, copy);
	assert_made_anew(f, 1, id);
	assert_carries(f, 0);
}

/* The header of an image that was loaded from the first one, under this id. */
static void load_as(struct fixture *f, unsigned mirror, const char *name)
{
	struct memory *memory = f->o->d->mirrors[mirror].memory;
	Perseas__Header *header = header_of(f, mirror);
	uint8_t *bytes, id[PS_ID_SIZE] = { 0 };
	ProtobufCBinaryData was = header->image_id, none = header->parent_id;
	size_t len;

	memcpy(id, name, strlen(name));
	header->parent_id = was;
	header->image_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	assert_int_equal(ps_header_pack(header, &bytes, &len), 0);
	assert_int_equal(memory->ops->replace(memory, STORE, "header", bytes, len), 0);
	free(bytes);
	header->image_id = was;
	header->parent_id = none;
	perseas__header__free_unpacked(header, NULL);
}

/* The same spill was loaded twice. Both images have the parent that the roster listed, and stand at
 * the same transaction, but the owner knows the first one: the second has forgotten what the first
 * may have promised. No mirror has recorded the first one's id. */
TEST(test_a_spill_that_is_loaded_twice_is_made_anew, struct fixture *f)
{
	struct memory *copy;
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(put_big(f, 0, 300, 1), 0);
	copy = back_up(f, 1);
	direct_crash(f->o->d, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_DOWN);
	load_as(f, 1, "first load");
	direct_start(f->o->d, 1);
	for (unsigned i = 0; i < 3; i++)
		f->o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	put_back(f, 1, copy);
	direct_crash(f->o->d, 1);
	load_as(f, 1, "second load");
	note_id(f, 1, id);
	for (unsigned i = 0; i < 3; i++)
		f->o->d->mirrors[i].break_at = 0;
	direct_start(f->o->d, 1);
	assert_made_anew(f, 1, id);
	assert_carries(f, 0);
}

/* A mirror is started again with its image, which thus becomes a child of what it spilled. Later an
 * image of before this owner is put back, and is a child of that one: the owner knows it by its
 * parent. */
TEST(test_a_child_of_before_its_owner_is_made_anew, struct fixture *f)
{
	uint8_t id[PS_ID_SIZE];
	struct memory *copy;

	copy = back_up(f, 1);
	owner_reopen(f->o);
	map_big(f);
	direct_crash(f->o->d, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_DOWN);
	load_as(f, 1, "child");
	direct_start(f->o->d, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	for (unsigned i = 0; i < 9 && f->o->p->mirrors[1].is_from_spill; i++)
		direct_keep(f->o->d, f->o->p);
	assert_false(f->o->p->mirrors[1].is_from_spill);
	put_back(f, 1, copy);
	direct_crash(f->o->d, 1);
	load_as(f, 1, "child");
	load_as(f, 1, "grandchild");
	note_id(f, 1, id);
	direct_start(f->o->d, 1);
	assert_made_anew(f, 1, id);
}

/* One that was away when the owner opened the store was never this owner's: it keeps its id. */
TEST(test_a_mirror_that_was_away_keeps_its_id, struct fixture *f)
{
	uint8_t before[PS_ID_SIZE], id[PS_ID_SIZE];

	note_id(f, 1, before);
	direct_crash(f->o->d, 1);
	owner_reopen(f->o);
	map_big(f);
	assert_int_equal(put_big(f, 5000, 300, 2), 0);
	direct_start(f->o->d, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	note_id(f, 1, id);
	assert_memory_equal(id, before, PS_ID_SIZE);
	assert_carries(f, 0);
}
