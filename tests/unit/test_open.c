/*
 * test_open.c - creating and opening: which mirrors must be there, who may take a store, and what
 * is said when it cannot be done.
 */
#include "owner.h"

static int setup_three(void **state)
{
	*state = owner_new(3);
	return 0;
}

struct unit_fixture unit_fixture = { setup_three, owner_teardown };

static unsigned pieces(struct owner *o)
{
	unsigned count = 0;

	for (unsigned i = 0; i < o->d->count; i++)
		count += memory_heap_pieces(o->d->mirrors[i].memory);
	return count;
}

static int create(struct owner *o)
{
	return direct_create(o->d, STORE, &o->options, &o->error);
}

/* A second store of the name, wherever the first one is. */
TEST(test_create_refuses_what_is_there, struct owner *o)
{
	unsigned before;

	assert_int_equal(create(o), 0);
	before = pieces(o);
	assert_int_equal(create(o), PERSEAS_EEXIST);
	assert_error_says(o, "sim://0 has a store 'bank' already");
	memory_heap_lose(o->d->mirrors[0].memory, STORE);
	direct_crash(o->d, 0);
	direct_start(o->d, 0);
	assert_int_equal(create(o), PERSEAS_EEXIST);
	assert_error_says(o, "sim://1");
	assert_int_equal(pieces(o), before * 2 / 3);
}

/* One mirror does not answer: nothing is made on the others. */
TEST(test_create_needs_all_mirrors, struct owner *o)
{
	direct_crash(o->d, 1);
	assert_int_equal(create(o), PERSEAS_EUNREACHABLE);
	assert_error_says(o, "sim://1");
	assert_int_equal(pieces(o), 0);
	direct_start(o->d, 1);
	assert_int_equal(create(o), 0);
}

/* One mirror refuses, or breaks, while the store is created: the others are cleaned, and the store
 * can be created after that mirror is well again. */
TEST(test_create_is_all_or_nothing, struct owner *o)
{
	struct direct_mirror *m = &o->d->mirrors[2];

	memory_heap_set_limit(m->memory, 8192);
	assert_int_equal(create(o), PERSEAS_EMIRRORMEM);
	assert_int_equal(pieces(o), 0);
	memory_heap_set_limit(m->memory, 0);
	m->break_at = PERSEAS__REQUEST__BODY_CREATE;
	assert_int_equal(create(o), PERSEAS_EUNREACHABLE);
	assert_int_equal(pieces(o), 0);
	/* The mirror made its image, and could not say so. */
	m->break_at = PERSEAS__REQUEST__BODY_CREATE;
	m->reply_lost = true;
	assert_int_equal(create(o), PERSEAS_EUNREACHABLE);
	assert_int_equal(owner_open(o, 0), PERSEAS_ENOSTORE);
	assert_error_says(o, "not finished");
	assert_int_equal(create(o), 0);
	assert_int_equal(owner_open(o, 0), 0);
	assert_int_equal(owner_stat(o).seq, 0);
}

/* The owner dies between the settling of one mirror and that of the others. */
TEST(test_open_settles_what_create_left, struct owner *o)
{
	for (unsigned i = 1; i < 3; i++)
		o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_SETTLE;
	assert_int_equal(create(o), 0);
	assert_int_equal(owner_open(o, 0), 0);
	assert_int_equal(owner_stat(o).live, 3);
}

/* The first mirror breaks before it settles: what was made is withdrawn, and made again. */
TEST(test_create_that_its_first_mirror_did_not_settle, struct owner *o)
{
	for (unsigned i = 0; i < 3; i++)
		o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_SETTLE;
	assert_int_equal(create(o), 0);
	assert_int_equal(owner_open(o, 0), 0);
	assert_int_equal(owner_stat(o).live, 3);
}

