/*
 * owner.h - what the tests of the library share: mirrors in this process, one owner, one segment.
 */
#ifndef PERSEAS_TESTS_OWNER_H
#define PERSEAS_TESTS_OWNER_H

#include "../support/env_direct.h"
#include "../../client/core/handle.h"
#include "../../client/keeper/change.h"
#include "../../client/keeper/exclusive.h"
#include "../support/unit.h"

#define STORE "bank"

enum { SIZE = 3000 };

struct owner {
	struct direct *d;
	perseas_t *p;
	uint8_t *bytes; /* of segment "accounts" */
	struct perseas_options options;
	struct ps_error error; /* of the last open or create */
};

static inline struct owner *owner_new(unsigned mirrors)
{
	struct owner *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	o->d = direct_new(mirrors, 1);
	assert_non_null(o->d);
	o->options = (struct perseas_options)PERSEAS_OPTIONS_INIT;
	o->options.log_size = 64 * 1024;
	o->options.ring_size = 256 * 1024;
	o->options.spin_us = UINT32_MAX;
	return o;
}

static inline void owner_close(struct owner *o)
{
	perseas_close(o->p);
	o->p = NULL;
	o->bytes = NULL;
}

/* Frees the owner. NULL is allowed. */
static inline void owner_free(struct owner *o)
{
	if (unit_state && *unit_state == o)
		*unit_state = NULL;
	if (!o)
		return;
	owner_close(o);
	direct_free(o->d);
	free(o);
}

/* Lets the test's teardown, owner_teardown, free an owner that the test made itself. Frees the one
 * that the test made before. */
static inline struct owner *owner_of_test(struct owner *o)
{
	owner_free(*unit_state);
	*unit_state = o;
	return o;
}

/* Opens the store as another owner. The previous handle is gone. */
static inline int owner_open(struct owner *o, uint32_t flags)
{
	struct perseas_options options = o->options;

	owner_close(o);
	options.flags |= flags;
	return direct_open(o->d, STORE, &options, &o->p, &o->error);
}

static inline void owner_map(struct owner *o)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
	o->bytes = addr;
}

/* Opens it with all that is needed for transactions. */
static inline void owner_reopen(struct owner *o)
{
	if (owner_open(o, PERSEAS_TAKEOVER))
		fail_msg("%s", o->error.text);
	owner_map(o);
}

/* Creates the store, with a segment that is published. */
static inline void owner_begin(struct owner *o)
{
	void *addr;

	if (owner_open(o, PERSEAS_CREATE))
		fail_msg("%s", o->error.text);
	assert_int_equal(perseas_map(o->p, "accounts", SIZE, &addr), 0);
	o->bytes = addr;
	for (unsigned i = 0; i < SIZE; i++)
		o->bytes[i] = (uint8_t)(i * 7);
	assert_int_equal(perseas_publish(o->p), 0);
}

static inline perseas_tx_t *owner_tx(struct owner *o)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	return tx;
}

/* Begins a transaction that changes `length` bytes at `offset` to `value`. */
static inline perseas_tx_t *owner_begin_put(struct owner *o, unsigned offset, unsigned length,
                                            uint8_t value)
{
	perseas_tx_t *tx = owner_tx(o);

	assert_int_equal(perseas_set_range(tx, o->bytes + offset, length), 0);
	memset(o->bytes + offset, value, length);
	return tx;
}

/* Sets `length` bytes at `offset` to `value` in one transaction. */
static inline int owner_put(struct owner *o, unsigned offset, unsigned length, uint8_t value)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(o->p, 0, &tx);

	if (rc)
		return rc;
	assert_int_equal(perseas_set_range(tx, o->bytes + offset, length), 0);
	memset(o->bytes + offset, value, length);
	rc = perseas_commit(tx, 0);
	if (rc == PERSEAS_EBLOCKED)
		perseas_abort(tx);
	return rc;
}

/* Cuts all connections at once and closes the handle, as a crash would. */
static inline void owner_die(struct owner *o)
{
	for (unsigned i = 0; i < o->d->count; i++) {
		direct_cut(o->d, i);
		o->d->mirrors[i].hold = DIRECT_HOLD_NOTHING;
		o->d->mirrors[i].writes_left = -1;
	}
	owner_close(o);
}

