/*
 * test_exchanged.c - where the command takes members to be whose daemons exchanged their addresses,
 * and what follows from it: which stores drain moves, and what the verdict says of a dead mirror.
 */
#include "judge_rig.h"

#include "../../client/command/ask/verdict.h"
#include "../../client/command/change/roster.h"
#include "../../client/command/drain/drain.h"

/* The images of a store, as its mirrors tell them, and the reports of its owner. */
struct desk {
	struct scene s;
	struct ps_peers peers;
	Perseas__StoreStatus status[MIRRORS];
	Perseas__Slot slots[MIRRORS];
	Perseas__MirrorReport reports[MEMBERS], *list[MEMBERS];
	struct ps_images images;
};

static void take_answer(struct desk *d, unsigned i)
{
	const struct ps_told *told = &d->s.told[i];

	perseas__slot__init(&d->slots[i]);
	d->slots[i].epoch = told->epoch;
	d->slots[i].seq = told->seq;
	d->status[i].header = (Perseas__Header *)told->header;
	d->status[i].slot = told->has_slot ? &d->slots[i] : NULL;
	d->images.told[i] = told->header ? &d->status[i] : NULL;
	d->images.have += told->header != NULL;
	if (!told->header)
		d->images.errors[i].code = told->has_no_image ? PERSEAS_ENOSTORE
		                                              : PERSEAS_EUNREACHABLE;
	strcpy(d->peers.addresses[i].text, told->address);
}

static void look(struct desk *d)
{
	d->peers.count = d->peers.listed_count = d->s.count;
	d->images = (struct ps_images){ .peers = &d->peers };
	for (unsigned i = 0; i < d->s.count; i++)
		take_answer(d, i);
	ps_images_judge(&d->images);
}

/* Peer i shows the image of member i. The last two have exchanged their addresses. */
static void begin(struct desk *d, unsigned count, uint32_t acks)
{
	memset(d, 0, sizeof(*d));
	list(&d->s, 0, 0, acks, (1u << count) - 1);
	for (unsigned i = 0; i < MIRRORS; i++)
		perseas__store_status__init(&d->status[i]);
	tell_all(&d->s, 0, (1u << count) - 1, 0, 4);
	d->s.told[count - 2].address = address_of(0, count - 1);
	d->s.told[count - 1].address = address_of(0, count - 2);
}

