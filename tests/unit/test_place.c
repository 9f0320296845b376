/*
 * test_place.c - which daemons get the images of a store: never two that fail together, the least
 * full first, and whole fleets on paper.
 */
#include "../../client/command/place/place.h"
#include "../support/unit.h"

enum { DAEMONS = 100, RACKS = 10, STORES = 1000, COPIES = 3, IMAGE = 1 << 20 };

static char why[PS_PLACE_WHY]; /* why the last choice failed */

static struct ps_spot spot(const char *host, const char *rack, const char *zone, uint64_t room)
{
	struct ps_spot it = { .address = host, .room = room };

	strcpy(it.labels[PS_DOMAIN_HOST], host);
	strcpy(it.labels[PS_DOMAIN_RACK], rack);
	strcpy(it.labels[PS_DOMAIN_ZONE], zone);
	return it;
}

/* Two racks with two daemons each; the second rack's daemons have more room. */
TEST(no_two_share_a_domain_or_a_narrower_one)
{
	const struct ps_spot spots[] = { spot("a", "r1", "z", 10), spot("b", "r1", "z", 20),
		                         spot("c", "r2", "z", 40), spot("d", "r2", "z", 30),
		                         spot("a", "r3", "z", 90) };
	struct ps_wish wish = { .copies = 3, .bytes = 5, .apart = PS_DOMAIN_RACK };
	unsigned chosen[3];

	assert_true(ps_spots_choose(spots, 5, &wish, chosen, why));
	assert_int_equal(chosen[0], 4);
	assert_int_equal(chosen[1], 2);
	/* The other daemon of host a is in a rack of its own, and still fails with it. */
	assert_int_equal(chosen[2], 1);
	wish.apart = PS_DOMAIN_HOST;
	assert_true(ps_spots_choose(spots, 5, &wish, chosen, why));
	assert_int_equal(chosen[2], 3);
	wish.apart = PS_DOMAIN_ZONE;
	assert_false(ps_spots_choose(spots, 5, &wish, chosen, why));
	assert_non_null(strstr(why, "1 of 3 mirrors can be placed, no two in the same zone"));
}

TEST(who_is_closed_full_or_unlabelled_gets_nothing)
{
	struct ps_spot spots[] = { spot("a", "r1", "", 10), spot("b", "", "", 90),
		                   spot("c", "r2", "", 4), spot("d", "r3", "", 90) };
	struct ps_wish wish = { .copies = 2, .bytes = 5, .apart = PS_DOMAIN_RACK };
	unsigned chosen[2];

	assert_true(ps_spots_choose(spots, 4, &wish, chosen, why));
	assert_int_equal(chosen[0] + chosen[1], 0 + 3);
	spots[3].closed = true;
	assert_false(ps_spots_choose(spots, 4, &wish, chosen, why));
	assert_non_null(strstr(why, "1 of 4 daemons name no rack (perseasd --label rack=NAME)"));
	assert_non_null(strstr(why, "1 have no room"));
}

/* Equally full ones: the number of stores decides, and then the load. */
TEST(among_equals_the_idle_one_is_chosen)
{
	struct ps_spot spots[] = { spot("a", "", "", 1 << 20), spot("b", "", "", 1 << 20),
		                   spot("c", "", "", 1 << 20) };
	const struct ps_wish wish = { .copies = 1, .bytes = 1, .apart = PS_DOMAIN_HOST };
	unsigned chosen;

	spots[0].stores = 2;
	spots[1].stores = 1;
	spots[2].stores = 1;
	spots[1].load = 900;
	spots[2].load = 800;
	assert_true(ps_spots_choose(spots, 3, &wish, &chosen, why));
	assert_int_equal(chosen, 2);
	spots[2].load = 1000;
	assert_true(ps_spots_choose(spots, 3, &wish, &chosen, why));
	assert_int_equal(chosen, 1);
	spots[0].stores = 0;
	assert_true(ps_spots_choose(spots, 3, &wish, &chosen, why));
	assert_int_equal(chosen, 0);
}

