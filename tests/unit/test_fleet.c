/*
 * test_fleet.c - what the lists of many daemons come to: which images are of one store, which
 * member is missing, and how a store is ranked by that. No daemon is asked: none has a connection.
 */
#include "judge_rig.h"

#include "../../client/command/fleet/fleet.h"

/* Each mirror of the scene is a daemon, whose list has what it tells. */
struct desk {
	struct scene s;
	struct ps_peers peers;
	struct ps_fleet_daemon daemons[MIRRORS];
	Perseas__Reply replies[MIRRORS];
	Perseas__ListReply lists[MIRRORS];
	Perseas__StoreStatus status[MIRRORS], *told[MIRRORS];
	Perseas__Slot slots[MIRRORS];
	char hosts[MIRRORS][16]; /* each has its own */
	struct ps_fleet fleet;
};

static void look_at_hosts(struct desk *d, const char *last_host)
{
	for (unsigned i = 0; i < d->s.count; i++) {
		Perseas__Header *header = (Perseas__Header *)d->s.told[i].header;

		perseas__reply__init(&d->replies[i]);
		perseas__list_reply__init(&d->lists[i]);
		perseas__store_status__init(&d->status[i]);
		perseas__slot__init(&d->slots[i]);
		d->slots[i].epoch = d->s.told[i].epoch;
		d->slots[i].seq = d->s.told[i].seq;
		d->status[i].header = header;
		d->status[i].slot = &d->slots[i];
		snprintf(d->hosts[i], sizeof(d->hosts[i]), "h%u", i);
		if (last_host && i + 1 == d->s.count)
			snprintf(d->hosts[i], sizeof(d->hosts[i]), "%s", last_host);
		d->status[i].host = d->hosts[i];
		d->told[i] = &d->status[i];
		d->replies[i].list = &d->lists[i];
		d->lists[i].stores = &d->told[i];
		d->lists[i].n_stores = header != NULL;
		if (header && !*header->store)
			header->store = (char *)"s";
		d->daemons[i] = (struct ps_fleet_daemon){ &d->peers, i, false, &d->replies[i] };
		snprintf(d->peers.addresses[i].text, sizeof(d->peers.addresses[i].text), "%s",
		         d->s.told[i].address);
	}
	d->peers.count = d->s.count;
	d->fleet = (struct ps_fleet){ .daemons = d->daemons, .count = d->s.count };
	ps_fleet_judge_stores(&d->fleet);
}

static void look(struct desk *d)
{
	look_at_hosts(d, NULL);
}

static void leave(struct desk *d)
{
	ps_fleet_free_stores(&d->fleet);
	d->fleet.stores = NULL;
	d->fleet.store_count = 0;
}

/* Three mirrors of one roster; W = 2. */
static int setup(void **state)
{
	static struct desk desk;

	memset(&desk, 0, sizeof(desk));
	list(&desk.s, 0, 0, 2, 0x7);
	tell_all(&desk.s, 0, 0x7, 0, 4);
	*state = &desk;
	return 0;
}

