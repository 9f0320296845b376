/*
 * test_drain.c - what perseas drain decides by what mirrors told: which member an image is, whether
 * anything can be done for its store, who may take its place, and when a mirror is called dead.
 */
#include "judge_rig.h"

#include "../../client/command/ask/verdict.h"
#include "../../client/command/drain/drain.h"

/* A store's images, and what its mirrors told. */
struct desk {
	struct scene s;
	struct ps_peers peers;
	Perseas__StoreStatus status[MIRRORS];
	struct ps_images images;
};

static void look(struct desk *d)
{
	d->peers.count = d->s.count;
	d->images = (struct ps_images){ .peers = &d->peers };
	for (unsigned i = 0; i < d->s.count; i++) {
		perseas__store_status__init(&d->status[i]);
		d->status[i].header = (Perseas__Header *)d->s.told[i].header;
		d->images.told[i] = d->s.told[i].header ? &d->status[i] : NULL;
		snprintf(d->peers.addresses[i].text, sizeof(d->peers.addresses[i].text), "%s",
		         d->s.told[i].address ? d->s.told[i].address : "");
	}
	judge(&d->s);
	d->images.judged = d->s.j;
	d->images.roster = d->s.j.next ? d->s.j.next : d->s.j.settled;
	d->images.header = d->s.told[0].header;
}

/* Three mirrors of one roster. */
static void begin(struct desk *d)
{
	memset(d, 0, sizeof(*d));
	list(&d->s, 0, 0, 2, 0x7);
	for (unsigned k = 0; k < 3; k++)
		tell(&d->s, 0, k, 0, 4);
	look(d);
}

