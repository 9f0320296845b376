/*
 * test_publish_stop.c - a program ends a publish while contents are on their way: nothing is
 * published, and the same publish can be tried again.
 */
#include "owner.h"

#include "../../client/keeper/copy.h"

enum { PIECES = 3, LENGTH = PIECES << 20 };

static unsigned asked, last;

static bool stop_at_last(void)
{
	return ++asked == last;
}

TEST(a_publish_is_stopped_before_any_of_its_pieces)
{
	struct owner *o = owner_new(2);
	struct perseas_segment_info info;
	void *addr;

	if (owner_open(o, PERSEAS_CREATE))
		fail_msg("%s", o->error.text);
	assert_int_equal(perseas_map(o->p, "large", LENGTH, &addr), 0);
	ps_copy_set_stop(stop_at_last);
	for (last = 1; last <= PIECES; last++) {
		asked = 0;
		assert_int_equal(perseas_publish(o->p), PERSEAS_ECANCELLED);
		assert_int_equal(asked, last);
		assert_int_equal(o->p->commit.seq, 0);
	}
	ps_copy_set_stop(NULL);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(perseas_segment_at(o->p, 0, &info), 0);
	assert_int_equal(info.size, LENGTH);
	owner_free(o);
}