TEST(test_open_without_a_store, struct owner *o)
{
	assert_int_equal(owner_open(o, 0), PERSEAS_ENOSTORE);
	assert_error_says(o, "create it");
	assert_null(o->p);
	direct_crash(o->d, 0);
	assert_int_equal(owner_open(o, 0), PERSEAS_EUNREACHABLE);
	assert_error_says(o, "sim://0");
	assert_int_equal(owner_open(o, PERSEAS_CREATE), PERSEAS_EUNREACHABLE);
	assert_int_equal(pieces(o), 0);
	direct_start(o->d, 0);
	assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
	owner_close(o);
	assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
}

/* Too few mirrors: which ones are missing, and what the newest state is. */
TEST_WITH(test_open_names_the_missing, owner_setup_three, owner_teardown, struct owner *o)
{
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	owner_die(o);
	direct_crash(o->d, 0);
	direct_crash(o->d, 2);
	assert_int_equal(owner_open(o, 0), PERSEAS_EQUORUM);
	assert_error_says(o, "1 of 3");
	assert_error_says(o, "sim://0");
	assert_error_says(o, "sim://2");
	assert_error_says(o, "the newest state seen is 1:2");
	assert_null(strstr(o->error.text, "sim://1"));
	direct_start(o->d, 2);
	owner_reopen(o);
	assert_int_equal(o->bytes[0], 1);
	assert_int_equal(owner_stat(o).live, 2);
	assert_int_equal(owner_put(o, 0, 10, 2), 0);
}

/* No mirror at all. */
TEST_WITH(test_open_with_all_mirrors_down, owner_setup_three, owner_teardown, struct owner *o)
{
	owner_die(o);
	for (unsigned i = 0; i < 3; i++)
		direct_crash(o->d, i);
	assert_int_equal(owner_open(o, 0), PERSEAS_EUNREACHABLE);
	for (unsigned i = 0; i < 3; i++)
		assert_error_says(o, i == 0 ? "sim://0" : i == 1 ? "sim://1" : "sim://2");
}

/* A live owner is not disturbed by an open that does not ask for a takeover. */
TEST_WITH(test_busy_fences_nobody, owner_setup_three, owner_teardown, struct owner *o)
{
	perseas_t *second = o->p;

	assert_int_equal(direct_open(o->d, STORE, &o->options, &second, &o->error), PERSEAS_EBUSY);
	assert_null(second);
	assert_error_says(o, "owner-");
	assert_error_says(o, "takeover");
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	/* The same when only one of the mirrors still knows the owner. */
	direct_cut(o->d, 0);
	direct_cut(o->d, 1);
	assert_int_equal(direct_open(o->d, STORE, &o->options, &second, &o->error), PERSEAS_EBUSY);
}

/* A closed handle leaves no owner behind. */
TEST_WITH(test_close_ends_ownership, owner_setup_three, owner_teardown, struct owner *o)
{
	owner_close(o);
	assert_int_equal(owner_open(o, 0), 0);
	owner_map(o);
	assert_int_equal(o->bytes[1], 7);
}

/* Two stores of the same name on the mirrors given, made apart. */
TEST(test_two_stores_of_one_name, struct owner *o)
{
	struct ps_error error = { 0 };

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ps_create(direct_env(o->d), STORE, i ? "sim://1" : "sim://0",
		                           &o->options, &error),
		                 0);
	assert_int_equal(owner_open(o, 0), PERSEAS_EROSTER);
	assert_error_says(o, "two stores named");
}

/* A mirror lost the store, and a stranger has made one of the same name there. An open that names
 * mirrors of both is ambiguous. One that names mirrors of a single store leaves the other alone, at
 * the open and after, although the roster lists its mirror. */