static int setup(void **state)
{
	static struct desk desk;

	begin(&desk, 3, 2);
	*state = &desk;
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

static void die(struct desk *d, unsigned i)
{
	d->s.told[i] = (struct ps_told){ .address = d->s.told[i].address };
}

static const Perseas__Member *member(const struct desk *d, unsigned k)
{
	return d->s.of[0].list[0][k];
}

/* The owner, which is seen at peer 0, calls member k live at this address. */
static void report(struct desk *d, unsigned k, char *address)
{
	Perseas__MirrorReport *it = &d->reports[d->status[0].n_mirrors];

	perseas__mirror_report__init(it);
	it->address = address;
	it->image_id = image_of(0, k);
	it->state = (char *)"live";
	d->list[d->status[0].n_mirrors++] = it;
	d->status[0].mirrors = d->list;
	d->status[0].live = true;
	d->s.headers[0].promised_epoch = 1;
}

static void assert_at(const struct desk *d, unsigned k, const char *address)
{
	assert_string_equal(ps_images_address_of(&d->images, member(d, k)), address);
}

TEST(a_member_is_where_its_image_was_seen, struct desk *d)
{
	look(d);
	assert_at(d, 0, address_of(0, 0));
	assert_at(d, 1, address_of(0, 2));
	assert_at(d, 2, address_of(0, 1));
	assert_false(ps_images_is_address_old(&d->images, member(d, 0)));
	assert_true(ps_images_is_address_old(&d->images, member(d, 1)));
	assert_ptr_equal(ps_roster_member_seen_at(&d->images, address_of(0, 1)), member(d, 2));
}

static void assert_dead_at_2(const struct desk *d)
{
	assert_at(d, 1, address_of(0, 2));
	assert_false(ps_images_is_address_old(&d->images, member(d, 1)));
	assert_true(ps_images_is_address_old(&d->images, member(d, 2)));
	assert_false(ps_images_are_addresses_unclear(&d->images));
	assert_true(ps_fleet_is_image_unseen(&d->images, address_of(0, 2)));
	assert_false(ps_fleet_is_image_unseen(&d->images, address_of(0, 1)));
	assert_ptr_equal(ps_drain_find_member(&d->images, NULL, address_of(0, 2)), member(d, 1));
	assert_ptr_equal(ps_drain_find_member(&d->images, NULL, address_of(0, 1)), member(d, 2));
	assert_ptr_equal(ps_roster_member_seen_at(&d->images, address_of(0, 2)), member(d, 1));
}

/* The dead one of two that exchanged their addresses is at the address of the other one, whether
 * the list names that or not. */
TEST(a_dead_member_is_where_the_other_one_was, struct desk *d)
{
	die(d, 1);
	look(d);
	assert_dead_at_2(d);
	d->s.told[1] = d->s.told[2];
	d->s.count = 2;
	d->s.headers[1] = d->s.headers[2];
	d->s.told[1].header = &d->s.headers[1];
	look(d);
	assert_dead_at_2(d);
}

/* A repeated order must not mean the member that the roster still lists there. */
TEST(an_address_that_another_daemon_has_means_no_member_that_is_elsewhere, struct desk *d)
{
	d->s.headers[1].image_id = image_of(0, 5);
	list(&d->s, 0, 0, 2, 0x5);
	look(d);
	assert_at(d, 1, address_of(0, 1));
	assert_true(ps_images_is_address_old(&d->images, member(d, 1)));
	assert_ptr_equal(ps_roster_member_seen_at(&d->images, address_of(0, 1)), member(d, 1));
	assert_null(ps_roster_member_seen_at(&d->images, address_of(0, 2)));
}

/* If two members were not seen and other members are at exchanged addresses, the command cannot
 * know which of the two is where, unless the owner tells it. */
TEST(which_of_two_dead_members_is_where_is_not_known, struct desk *d)
{
	begin(d, 5, 3);
	die(d, 3);
	look(d);
	assert_false(ps_images_are_addresses_unclear(&d->images));
	die(d, 1);
	look(d);
	assert_true(ps_images_are_addresses_unclear(&d->images));
	assert_non_null(
		strstr(ps_drain_explain_obstacle(&d->images, d->images.header, address_of(0, 4)),
	               "it is not known which"));
	report(d, 3, address_of(0, 4));
	look(d);
	assert_false(ps_images_are_addresses_unclear(&d->images));
	begin(d, 5, 3);
	die(d, 0);
	die(d, 1);
	look(d);
	assert_false(ps_images_are_addresses_unclear(&d->images));
	assert_null(ps_drain_explain_obstacle(&d->images, d->images.header, address_of(0, 1)));
}

/* The owner had a session with member 1 at an address that no roster lists. Another daemon answers
 * where the roster lists it. */
TEST(the_owner_knows_where_a_member_is, struct desk *d)
{
	struct ps_verdict verdict;

	begin(d, 2, 2);
	report(d, 0, address_of(0, 0));
	report(d, 1, address_of(0, 6));
	d->s.told[0].address = address_of(0, 0);
	d->s.told[1].address = address_of(0, 1);
	d->s.headers[1].image_id = image_of(0, 5);
	tell_empty(&d->s, 0, 6);
	die(d, 2);
	look(d);
	assert_at(d, 1, address_of(0, 6));
	ps_verdict_fill(&verdict, &d->images);
	assert_int_equal(verdict.commit, PS_CAN_UNKNOWN);
	assert_int_equal(verdict.live_but_silent, 0x4);
	/* The command does not know an address that only the owner's host has. */
	d->reports[1].address = address_of(0, 7);
	look(d);
	assert_at(d, 1, address_of(0, 1));
}

/* W = 2 of 2: each loss hurts. Then one has died, and its owner has not noticed yet, nor that the
 * two exchanged their addresses. */
TEST(the_verdict_goes_by_images, struct desk *d)
{
	struct ps_verdict verdict;

	begin(d, 2, 2);
	report(d, 0, address_of(0, 0));
	report(d, 1, address_of(0, 1));
	look(d);
	ps_verdict_fill(&verdict, &d->images);
	assert_int_equal(verdict.single_losses, 0x3);
	die(d, 1);
	look(d);
	ps_verdict_fill(&verdict, &d->images);
	assert_int_equal(verdict.commit, PS_CAN_UNKNOWN);
	assert_int_equal(verdict.live_but_silent, 0x2);
}