/* The owner dies, and the next one opens the store. */
static inline void owner_next(struct owner *o)
{
	owner_die(o);
	owner_reopen(o);
}

static inline enum perseas_mirror_state owner_state(struct owner *o, unsigned mirror)
{
	struct perseas_mirror_stat stat;

	assert_int_equal(perseas_mirror_stat(o->p, mirror, &stat), 0);
	return stat.state;
}

/* The keeper goes its rounds until the condition holds. */
#define OWNER_KEEP_UNTIL(o, condition)                              \
	do {                                                        \
		for (unsigned rounds = 0; !(condition); rounds++) { \
			if (rounds == 1000)                         \
				fail_msg("never: %s", #condition);  \
			direct_keep((o)->d, (o)->p);                \
		}                                                   \
	} while (0)

/* Returns a piece of a mirror's image, such as "log", of any generation. */
static inline uint8_t *owner_piece(struct owner *o, unsigned mirror, const char *piece)
{
	uint8_t *bytes = NULL;
	char name[40];

	for (unsigned generation = 1; !bytes && generation < 100; generation++) {
		snprintf(name, sizeof(name), "%s.%u", piece, generation);
		bytes = memory_heap_piece(o->d->mirrors[mirror].memory, STORE, name, NULL);
	}
	if (!bytes)
		fail_msg("mirror %u has no %s", mirror, piece);
	return bytes;
}

/* The keeper goes its rounds until the mirror is in this state. */
static inline void owner_keep(struct owner *o, unsigned mirror, enum perseas_mirror_state state)
{
	for (unsigned rounds = 0; owner_state(o, mirror) != state; rounds++) {
		if (rounds == 1000)
			fail_msg("mirror %u is %s, not %s", mirror,
			         perseas_mirror_state_name(owner_state(o, mirror)),
			         perseas_mirror_state_name(state));
		direct_keep(o->d, o->p);
	}
}

/* The keeper goes its rounds until all mirrors are live. */
static inline void owner_keep_all(struct owner *o)
{
	for (unsigned i = 0; i < o->d->count; i++)
		owner_keep(o, i, PERSEAS_MIRROR_LIVE);
}

static inline struct perseas_stat owner_stat(struct owner *o)
{
	struct perseas_stat stat;

	assert_int_equal(perseas_stat(o->p, &stat), 0);
	return stat;
}

/* Calls act(o) in every pause of the owner. */
static inline void owner_at_pause(struct owner *o, void (*act)(void *owner))
{
	o->d->on_pause = act;
	o->d->on_pause_arg = o;
}

/* Another owner takes the store over from this one, which does not know of it yet. */
static inline perseas_t *owner_rival(struct owner *o)
{
	struct perseas_options options = o->options;
	perseas_t *rival;

	options.flags |= PERSEAS_TAKEOVER;
	if (direct_open(o->d, STORE, &options, &rival, &o->error))
		fail_msg("%s", o->error.text);
	return rival;
}

/* For d->on_pause: runs the keeper while the application waits. */
static inline void owner_keep_beside(void *arg)
{
	struct owner *o = arg;

	direct_keep(o->d, o->p);
}

/* For d->on_pause: runs the keeper in a pause of a call that holds the lock. */
static inline void owner_keep_unlocked(void *arg)
{
	struct owner *o = arg;

	o->d->on_pause = NULL;
	pthread_mutex_unlock(&o->p->lock);
	direct_keep(o->d, o->p);
	pthread_mutex_lock(&o->p->lock);
	o->d->on_pause = owner_keep_unlocked;
}

/* Commits as an owner that a living one has fenced on all mirrors. */
static inline int owner_put_fenced(struct owner *o, unsigned offset, unsigned length, uint8_t value)
{
	int rc;

	owner_at_pause(o, owner_keep_beside);
	rc = owner_put(o, offset, length, value);
	o->d->on_pause = NULL;
	return rc;
}

/* Begins a change of the roster as perseas_roster does; the test runs the keeper's rounds. */
static inline int owner_change(struct owner *o, const struct perseas_roster_change *wanted)
{
	int rc;

	ps_admin_enter(o->p);
	rc = ps_change_begin(o->p, wanted, NULL);
	ps_admin_leave(o->p);
	return rc;
}

/* The keeper goes its rounds until the change of the roster is at this stage. */
static inline void owner_keep_stage(struct owner *o, enum ps_change_stage stage)
{
	const struct ps_change *change = &o->p->upkeep.change;

	for (unsigned rounds = 0; change->stage != stage; rounds++) {
		if (rounds == 1000)
			fail_msg("stage %d: %s", change->stage, change->text);
		direct_keep(o->d, o->p);
	}
}

/* The keeper goes its rounds until the change of the roster is done. */
static inline void owner_complete(struct owner *o)
{
	owner_keep_stage(o, PS_CHANGE_NONE);
	if (o->p->upkeep.change.result_code)
		fail_msg("%s", o->p->upkeep.change.text);
}

/* Checks that the message of the handle's last error contains the words. */
static inline void assert_says(struct owner *o, const char *words)
{
	if (!strstr(perseas_message(o->p), words))
		fail_msg("'%s' does not say '%s'", perseas_message(o->p), words);
}

static inline void assert_error_says(struct owner *o, const char *words)
{
	if (!strstr(o->error.text, words))
		fail_msg("'%s' does not say '%s'", o->error.text, words);
}

/* The host of a mirror restarts, and its memory is lost. */
static inline void owner_lose(struct owner *o, unsigned mirror)
{
	direct_crash(o->d, mirror);
	memory_heap_lose(o->d->mirrors[mirror].memory, NULL);
	direct_start(o->d, mirror);
}

/* Holds back the answers of all mirrors but the first; if `what` is 0, lets them go. */
static inline void owner_hold(struct owner *o, enum direct_hold what)
{
	for (unsigned i = 1; i < o->d->count; i++) {
		o->d->mirrors[i].hold = what;
		if (!what)
			direct_release(o->d, i, UINT32_MAX);
	}
}

/* Breaks the first mirror's session when it is asked to confirm, and lets much time pass. */
static inline void owner_die_at_the_question(void *arg)
{
	struct direct *d = arg;

	d->mirrors[0].break_at = PERSEAS__REQUEST__BODY_CONFIRM;
	d->now += 1000 * 1000000ULL; /* so that the owner does not try for ever */
}

/* Another owner claims all mirrors, and is gone before it adopts one. */
static inline void owner_claimed_and_left(struct owner *o)
{
	struct perseas_options options = o->options;
	perseas_t *second;

	options.flags = PERSEAS_TAKEOVER;
	options.open_timeout_ms = 1;
	o->d->on_pause = owner_die_at_the_question;
	o->d->on_pause_arg = o->d;
	owner_die_at_the_question(o->d);
	assert_true(direct_open(o->d, STORE, &options, &second, &o->error) < 0);
	o->d->on_pause = NULL;
	o->d->mirrors[0].break_at = 0;
}

/* Sets up this owner, with its store. */
static inline int owner_setup_of(void **state, struct owner *o)
{
	owner_begin(o);
	*state = o;
	return 0;
}

/* Tells the mirror that the owner of that epoch must hand the store over to standby `number`. */
static inline void ask_to_move(struct owner *o, unsigned mirror, uint64_t epoch, uint8_t number)
{
	Perseas__MoveRequest ask = PERSEAS__MOVE_REQUEST__INIT;
	uint8_t id[PS_ID_SIZE] = { number }, to[PS_OWNER_MARK] = { number };
	struct why why;

	ask.store = (char *)(uintptr_t)STORE;
	ask.id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	ask.epoch = epoch;
	ask.to = (ProtobufCBinaryData){ PS_OWNER_MARK, to };
	ask.name = (char *)(uintptr_t) "beta";
	ask.within_ms = 1000;
	assert_int_equal(store_move(o->d->mirrors[mirror].stores, &ask, &why), 0);
}

/* Sets up an owner with `mirrors` mirrors and W = acks (0: the majority). */
static inline int owner_setup(void **state, unsigned mirrors, uint32_t acks)
{
	struct owner *o = owner_new(mirrors);

	o->options.acks = acks;
	return owner_setup_of(state, o);
}

static inline int owner_setup_one(void **state)
{
	return owner_setup(state, 1, 0);
}

static inline int owner_setup_three(void **state)
{
	return owner_setup(state, 3, 0);
}

static inline int owner_teardown(void **state)
{
	owner_free(*state);
	return 0;
}

#endif