TEST_WITH(test_another_store_is_left_alone, owner_setup_three, owner_teardown, struct owner *o)
{
	struct perseas_options options = o->options;
	struct ps_error error = { 0 };
	perseas_t *stranger;
	void *addr;

	owner_die(o);
	owner_lose(o, 2);
	options.flags = PERSEAS_CREATE;
	assert_int_equal(ps_open(direct_env(o->d), STORE, "sim://2", &options, &stranger, &error),
	                 0);
	assert_int_equal(perseas_map(stranger, "theirs", 100, &addr), 0);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), PERSEAS_EROSTER);
	options.flags = PERSEAS_TAKEOVER;
	assert_int_equal(ps_open(direct_env(o->d), STORE, "sim://0,sim://1", &options, &o->p,
	                         &o->error),
	                 0);
	owner_map(o);
	assert_int_equal(owner_stat(o).live, 2);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_LOST);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	direct_keep(o->d, o->p);
	assert_int_equal(perseas_publish(stranger), 0);
	assert_int_equal(perseas_close(stranger), 0);
}

/* The list leaves out mirrors: the roster names them, and they are asked, where they answer. */
TEST_WITH(test_list_and_roster_differ, owner_setup_three, owner_teardown, struct owner *o)
{
	struct ps_error error = { 0 };
	perseas_t *p;

	owner_die(o);
	assert_int_equal(ps_open(direct_env(o->d), STORE, "sim://2,sim://0", &o->options, &p,
	                         &error),
	                 0);
	assert_int_equal(p->mirror_count, 3);
	assert_int_equal(perseas_close(p), 0);
	assert_int_equal(ps_open(direct_env(o->d), STORE, "sim://2", &o->options, &p, &error), 0);
	assert_int_equal(p->mirror_count, 3);
	assert_int_equal(p->mirrors[1].state, PERSEAS_MIRROR_LIVE);
	assert_non_null(strstr(perseas_report(p), "sim://1: was not named"));
	assert_int_equal(perseas_close(p), 0);
	direct_crash(o->d, 0);
	direct_crash(o->d, 1);
	assert_int_equal(ps_open(direct_env(o->d), STORE, "sim://2", &o->options, &p, &error),
	                 PERSEAS_EQUORUM);
	assert_non_null(strstr(error.text, "sim://0"));
	assert_non_null(strstr(error.text, "sim://1"));
}

/* Both commit slots of a mirror are wrecked: the others are enough, and it is mended; on all of
 * them, nothing can be done. */
TEST_WITH(test_damaged_images, owner_setup_three, owner_teardown, struct owner *o)
{
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	owner_die(o);
	memset(memory_heap_piece(o->d->mirrors[0].memory, STORE, "log.1", NULL), 0xff, PS_PAGE);
	owner_reopen(o);
	assert_int_equal(o->bytes[0], 1);
	assert_true(owner_stat(o).live >= 2);
	owner_die(o);
	for (unsigned i = 0; i < 3; i++) {
		uint8_t *log;

		for (int g = 1; g < 4; g++) {
			char name[16];

			snprintf(name, sizeof(name), "log.%d", g);
			log = memory_heap_piece(o->d->mirrors[i].memory, STORE, name, NULL);
			if (log)
				memset(log, 0xff, PS_PAGE);
		}
	}
	assert_int_equal(owner_open(o, 0), PERSEAS_EDAMAGED);
	assert_error_says(o, "slot");
}

/* An operator accepts the state of the one mirror that is left, in so many words. */
TEST(test_accepted_state, struct owner *o)
{
	owner_free(o);
	*unit_state = o = owner_new(2);
	o->options.acks = 1;
	owner_begin(o);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	owner_die(o);
	direct_crash(o->d, 0);
	assert_int_equal(owner_open(o, 0), PERSEAS_EQUORUM);
	o->options.accept_epoch = 1;
	o->options.accept_seq = 1;
	assert_int_equal(owner_open(o, 0), PERSEAS_EQUORUM);
	o->options.accept_seq = 2;
	owner_reopen(o);
	assert_int_equal(o->bytes[0], 1);
	assert_non_null(strstr(perseas_report(o->p), "accepted as asked"));
	o->options.accept_epoch = 0;
	assert_int_equal(owner_put(o, 0, 10, 2), 0);
}

/* A mirror's record of the store: its header, and its log with the slots. */
struct on_record {
	uint64_t size[2];
	uint8_t bytes[2][64 * 1024 + PS_PAGE];
};

