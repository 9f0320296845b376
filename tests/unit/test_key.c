/*
 * test_key.c - which new stores have level 1, and what their key is good for: images that were made
 * without it count for nothing.
 */
#include "level_rig.h"

#include "../../client/standby/follow.h"

/* --- new stores --- */

/* All mirrors read level 1, and nobody asks for another: the id is made of the key. */
TEST(a_new_store_has_level_1)
{
	struct owner *o = begin(3, 2);
	uint8_t id[PS_ID_SIZE];

	assert_raised(o);
	ps_key_store_id(header_at(o, 0)->key.data, id);
	assert_memory_equal(header_at(o, 0)->store_id.data, id, PS_ID_SIZE);
	assert_int_equal(header_at(o, 0)->roster->key_hash.len, 0);
	owner_free(o);
}

/* Its header has nothing that the version before does not know. */
TEST(a_new_store_has_level_0_where_that_is_asked_for)
{
	struct owner *o = begin_low();

	assert_int_equal(header_at(o, 1)->roster->level, 0);
	assert_int_equal(header_at(o, 1)->key.len, 0);
	owner_free(o);
}

/* One of the mirrors has the previous version. */
TEST(a_new_store_has_the_level_that_all_of_its_mirrors_read)
{
	struct owner *o = owner_new(MIRRORS);

	o->d->mirrors[1].version = BEFORE;
	if (open_with(o, 0, 3, PERSEAS_CREATE))
		fail_msg("%s", o->error.text);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(header_at(o, i)->roster->level, 0);
	owner_free(o);
}

/* An owner that did not create the store knows the key from its claims. */
TEST(a_mirror_is_made_anew_with_the_key)
{
	struct owner *o = begin(3, 2);
	uint8_t key[PS_KEY_SIZE];

	memcpy(key, header_at(o, 0)->key.data, sizeof(key));
	reopen(o);
	owner_lose(o, 2);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_memory_equal(header_at(o, 2)->key.data, key, sizeof(key));
	owner_free(o);
}

/* --- what bears the name and has no key --- */

/* Makes an image of the store's id on a mirror, as member k of that roster. */
static void make_keyless(struct owner *o, unsigned at, const Perseas__Header *real,
                         Perseas__Roster *roster, unsigned k)
{
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	struct why why;

	create.store = settle.store = (char *)STORE;
	create.store_id = settle.store_id = real->store_id;
	create.image_id = roster->members[k]->image_id;
	create.log_size = 64 * 1024;
	create.roster = roster;
	assert_int_equal(store_create(o->d->mirrors[at].stores, NULL, &create, &why), 0);
	assert_int_equal(store_settle(o->d->mirrors[at].stores, &settle, &why), 0);
}

/* A client that may create stores on daemons, but own none, knows what a Status tells of the store.
 * It makes images of the store's id on two spare daemons, the second one under the id of the image
 * of real mirror 2, by a roster that lists these two and is newer than any. */
static void forge(struct owner *o, unsigned at, const Perseas__Header *real)
{
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member members[2], *list[2] = { &members[0], &members[1] };
	uint8_t id[PS_ID_SIZE] = { 0x66 };

	for (unsigned k = 0; k < 2; k++)
		perseas__member__init(&members[k]);
	members[0].address = (char *)"sim://3";
	members[0].image_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	members[1].address = (char *)"sim://4";
	members[1].image_id = real->roster->members[2]->image_id;
	roster.epoch = (uint64_t)1 << 40;
	roster.version = 1;
	roster.acks = 2;
	roster.n_members = 2;
	roster.members = list;
	make_keyless(o, at, real, &roster, at - 3);
}

/* Real mirror 2 is away, then 1 as well: neither do the forged images decide, nor do they count as
 * the member whose image id one of them bears. */
