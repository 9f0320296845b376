/*
 * test_watch_losses.c - the losses that the daemon's page names, by what an owner reported.
 */
#include "../../server/watch/losses.h"
#include "../support/messages.h"
#include "../support/unit.h"

enum { MIRRORS = 3 };

/* A store as one of its daemons knows it: three mirrors, W = 2, all live, each on a host of its
 * own. */
struct told {
	Perseas__Header header;
	Perseas__Roster roster, next;
	Perseas__Member members[MIRRORS], *member_list[MIRRORS];
	Perseas__Location locations[MIRRORS];
	Perseas__MirrorReport reports[MIRRORS], *report_list[MIRRORS];
	Perseas__StoreStatus status;
	struct watch_losses losses;
};

static char hosts[MIRRORS][3] = { "h0", "h1", "h2" };
static char addresses[MIRRORS][3] = { "m0", "m1", "m2" };

static int setup(void **state)
{
	struct told *told = calloc(1, sizeof(*told));

	assert_non_null(told);
	perseas__header__init(&told->header);
	told->roster = MESSAGE_OF(Roster, roster, .acks = 2, .n_members = MIRRORS,
	                          .members = told->member_list);
	told->header.roster = &told->roster;
	told->status = MESSAGE_OF(StoreStatus, store_status, .header = &told->header,
	                          .n_mirrors = MIRRORS, .mirrors = told->report_list);
	for (unsigned i = 0; i < MIRRORS; i++) {
		told->members[i] = MESSAGE_OF(Member, member, .image_id = message_id(i + 1));
		told->member_list[i] = &told->members[i];
		perseas__location__init(&told->locations[i]);
		told->locations[i].host = hosts[i];
		told->reports[i] = MESSAGE_OF(MirrorReport, mirror_report, .address = addresses[i],
		                              .state = (char *)(uintptr_t) "live",
		                              .image_id = message_id(i + 1),
		                              .location = &told->locations[i]);
		told->report_list[i] = &told->reports[i];
	}
	*state = told;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void assert_loss(const struct ps_loss *loss, enum ps_domain domain, uint32_t spots)
{
	assert_true(loss->is_certain);
	assert_int_equal(loss->domain, domain);
	assert_int_equal(loss->spots, spots);
}

TEST(mirrors_on_hosts_of_their_own_may_each_be_lost, struct told *told)
{
	watch_losses_find(&told->losses, &told->status);
	assert_true(told->losses.can_commit && told->losses.can_open);
	assert_loss(&told->losses.commit, PS_DOMAINS, 0);
	assert_loss(&told->losses.open, PS_DOMAINS, 0);
	assert_string_equal(watch_loss_word(true, &told->losses.open), "none");
}

TEST(a_host_with_two_of_three_mirrors_is_named, struct told *told)
{
	told->locations[2].host = hosts[0];
	watch_losses_find(&told->losses, &told->status);
	assert_loss(&told->losses.commit, PS_DOMAIN_HOST, 5);
	assert_loss(&told->losses.open, PS_DOMAIN_HOST, 5);
	assert_string_equal(told->losses.spots[2].address, "m2");
}

TEST(a_machine_with_two_of_three_mirrors_is_named, struct told *told)
{
	told->locations[1].boot = told->locations[2].boot = message_id(9);
	watch_losses_find(&told->losses, &told->status);
	assert_loss(&told->losses.commit, PS_DOMAIN_MACHINE, 6);
	assert_string_equal(watch_loss_word(true, &told->losses.commit), "machine");
}

/* With W = 1 any mirror is enough for a commit, and an open needs all three. */
TEST(commits_and_opens_need_different_mirrors, struct told *told)
{
	told->roster.acks = 1;
	watch_losses_find(&told->losses, &told->status);
	assert_loss(&told->losses.commit, PS_DOMAINS, 0);
	assert_loss(&told->losses.open, PS_DOMAINS, 7);
	assert_string_equal(watch_loss_word(true, &told->losses.open), "mirror");
}

/* A mirror that is down is lost already. */
TEST(what_is_left_of_three_mirrors_is_needed, struct told *told)
{
	told->reports[1].state = (char *)(uintptr_t) "down";
	watch_losses_find(&told->losses, &told->status);
	assert_loss(&told->losses.commit, PS_DOMAINS, 5);
	told->reports[0].state = (char *)(uintptr_t) "stale";
	watch_losses_find(&told->losses, &told->status);
	assert_false(told->losses.can_commit || told->losses.can_open);
	assert_string_equal(watch_loss_word(false, &told->losses.commit), "now");
}

/* The owner tells of a mirror that left the roster for as long as it lives. */
TEST(a_mirror_that_no_roster_lists_counts_for_nothing, struct told *told)
{
	told->roster.n_members = 2;
	watch_losses_find(&told->losses, &told->status);
	assert_loss(&told->losses.commit, PS_DOMAINS, 3);
	told->reports[1].image_id.len = 0;
	watch_losses_find(&told->losses, &told->status);
	assert_false(told->losses.can_commit);
}

/* A change of the roster is under way: both rosters must have enough. */
TEST(each_roster_in_force_must_have_enough, struct told *told)
{
	told->next = told->roster;
	told->next.acks = 3;
	told->header.next_roster = &told->next;
	watch_losses_find(&told->losses, &told->status);
	assert_loss(&told->losses.commit, PS_DOMAINS, 7);
}

/* Without a word on where two mirrors run they could share a host. */
TEST(a_loss_is_not_known_while_hosts_are_not, struct told *told)
{
	told->reports[0].location = told->reports[1].location = NULL;
	watch_losses_find(&told->losses, &told->status);
	assert_true(told->losses.can_commit && !told->losses.commit.is_certain);
	assert_string_equal(watch_loss_word(true, &told->losses.commit), "unknown");
}

TEST(nothing_is_known_without_an_owner_s_report, struct told *told)
{
	told->status.n_mirrors = 0;
	watch_losses_find(&told->losses, &told->status);
	assert_false(told->losses.can_commit || told->losses.can_open);
	assert_int_equal(told->losses.count, 0);
	told->status.n_mirrors = MIRRORS;
	told->status.header = NULL;
	watch_losses_find(&told->losses, &told->status);
	assert_false(told->losses.can_commit || told->losses.can_open);
}
