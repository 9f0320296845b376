/*
 * test_quota.c - how much an identity may have on a mirror, also after the daemon started again.
 */
#include "access_rig.h"

struct unit_fixture unit_fixture = { setup, teardown_rules };

/* A store with the smallest log, in which slots and ring take two pages. */
enum { LEAST = 8192 };

static int create(struct mirror *mirror, const char *name, const char *store, uint8_t id)
{
	const struct identity who = identity(name);
	Perseas__CreateRequest request = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member member = PERSEAS__MEMBER__INIT, *members[] = { &member };

	member.address = (char *)(uintptr_t) "127.0.0.1:1";
	member.image_id = OWNER((uint8_t)(id + 100));
	roster.version = roster.acks = 1;
	roster.n_members = 1;
	roster.members = members;
	request.store = (char *)(uintptr_t)store;
	request.store_id = OWNER(id);
	request.image_id = member.image_id;
	request.log_size = 4096;
	request.roster = &roster;
	return store_create(mirror->stores, &who, &request, &mirror->why);
}

static int make(struct mirror *mirror, const char *name, const char *store, uint8_t id)
{
	int ret = create(mirror, name, store, id);

	return ret ? ret : mirror_settle(mirror, store, id);
}

/* A store "a" of uid:7, who has claimed it. */
static void own_a(struct mirror *mirror, struct peer *owner)
{
	assert_int_equal(make(mirror, "uid:7", "a", 1), 0);
	peer_named(owner, "uid:7");
	assert_int_equal(mirror_claim(mirror, owner, "a", 5, 1, NULL), 0);
}

static void expect_refusal(const struct mirror *mirror, const char *who, const char *quota)
{
	if (!strstr(mirror->why.text, who) || !strstr(mirror->why.text, quota))
		fail_msg("%s", mirror->why.text);
}

/* Two stores each: one more is refused, to one who has two, wherever they are in their making. */
TEST(stores_are_counted_by_who_created_them, struct mirror *mirror)
{
	set_rules(mirror, "limit * stores 2");
	assert_int_equal(make(mirror, "uid:7", "a", 1), 0);
	assert_int_equal(create(mirror, "uid:7", "b", 2), 0);
	assert_int_equal(create(mirror, "uid:7", "c", 3), -STATUS(LIMIT));
	expect_refusal(mirror, "uid:7", "\"stores\"");
	assert_int_equal(create(mirror, "uid:7", "b", 4), -STATUS(EXISTS));
	assert_int_equal(create(mirror, "uid:8", "c", 3), 0);
	assert_string_equal(mirror_header(mirror, "c")->creator, "uid:8");
	assert_int_equal(create(mirror, "uid:7", "c", 5), -STATUS(LIMIT));
	assert_string_equal(mirror_header(mirror, "c")->creator, "uid:8");
}

/* Somebody else's daemon starts again: the header knows who made what. */
TEST(the_creator_survives_a_restart, struct mirror *mirror)
{
	assert_int_equal(make(mirror, "uid:7", "a", 1), 0);
	mirror_restart(mirror);
	assert_string_equal(mirror_header(mirror, "a")->creator, "uid:7");
	set_rules(mirror, "limit * stores 1");
	assert_int_equal(create(mirror, "uid:7", "b", 2), -STATUS(LIMIT));
	assert_int_equal(create(mirror, "uid:8", "b", 2), 0);
}

/* Up to the last byte: logs, and segments that another owner adds. */
TEST(memory_is_counted_to_the_last_byte, struct mirror *mirror)
{
	struct peer owner;
	char text[128];

	snprintf(text, sizeof(text), "allow * all\nlimit uid:7 memory %d", 2 * LEAST + 4096);
	set_rules(mirror, text);
	assert_int_equal(make(mirror, "uid:7", "a", 1), 0);
	assert_int_equal(make(mirror, "uid:7", "b", 2), 0);
	assert_int_equal(create(mirror, "uid:7", "c", 3), -STATUS(NO_MEMORY));
	expect_refusal(mirror, "uid:7", "\"memory\"");
	peer_named(&owner, "uid:8");
	assert_int_equal(mirror_claim(mirror, &owner, "a", 5, 1, NULL), 0);
	assert_int_equal(peer_add(&owner, &mirror->why, 0, "large", 4097), -STATUS(NO_MEMORY));
	expect_refusal(mirror, "uid:7", "20481 bytes");
	assert_int_equal(mirror_header(mirror, "a")->n_segments, 0);
	assert_int_equal(peer_add(&owner, &mirror->why, 0, "fits", 4096), 0);
	assert_int_equal(peer_add(&owner, &mirror->why, 1, "more", 1), -STATUS(NO_MEMORY));
	assert_int_equal(make(mirror, "uid:8", "c", 3), 0);
}

