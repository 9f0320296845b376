/*
 * test_quorum.c - how many mirrors each rule asks for, for every n and W, and for two rosters at
 * once. The numbers are those of proto/PROTOCOL.md: R = n - W + 1, T = min(n - 1, max(W, R)).
 */
#include "../../client/core/quorum.h"
#include "../support/unit.h"

/* Makes an owner with the first n mirrors and W = acks. */
static void rosters(struct perseas *p, unsigned n, unsigned acks)
{
	memset(p, 0, sizeof(*p));
	p->mirror_count = PS_MIRRORS_MAX;
	p->quorum_count = 1;
	p->quorums[0] = (struct ps_quorum){ (1u << n) - 1, n, acks };
}

static uint32_t first(unsigned count)
{
	return (1u << count) - 1;
}

static unsigned most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* For one roster: the smallest set that is enough for each rule, and one mirror less. */
TEST(each_rule_asks_for_its_number)
{
	static struct perseas p;

	for (unsigned n = 1; n <= 5; n++)
		for (unsigned w = 1; w <= n; w++) {
			const unsigned r = n - w + 1;
			const unsigned t = n == 1 ? 1 : least(n - 1, most(w, r));

			rosters(&p, n, w);
			for (unsigned have = 0; have <= n; have++) {
				assert_int_equal(ps_quorum_is_w(&p, first(have)), have >= w);
				assert_int_equal(ps_quorum_is_w_of_newest_roster(&p, first(have)),
				                 have >= w);
				assert_int_equal(ps_quorum_is_r(&p, first(have)), have >= r);
				assert_int_equal(ps_quorum_is_t(&p, first(have)), have >= t);
				assert_int_equal(ps_quorum_every_open_sees(&p, first(have)),
				                 have >= n - t + 1);
				assert_int_equal(ps_quorum_is_w_possible_without(&p, first(have)),
				                 n - have >= w);
			}
			assert_int_equal(ps_quorum_t_count(&p), t);
			assert_int_equal(ps_quorum_r_of_settled_roster(&p), r);
		}
}

/* I9: max(W, R) others, or all others. Without others never, and the mirror itself does not
 * count. */
TEST(a_mirror_is_made_anew_by_enough_others)
{
	static struct perseas p;

	for (unsigned n = 1; n <= 5; n++)
		for (unsigned w = 1; w <= n; w++) {
			const unsigned need = least(most(w, n - w + 1), n - 1);

			rosters(&p, n, w);
			for (unsigned others = 0; others < n; others++) {
				const uint32_t set = first(others) << 1;

				assert_int_equal(ps_quorum_can_remake_mirror(&p, set,
				                                             &p.mirrors[0]),
				                 n > 1 && others >= need);
				assert_int_equal(ps_quorum_can_remake_mirror(&p, set | 1,
				                                             &p.mirrors[0]),
				                 n > 1 && others >= need);
			}
		}
}

/* Mirrors 0 to 2 make way for 2 to 4, W = 2: what is decided is decided by both. */
TEST(while_two_rosters_count_both_are_asked)
{
	static struct perseas p;

	rosters(&p, 3, 2);
	p.quorum_count = 2;
	p.quorums[1] = (struct ps_quorum){ 7u << 2, 3, 2 };
	assert_false(ps_quorum_is_w(&p, 0x03));
	assert_false(ps_quorum_is_w(&p, 0x18));
	assert_true(ps_quorum_is_w(&p, 0x0e));
	assert_false(ps_quorum_is_r(&p, 0x07));
	assert_false(ps_quorum_is_r(&p, 0x1c));
	assert_true(ps_quorum_is_r(&p, 0x0e));
	assert_false(ps_quorum_is_w_of_newest_roster(&p, 0x07));
	assert_true(ps_quorum_is_w_of_newest_roster(&p, 0x18));
	assert_false(ps_quorum_is_w_possible_without(&p, 0x03));
	assert_false(ps_quorum_is_w_possible_without(&p, 0x18));
	assert_true(ps_quorum_is_w_possible_without(&p, 0x04));
	/* A mirror that only the new roster lists needs two mirrors of each roster. */
	assert_true(ps_quorum_can_remake_mirror(&p, 0x07 | 0x08, &p.mirrors[4]));
	assert_false(ps_quorum_can_remake_mirror(&p, 0x07, &p.mirrors[4]));
	assert_false(ps_quorum_can_remake_mirror(&p, 0x0c, &p.mirrors[4]));
}
