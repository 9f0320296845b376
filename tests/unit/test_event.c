/*
 * test_event.c - an application is told of what happens to its store: what, in which order, and
 * with nothing held.
 */
#include "owner.h"

#include "../../server/store/access.h"

enum { TOLD_MAX = 128 };

struct told {
	struct owner *o;
	unsigned count;
	struct perseas_event events[TOLD_MAX];
};

static void tell(void *arg, const struct perseas_event *event)
{
	struct told *told = arg;
	struct perseas_mirror_stat mirror;
	struct perseas_latency latency;
	struct perseas_stat stat;

	assert_true(told->count < TOLD_MAX);
	assert_string_not_equal(event->text, "");
	told->events[told->count++] = *event;
	/* These take the lock, and the mirrors are nobody's meanwhile. */
	assert_int_equal(pthread_mutex_trylock(&told->o->p->lock), 0);
	pthread_mutex_unlock(&told->o->p->lock);
	assert_false(told->o->p->is_admin_taken);
	assert_int_equal(perseas_stat(told->o->p, &stat), 0);
	assert_int_equal(perseas_mirror_stat(told->o->p, 0, &mirror), 0);
	assert_int_equal(perseas_latency(told->o->p, &latency), 0);
}

static int setup(void **state)
{
	struct told *told = calloc(1, sizeof(*told));

	assert_non_null(told);
	told->o = owner_new(4);
	told->o->options.on_event = tell;
	told->o->options.event_arg = told;
	owner_begin(told->o);
	direct_keep(told->o->d, told->o->p);
	assert_int_equal(told->count, 0);
	*state = told;
	return 0;
}

static int teardown(void **state)
{
	struct told *told = *state;

	owner_free(told->o);
	free(told);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* The keeper goes a round; what was told since the last look must be this, 0 ends it. */
static void expect(struct told *told, const int *kinds)
{
	unsigned i = 0;

	direct_keep(told->o->d, told->o->p);
	for (; kinds[i] && i < told->count; i++)
		assert_string_equal(perseas_event_name(told->events[i].kind),
		                    perseas_event_name(kinds[i]));
	assert_int_equal(i, told->count);
	assert_int_equal(kinds[i], 0);
	told->count = 0;
}

#define EXPECT(told, ...) expect(told, (const int[]){ __VA_ARGS__, 0 })

/* A mirror's daemon dies and comes back; the ring has what it missed. */
TEST(a_mirror_goes_and_comes_back, struct told *told)
{
	struct owner *o = told->o;

	direct_crash(o->d, 1);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN);
	assert_string_equal(told->events[0].mirror, "sim://1");
	assert_non_null(strstr(told->events[0].text, "sim://1 is down"));
	assert_int_equal(told->events[0].missed, 0);
	expect(told, (const int[]){ 0 });
	direct_start(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	EXPECT(told, PERSEAS_EVENT_MIRROR_LIVE);
	assert_int_equal(told->events[0].seq, owner_stat(o).seq);
}

/* The mirror lost its memory and is copied whole; the first time it dies during the copy. */
TEST(a_mirror_is_copied_whole, struct told *told)
{
	struct perseas_mirror_stat stat;
	struct owner *o = told->o;

	owner_lose(o, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(perseas_mirror_stat(o->p, 1, &stat), 0);
	assert_non_null(strstr(stat.trouble, "being copied whole: sim://1: this mirror has no"));
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN, PERSEAS_EVENT_RESYNC_BEGUN,
	       PERSEAS_EVENT_RESYNC_DONE, PERSEAS_EVENT_MIRROR_LIVE);
	assert_non_null(strstr(told->events[1].text,
	                       "is being copied whole: sim://1: this mirror has no store"));
	owner_lose(o, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	direct_crash(o->d, 1);
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN, PERSEAS_EVENT_RESYNC_BEGUN,
	       PERSEAS_EVENT_RESYNC_BROKEN);
}

/* The mirror was down for longer than the ring reaches back. */
TEST(why_a_mirror_is_copied_is_told, struct told *told)
{
	struct owner *o = told->o;

	direct_crash(o->d, 1);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(owner_put(o, 0, SIZE, (uint8_t)i), 0);
	direct_start(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN, PERSEAS_EVENT_RESYNC_BEGUN,
	       PERSEAS_EVENT_RESYNC_DONE, PERSEAS_EVENT_MIRROR_LIVE);
	assert_string_equal(
		told->events[1].text,
		"mirror sim://1 is being sent what changed: it missed more than the ring "
		"holds");
}

TEST(a_commit_is_in_doubt_and_then_not, struct told *told)
{
	struct owner *o = told->o;

	for (unsigned i = 0; i < 3; i++)
		o->d->mirrors[i].hold = DIRECT_HOLD_COMPLETIONS;
	assert_int_equal(owner_put(o, 0, 10, 1), PERSEAS_EINDOUBT);
	assert_int_equal(perseas_flush(o->p), PERSEAS_EINDOUBT);
	EXPECT(told, PERSEAS_EVENT_IN_DOUBT);
	assert_int_equal(told->events[0].seq, owner_stat(o).seq);
	for (unsigned i = 0; i < 3; i++) {
		o->d->mirrors[i].hold = DIRECT_HOLD_NOTHING;
		direct_release(o->d, i, 1000);
	}
	assert_int_equal(perseas_flush(o->p), 0);
	EXPECT(told, PERSEAS_EVENT_DURABLE);
	assert_int_equal(told->events[0].seq, owner_stat(o).seq);
}

/* perseas_roster returns no sizes; the event has them. */
TEST(a_change_of_the_roster_tells_both_sizes, struct told *told)
{
	const struct perseas_roster_change without = { .kind = PERSEAS_ROSTER_REMOVE,
		                                       .address = "sim://3" };

	assert_int_equal(owner_change(told->o, &without), 0);
	owner_complete(told->o);
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN, PERSEAS_EVENT_ROSTER);
	assert_string_equal(told->events[1].text,
	                    "the roster has 3 mirrors now, W = 2 (before: 4, W = 3)");
}

