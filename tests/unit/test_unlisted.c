/*
 * test_unlisted.c - images that count for nothing (I9): one that left the roster, one that seemed
 * to be lost when it was looked for, and one that is told of at the address of another.
 */
#include "owner.h"

enum { ROUNDS = 1000 };

static uint8_t *log_of(struct owner *o, unsigned mirror)
{
	for (unsigned generation = 1; generation < 9; generation++) {
		char name[16];
		uint8_t *log;

		snprintf(name, sizeof(name), "log.%u", generation);
		log = memory_heap_piece(o->d->mirrors[mirror].memory, STORE, name, NULL);
		if (log)
			return log;
	}
	fail_msg("mirror %u has no log", mirror);
	return NULL;
}

/* A mirror that was removed holds transactions that the store never had. */
TEST(an_image_that_left_the_roster_is_no_candidate)
{
	const struct perseas_roster_change leave = { .kind = PERSEAS_ROSTER_REMOVE,
		                                     .address = "sim://0" };
	struct owner *o = owner_new(3);
	struct ps_slot slot;
	uint8_t *log;
	int index;

	o->options.acks = 2;
	owner_begin(o);
	assert_int_equal(owner_change(o, &leave), 0);
	for (unsigned rounds = 0; o->p->upkeep.change.stage != PS_CHANGE_NONE; rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep(o->d, o->p);
	}
	assert_int_equal(owner_put(o, 0, 100, 7), 0);
	owner_die(o);
	log = log_of(o, 0);
	index = ps_slot_choose(log, &slot);
	assert_true(index >= 0);
	ps_slot_encode(&slot, slot.epoch, slot.seq + 1000, slot.next, slot.last);
	memcpy(log + ps_slot_offset(!index), &slot, sizeof(slot));
	owner_reopen(o);
	assert_true(owner_stat(o).seq < 1000);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(o->bytes[i], 7);
	owner_free(o);
}

/* Another owner, between two questions of the one that is opening. */
struct between {
	struct owner *o;
	bool done;
	perseas_t *other;
};

static void open_between(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                         size_t len)
{
	struct between *between = arg;
	struct perseas_options options = between->o->options;

	(void)session;
	(void)bytes;
	(void)len;
	if (between->done || mirror != 1)
		return;
	between->done = true;
	between->o->d->tap = NULL;
	options.flags |= PERSEAS_TAKEOVER;
	assert_int_equal(direct_open(between->o->d, STORE, &options, &between->other,
	                             &between->o->error),
	                 0);
	perseas_close(between->other);
}

/* Mirror 0 lost its memory. It says so, and is then made anew by another owner, before the others
 * are asked: what it said is no longer so. */
TEST(a_mirror_that_was_empty_may_be_so_no_more)
{
	struct owner *o = owner_new(3);
	struct between between = { .o = o };
	struct direct_tap tap = { .arg = &between, .request = open_between };

	o->options.acks = 2;
	owner_begin(o);
	assert_int_equal(owner_put(o, 0, 100, 7), 0);
	owner_die(o);
	memory_heap_lose(o->d->mirrors[0].memory, STORE);
	direct_crash(o->d, 0);
	direct_start(o->d, 0);
	o->d->tap = &tap;
	owner_reopen(o);
	assert_true(between.done);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(owner_stat(o).mended_whole, 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(o->bytes[i], 7);
	owner_free(o);
}

/* The owner dies, and the next one is on a host on which the address of mirror 2 leads to mirror 1,
 * as that of a Unix socket can: it gives the addresses of this list. */
static int open_elsewhere(struct owner *o, const char *list)
{
	struct perseas_options options = o->options;

	owner_die(o);
	o->d->leads[2] = 1;
	options.flags |= PERSEAS_TAKEOVER;
	memset(&o->error, 0, sizeof(o->error));
	return ps_open(direct_env(o->d), STORE, list, &options, &o->p, &o->error);
}

static struct owner *begin_three(void)
{
	struct owner *o = owner_new(3);

	o->options.acks = 2;
	owner_begin(o);
	assert_int_equal(owner_put(o, 0, 100, 7), 0);
	return o;
}

/* Nobody named it: the store is opened by the two others, and mirror 1 has one session. */
TEST(an_address_that_leads_elsewhere_keeps_nobody_out)
{
	struct perseas_mirror_stat stat;
	struct owner *o = begin_three();

	if (open_elsewhere(o, "sim://0,sim://1"))
		fail_msg("%s", o->error.text);
	assert_non_null(strstr(perseas_report(o->p), "sim://2 is the same mirror as sim://1"));
	owner_map(o);
	assert_int_equal(o->bytes[0], 7);
	assert_int_equal(owner_put(o, 0, 100, 8), 0);
	for (unsigned rounds = 0; rounds < 5; rounds++)
		direct_keep(o->d, o->p);
	assert_int_equal(owner_stat(o).live, 2);
	assert_int_equal(owner_stat(o).mended_whole, 0);
	assert_int_equal(owner_stat(o).resyncs, 0);
	assert_int_equal(perseas_mirror_stat(o->p, 2, &stat), 0);
	assert_int_equal(stat.state, PERSEAS_MIRROR_LOST);
	assert_non_null(strstr(stat.trouble, "same mirror as sim://1"));
	/* Back where the address is its own, it has its vote. */
	owner_die(o);
	o->d->leads[2] = 2;
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(o->bytes[0], 8);
	owner_free(o);
}

/* One of the two others does not run: what is told twice is not R of three. */
TEST(an_address_that_leads_elsewhere_has_no_vote)
{
	struct owner *o = begin_three();

	direct_crash(o->d, 0);
	assert_int_equal(open_elsewhere(o, "sim://1"), PERSEAS_EQUORUM);
	assert_non_null(strstr(o->error.text, "1 of 3 mirrors answered"));
	assert_non_null(strstr(o->error.text, "sim://2 is the same mirror as sim://1"));
	owner_free(o);
}

/* That both were named is a mistake of who named them. */
TEST(a_mirror_that_is_named_twice_is_refused)
{
	struct owner *o = begin_three();

	assert_int_equal(open_elsewhere(o, "sim://0,sim://1,sim://2"), PERSEAS_EINVAL);
	assert_non_null(
		strstr(o->error.text, "sim://1 and sim://2 are the same mirror: name it once"));
	owner_free(o);
}