/* One image of three moves, but not to or next to another image of the store. */
TEST(images_that_stay_count)
{
	const struct ps_spot spots[] = { spot("a", "r1", "", 90), spot("b", "r1", "", 90),
		                         spot("c", "r2", "", 90), spot("d", "r3", "", 9) };
	const unsigned holders[] = { 0, 2 };
	const struct ps_wish wish = { 1, 5, PS_DOMAIN_RACK, holders, 2 };
	unsigned chosen;

	assert_true(ps_spots_choose(spots, 4, &wish, &chosen, why));
	assert_int_equal(chosen, 3);
	assert_false(ps_spots_choose(spots, 3, &wish, &chosen, why));
}

TEST(the_widest_label_that_all_have_is_usual)
{
	struct ps_spot spots[] = { spot("a", "r1", "z1", 1), spot("b", "r2", "z1", 1),
		                   spot("c", "r3", "", 1) };

	assert_int_equal(ps_spots_widest_named_domain(spots, 2), PS_DOMAIN_ZONE);
	assert_int_equal(ps_spots_widest_named_domain(spots, 3), PS_DOMAIN_RACK);
	spots[2].closed = true;
	assert_int_equal(ps_spots_widest_named_domain(spots, 3), PS_DOMAIN_ZONE);
	spots[0].labels[PS_DOMAIN_HOST][0] = '\0';
	spots[0].labels[PS_DOMAIN_RACK][0] = '\0';
	spots[0].labels[PS_DOMAIN_ZONE][0] = '\0';
	assert_int_equal(ps_spots_widest_named_domain(spots, 3), PS_DOMAINS);
	assert_int_equal(ps_domain_by_name("rack"), PS_DOMAIN_RACK);
	assert_int_equal(ps_domain_by_name("room"), PS_DOMAINS);
}

/* --- a fleet --- */

struct fleet {
	struct ps_spot spots[DAEMONS];
	char names[DAEMONS][8];
	unsigned images[STORES][COPIES]; /* which daemons have them */
};

static struct fleet *fleet_new(void)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));

	assert_non_null(fleet);
	for (unsigned i = 0; i < DAEMONS; i++) {
		char rack[12];

		snprintf(fleet->names[i], sizeof(fleet->names[i]), "h%u", i);
		snprintf(rack, sizeof(rack), "r%u", i % RACKS);
		fleet->spots[i] = spot(fleet->names[i], rack, "", (uint64_t)64 * IMAGE);
	}
	return fleet;
}

static void fleet_put(struct fleet *fleet, unsigned at)
{
	assert_true(fleet->spots[at].room >= IMAGE);
	fleet->spots[at].used += IMAGE;
	fleet->spots[at].room -= IMAGE;
	fleet->spots[at].stores++;
}

static void fleet_fill(struct fleet *fleet)
{
	const struct ps_wish wish = { .copies = COPIES, .bytes = IMAGE, .apart = PS_DOMAIN_RACK };

	for (unsigned i = 0; i < STORES; i++) {
		assert_true(ps_spots_choose(fleet->spots, DAEMONS, &wish, fleet->images[i], why));
		for (unsigned k = 0; k < COPIES; k++)
			fleet_put(fleet, fleet->images[i][k]);
	}
}

/* Every store has all its images, in racks of their own; the fullest daemon that is left has at
 * most one store more than the emptiest. */
static void fleet_check(const struct fleet *fleet)
{
	unsigned least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < STORES; i++)
		for (unsigned k = 0; k < COPIES; k++) {
			assert_false(fleet->spots[fleet->images[i][k]].closed);
			for (unsigned other = 0; other < k; other++)
				assert_int_not_equal(fleet->images[i][k] % RACKS,
				                     fleet->images[i][other] % RACKS);
		}
	for (unsigned i = 0; i < DAEMONS; i++) {
		if (fleet->spots[i].closed)
			continue;
		least = fleet->spots[i].stores < least ? fleet->spots[i].stores : least;
		most = fleet->spots[i].stores > most ? fleet->spots[i].stores : most;
	}
	assert_in_range(most - least, 0, 1);
}