static int setup(void **state)
{
	static struct desk desk;

	begin(&desk);
	*state = &desk;
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

TEST(an_image_is_a_member_by_its_id_or_by_that_of_its_parent, struct desk *d)
{
	Perseas__Header loaded = PERSEAS__HEADER__INIT;

	loaded.image_id = image_of(0, 5);
	assert_null(ps_drain_find_member(&d->images, &loaded, NULL));
	loaded.parent_id = image_of(0, 1);
	assert_ptr_equal(ps_drain_find_member(&d->images, &loaded, NULL), d->s.of[0].list[0][1]);
	assert_ptr_equal(ps_drain_find_member(&d->images, &d->s.headers[2], NULL),
	                 d->s.of[0].list[0][2]);
	/* With --gone another member's image is looked at, and the mirror's own address counts. */
	assert_ptr_equal(ps_drain_find_member(&d->images, &d->s.headers[2], address_of(0, 0)),
	                 d->s.of[0].list[0][0]);
	assert_null(ps_drain_find_member(&d->images, &d->s.headers[2], address_of(0, 4)));
}

/* A client that may create stores can give an image any id, but cannot claim it. */
TEST(an_image_is_the_same_only_if_its_daemon_wrote_the_same, struct desk *d)
{
	Perseas__Header made, *real;

	real = &d->s.headers[1];
	real->generation = 1;
	made = *real;
	assert_true(ps_drain_is_same_image(&made, real));
	real->promised_epoch = 5;
	assert_false(ps_drain_is_same_image(&made, real));
	real->rewrites = 1;
	made.promised_epoch = 5;
	assert_false(ps_drain_is_same_image(&made, real));
	made.rewrites = 1;
	assert_true(ps_drain_is_same_image(&made, real));
	made.boot = id_of(3);
	assert_false(ps_drain_is_same_image(&made, real));
	made.boot = real->boot = id_of(3);
	assert_true(ps_drain_is_same_image(&made, real));
	made.creator = (char *)(uintptr_t) "uid:7";
	assert_false(ps_drain_is_same_image(&made, real));
	made.creator = real->creator;
	made.image_id = image_of(0, 2);
	assert_false(ps_drain_is_same_image(&made, real));
}

static void assert_trouble(const struct desk *d, const Perseas__Header *header, const char *gone,
                           const char *words)
{
	const char *trouble = ps_drain_explain_obstacle(&d->images, header, gone);

	if (!words)
		assert_null(trouble);
	else if (!trouble || !strstr(trouble, words))
		fail_msg("'%s' does not say '%s'", trouble ? trouble : "", words);
}

TEST(what_nothing_can_be_done_about_is_said, struct desk *d)
{
	assert_trouble(d, &d->s.headers[0], NULL, NULL);
	assert_trouble(d, &d->s.headers[0], address_of(0, 1), NULL);
	d->s.headers[0].store_id = store_of(1);
	d->images.header = &d->s.headers[1];
	assert_trouble(d, &d->s.headers[0], NULL, "another store of that name");
	d->s.headers[0].state = PERSEAS__STATE__STATE_CREATING;
	assert_trouble(d, &d->s.headers[0], NULL, "its making was not finished");
	begin(d);
	d->images.header = NULL;
	assert_trouble(d, &d->s.headers[0], NULL, "no mirror that its roster names");
}

/* Without W nobody could open it; its owner changes its roster all the same, which is why it is
 * asked where a mirror is gone. */
TEST(an_owner_may_replace_what_keeps_others_from_opening, struct desk *d)
{
	d->s.told[1] = d->s.told[2] = (struct ps_told){ .address = NULL };
	look(d);
	assert_trouble(d, &d->s.headers[0], NULL, "too few of its mirrors");
	assert_trouble(d, &d->s.headers[0], address_of(0, 1), "too few of its mirrors");
	d->status[0].live = true;
	d->s.headers[0].promised_epoch = 1;
	assert_trouble(d, &d->s.headers[0], NULL, "too few of its mirrors");
	assert_trouble(d, &d->s.headers[0], address_of(0, 1), NULL);
}

TEST(a_store_that_a_killed_restore_left_is_named, struct desk *d)
{
	d->images.judged.outlook = PS_OUTLOOK_UNFILLED;
	assert_trouble(d, &d->s.headers[0], NULL, "its restore was not finished");
}

/* The image may be all that counts of a fork, even where a newer roster is seen. */
TEST(an_image_of_a_fork_stays, struct desk *d)
{
	Perseas__Header *header;

	list(&d->s, 0, 1, 1, 0x10);
	header = tell(&d->s, 0, 4, 1, 9);
	header->roster = &d->s.of[0].roster[1];
	d->s.of[0].roster[0].epoch = 7;
	look(d);
	assert_trouble(d, header, NULL, "of a fork");
	header->roster = &d->s.of[0].roster[0];
	look(d);
	assert_trouble(d, header, NULL, NULL);
}

TEST(a_mirror_is_gone_when_its_owner_says_so_too, struct desk *d)
{
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT, *reports = &report;
	Perseas__Member *const *members = d->s.of[0].list[0];

	assert_false(ps_verdict_is_member_live(&d->images, members[1]));
	d->status[0].live = true;
	d->s.headers[0].promised_epoch = 1;
	d->status[0].mirrors = &reports;
	d->status[0].n_mirrors = 1;
	report.address = address_of(0, 1);
	report.state = (char *)"live";
	assert_true(ps_verdict_is_member_live(&d->images, members[1]));
	assert_false(ps_verdict_is_member_live(&d->images, members[2]));
	report.state = (char *)"down";
	assert_false(ps_verdict_is_member_live(&d->images, members[1]));
}

/* The mirror may just be restarting: one look is not enough, and neither are several with an answer
 * in between. */
TEST(a_mirror_is_dead_when_it_was_silent_for_a_while)
{
	const uint64_t most = (uint64_t)PS_DRAIN_SILENT_MS * 1000000;
	struct ps_drain_silence silence = { .since_ns = 0 };

	assert_false(ps_drain_note_silence(&silence, "a", 2 * most));
	assert_false(ps_drain_note_silence(&silence, "a", 3 * most - 1));
	assert_true(ps_drain_note_silence(&silence, "a", 3 * most));
	assert_false(ps_drain_note_silence(&silence, "b", 3 * most));
	assert_false(ps_drain_note_silence(&silence, NULL, 3 * most));
	assert_false(ps_drain_note_silence(&silence, "b", 5 * most));
	assert_true(ps_drain_note_silence(&silence, "b", 6 * most));
}

TEST(who_takes_a_place_has_nothing_that_counts, struct desk *d)
{
	Perseas__Header other = PERSEAS__HEADER__INIT;
	const Perseas__Header *mine;

	mine = &d->s.headers[0];
	assert_int_equal(ps_drain_check_daemon(NULL, mine, &d->images), PS_DRAIN_ACCEPTS);
	assert_int_equal(ps_drain_check_daemon(mine, mine, &d->images), PS_DRAIN_HAS_THIS_IMAGE);
	assert_int_equal(ps_drain_check_daemon(&d->s.headers[1], mine, &d->images),
	                 PS_DRAIN_HAS_THIS_IMAGE);
	other.store_id = store_of(1);
	other.image_id = image_of(0, 5);
	assert_int_equal(ps_drain_check_daemon(&other, mine, &d->images), PS_DRAIN_HAS_OTHER_STORE);
	other.store_id = store_of(0);
	list(&d->s, 0, 1, 1, 0x21);
	other.roster = &d->s.of[0].roster[1];
	assert_int_equal(ps_drain_check_daemon(&other, mine, &d->images),
	                 PS_DRAIN_HAS_NEWER_ROSTER);
	/* An old one that left the roster; and one of a fork. */
	d->s.of[0].roster[0].epoch = 7;
	assert_int_equal(ps_drain_check_daemon(&other, mine, &d->images), PS_DRAIN_ACCEPTS);
	list(&d->s, 0, 1, 1, 0x20);
	assert_int_equal(ps_drain_check_daemon(&other, mine, &d->images), PS_DRAIN_HAS_FORK);
}

/* Any daemon of the list may know what those that the image names do not. */
TEST(a_newer_roster_is_found_wherever_it_is, struct desk *d)
{
	Perseas__Header theirs = PERSEAS__HEADER__INIT;
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct ps_peers peers = { .count = 1 };
	struct ps_fleet_daemon daemon = { .peers = &peers };
	const struct ps_fleet fleet = { .daemons = &daemon, .count = 1 };
	const struct ps_fleet_image entry = { .daemon = 0, .status = &status };

	strcpy(peers.addresses[0].text, "far");
	for (unsigned i = 0; i < 3; i++)
		d->s.headers[i].store = (char *)"s";
	theirs = d->s.headers[1];
	status.header = &theirs;
	list(&d->s, 0, 1, 1, 0x20);
	assert_null(ps_drain_find_newer_roster(&fleet, &entry, 1, &d->images));
	theirs.roster = &d->s.of[0].roster[1];
	assert_string_equal(ps_drain_find_newer_roster(&fleet, &entry, 1, &d->images), "far");
	assert_null(ps_drain_find_newer_roster(&fleet, &entry, 0, &d->images));
	theirs.store_id = store_of(1);
	assert_null(ps_drain_find_newer_roster(&fleet, &entry, 1, &d->images));
	theirs.store_id = store_of(0);
	theirs.state = PERSEAS__STATE__STATE_CREATING;
	assert_null(ps_drain_find_newer_roster(&fleet, &entry, 1, &d->images));
}
