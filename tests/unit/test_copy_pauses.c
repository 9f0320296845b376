/*
 * test_copy_pauses.c - copies to a mirror that do not end: how long the next one waits, and what is
 * told of them.
 */
#include "resync_rig.h"

#include "../../server/store/store.h"

#define SECOND (1000 * MS)

static struct perseas_event broken; /* the last such event */

static void note(void *arg, const struct perseas_event *event)
{
	(void)arg;
	if (event->kind == PERSEAS_EVENT_RESYNC_BROKEN)
		broken = *event;
}

/* Mirror 1 missed more than the ring holds. */
static void begin_copies(struct fixture *f)
{
	f->o->options.on_event = note;
	owner_reopen(f->o);
	map_big(f);
	make_stale(f, 1);
}

static void keep_until_copied_to(struct owner *o, uint64_t step)
{
	for (unsigned i = 0; owner_state(o, 1) != PERSEAS_MIRROR_RESYNCING; i++) {
		assert_true(i < 10 * ROUNDS);
		direct_keep_after(o->d, o->p, step);
	}
}

/* Everything changes, so that the next copy sends as much. */
static void change_everything(struct owner *o)
{
	assert_int_equal(owner_put(o, 0, 1, o->bytes[0]), 0);
	change_all(o->p);
}

/* The copy goes on, and its link breaks. */
static void break_copy(struct owner *o)
{
	keep_until_copied_to(o, MS);
	direct_cut(o->d, 1);
	while (owner_state(o, 1) == PERSEAS_MIRROR_RESYNCING)
		direct_keep_after(o->d, o->p, MS);
	change_everything(o);
}

/* The copy goes on, and the owner drops the mirror. */
static void drop_copy(struct owner *o)
{
	keep_until_copied_to(o, MS);
	pthread_mutex_lock(&o->p->lock);
	ps_mirror_break_stalled_link(o->p, &o->p->mirrors[1],
	                             "dropped: it lags by half of the ring");
	pthread_mutex_unlock(&o->p->lock);
	change_everything(o);
	direct_keep(o->d, o->p); /* tells the event */
}

/* Checks the time until the next copy begins, to within an eighth. */
static void assert_pause(struct owner *o, uint64_t pause)
{
	const uint64_t start = o->d->now;
	uint64_t took;

	keep_until_copied_to(o, pause / 16);
	took = o->d->now - start;
	if (took < pause - pause / 8 || took > pause + pause / 8)
		fail_msg("it took %llu ms, not %llu", (unsigned long long)(took / MS),
		         (unsigned long long)(pause / MS));
}

static void assert_told(struct owner *o, const char *words)
{
	struct perseas_mirror_stat stat;

	assert_int_equal(perseas_mirror_stat(o->p, 1, &stat), 0);
	if (!strstr(stat.trouble, words) || !strstr(broken.text, words))
		fail_msg("neither '%s' nor '%s' may lack '%s'", stat.trouble, broken.text, words);
}

/* Each pause is twice the one before, up to five minutes; a copy that ends begins this anew. */
TEST_WITH(each_copy_waits_twice_as_long, setup, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	begin_copies(f);
	for (unsigned i = 0; i < 12; i++) {
		const uint64_t pause = SECOND << i;

		break_copy(o);
		assert_pause(o, pause < 300 * SECOND ? pause : 300 * SECOND);
	}
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	make_stale(f, 1);
	break_copy(o);
	assert_pause(o, SECOND);
	assert_catches_up(f, 1);
}

/* Commits cannot end without it: it is tried often. */
TEST_WITH(a_mirror_that_is_needed_does_not_wait_for_long, setup, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	begin_copies(f);
	for (unsigned i = 0; i < 6; i++) {
		break_copy(o);
		if (i < 5)
			assert_pause(o, SECOND << i);
	}
	/* Without this the next copy would begin after 32 s. */
	direct_crash(o->d, 2);
	assert_pause(o, 5 * SECOND);
	direct_start(o->d, 2);
	assert_catches_up(f, 1);
}

/* The rate of transactions that was noted when the copy broke is that of these bytes of the ring,
 * which were added since the copy began. */
static void assert_rate(struct owner *o, uint64_t bytes)
{
	const struct ps_broken_copies *copies = &o->p->mirrors[1].broken_copies;
	const uint64_t took_ms = (copies->last_broke_at - copies->copy_begun_at) / MS + 1;

	assert_int_equal(copies->transaction_bytes_per_s, bytes / took_ms * 1000);
}

/* Event and trouble tell how many copies broke, how far the last one was, and when the next one
 * begins. Only of a mirror that fell behind they say which rate its link lacks. */
TEST_WITH(broken_copies_are_told, setup, teardown, struct fixture *f)
{
	struct owner *o = f->o;
	uint64_t bytes;
	char words[80];

	begin_copies(f);
	break_copy(o);
	assert_told(o, "copy 1 in a row that did not end");
	assert_told(o, "the next begins in 1 s");
	for (unsigned dropped = 0; dropped < 2; dropped++) {
		keep_until_copied_to(o, MS);
		bytes = -o->p->commit.ring.append_position;
		for (unsigned i = 0; i < 20; i++)
			assert_int_equal(put_big(f, i, 3000, 1), 0);
		bytes += o->p->commit.ring.append_position;
		if (dropped) {
			drop_copy(o);
		} else {
			break_copy(o);
			assert_rate(o, bytes);
		}
		snprintf(words, sizeof(words), "of %llu bytes; the next begins in %u s",
		         (unsigned long long)(BIG + SIZE), dropped ? 4 : 2);
		assert_non_null(strstr(broken.text, words));
		assert_int_equal(strstr(broken.text, "its link must carry more than") != NULL,
		                 dropped);
	}
	assert_true(o->p->mirrors[1].broken_copies.sent_bytes > 0);
	assert_catches_up(f, 1);
	assert_int_equal(o->p->mirrors[1].broken_copies.broken_copy_count, 0);
}

/* Returns what the mirror was told about broken copies to mirror 1, or NULL. */
static const Perseas__BrokenCopies *broken_told(struct owner *o, unsigned mirror)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct why why;

	assert_int_equal(store_status(o->d->mirrors[mirror].stores, STORE, &status, &why), 0);
	assert_int_equal(status.n_mirrors, 3);
	return status.mirrors[1]->broken;
}

/* Mirror 2 speaks the version before. */
static int setup_older(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ledger = malloc(sizeof(*f->ledger));
	assert_non_null(f->ledger);
	f->o = owner_new(3);
	f->o->options.acks = 2;
	f->o->d->staged = true;
	f->o->d->mirrors[2].version = 8;
	begin(f);
	*state = f;
	return 0;
}

/* For status and metrics, of all that read this: until a copy has ended. */
TEST_WITH(mirrors_are_told_of_broken_copies, setup_older, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	begin_copies(f);
	direct_keep_after(o->d, o->p, SECOND);
	assert_null(broken_told(o, 0));
	break_copy(o);
	keep_until_copied_to(o, MS);
	direct_keep_after(o->d, o->p, SECOND);
	assert_non_null(broken_told(o, 0));
	assert_int_equal(broken_told(o, 0)->count,
	                 o->p->mirrors[1].broken_copies.broken_copy_count);
	assert_int_equal(broken_told(o, 0)->bytes, o->p->mirrors[1].broken_copies.sent_bytes);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_LIVE);
	assert_null(broken_told(o, 2));
	assert_catches_up(f, 1);
	direct_keep_after(o->d, o->p, SECOND);
	assert_null(broken_told(o, 0));
}
