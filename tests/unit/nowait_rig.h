/*
 * nowait_rig.h - an owner of three mirrors whose commits nobody waits for, and mirrors that hold
 * back what they are sent.
 */
#ifndef PERSEAS_TESTS_NOWAIT_RIG_H
#define PERSEAS_TESTS_NOWAIT_RIG_H

#include "resync_rig.h"

#include "../../client/core/nowait.h"

static unsigned doubts, settled;
static uint64_t doubtful;

static inline void note(void *arg, const struct perseas_event *event)
{
	(void)arg;
	doubts += event->kind == PERSEAS_EVENT_IN_DOUBT;
	settled += event->kind == PERSEAS_EVENT_DURABLE;
	if (event->kind == PERSEAS_EVENT_IN_DOUBT)
		doubtful = event->seq;
}

static inline void hold_all(struct owner *o, enum direct_hold how)
{
	for (unsigned i = 0; i < o->d->count; i++)
		o->d->mirrors[i].hold = how;
}

static inline void let_go(struct owner *o, unsigned mirror)
{
	o->d->mirrors[mirror].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, mirror, 100000);
}

static inline void let_all_go(struct owner *o)
{
	for (unsigned i = 0; i < o->d->count; i++)
		let_go(o, i);
}

/* Lets all mirrors complete what they were sent, which is all that was committed. */
static inline void complete_all(struct owner *o)
{
	let_all_go(o);
	assert_int_equal(perseas_flush(o->p), 0);
}

/* Posts one transaction, or aborts it if it cannot be posted. */
static inline int post_with(struct owner *o, unsigned flags, unsigned offset, unsigned length,
                            uint8_t value, struct perseas_token *token)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(o->p, 0, &tx);

	if (rc)
		return rc;
	assert_int_equal(perseas_set_range(tx, o->bytes + offset, length), 0);
	memset(o->bytes + offset, value, length);
	rc = perseas_commit_token(tx, flags, token);
	if (rc == PERSEAS_EBLOCKED || rc == PERSEAS_EAGAIN)
		perseas_abort(tx);
	return rc;
}

static inline struct perseas_token post(struct owner *o, uint8_t value)
{
	struct perseas_token token = { 0, 0 };

	assert_int_equal(post_with(o, PERSEAS_NOWAIT, 0, 10, value, &token), 0);
	return token;
}

static inline int setup_noted(void **state)
{
	struct owner *o = owner_new(3);

	o->options.on_event = note;
	doubts = settled = 0;
	doubtful = 0;
	return owner_setup_of(state, o);
}

#endif
