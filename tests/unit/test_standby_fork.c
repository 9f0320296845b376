/*
 * test_standby_fork.c - a mirror that was called gone comes back while the members of the store's
 * roster are silent. A standby that once knew that roster does not open the mirror's image,
 * whatever the standby has done since.
 */
#include "standby_rig.h"

#include "../../client/open/open.h"

enum {
	BACK = 0,  /* is called gone, and comes back */
	OTHER = 1, /* the other one of the two, which leaves the roster and loses its image */
	WORTH = 9, /* what the store has that BACK's image has not */
};

static struct rig_mirror third; /* takes the place of both */

static int setup(void **state)
{
	const int rc = setup_tcp(state);

	memset(&third, 0, sizeof(third));
	memory_folder(third.directory, sizeof(third.directory), "demand");
	rig_start(&third);
	return rc;
}

static int teardown(void **state)
{
	close_standby();
	if (third.pid)
		rig_kill(&third);
	unit_remove_folder(third.directory);
	return rig_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };

static const char *address_of(const struct rig_mirror *m, char address[64])
{
	snprintf(address, 64, "tcp://127.0.0.1:%u", m->port);
	return address;
}

static int state_of(struct rig *rig, unsigned mirror)
{
	struct perseas_mirror_stat stat;

	assert_int_equal(perseas_mirror_stat(rig->p, mirror, &stat), 0);
	return stat.state;
}

static void change(struct rig *rig, const struct perseas_roster_change *wanted)
{
	if (perseas_roster(rig->p, wanted))
		fail_msg("%s", perseas_message(rig->p));
}

/* The rig's handle loses mirror BACK, moves the store to the third mirror alone, and commits. */
static void move_to_third(struct rig *rig)
{
	char back[64], other[64], with[64];
	const struct perseas_roster_change replace = { PERSEAS_ROSTER_REPLACE,
		                                       address_of(&rig->mirrors[BACK], back),
		                                       address_of(&third, with), 0, true };
	const struct perseas_roster_change leave = { PERSEAS_ROSTER_REMOVE,
		                                     address_of(&rig->mirrors[OTHER], other), NULL,
		                                     1, false };

	rig_kill(&rig->mirrors[BACK]);
	RIG_UNTIL(state_of(rig, BACK) == PERSEAS_MIRROR_DOWN);
	change(rig, &replace);
	change(rig, &leave);
	assert_int_equal(rig_put(rig, 0, 8, WORTH), 0);
}

/* Mirror OTHER loses the store, and the third mirror, which has its newest state, falls silent. */
static void end_members(struct rig *rig)
{
	owner_lose(&rig->mirrors[OTHER]);
	rig_kill(&third);
}

/* BACK comes back. The standby waits for the third mirror, and opens the store there. */
static void find_store(struct rig *rig, perseas_standby_t *s)
{
	rig_start(&rig->mirrors[BACK]);
	wait_in_vain(rig, s, SHORT_MS);
	RIG_UNTIL(strstr(stat_of(s).text, "a fork of it"));
	assert_int_equal(stat_of(s).state, PERSEAS_STANDBY_UNKNOWN);
	rig_start(&third);
	RIG_UNTIL(stat_of(s).reached == MIRRORS + 1);
	/* Both images are there, and only people know that BACK's is the fork. */
	owner_lose(&rig->mirrors[BACK]);
	become_owner(rig, s);
	assert_int_equal(rig->bytes[0], WORTH);
}

/* The roster changed while the standby was the owner. */
TEST(an_owner_that_stands_by_again_makes_no_fork, struct rig *rig)
{
	perseas_standby_t *s = begin(rig);

	become_owner(rig, s);
	move_to_third(rig);
	end_owner(rig);
	end_members(rig);
	find_store(rig, s);
}

/* Another owner changed the roster, which the standby saw. Then the standby's open failed. */
TEST(a_standby_whose_open_failed_makes_no_fork, struct rig *rig)
{
	struct ps_error error = { 0 };
	perseas_standby_t *s;

	assert_int_equal(rig_open(rig, 0, 0), 0);
	assert_int_equal(rig_map(rig), 0);
	s = begin(rig);
	await_state(s, PERSEAS_STANDBY_OWNED);
	move_to_third(rig);
	end_owner(rig);
	await_state(s, PERSEAS_STANDBY_DUE);
	await_handed(s);
	end_members(rig);
	assert_int_equal(ps_open_handle(ps_standby_thread_take(s), &rig->p, &error),
	                 PERSEAS_EUNREACHABLE);
	ps_standby_thread_end_watches(s);
	find_store(rig, s);
}