static int teardown(void **state)
{
	leave(*state);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

TEST(a_store_without_an_owner_is_free, struct desk *d)
{
	const struct ps_fleet_store *store;

	d->s.told[2].seq = 3;
	look(d);
	assert_int_equal(d->fleet.store_count, 1);
	store = &d->fleet.stores[0];
	assert_int_equal(store->rank, PS_FLEET_OWNERLESS);
	assert_true(store->open && store->commit);
	assert_int_equal(store->losses_borne, 1);
	assert_int_equal(store->losses_promised, 1);
	assert_int_equal(store->live, 3);
	assert_int_equal(store->members, 3);
	assert_true(store->has_lag);
	assert_int_equal(store->lag, 1);
	assert_string_equal(store->trouble, "");
	assert_int_equal(d->fleet.ownerless_count, 1);
	assert_int_equal(d->fleet.ranks[PS_FLEET_OWNERLESS], 1);
	leave(d);
}

/* The last owner ended before one image had its slot. */
TEST(what_the_last_owner_left_behind_is_not_up_to_date, struct desk *d)
{
	d->s.told[2].epoch--;
	look(d);
	assert_int_equal(d->fleet.stores[0].rank, PS_FLEET_HAS_FAULT);
	assert_int_equal(d->fleet.stores[0].live, 2);
	assert_int_equal(d->fleet.stores[0].losses_borne, 1);
	assert_non_null(strstr(d->fleet.stores[0].trouble, address_of(0, 2)));
	assert_null(strstr(d->fleet.stores[0].trouble, address_of(0, 1)));
	leave(d);
}

/* A daemon of a roster that lists no image is among those that are looked at, and said. */
TEST(a_member_without_an_image_is_missed, struct desk *d)
{
	struct ps_peers peers;
	struct ps_images images;
	struct ps_fleet_image *entries;
	unsigned count;

	d->s.told[1] = (struct ps_told){ .has_no_image = true, .address = address_of(0, 1) };
	look(d);
	assert_int_equal(d->fleet.stores[0].rank, PS_FLEET_LACKS_REDUNDANCY);
	assert_int_equal(d->fleet.stores[0].losses_borne, 0);
	assert_int_equal(d->fleet.stores[0].live, 2);
	assert_non_null(strstr(d->fleet.stores[0].trouble, address_of(0, 1)));
	entries = ps_fleet_list_images(&d->fleet, &count);
	assert_int_equal(count, 2);
	ps_fleet_fill_images(&d->fleet, entries, count, false, &peers, &images);
	assert_int_equal(peers.count, 2);
	assert_true(ps_fleet_is_image_unseen(&images, address_of(0, 1)));
	assert_false(ps_fleet_is_image_unseen(&images, address_of(0, 0)));
	ps_fleet_fill_images(&d->fleet, entries, count, true, &peers, &images);
	assert_int_equal(peers.count, 3);
	free(entries);
	leave(d);
}

/* Members 1 and 2 exchanged their addresses, and member 1 does not answer at its new one. */
TEST(a_member_is_looked_for_where_the_other_one_was, struct desk *d)
{
	char *list;

	d->s.told[1] = d->s.told[2];
	d->s.told[1].address = address_of(0, 1);
	d->s.count = 2;
	look(d);
	list = ps_fleet_list_unasked(&d->fleet);
	assert_non_null(list);
	assert_memory_equal(list, address_of(0, 2), strlen(address_of(0, 2)));
	free(list);
}

/* Two mirrors of the store are on one host; then one of them does not tell its host. */
TEST(a_store_that_a_host_takes_with_it_is_noted, struct desk *d)
{
	const struct ps_fleet_store *store;

	look_at_hosts(d, "h1");
	store = &d->fleet.stores[0];
	assert_int_equal(store->rank, PS_FLEET_HAS_FAULT);
	assert_non_null(strstr(store->trouble, "next loss that hurts: host h1: mirrors "));
	leave(d);
	look_at_hosts(d, "");
	store = &d->fleet.stores[0];
	assert_int_equal(store->rank, PS_FLEET_HAS_FAULT);
	assert_non_null(strstr(store->trouble, "not known, since the host of "));
	assert_string_equal(store->trouble, store->next_loss);
	leave(d);
	/* Each of two mirrors is needed, so that their hosts make no difference. */
	d->s.told[0] = (struct ps_told){ .has_no_image = true, .address = address_of(0, 0) };
	look(d);
	assert_int_equal(d->fleet.stores[0].rank, PS_FLEET_LACKS_REDUNDANCY);
	assert_null(strstr(d->fleet.stores[0].trouble, "next loss"));
}

/* Two stores of one name are each judged by their own images, and the worse one comes first. */
TEST(stores_of_one_name_are_two, struct desk *d)
{
	struct ps_fleet_image *entries;
	unsigned count, first;

	list(&d->s, 1, 0, 2, 0x3);
	tell(&d->s, 1, 0, 0, 9);
	look(d);
	assert_int_equal(d->fleet.store_count, 2);
	assert_int_equal(d->fleet.stores[0].rank, PS_FLEET_STUCK);
	assert_memory_equal(d->fleet.stores[0].header->store_id.data, store_of(1).data, PS_ID_SIZE);
	assert_non_null(strstr(d->fleet.stores[0].trouble, "cannot be opened"));
	assert_int_equal(d->fleet.stores[1].rank, PS_FLEET_HAS_FAULT);
	for (unsigned i = 0; i < 2; i++)
		assert_non_null(strstr(d->fleet.stores[i].trouble, "another store has this name"));
	entries = ps_fleet_list_images(&d->fleet, &count);
	assert_int_equal(count, 4);
	first = ps_fleet_count_images_of_first_store(entries, count);
	assert_true(first == 1 || first == 3);
	assert_int_equal(ps_fleet_count_images_of_first_store(entries + first, count - first),
	                 4 - first);
	free(entries);
	leave(d);
}

/* A member that its owner does not call live, an unsettled change and a stray image are noted. */
TEST(what_is_to_be_said_is_said, struct desk *d)
{
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT, *reports = &report;

	list(&d->s, 0, 1, 2, 0x7);
	tell(&d->s, 0, 3, 0, 4);
	look(d);
	assert_int_equal(d->fleet.stores[0].rank, PS_FLEET_HAS_FAULT);
	assert_non_null(strstr(d->fleet.stores[0].trouble, "an image that no roster lists"));
	leave(d);
	d->s.count = 3;
	d->s.headers[1].next_roster = &d->s.of[0].roster[1];
	look(d);
	assert_non_null(strstr(d->fleet.stores[0].trouble, "is not settled"));
	leave(d);
	/* The list contains what the owner says, so it is judged again by hand. */
	d->s.headers[1].next_roster = NULL;
	look(d);
	leave(d);
	d->status[0].live = true;
	d->status[0].mirrors = &reports;
	d->status[0].n_mirrors = 1;
	report.address = address_of(0, 2);
	report.state = (char *)"resyncing";
	report.done = 3;
	report.total = 8;
	d->fleet = (struct ps_fleet){ .daemons = d->daemons, .count = 3 };
	ps_fleet_judge_stores(&d->fleet);
	assert_non_null(strstr(d->fleet.stores[0].trouble, "resyncing"));
	assert_int_equal(d->fleet.stores[0].live, 2);
	assert_int_equal(d->fleet.stores[0].done, 3);
	assert_int_equal(d->fleet.stores[0].total, 8);
	assert_int_equal(d->fleet.ownerless_count, 0);
}
