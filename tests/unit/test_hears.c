/*
 * test_hears.c - what the keeper hears while mirrors are connected to and copied: that one hung up,
 * for else it could not sleep on that connection, and the answers to signs of life.
 */
#include "resync_rig.h"

#include "../../client/keeper/session.h"

struct unit_fixture unit_fixture = { setup_five, teardown };

/* Rounds that wait for nobody until mirror 1, and its copy, are in these states. */
static void reach_both(struct owner *o, enum ps_session_state session, enum ps_resync_state state)
{
	for (unsigned rounds = 0;
	     o->p->mirrors[1].session.state != session || o->p->upkeep.resync.state != state;
	     rounds++) {
		assert_true(rounds < ROUNDS);
		round_of(o);
	}
}

/* The mirror hangs up in these states, which the next round must notice. */
static void assert_hears(struct fixture *f, enum ps_session_state session,
                         enum ps_resync_state state)
{
	struct owner *o = f->o;

	reach_both(o, session, state);
	direct_crash(o->d, 1);
	round_of(o);
	assert_int_equal(o->p->mirrors[1].session.state, PS_SESSION_NONE);
	assert_int_equal(o->p->upkeep.resync.state, PS_RESYNC_NONE);
	assert_int_not_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	for (unsigned i = 0; i < 5; i++)
		o->d->mirrors[i].slow_at = 0;
	direct_start(o->d, 1);
	reach_live(o, 1);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_image(f, 1);
}

/* --- mirror 1 hangs up --- */

/* The others are asked whether it may be made anew, or record its id. */
TEST(test_it_hangs_up_while_others_are_asked, struct fixture *f)
{
	static const struct {
		int request;
		enum ps_resync_state state;
	} waits[] = {
		{ PERSEAS__REQUEST__BODY_CONFIRM, PS_RESYNC_ASKING },
		{ PERSEAS__REQUEST__BODY_ROSTER, PS_RESYNC_RECORDING },
	};

	for (unsigned n = 0; n < 2; n++) {
		owner_lose(f->o, 1);
		for (unsigned i = 0; i < 5; i++)
			if (i != 1)
				answer_slowly(f->o, i, waits[n].request);
		assert_hears(f, PS_SESSION_PREPARING, waits[n].state);
	}
}

/* Its data path is being connected, for a copy of what it lost, or after a break. */
TEST_WITH(test_it_hangs_up_while_the_data_path_comes_up, setup, teardown, struct fixture *f)
{
	for (unsigned n = 0; n < 2; n++) {
		struct owner *o = f->o;

		if (!n)
			slow_links_use(o, 0);
		slow_links.until = UINT64_MAX;
		if (n)
			direct_cut(o->d, 1);
		else
			owner_lose(o, 1);
		reach_both(o, n ? PS_SESSION_ATTACHING : PS_SESSION_PREPARING,
		           n ? PS_RESYNC_NONE : PS_RESYNC_ATTACHING);
		direct_crash(o->d, 1);
		round_of(o);
		assert_int_equal(o->p->mirrors[1].session.state, PS_SESSION_NONE);
		assert_int_not_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
		slow_links.until = 0;
		direct_start(o->d, 1);
		reach_live(o, 1);
		assert_int_equal(perseas_flush(o->p), 0);
		assert_image(f, 1);
	}
}

/* --- signs of life --- */

static unsigned signs;

static void count_signs(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                        size_t len)
{
	const char *why;
	Perseas__Request *request = ps_request_unpack(bytes, len, &why);

	(void)arg;
	(void)session;
	assert_non_null(request);
	signs += mirror == 0 && request->body_case == PERSEAS__REQUEST__BODY_CONFIRM &&
	         request->confirm->figures;
	perseas__request__free_unpacked(request, NULL);
}

/* A mirror from which chunks are read hears this owner's figures, and tells of orders. */
TEST(test_signs_go_to_a_mirror_that_is_read, struct fixture *f)
{
	static const struct direct_tap tap = { .request = count_signs };
	struct owner *o = f->o;
	uint64_t start;

	make_stale(f, 1);
	assert_int_equal(perseas_unmap(o->p, f->big), 0);
	answer_slowly(o, 0, PERSEAS__REQUEST__BODY_READ);
	o->d->mirrors[0].slow_ns = 990 * MS;
	reach_chunk_read(o);
	o->d->tap = &tap;
	signs = 0;
	start = o->d->now;
	reach_live(o, 1);
	o->d->tap = NULL;
	assert_true(o->d->now - start > 5000 * MS);
	assert_true(signs >= (o->d->now - start) / (1000 * MS));
	map_big(f);
}