/* A second image exists together with the first, and counts as well. */
TEST(an_image_beside_counts_as_well, struct mirror *mirror)
{
	Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__RebuildReply reply = PERSEAS__REBUILD_REPLY__INIT;
	struct peer owner;
	char text[128], *creator;

	snprintf(text, sizeof(text), "limit * memory %d", 2 * LEAST + 4096);
	set_rules(mirror, text);
	own_a(mirror, &owner);
	request.header = ps_header_copy(mirror_header(mirror, "a"));
	request.epoch = 5;
	request.owner = OWNER(1);
	request.header->log_size = 12288;
	creator = request.header->creator;
	request.header->creator = (char *)(uintptr_t) "uid:9";
	assert_int_equal(store_rebuild(mirror->stores, &owner.session, &request, &reply,
	                               &mirror->why),
	                 -STATUS(NO_MEMORY));
	request.header->log_size = 8192;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(store_rebuild(mirror->stores, &owner.session, &request, &reply,
		                               &mirror->why),
		                 0);
	assert_string_equal(reply.header->creator, "uid:7");
	assert_int_equal(create(mirror, "uid:7", "b", 2), -STATUS(NO_MEMORY));
	assert_int_equal(peer_add(&owner, &mirror->why, 0, "more", 1), -STATUS(NO_MEMORY));
	request.header->creator = creator;
	perseas__header__free_unpacked(request.header, NULL);
}

/* The owner's process has a piece, as one has that was given the memory. */
static void keep_piece(struct mirror *mirror, const char *name, struct piece *piece)
{
	assert_int_equal(mirror->memory->ops->open(mirror->memory, "a", name, piece), 0);
}

/* Owners that live are fenced one after the other, and keep the memory that they were given: the
 * first copy is allowed, and no second one while the first owner has not ended. */
TEST(memory_that_owners_keep_is_counted, struct mirror *mirror)
{
	struct peer owners[3];
	struct piece kept;
	char text[128];

	snprintf(text, sizeof(text), "allow * all\nlimit * memory %d", 2 * LEAST - 1);
	set_rules(mirror, text);
	assert_int_equal(make(mirror, "uid:7", "a", 1), 0);
	for (unsigned i = 0; i < 3; i++)
		peer_named(&owners[i], "uid:7");
	assert_int_equal(mirror_share(mirror, &owners[0], "a", 5, 1, NULL), 0);
	keep_piece(mirror, "log.1", &kept);
	assert_int_equal(mirror_share(mirror, &owners[1], "a", 6, 2, NULL), 0);
	assert_int_equal(mirror_header(mirror, "a")->generation, 2);
	assert_int_equal(mirror_share(mirror, &owners[2], "a", 7, 3, NULL), -STATUS(NO_MEMORY));
	expect_refusal(mirror, "uid:7", "\"memory\"");
	assert_int_equal(owners[1].cuts, 0);
	assert_int_equal(mirror_header(mirror, "a")->promised_epoch, 6);
	assert_int_equal(create(mirror, "uid:7", "b", 2), -STATUS(NO_MEMORY));
	mirror->memory->ops->close(mirror->memory, &kept);
	assert_int_equal(mirror_share(mirror, &owners[2], "a", 7, 3, NULL), 0);
}

/* A store "a" of uid:7, which shares its memory, and one "b" of uid:8: of holder and rival. */
static void share_beside(struct mirror *mirror)
{
	assert_int_equal(make(mirror, "uid:7", "a", 1), 0);
	assert_int_equal(make(mirror, "uid:8", "b", 2), 0);
	peer_named(&holder, "uid:7");
	peer_named(&rival, "uid:8");
	assert_int_equal(mirror_share(mirror, &holder, "a", 5, 1, NULL), 0);
	assert_int_equal(mirror_share(mirror, &rival, "b", 5, 2, NULL), 0);
}

/* The client lengthens a file, first within its quota: it loses the store when it exceeds the
 * quota. Other clients stay, and so does the image, in other memory. */
TEST(who_exceeds_a_quota_is_cut_off, struct mirror *mirror)
{
	char text[128];

	snprintf(text, sizeof(text), "allow * all\nlimit * memory %d", 3 * LEAST);
	set_rules(mirror, text);
	share_beside(mirror);
	memory_heap_set_whose(mirror->memory, MEMORY_SHARED);
	assert_true(memory_heap_take(mirror->memory, "a", "log.1", 2 * LEAST));
	assert_int_equal(stores_excess(mirror->stores), 2 * LEAST);
	assert_int_equal(stores_cut_excess(mirror->stores), 0);
	assert_int_equal(stores_excess(mirror->stores), 0);
	assert_true(memory_heap_take(mirror->memory, "a", "log.1", 2 * LEAST + 1));
	assert_true(memory_heap_take(mirror->memory, "b", "log.1", 1));
	assert_int_equal(stores_cut_excess(mirror->stores), 1);
	assert_int_equal(holder.cuts, 1);
	assert_int_equal(rival.cuts, 0);
	assert_int_equal(stores_excess(mirror->stores), 0);
	assert_int_equal(mirror_header(mirror, "a")->generation, 2);
	assert_int_equal(mirror_claim(mirror, &holder, "a", 6, 1, NULL), 0);
}