static void assert_forged_images_count_for_nothing(struct owner *o)
{
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	for (unsigned at = 3; at < 5; at++)
		forge(o, at, header_at(o, 0));
	owner_die(o);
	direct_crash(o->d, 2);
	if (open_with(o, 0, 5, PERSEAS_TAKEOVER))
		fail_msg("%s", o->error.text);
	owner_map(o);
	assert_int_equal(o->bytes[0], 9);
	assert_int_equal(owner_put(o, 0, 100, 10), 0);
	owner_die(o);
	direct_crash(o->d, 1);
	assert_int_equal(open_with(o, 0, 5, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
}

TEST(images_without_the_key_count_for_nothing)
{
	struct owner *o = begin(3, 2);

	assert_forged_images_count_for_nothing(o);
	owner_free(o);
}

TEST(images_without_the_key_of_a_raised_store_count_for_nothing)
{
	struct owner *o = begin_low();

	raise_level(o);
	assert_forged_images_count_for_nothing(o);
	owner_free(o);
}

/* Mirror 2 lost its memory, and a client with the right `create` made an image there. That image's
 * roster has the same version as the store's, and lists real mirror 0, which missed a transaction.
 * An owner that is given mirror 2 alone sees the made-up roster first, and finds mirror 0 by it. */
TEST(the_roster_of_an_image_without_the_key_gives_way)
{
	struct owner *o = begin(3, 2);
	uint8_t id[PS_ID_SIZE] = { 0x66 };
	const Perseas__Header *real;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member own, *list[2] = { &own, NULL };

	direct_crash(o->d, 0);
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	owner_die(o);
	direct_crash(o->d, 2);
	memory_heap_lose(o->d->mirrors[2].memory, NULL);
	direct_start(o->d, 2);
	real = header_at(o, 1);
	perseas__member__init(&own);
	own.address = (char *)"sim://2";
	own.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	list[1] = real->roster->members[0];
	roster.version = real->roster->version;
	roster.acks = 1;
	roster.n_members = 2;
	roster.members = list;
	make_keyless(o, 2, real, &roster, 0);
	direct_crash(o->d, 1);
	direct_start(o->d, 0);
	assert_int_equal(open_with(o, 2, 1, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	owner_free(o);
}

static void crash_mirror_0(void *arg)
{
	struct owner *o = arg;

	direct_crash(o->d, 0);
}

/* The only mirror of the store answers, and ends while the open goes on. Mirror 1 has an image of
 * the store's id, without the key. The next attempt of this open is shown nothing else. */
TEST(an_open_that_saw_the_key_takes_no_image_without_it)
{
	struct owner *o = begin(1, 1);
	uint8_t id[PS_ID_SIZE] = { 0x66 };
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member own, *list[1] = { &own };

	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	owner_die(o);
	perseas__member__init(&own);
	own.address = (char *)"sim://1";
	own.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	roster.version = roster.acks = 1;
	roster.n_members = 1;
	roster.members = list;
	make_keyless(o, 1, header_at(o, 0), &roster, 0);
	o->d->mirrors[0].break_at = PERSEAS__REQUEST__BODY_CONFIRM;
	o->d->on_pause = crash_mirror_0;
	o->d->on_pause_arg = o;
	assert_int_equal(open_with(o, 0, 2, PERSEAS_TAKEOVER), PERSEAS_EUNREACHABLE);
	assert_error_says(o, "sim://1 has an image without the key of this store");
	o->d->on_pause = NULL;
	direct_start(o->d, 0);
	if (open_with(o, 0, 2, PERSEAS_TAKEOVER))
		fail_msg("%s", o->error.text);
	owner_map(o);
	assert_int_equal(o->bytes[99], 9);
	owner_free(o);
}

/* The image on mirror 4 bears the id of a member that is away. */
TEST(a_member_does_not_move_to_an_image_without_the_key)
{
	const struct perseas_roster_change change = { .kind = PERSEAS_ROSTER_REPLACE,
		                                      .address = "sim://2",
		                                      .with = "sim://4" };
	struct owner *o = begin(3, 2);

	forge(o, 4, header_at(o, 0));
	direct_crash(o->d, 2);
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	assert_int_equal(change_roster(o, &change), PERSEAS_EUNREACHABLE);
	assert_non_null(ps_roster_member_at(o->p->roster, "sim://2"));
	assert_null(ps_roster_member_at(o->p->roster, "sim://4"));
	owner_free(o);
}

static enum ps_ownership look(struct owner *o, struct ps_follow *follow)
{
	struct ps_follow_result now;

	o->d->now += 60000000000ULL;
	ps_follow_look_at_store(follow, &now);
	return now.ownership;
}

/* A standby saw the store. When all that still answers are forged images, it waits for the real
 * ones. */
TEST(a_standby_waits_for_images_with_the_key)
{
	struct owner *o = begin(3, 2);
	struct ps_env *envs[] = { direct_env(o->d), direct_env(o->d) };
	struct ps_follow follow;

	assert_int_equal(ps_follow_open(&follow, STORE, "sim://0,sim://1,sim://2,sim://3,sim://4",
	                                NULL, envs[0], envs[1], 1000, &o->error),
	                 0);
	assert_int_equal(look(o, &follow), PS_OWNER_LIVES);
	for (unsigned at = 3; at < 5; at++)
		forge(o, at, header_at(o, 0));
	owner_die(o);
	for (unsigned i = 0; i < 3; i++)
		direct_crash(o->d, i);
	assert_int_equal(look(o, &follow), PS_OWNER_UNKNOWN);
	direct_start(o->d, 0);
	direct_start(o->d, 1);
	assert_int_equal(look(o, &follow), PS_OWNER_NONE);
	ps_follow_close(&follow);
	for (int i = 0; i < 2; i++)
		envs[i]->ops->free(envs[i]);
	owner_free(o);
}
