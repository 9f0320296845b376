/*
 * test_attempt.c - the steps of an attempt to open a store: which are taken, in an open that ends
 * well, in others, and in a renewal; and what is so after each, of which every part is looked at by
 * a mistake.
 */
#include "owner.h"
#include "traced.h"

#include "../../client/core/mirror.h"
#include "../../client/core/quorum.h"
#include "../../client/keeper/attempt.h"

/* --- the steps that are taken --- */

static const char of[] = "open of store 'bank': ";

#define JUDGED_TO_OPEN                                                            \
	"judged, then claimed", "claimed, then chosen", "chosen, then confirmed", \
		"confirmed, then adopted", "adopted, then open"

static int setup_opened(void **state)
{
	struct owner *o = owner_new(3);

	owner_begin(o);
	owner_reopen(o);
	*state = o;
	return 0;
}

struct unit_fixture unit_fixture = { setup_opened, owner_teardown };

TEST(an_open_takes_every_step, struct owner *o)
{
	static const char *const moves[] = { "open, then none", "none, then probed",
		                             "probed, then judged", JUDGED_TO_OPEN, NULL };
	struct traced t = { .of = of };

	listen_to(o, &t);
	assert_int_equal(owner_open(o, 0), 0);
	assert_traced(o, &t, moves);
	assert_int_equal(o->p->opening.step, PS_ATTEMPT_OPEN);
}

TEST(an_open_that_saves_takes_the_same_steps, struct owner *o)
{
	static const char *const moves[] = { "open, then none", "none, then probed",
		                             "probed, then judged", JUDGED_TO_OPEN, NULL };
	struct traced t = { .of = of };

	listen_to(o, &t);
	assert_int_equal(owner_open(o, PERSEAS_SALVAGE), 0);
	assert_traced(o, &t, moves);
}

TEST(a_store_that_was_made_is_probed_again)
{
	static const char *const made[] = { "none, then probed", "probed, then made",
		                            "made, then none", NULL };
	static const char *const opened[] = { "none, then probed", "probed, then made",
		                              "made, then probed", "probed, then judged",
		                              JUDGED_TO_OPEN,      NULL };
	struct owner *fresh = owner_new(3);
	struct traced t = { .of = of };

	listen_to(fresh, &t);
	assert_int_equal(owner_open(fresh, PERSEAS_CREATE), 0);
	assert_traced(fresh, &t, opened);
	owner_free(fresh);
	fresh = owner_new(3);
	t.count = 0;
	listen_to(fresh, &t);
	assert_int_equal(direct_create(fresh->d, STORE, &fresh->options, &fresh->error), 0);
	assert_traced(fresh, &t, made);
	owner_free(fresh);
}

/* A store that is not there, and one that is another's. */
TEST(a_refused_open_claims_nothing, struct owner *o)
{
	static const char *const moves[] = { "none, then probed", "probed, then none", NULL };
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct owner *fresh = owner_new(3);
	struct traced t = { .of = of };
	perseas_t *second;

	listen_to(fresh, &t);
	assert_int_equal(owner_open(fresh, 0), PERSEAS_ENOSTORE);
	assert_traced(fresh, &t, moves);
	owner_free(fresh);
	t.count = 0;
	listen_to(o, &t);
	assert_int_equal(direct_open(o->d, STORE, &options, &second, &o->error), PERSEAS_EBUSY);
	o->d->on_trace = NULL;
	assert_true(t.count >= 2 && t.count % 2 == 0);
	for (unsigned i = 0; i < t.count && i < LINES_MAX; i++)
		assert_string_equal(t.moves[i], moves[i % 2]);
}

static void heal(void *arg)
{
	struct owner *o = arg;

	o->d->mirrors[1].break_at = 0;
}

/* A candidate's session breaks before the state is adopted: no mirror may adopt it, and the next
 * attempt begins with the probe. */
TEST(a_broken_session_begins_it_again, struct owner *o)
{
	static const char *const moves[] = {
		"none, then probed",    "probed, then judged", "judged, then claimed",
		"claimed, then chosen", "chosen, then none",   "none, then probed",
		"probed, then judged",  JUDGED_TO_OPEN,        NULL
	};
	struct traced t = { .of = of };

	owner_close(o);
	o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_CONFIRM;
	o->d->on_pause = heal;
	o->d->on_pause_arg = o;
	listen_to(o, &t);
	assert_int_equal(owner_open(o, 0), 0);
	o->d->on_pause = NULL;
	assert_traced(o, &t, moves);
}