/* Another owner takes the store: its mirrors go one by one, and the end is told once. */
TEST(a_fence_is_told_once, struct told *told)
{
	struct owner *o = told->o;
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	unsigned fences = 0;
	perseas_t *other;

	options.flags = PERSEAS_TAKEOVER;
	o->d->cut_code = PS_LINK_FENCED;
	assert_int_equal(direct_open(o->d, STORE, &options, &other, &o->error), 0);
	assert_int_equal(owner_put_fenced(o, 0, 10, 1), PERSEAS_EFENCED);
	direct_keep(o->d, o->p);
	direct_keep(o->d, o->p);
	for (unsigned i = 0; i < told->count; i++)
		fences += told->events[i].kind == PERSEAS_EVENT_FENCED;
	assert_int_equal(fences, 1);
	o->d->cut_code = PS_LINK_BROKEN;
	owner_die(o);
	perseas_close(other);
}

/* The rules of so many mirrors change at the same time, and the owner's signs of life find that. */
static void set_rules(struct owner *o, unsigned mirrors, const struct access *rules)
{
	for (unsigned i = 0; i < mirrors; i++)
		stores_set_access(o->d->mirrors[i].stores, rules);
	for (unsigned rounds = 0; rounds < 4; rounds++) {
		o->d->now += 600000000;
		direct_keep(o->d, o->p);
	}
}

/* With four mirrors and W = 3 the loss of one mirror's rights is harmless. After the loss of two
 * the owner is told once, by an event and by errors, until they allow it again. */
TEST(rights_that_are_taken_are_told, struct told *told)
{
	static const char text[] = "allow uid:1 all\n";
	static const struct access_names no_names;
	struct owner *o = told->o;
	struct access_fault fault;
	struct access *rules = access_parse(text, strlen(text), &no_names, &fault);
	perseas_tx_t *tx;

	assert_non_null(rules);
	set_rules(o, 1, rules);
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	set_rules(o, 2, rules);
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN, PERSEAS_EVENT_DENIED);
	assert_string_equal(told->events[1].mirror, "sim://1");
	assert_non_null(strstr(told->events[1].text, "no longer allow this owner"));
	assert_non_null(strstr(told->events[1].text, "lacks the right \"read\" on store"));
	assert_int_equal(owner_put(o, 0, 10, 2), PERSEAS_EINDOUBT);
	assert_says(o,
	            "is held by 2 of 4 mirrors, and 3 must hold it: the access rules of mirrors no "
	            "longer allow this owner (sim://1: nobody lacks the right \"read\" on store");
	assert_int_equal(perseas_begin(o->p, 0, &tx), PERSEAS_EBLOCKED);
	assert_says(o, "no longer allow this owner (sim://1");
	EXPECT(told, PERSEAS_EVENT_IN_DOUBT);
	set_rules(o, 2, NULL);
	EXPECT(told, PERSEAS_EVENT_MIRROR_LIVE, PERSEAS_EVENT_MIRROR_LIVE, PERSEAS_EVENT_DURABLE);
	assert_int_equal(owner_put(o, 0, 10, 3), 0);
	access_free(rules);
}

/* The last event of those since the last look; they are forgotten. */
static const char *last_text(struct told *told, int kind)
{
	assert_true(told->count);
	assert_string_equal(perseas_event_name(told->events[told->count - 1].kind),
	                    perseas_event_name(kind));
	return told->events[told->count - 1].text;
}

/* Of four mirrors with W = 3, a single one that lost its memory is made anew by the others, and two
 * are not (I9). The owner is told once what to do, and once more when only one mirror has the
 * store. Its errors and the mirror's trouble say the same. */
