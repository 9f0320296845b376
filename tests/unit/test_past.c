/*
 * test_past.c - an owner whose machine was reverted to a checkpoint: mirrors hold transactions that
 * it acknowledged, and that it has forgotten. It is fenced for good, and copies nothing over them.
 */
#include "resync_rig.h"
#include "../support/rewind.h"

struct unit_fixture unit_fixture = { setup, teardown };

struct told {
	unsigned fenced;
	char text[256];
};

static void note_event(void *arg, const struct perseas_event *event)
{
	struct told *told = arg;

	if (event->kind != PERSEAS_EVENT_FENCED)
		return;
	told->fenced++;
	snprintf(told->text, sizeof(told->text), "%s", event->text);
}

static void cut_all(struct fixture *f)
{
	for (unsigned i = 0; i < f->o->d->count; i++)
		direct_cut(f->o->d, i);
}

static void keep(struct fixture *f)
{
	for (unsigned i = 0; i < 30; i++)
		direct_keep(f->o->d, f->o->p);
}

/* The ledger keeps what was acknowledged; the owner forgets the last `count` of it. */
static void go_back(struct fixture *f, unsigned count)
{
	assert_int_equal(rewind_owner(f->o->p, count), count);
	cut_all(f);
}

static void assert_fenced(struct fixture *f)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(f->o->p, 0, &tx), PERSEAS_EFENCED);
	assert_says(f->o, "went back in time");
	assert_says(f->o, "close this handle");
	for (unsigned i = 0; i < f->o->d->count; i++)
		assert_int_equal(owner_state(f->o, i), PERSEAS_MIRROR_FENCED);
	assert_int_equal(owner_stat(f->o).resyncs, 0);
}

/* The owner is fenced for good, and the next one finds everything without this mirror. */
static void assert_stays_fenced(struct fixture *f, unsigned without)
{
	keep(f);
	assert_fenced(f);
	assert_carries(f, without);
}

static void commit_three(struct fixture *f)
{
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(put_big(f, 1000 * i, 300, (uint8_t)(i + 1)), 0);
}

/* All connections break when the machine is reverted, and are taken up again. */
TEST(test_an_owner_of_the_past_is_fenced, struct fixture *f)
{
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(put_big(f, 1000 * i, 300, (uint8_t)(i + 1)), 0);
	go_back(f, 3);
	assert_stays_fenced(f, 0);
}

/* The first mirror that tells is enough: nothing is sent to the others, whose connections last. */
TEST(test_one_mirror_tells, struct fixture *f)
{
	commit_three(f);
	assert_int_equal(rewind_owner(f->o->p, 1), 1);
	direct_cut(f->o->d, 1);
	assert_stays_fenced(f, 0);
}

/* A mirror that lost its memory would take anything: it gets nothing. */
TEST(test_it_makes_no_mirror_anew, struct fixture *f)
{
	commit_three(f);
	assert_int_equal(rewind_owner(f->o->p, 1), 1);
	owner_lose(f->o, 2);
	cut_all(f);
	keep(f);
	assert_fenced(f);
	assert_null(memory_heap_piece(f->o->d->mirrors[2].memory, STORE, "header", NULL));
	assert_carries(f, 2);
}

/* Makes the owner forget a transaction of 300 bytes, and send one of `length` with the same
 * number. */
static void send_another(struct fixture *f, unsigned length)
{
	perseas_tx_t *tx;

	commit_three(f);
	assert_int_equal(rewind_owner(f->o->p, 1), 1);
	cut_all(f);
	assert_int_equal(perseas_begin(f->o->p, PERSEAS_NOWAIT, &tx), 0);
	assert_int_equal(perseas_set_range(tx, f->big, length), 0);
	memset(f->big, 77, length);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EINDOUBT);
	assert_stays_fenced(f, 1);
}

/* Its number is the mirrors' again, but the log goes on elsewhere behind the record. */
TEST(test_another_record_under_its_number_tells, struct fixture *f)
{
	send_another(f, 900);
}

/* The slots are equal: only the record itself tells. */
TEST(test_another_record_of_the_same_length_tells, struct fixture *f)
{
	send_another(f, 300);
}

/* A renewal asks the mirrors first: one of them tells. */
TEST(test_it_does_not_renew, struct fixture *f)
{
	commit_three(f);
	owner_claimed_and_left(f->o);
	assert_int_equal(rewind_owner(f->o->p, 2), 2);
	keep(f);
	assert_fenced(f);
	assert_int_equal(owner_stat(f->o).renewals, 0);
	assert_carries(f, 0);
}

/* A mirror was made anew after the checkpoint, so this owner does not know the roster that lists
 * it. */
TEST(test_a_roster_that_it_has_forgotten_tells, struct fixture *f)
{
	Perseas__Roster *before;

	assert_int_equal(put_big(f, 0, 300, 1), 0);
	before = ps_roster_copy(f->o->p->roster);
	assert_non_null(before);
	owner_lose(f->o, 2);
	owner_keep(f->o, 2, PERSEAS_MIRROR_LIVE);
	keep(f);
	f->o->p->commit.stat.resyncs = 0;
	perseas__roster__free_unpacked(f->o->p->roster, NULL);
	f->o->p->roster = before;
	cut_all(f);
	assert_stays_fenced(f, 0);
}

static int setup_told(void **state)
{
	static struct told told;
	struct fixture *f;

	setup(state);
	f = *state;
	memset(&told, 0, sizeof(told));
	f->o->options.on_event = note_event;
	f->o->options.event_arg = &told;
	owner_reopen(f->o);
	map_big(f);
	return 0;
}

/* The application is told once, with the reason. */
TEST_WITH(test_the_event_says_why, setup_told, teardown, struct fixture *f)
{
	const struct told *told = f->o->options.event_arg;

	assert_int_equal(put_big(f, 0, 300, 1), 0);
	assert_int_equal(put_big(f, 0, 300, 2), 0);
	go_back(f, 1);
	keep(f);
	assert_fenced(f);
	assert_int_equal(told->fenced, 1);
	assert_non_null(strstr(told->text, "went back in time"));
}