/* Moves what a daemon has that is closed; returns how many images that were. */
static unsigned fleet_heal(struct fleet *fleet)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < STORES; i++)
		for (unsigned k = 0; k < COPIES; k++) {
			unsigned holders[COPIES], count = 0, chosen;
			struct ps_wish wish = { 1, IMAGE, PS_DOMAIN_RACK, holders, 0 };

			if (!fleet->spots[fleet->images[i][k]].closed)
				continue;
			for (unsigned other = 0; other < COPIES; other++)
				if (!fleet->spots[fleet->images[i][other]].closed)
					holders[count++] = fleet->images[i][other];
			assert_int_equal(count, COPIES - 1);
			wish.holder_count = count;
			assert_true(ps_spots_choose(fleet->spots, DAEMONS, &wish, &chosen, why));
			fleet->images[i][k] = chosen;
			fleet_put(fleet, chosen);
			moved++;
		}
	return moved;
}

/* 1,000 stores on 100 daemons in 10 racks; a rack is lost. No store loses more than one image, and
 * all are healed, by the code that places. */
TEST(a_fleet_loses_a_rack_and_is_healed)
{
	struct fleet *fleet = fleet_new();
	unsigned lost = 0;

	fleet_fill(fleet);
	fleet_check(fleet);
	for (unsigned i = 0; i < DAEMONS; i += RACKS) {
		fleet->spots[i].closed = true;
		lost += fleet->spots[i].stores;
	}
	assert_int_equal(lost, STORES * COPIES / RACKS);
	assert_int_equal(fleet_heal(fleet), lost);
	fleet_check(fleet);
	free(fleet);
}

/* One daemon of a fleet after the other is drained, until only as many racks are left as a store
 * has images. */
TEST(a_fleet_shrinks_to_what_its_stores_need)
{
	struct fleet *fleet = fleet_new();
	const struct ps_wish wish = { .copies = COPIES, .bytes = IMAGE, .apart = PS_DOMAIN_RACK };
	unsigned chosen[COPIES];

	for (unsigned rack = 0; rack < RACKS; rack++) {
		assert_int_equal(ps_spots_choose(fleet->spots, DAEMONS, &wish, chosen, why),
		                 RACKS - rack >= COPIES);
		for (unsigned i = rack; i < DAEMONS; i += RACKS)
			fleet->spots[i].closed = true;
	}
	free(fleet);
}

/* Two in one rack are apart by host only, although their zones have other names; one that does not
 * tell its rack is not known to be apart by rack from any. */
TEST(mirrors_are_as_far_apart_as_the_closest_two)
{
	const struct ps_spot spots[] = { spot("a", "r1", "z1", 10), spot("b", "r2", "z2", 10),
		                         spot("c", "r2", "z3", 10), spot("d", "", "", 10),
		                         spot("a", "r4", "z4", 10), spot("e", "r5", "z1", 10) };
	const unsigned far[] = { 0, 1 }, hosts[] = { 0, 1, 2 }, silent[] = { 0, 3 },
		       one[] = { 0, 4 }, racks[] = { 0, 1, 5 };

	assert_int_equal(ps_spots_widest_apart(spots, far, 2), PS_DOMAIN_ZONE);
	assert_int_equal(ps_spots_widest_apart(spots, racks, 3), PS_DOMAIN_RACK);
	assert_int_equal(ps_spots_widest_apart(spots, hosts, 3), PS_DOMAIN_HOST);
	assert_int_equal(ps_spots_widest_apart(spots, silent, 2), PS_DOMAIN_HOST);
	assert_int_equal(ps_spots_widest_apart(spots, one, 2), PS_DOMAINS);
	assert_int_equal(ps_spots_widest_apart(spots, far, 0), PS_DOMAIN_ZONE);
}