TEST(memory_that_too_many_mirrors_lost_is_told, struct told *told)
{
	static const char save[] = "2 of 4 mirrors lost their memory, too many to make them anew";
	static const char write[] =
		"all mirrors lost their memory: this process has all that is left";
	struct owner *o = told->o;
	struct perseas_mirror_stat stat;

	direct_crash(o->d, 0);
	memory_heap_lose(o->d->mirrors[0].memory, NULL);
	direct_keep(o->d, o->p);
	owner_lose(o, 1);
	direct_keep(o->d, o->p);
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN, PERSEAS_EVENT_MIRROR_DOWN);
	direct_start(o->d, 0);
	OWNER_KEEP_UNTIL(o, told->count);
	assert_non_null(strstr(last_text(told, PERSEAS_EVENT_MEMORY_LOST), save));
	EXPECT(told, PERSEAS_EVENT_MEMORY_LOST);
	assert_int_equal(owner_put(o, 0, 10, 1), PERSEAS_EINDOUBT);
	assert_says(o, save);
	EXPECT(told, PERSEAS_EVENT_IN_DOUBT);
	assert_int_equal(perseas_mirror_stat(o->p, 0, &stat), 0);
	assert_non_null(strstr(stat.trouble, save));
	owner_lose(o, 2);
	owner_lose(o, 3);
	OWNER_KEEP_UNTIL(o, owner_state(o, 2) == PERSEAS_MIRROR_LOST &&
	                            owner_state(o, 3) == PERSEAS_MIRROR_LOST);
	direct_keep(o->d, o->p);
	assert_non_null(strstr(last_text(told, PERSEAS_EVENT_MEMORY_LOST), write));
	owner_die(o);
}

TEST(a_roster_changes, struct told *told)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REMOVE, "sim://3", NULL, 2,
		                                      0 };
	struct owner *o = told->o;

	assert_int_equal(owner_change(o, &wanted), 0);
	OWNER_KEEP_UNTIL(o, o->p->upkeep.change.stage == PS_CHANGE_NONE);
	assert_string_equal(told->events[told->count - 1].text,
	                    "the roster has 3 mirrors now, W = 2 (before: 4, W = 3)");
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN, PERSEAS_EVENT_ROSTER);
}

/* Nobody takes the events: the next one says how many were lost. */
TEST(events_that_are_not_told_are_counted, struct told *told)
{
	struct owner *o = told->o;

	for (unsigned i = 0; i < 50; i++) {
		o->d->mirrors[0].hold = o->d->mirrors[1].hold = DIRECT_HOLD_COMPLETIONS;
		o->d->mirrors[2].hold = DIRECT_HOLD_COMPLETIONS;
		assert_int_equal(owner_put(o, 0, 10, 1), PERSEAS_EINDOUBT);
		for (unsigned k = 0; k < 3; k++) {
			o->d->mirrors[k].hold = DIRECT_HOLD_NOTHING;
			direct_release(o->d, k, 1000);
		}
		assert_int_equal(perseas_flush(o->p), 0);
	}
	direct_keep(o->d, o->p);
	assert_int_equal(told->count, 64);
	assert_int_equal(told->events[63].missed, 0);
	told->count = 0;
	direct_crash(o->d, 1);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	EXPECT(told, PERSEAS_EVENT_MIRROR_DOWN);
	assert_int_equal(told->events[0].missed, 36);
}

TEST_WITH(every_event_has_a_name, NULL, NULL)
{
	for (int kind = PERSEAS_EVENT_MIRROR_DOWN; kind <= PERSEAS_EVENT_MEMORY_LOST; kind++)
		assert_string_not_equal(perseas_event_name(kind), "unknown");
	assert_string_equal(perseas_event_name(0), "unknown");
	assert_string_equal(perseas_event_name(PERSEAS_EVENT_MEMORY_LOST + 1), "unknown");
}

/* The mirrors are asked in one round, and their answers are taken in the next. */
static void give_signs(struct told *told)
{
	told->o->p->upkeep.next_heartbeat_at = 0;
	direct_keep(told->o->d, told->o->p);
	told->o->p->upkeep.next_heartbeat_at = 0;
}

/* Each mirror tells it, with each sign of life; and it may be asked for once more. */
TEST(a_handover_is_told_once, struct told *told)
{
	struct owner *o = told->o;

	ask_to_move(o, 1, o->p->epoch, 1);
	give_signs(told);
	EXPECT(told, PERSEAS_EVENT_HANDOVER);
	assert_string_equal(told->events[0].text,
	                    "store 'bank' must be handed over to beta: close this handle");
	ask_to_move(o, 0, o->p->epoch, 1);
	give_signs(told);
	EXPECT(told, 0);
	ask_to_move(o, 3, o->p->epoch, 2);
	give_signs(told);
	EXPECT(told, PERSEAS_EVENT_HANDOVER);
	give_signs(told);
	EXPECT(told, 0);
}