/* A renewal is an open that keeps the memory. */
TEST(a_renewal_takes_the_same_steps, struct owner *o)
{
	static const char *const moves[] = { "open, then none", "none, then probed",
		                             "probed, then judged", JUDGED_TO_OPEN, NULL };
	struct traced t = { .of = of };

	o->p->upkeep.renewal.is_wanted = true;
	listen_to(o, &t);
	direct_keep(o->d, o->p);
	assert_traced(o, &t, moves);
	assert_int_equal(owner_stat(o).renewals, 1);
	assert_int_equal(owner_stat(o).live, 3);
}

static void break_when_adopted(void *arg, const char *line)
{
	struct owner *o = arg;

	if (strcmp(line, "open of store 'bank': confirmed, then adopted") == 0)
		o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_CONFIRM;
}

/* The second attempt finds the state on mirrors with the epoch of the first one. */
TEST(a_renewal_that_adopted_begins_again, struct owner *o)
{
	o->p->upkeep.renewal.is_wanted = true;
	o->d->on_trace = break_when_adopted;
	o->d->on_trace_arg = o;
	direct_keep(o->d, o->p);
	assert_true(o->p->is_renewing);
	o->d->on_trace = NULL;
	direct_keep(o->d, o->p);
	assert_int_equal(owner_stat(o).renewals, 1);
	assert_int_equal(owner_stat(o).live, 3);
}

/* --- what is so after each --- */

/* Parts of a handle that tests change and put back. */
struct kept {
	struct ps_mirror mirrors[3];
	struct perseas_options options;
	struct ps_opening opening;
	Perseas__Roster *roster;
	uint64_t epoch, seq, next, last;
};

static struct kept keep(const struct perseas *p)
{
	struct kept k = { .options = p->options,
		          .opening = p->opening,
		          .roster = p->roster,
		          .epoch = p->epoch,
		          .seq = p->commit.seq,
		          .next = p->commit.next_position,
		          .last = p->commit.last_position };

	memcpy(k.mirrors, p->mirrors, sizeof(k.mirrors));
	return k;
}

static void put_back(struct perseas *p, const struct kept *k)
{
	memcpy(p->mirrors, k->mirrors, sizeof(k->mirrors));
	p->options = k->options;
	p->opening = k->opening;
	p->roster = k->roster;
	p->next_roster = NULL;
	p->is_change_decided = p->is_salvage = false;
	p->epoch = k->epoch;
	p->commit.seq = k->seq;
	p->commit.next_position = k->next;
	p->commit.last_position = k->last;
	pthread_mutex_lock(&p->lock);
	ps_quorums_recompute(p);
	pthread_mutex_unlock(&p->lock);
}

/* The handle as it is after a step, from one that is open. */
static void stand_at(struct perseas *p, enum ps_attempt_step step)
{
	for (unsigned i = 0; i < 3; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (step < PS_ATTEMPT_ADOPTED) {
			m->probe.is_adopted = false;
			m->probe.position = p->opening.chosen_position;
		}
		if (step < PS_ATTEMPT_CLAIMED) {
			m->probe.is_claimed = false;
			m->link = NULL;
		}
	}
	p->opening.step = step;
}

struct mistake {
	const char *what;
	void (*make)(struct perseas *p);
	unsigned steps; /* those after which it is one */
};

static void make_claimed(struct perseas *p)
{
	p->mirrors[2].probe.is_claimed = true;
}

static void make_linked(struct perseas *p)
{
	static char any;

	p->mirrors[2].link = (struct ps_link *)(void *)&any;
}

static void make_unclaimed(struct perseas *p)
{
	for (unsigned i = 0; i < 3; i++)
		p->mirrors[i].probe.is_claimed = false;
}

static void make_unlinked(struct perseas *p)
{
	p->mirrors[1].link = NULL;
}

static void make_silent(struct perseas *p)
{
	p->mirrors[1].control = NULL;
}

static void make_good(struct perseas *p)
{
	p->mirrors[0].probe.is_adopted = true;
}

static void make_few_good(struct perseas *p)
{
	p->mirrors[0].probe.is_adopted = p->mirrors[1].probe.is_adopted = false;
}

static void make_broke(struct perseas *p)
{
	p->mirrors[0].probe.has_broken_session = true;
}

static void make_two_rosters(struct perseas *p)
{
	p->next_roster = p->roster;
}