static void look(struct owner *o, unsigned mirror, struct on_record *seen)
{
	static const char *const names[2] = { "header", "log.1" };

	memset(seen, 0, sizeof(*seen));
	for (unsigned i = 0; i < 2; i++) {
		const void *bytes = memory_heap_piece(o->d->mirrors[mirror].memory, STORE, names[i],
		                                      &seen->size[i]);

		assert_non_null(bytes);
		assert_in_range(seen->size[i], 1, sizeof(seen->bytes[i]));
		memcpy(seen->bytes[i], bytes, seen->size[i]);
	}
}

/* Leaves only mirror 0 of a store on three mirrors. */
static struct owner *one_is_left(void **state, uint32_t acks, bool lost)
{
	struct owner *o = *state;

	owner_free(o);
	*state = o = owner_new(3);
	o->options.acks = acks;
	owner_begin(o);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	owner_die(o);
	for (unsigned i = 1; i < 3; i++) {
		direct_crash(o->d, i);
		if (lost) {
			memory_heap_lose(o->d->mirrors[i].memory, STORE);
			direct_start(o->d, i);
		}
	}
	return o;
}

/* An open that cannot end well changes nothing, and says what can be done with what is left. */
static void assert_refused_whole(struct owner *o)
{
	static struct on_record before, after;

	look(o, 0, &before);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	look(o, 0, &after);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void assert_salvaged(struct owner *o)
{
	assert_int_equal(owner_open(o, PERSEAS_SALVAGE), 0);
	owner_map(o);
	assert_int_equal(o->bytes[0], 1);
}

/* The state of the remaining mirror is accepted, but W mirrors cannot get it: the others are down,
 * or lost their memory and cannot be made anew (I9). */
TEST(test_accepted_state_on_too_few)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct owner *o = one_is_left(unit_state, 2, lost);

		o->options.accept_epoch = 1;
		o->options.accept_seq = 1;
		assert_refused_whole(o);
		assert_error_says(o, "the newest state seen is 1:2");
		o->options.accept_seq = 2;
		assert_refused_whole(o);
		assert_error_says(o, "1 of 3 mirrors hold the newest state of store 'bank', and 2 "
		                     "must before it can be opened");
		assert_error_says(o, "no state was changed");
		assert_error_says(o, "perseas recover --onto");
		assert_error_says(o, "sim://1");
		assert_error_says(o, "sim://2");
		assert_salvaged(o);
	}
}

/* W is all three, so one that is left is R, and its state is the newest; but it cannot know whether
 * the roster was changed on the others before they were lost. */
TEST(test_all_acks_and_most_lost)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct owner *o = one_is_left(unit_state, 3, lost);

		assert_refused_whole(o);
		assert_error_says(o, "1 of 3 mirrors hold the newest state of store 'bank', and 3 "
		                     "must before it can be opened");
		if (lost)
			assert_error_says(o, "made anew only while 2 others have theirs");
		assert_error_says(o, "perseas recover --onto");
		assert_salvaged(o);
	}
}

/* The accepted state was adopted when a session broke: the next attempt finds it under this
 * handle's own epoch, and goes on with it. */
TEST(test_accepted_state_survives_a_break, struct owner *o)
{
	for (unsigned writes = 0; writes < 4; writes++) {
		owner_free(o);
		*unit_state = o = owner_new(3);
		o->options.acks = 1;
		owner_begin(o);
		assert_int_equal(owner_put(o, 0, 10, 1), 0);
		owner_die(o);
		direct_crash(o->d, 0);
		o->options.accept_epoch = 1;
		o->options.accept_seq = 2;
		o->d->mirrors[2].writes_left = (int)writes;
		owner_reopen(o);
		assert_int_equal(o->bytes[0], 1);
		assert_int_equal(owner_stat(o).live, 2);
	}
}

