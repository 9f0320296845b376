/*
 * test_loss.c - the smallest loss that a store does not survive, of one mirror or of all mirrors
 * that fail together: tables of mirrors with their machines, hosts, racks and zones.
 */
#include "../../proto/control/loss.h"
#include "../support/unit.h"

enum { MIRRORS = 5 };

/* Works while enough mirrors are left. */
struct store {
	unsigned count, needed;
};

static bool has_enough(const void *arg, uint32_t lost)
{
	const struct store *store = arg;

	return store->count - (unsigned)__builtin_popcount(lost) >= store->needed;
}

/* A word of `mirrors` is a mirror's machine, host, rack and zone, as far as they are known. */
static void fill_spots(struct ps_spot *spots, const char *mirrors)
{
	memset(spots, 0, MIRRORS * sizeof(*spots));
	for (; *mirrors; spots++) {
		for (unsigned k = 0; k < PS_DOMAINS; k++) {
			const size_t length = strcspn(mirrors, ", ");

			memcpy(spots->labels[k], mirrors, length);
			mirrors += length + (mirrors[length] == ',');
		}
		mirrors += *mirrors == ' ';
	}
}

/* clang-format off */
static const struct {
	const char *what;
	struct store store;
	const char *mirrors;
	uint32_t gone;
	struct ps_loss loss;
} cases[] = {
	{ "three machines", { 3, 2 }, "a,h1 b,h2 c,h3", 0, { true, PS_DOMAINS, 0 } },
	{ "one mirror", { 1, 1 }, "a,h1", 0, { true, PS_DOMAINS, 1 } },
	{ "a mirror alone, before the host of two", { 3, 3 },
	  "a,h1 b,h2 b,h2", 0, { true, PS_DOMAINS, 7 } },
	{ "all on one host", { 3, 2 }, "a,h1 a,h1 a,h1", 0, { true, PS_DOMAIN_HOST, 7 } },
	{ "two of three on one host", { 3, 2 }, "a,h1 b,h2 c,h2", 0, { true, PS_DOMAIN_HOST, 6 } },
	{ "machines without labels", { 3, 2 }, "a b c", 0, { true, PS_DOMAINS, 0 } },
	{ "a host of two, and not one of three", { 5, 4 },
	  "a,h1 a,h1 a,h1 b,h2 b,h2", 0, { true, PS_DOMAIN_HOST, 24 } },
	{ "two of five on one host", { 5, 3 },
	  "a,h1 b,h2 b,h2 c,h3 d,h4", 0, { true, PS_DOMAINS, 0 } },
	{ "containers on one machine", { 3, 2 },
	  "a,c1 b,c2 a,c3", 0, { true, PS_DOMAIN_MACHINE, 5 } },
	{ "containers without labels", { 2, 1 }, "a a", 0, { true, PS_DOMAIN_MACHINE, 3 } },
	{ "a host of two in the machine of three", { 3, 2 },
	  "a,h1 a,h2 a,h2", 0, { true, PS_DOMAIN_HOST, 6 } },
	{ "a rack", { 3, 2 }, "a,h1,r1,z b,h2,r2,z c,h3,r1,z", 0, { true, PS_DOMAIN_RACK, 5 } },
	{ "a zone", { 3, 2 }, "a,h1,r1,z1 b,h2,r2,z2 c,h3,r3,z2", 0, { true, PS_DOMAIN_ZONE, 6 } },
	{ "the rack, and not the zone around it", { 3, 2 },
	  "a,h1,r1,z b,h2,r2,z c,h3,r2,z", 0, { true, PS_DOMAIN_RACK, 6 } },
	{ "two that tell nothing", { 3, 2 }, "a,h1 , ,", 0, { false, PS_DOMAINS, 0 } },
	{ "one that tells nothing could be on any host", { 3, 2 },
	  "a,h1 b,h2 ,,r,z", 0, { false, PS_DOMAINS, 0 } },
	{ "one that tells nothing, wherever it is", { 5, 3 },
	  "a,h1 b,h2 c,h3 d,h4 ,", 0, { true, PS_DOMAINS, 0 } },
	{ "a host that hurts, whatever the silent one tells", { 3, 2 },
	  "a,h1 a,h1 ,", 0, { true, PS_DOMAIN_HOST, 3 } },
	{ "one image at risk", { 3, 2 }, "a,h1 b,h2 c,h3", 1, { true, PS_DOMAINS, 6 } },
	{ "two images at risk", { 3, 2 }, "a,h1 b,h2 c,h3", 3, { true, PS_DOMAINS, 7 } },
};
/* clang-format on */

TEST(the_smallest_loss_that_hurts_is_found)
{
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ps_loss *wanted = &cases[i].loss;
		struct ps_spot spots[MIRRORS];
		struct ps_loss loss;

		fill_spots(spots, cases[i].mirrors);
		loss = ps_smallest_fatal_loss(spots, cases[i].store.count, cases[i].gone,
		                              has_enough, &cases[i].store);
		if (loss.is_certain != wanted->is_certain || loss.domain != wanted->domain ||
		    loss.spots != wanted->spots)
			fail_msg("%s: %s, domain %d, spots %x", cases[i].what,
			         loss.is_certain ? "known" : "not known", (int)loss.domain,
			         loss.spots);
	}
}

/* Mirrors 1 and 2 share a host, and 1 does not answer: the host is that of 2 alone. */
TEST(a_mirror_that_is_not_there_is_lost_with_no_host)
{
	const struct store store = { 4, 3 };
	struct ps_spot spots[MIRRORS];
	struct ps_loss loss;

	fill_spots(spots, "a,h1 b,h2 b,h2 ,");
	spots[1].closed = spots[3].closed = true;
	loss = ps_smallest_fatal_loss(spots, 4, 0, has_enough, &store);
	assert_true(loss.is_certain);
	assert_int_equal(loss.spots, 0);
}

/* Mirrors 0 and 3 share a host, 1 and 2 a machine, all a rack. */
TEST(mirrors_on_one_host_or_machine_are_together)
{
	struct ps_spot spots[MIRRORS];
	struct ps_loss loss;

	fill_spots(spots, "a,h1,r b,c1,r b,c2,r c,h1,r");
	loss = ps_smallest_shared_host(spots, 4);
	assert_int_equal(loss.domain, PS_DOMAIN_HOST);
	assert_int_equal(loss.spots, 9);
	spots[3].closed = true;
	loss = ps_smallest_shared_host(spots, 4);
	assert_int_equal(loss.domain, PS_DOMAIN_MACHINE);
	assert_int_equal(loss.spots, 6);
	spots[2].closed = true;
	assert_int_equal(ps_smallest_shared_host(spots, 4).spots, 0);
}
