/*
 * test_gather_renew.c - commits are held back while another owner claims
 * mirrors and goes away: they are sent when the owner gives its claims up, and
 * survive as those that were sent before.
 */
#include "gather_rig.h"

/* How far another owner gets before it dies. */
enum fate { CLAIMS_ALL, CLAIMS_ONE, ADOPTS_ONE };

static struct claimer {
	struct owner *o;
	enum fate fate;
} claimer;

static void befall(void *arg)
{
	struct direct *d = claimer.o->d;

	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		struct direct_mirror *m = &d->mirrors[i];

		if (claimer.fate == ADOPTS_ONE)
			m->writes_left = i ? 0 : -1;
		else if (claimer.fate == CLAIMS_ONE && i != 1)
			m->break_at = PERSEAS__REQUEST__BODY_CLAIM;
		else
			m->break_at = PERSEAS__REQUEST__BODY_CONFIRM;
	}
	/* It gives up at some time. */
	d->now += ps_ms(1000);
}

static void come_and_die(struct owner *o, enum fate fate)
{
	struct perseas_options options = o->options;
	perseas_t *second;

	options.flags = PERSEAS_TAKEOVER;
	options.open_timeout_ms = 1;
	claimer = (struct claimer){ o, fate };
	befall(NULL);
	o->d->on_pause = befall;
	assert_true(direct_open(o->d, STORE, &options, &second, &o->error) < 0);
	o->d->on_pause = NULL;
	for (unsigned i = 0; i < 3; i++) {
		o->d->mirrors[i].break_at = 0;
		o->d->mirrors[i].writes_left = -1;
	}
}

static void keep(struct owner *o)
{
	for (unsigned i = 0; i < 30; i++)
		direct_keep(o->d, o->p);
}

/* Two are held back when another owner comes, and when the keeper notices that. */
static struct perseas_token hold_and_claim(struct owner *o, bool staged, enum fate fate)
{
	struct perseas_token token;

	o->d->staged = staged;
	owner_begin(o);
	put_held(o, 0, 10, 1);
	token = put_held(o, 5, 10, 2);
	come_and_die(o, fate);
	assert_true(o->p->commit.has_gathered);
	keep(o);
	return token;
}

static void renew(bool staged, enum fate fate)
{
	struct owner *o = gathering_owner(3);
	const struct perseas_token token = hold_and_claim(o, staged, fate);

	assert_false(o->p->commit.has_gathered);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	assert_int_equal(perseas_flush(o->p), 0);
	for (unsigned i = 0; i < 20; i++)
		keep(o);
	assert_int_equal(owner_stat(o).renewals, 1);
	assert_sent(o, 4, 1);
	assert_sent(o, 5, 2);
	put_held(o, 5, 10, 3);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_sent(o, 5, 3);
	owner_free(o);
}

TEST(test_held_when_all_claims_are_lost)
{
	renew(true, CLAIMS_ALL);
	renew(false, CLAIMS_ALL);
}

TEST(test_held_when_one_claim_is_lost)
{
	renew(true, CLAIMS_ONE);
	renew(false, CLAIMS_ONE);
}

/* The store is another's: nobody says that they are durable. */
TEST(test_held_when_the_store_is_adopted)
{
	for (unsigned staged = 0; staged < 2; staged++) {
		struct owner *o = gathering_owner(3);
		const struct perseas_token token = hold_and_claim(o, staged, ADOPTS_ONE);

		assert_int_equal(perseas_wait(o->p, &token, 0), PERSEAS_EFENCED);
		owner_free(o);
	}
}

static void let_write(struct owner *o, int writes)
{
	for (unsigned i = 0; i < 3; i++)
		o->d->mirrors[i].writes_left = writes;
}

/* An epoch that is only tried may become another owner's: tokens name the epoch before it. */
TEST(test_a_copy_is_named_by_what_was_sent)
{
	struct owner *o = gathering_owner(3);
	struct perseas_token token, sent;

	owner_begin(o);
	come_and_die(o, CLAIMS_ONE);
	sent = put_held(o, 0, 10, 1);
	assert_int_equal(perseas_flush(o->p), 0);
	let_write(o, 0);
	direct_keep(o->d, o->p);
	assert_true(o->p->is_renewing);
	assert_true(o->p->epoch > sent.epoch);
	assert_int_equal(perseas_copy_committed(o->p, NULL, 0, &token), 0);
	assert_memory_equal(&token, &sent, sizeof(token));
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	let_write(o, -1);
	keep(o);
	assert_int_equal(owner_stat(o).renewals, 1);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	owner_free(o);
}