/* Every session breaks before the store is open, as if others claimed it all the time. */
static void break_confirm(void *arg)
{
	struct owner *o = arg;

	o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_CONFIRM;
}

TEST_WITH(test_open_gives_up_in_time, owner_setup_three, owner_teardown, struct owner *o)
{
	uint64_t before;

	owner_die(o);
	before = o->d->now;
	break_confirm(o);
	o->d->on_pause = break_confirm;
	o->d->on_pause_arg = o;
	assert_int_equal(owner_open(o, 0), PERSEAS_EUNREACHABLE);
	assert_error_says(o, "nobody else claimed it, again and again");
	assert_true(o->d->now - before < 16000000000u);
	/* The last attempt's break is still to come; then it goes well. */
	o->d->on_pause = NULL;
	assert_int_equal(owner_open(o, 0), 0);
}

/* A session breaks at every request of an open in turn, its answer lost or not: the open begins
 * again and succeeds, and no data is lost. */
TEST_WITH(test_open_survives_every_break, owner_setup_three, owner_teardown, struct owner *o)
{
	static const int requests[] = {
		PERSEAS__REQUEST__BODY_STATUS,
		PERSEAS__REQUEST__BODY_CLAIM,
		PERSEAS__REQUEST__BODY_CONFIRM,
	};

	for (unsigned i = 0; i < 3 * 3 * 2; i++) {
		struct direct_mirror *m = &o->d->mirrors[i % 3];

		assert_int_equal(owner_put(o, i, 1, (uint8_t)(i + 1)), 0);
		owner_die(o);
		m->break_at = requests[i / 3 % 3];
		m->reply_lost = i / 9;
		owner_reopen(o);
		assert_int_equal(m->break_at, 0);
		for (unsigned k = 0; k <= i; k++)
			assert_int_equal(o->bytes[k], k + 1);
		assert_true(owner_stat(o).live >= 2);
	}
}

/* The thread that watches the mirrors cannot be had. */
TEST_WITH(test_open_without_a_thread, owner_setup_three, owner_teardown, struct owner *o)
{
	owner_close(o);
	o->d->no_threads = true;
	assert_int_equal(owner_open(o, 0), PERSEAS_ESYSTEM);
	o->d->no_threads = false;
	assert_int_equal(owner_open(o, 0), 0);
}

/* A claim that takes longer than a round of answers: its mirror copies the image away from an owner
 * that lives, which is fenced by then. */
TEST_WITH(test_a_claim_that_takes_long_is_waited_for, NULL, NULL)
{
	struct owner *o = owner_new(1);

	owner_begin(o);
	assert_int_equal(owner_put(o, 0, 100, 2), 0);
	o->options.connect_timeout_ms = 3000;
	o->d->mirrors[0].slow_at = PERSEAS__REQUEST__BODY_CLAIM;
	o->d->mirrors[0].slow_ns = 8000000000;
	owner_reopen(o);
	assert_int_equal(o->bytes[99], 2);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	owner_free(o);
}

/* Where the others are enough, no longer than a round: and else as long as the open may take. */
TEST_WITH(test_a_claim_that_takes_too_long_is_given_up, NULL, NULL)
{
	struct owner *o = owner_new(3);
	uint64_t start;

	owner_begin(o);
	o->options.connect_timeout_ms = 3000;
	o->options.open_timeout_ms = 15000;
	o->d->mirrors[0].slow_at = PERSEAS__REQUEST__BODY_CLAIM;
	o->d->mirrors[0].slow_ns = 60000000000;
	start = o->d->now;
	owner_reopen(o);
	assert_true(o->d->now - start < 4000000000);
	o->d->mirrors[1].slow_at = PERSEAS__REQUEST__BODY_CLAIM;
	o->d->mirrors[1].slow_ns = 60000000000;
	start = o->d->now;
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	assert_true(o->d->now - start >= 15000000000 && o->d->now - start < 20000000000);
	assert_error_says(o, "A claim that was not answered may have fenced the owner before");
	owner_free(o);
}