static void make_miscounted(struct perseas *p)
{
	p->quorum_count = 2;
	p->quorums[1] = p->quorums[0];
}

static void make_marked(struct perseas *p)
{
	p->is_change_decided = true;
}

static void make_none_of_it(struct perseas *p)
{
	p->roster = NULL;
}

static void make_low(struct perseas *p)
{
	p->epoch = p->mirrors[0].probe.header->promised_epoch - 1;
}

static void make_high(struct perseas *p)
{
	p->epoch++;
}

static void make_few_examined(struct perseas *p)
{
	p->mirrors[0].probe.counts_for_r = p->mirrors[1].probe.counts_for_r = false;
}

static void make_unlisted(struct perseas *p)
{
	p->mirrors[0].probe.is_listed = false;
}

static void make_other(struct perseas *p)
{
	p->opening.chosen_position.seq++;
}

static void make_further(struct perseas *p)
{
	p->commit.next_position++;
}

static void make_elsewhere(struct perseas *p)
{
	p->commit.last_position++;
}

static void make_saved(struct perseas *p)
{
	p->is_salvage = true;
}

#define AT(step) PS_TO(PS_ATTEMPT_##step)
#define BEFORE_CLAIMS (AT(PROBED) | AT(CREATED) | AT(JUDGED))
#define HOLDS (AT(ADOPTED) | AT(OPEN))
#define CHOICE (AT(CHOSEN) | AT(CONFIRMED))
#define JUDGES (AT(JUDGED) | AT(CLAIMED) | CHOICE | HOLDS)

/* clang-format off */
static const struct mistake mistakes[] = {
	{ "claimed too early", make_claimed, BEFORE_CLAIMS },
	{ "linked too early", make_linked, BEFORE_CLAIMS },
	{ "nothing claimed", make_unclaimed, AT(CLAIMED) | CHOICE | HOLDS },
	{ "a link that broke", make_unlinked, AT(CLAIMED) | AT(OPEN) },
	{ "no session", make_silent, AT(CLAIMED) | AT(OPEN) },
	{ "adopted too early", make_good, BEFORE_CLAIMS | AT(CLAIMED) | CHOICE },
	{ "adopted on too few", make_few_good, HOLDS },
	{ "broken before it was mended, or good", make_broke, BEFORE_CLAIMS | HOLDS },
	{ "a roster that is not newer", make_two_rosters, JUDGES },
	{ "a roster that is not there", make_miscounted, JUDGES },
	{ "nothing to be decided", make_marked, JUDGES },
	{ "no roster", make_none_of_it, JUDGES },
	{ "below a promise", make_low, JUDGES },
	{ "another epoch", make_high, JUDGES & ~AT(JUDGED) },
	{ "too few examined", make_few_examined, CHOICE },
	{ "an image that is not listed", make_unlisted, CHOICE },
	{ "another state", make_other, CHOICE | HOLDS },
	{ "another end of the log", make_further, HOLDS },
	{ "another last record", make_elsewhere, HOLDS },
	{ "adopted by one that saves", make_saved, HOLDS },
};
/* clang-format on */

TEST(each_step_says_what_is_so, struct owner *o)
{
	struct perseas *p = o->p;
	const struct kept k = keep(p);

	for (enum ps_attempt_step step = PS_ATTEMPT_PROBED; step <= PS_ATTEMPT_OPEN; step++) {
		const char *name = ps_attempt_steps.rows[step].name;

		stand_at(p, step);
		if (!ps_attempt_fits_step(p))
			fail_msg("%s: not sound as it is", name);
		for (unsigned i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
			const bool is_one = mistakes[i].steps & PS_TO(step);
			bool sound;

			stand_at(p, step);
			mistakes[i].make(p);
			sound = ps_attempt_fits_step(p);
			put_back(p, &k);
			if (sound == is_one)
				fail_msg("%s, %s: %s", name, mistakes[i].what,
				         sound ? "sound" : "not sound");
		}
	}
}

/* Fewer than R will do where the operator has named the state. */
TEST(an_accepted_state_needs_fewer, struct owner *o)
{
	struct perseas *p = o->p;
	const struct kept k = keep(p);

	stand_at(p, PS_ATTEMPT_CHOSEN);
	make_few_examined(p);
	assert_false(ps_attempt_fits_step(p));
	p->options.accept_epoch = p->opening.chosen_position.epoch;
	p->options.accept_seq = p->opening.chosen_position.seq;
	assert_true(ps_attempt_fits_step(p));
	put_back(p, &k);
}