/* There is no quota, and the limit of the mirror is for all. */
TEST(who_exceeds_the_limit_of_the_mirror_is_cut_off, struct mirror *mirror)
{
	char used[32];
	uint64_t room = 4 * LEAST;

	share_beside(mirror);
	memory_heap_set_limit(mirror->memory, mirror->memory->ops->used(mirror->memory) + room);
	assert_true(memory_heap_take(mirror->memory, "a", "log.1", room));
	assert_int_equal(stores_cut_excess(mirror->stores), 0);
	assert_true(memory_heap_take(mirror->memory, "a", "log.1", room + 1));
	assert_int_equal(create(mirror, "uid:8", "c", 3), -STATUS(NO_MEMORY));
	snprintf(used, sizeof(used), "(%llu used",
	         (unsigned long long)mirror->memory->ops->used(mirror->memory));
	assert_non_null(strstr(mirror->why.text, used));
	assert_int_equal(stores_cut_excess(mirror->stores), 1);
	assert_int_equal(holder.cuts, 1);
	assert_int_equal(rival.cuts, 0);
	assert_int_equal(create(mirror, "uid:8", "c", 3), 0);
}

/* An owner makes a store anew, which it did not create: whose it is now. */
TEST(a_store_made_anew_is_its_owners, struct mirror *mirror)
{
	static const struct {
		const char *name, *quota; /* NULL: granted */
	} owners[] = { { "uid:8", "\"stores\"" }, { "uid:9", "\"sessions\"" }, { "uid:10", NULL } };
	Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__RebuildReply reply = PERSEAS__REBUILD_REPLY__INIT;

	assert_int_equal(make(mirror, "uid:7", "a", 1), 0);
	request.header = ps_header_copy(mirror_header(mirror, "a"));
	request.epoch = 5;
	request.owner = OWNER(1);
	memory_heap_lose(mirror->memory, "a");
	mirror_restart(mirror);
	set_rules(mirror, "allow * own,create\nlimit uid:8 stores 0\nlimit uid:9 sessions 0");
	for (unsigned i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		assert_null(mirror_header(mirror, "a"));
		peer_named(&holder, owners[i].name);
		assert_int_equal(store_rebuild(mirror->stores, &holder.session, &request, &reply,
		                               &mirror->why),
		                 owners[i].quota ? -STATUS(LIMIT) : 0);
		if (owners[i].quota)
			expect_refusal(mirror, owners[i].name, owners[i].quota);
	}
	assert_string_equal(mirror_header(mirror, "a")->creator, "uid:10");
	perseas__header__free_unpacked(request.header, NULL);
}

/* Each client may have one session: a second one is refused before anybody is fenced, but the
 * owner's next session is no second one. */
TEST(sessions_are_counted_by_who_holds_them, struct mirror *mirror)
{
	struct peer first, second, other;

	set_rules(mirror, "allow * all\nlimit uid:7 sessions 1");
	assert_int_equal(make(mirror, "uid:7", "a", 1), 0);
	assert_int_equal(make(mirror, "uid:7", "b", 2), 0);
	peer_named(&first, "uid:7");
	peer_named(&second, "uid:7");
	peer_named(&other, "uid:8");
	assert_int_equal(mirror_claim(mirror, &first, "a", 5, 1, NULL), 0);
	assert_int_equal(mirror_claim(mirror, &other, "b", 5, 2, NULL), 0);
	assert_int_equal(mirror_takeover(mirror, &second, "b", 6, 3, NULL), -STATUS(LIMIT));
	expect_refusal(mirror, "uid:7", "\"sessions\"");
	assert_int_equal(other.cuts, 0);
	assert_int_equal(mirror_header(mirror, "b")->promised_epoch, 5);
	assert_int_equal(mirror_takeover(mirror, &second, "a", 6, 3, NULL), 0);
	assert_int_equal(first.cuts, 1);
	assert_int_equal(store_release(&second.session, &mirror->why), 0);
	assert_int_equal(mirror_takeover(mirror, &second, "b", 6, 3, NULL), 0);
}

/* A quota that is below what is there takes nothing away. */
TEST(a_quota_that_shrinks_takes_nothing_away, struct mirror *mirror)
{
	struct peer owner;

	own_a(mirror, &owner);
	set_rules(mirror, "allow * all\nlimit * memory 1 stores 0 sessions 0");
	assert_int_equal(owner.cuts, 0);
	assert_non_null(mirror_header(mirror, "a"));
	assert_int_equal(peer_add(&owner, &mirror->why, 0, "more", 1), -STATUS(NO_MEMORY));
}
