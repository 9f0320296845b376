/*
 * pager_direct.c - the pager of pager_direct.h: its threads are coroutines that run in the turns
 * they are given, and ask mirrors over control connections of env_direct.c.
 */
#include "pager_direct.h"

#include "coroutine.h"
#include "env_direct_private.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

enum { TURNS = 1000000 };

struct pager_gate pager_gate;

struct ps_pager {
	struct ps_env *env;
	struct coroutine *lanes[PS_LANES];
	unsigned turns;
	struct pager_source sources[PS_SOURCES];
};

static struct ps_pager *current;

static bool have_ended(const struct ps_pager *pager)
{
	return coroutine_ended(pager->lanes[PS_FAULT_LANE]) &&
	       coroutine_ended(pager->lanes[PS_BULK_LANE]);
}

static void turn(struct ps_pager *pager)
{
	/* Ends a test that waits for something impossible. */
	assert(++pager->turns < TURNS);
	for (unsigned i = 0; i < PS_LANES; i++)
		if (!coroutine_ended(pager->lanes[i]))
			coroutine_resume(pager->lanes[i]);
}

static void direct_sleep(struct ps_pager *pager, enum ps_lane lane, uint64_t until_ns)
{
	(void)until_ns;
	coroutine_yield(pager->lanes[lane]);
}

static struct ps_pager *direct_begin(struct ps_env *env, void (*const lanes[PS_LANES])(void *arg),
                                     void *arg, struct ps_error *error)
{
	struct ps_pager *pager = calloc(1, sizeof(*pager));

	(void)error;
	assert(pager && !current);
	pager->env = env;
	for (unsigned i = 0; i < PS_LANES; i++)
		pager->lanes[i] = coroutine_new(lanes[i], arg);
	current = pager;
	return pager;
}

static void direct_end(struct ps_pager *pager)
{
	while (!have_ended(pager))
		turn(pager);
	for (unsigned i = 0; i < PS_LANES; i++)
		coroutine_free(pager->lanes[i]);
	free(pager);
	current = NULL;
}

static void direct_wake(struct ps_pager *pager, enum ps_lane lane)
{
	(void)pager;
	(void)lane;
}

/* --- memory --- */

static bool direct_cannot_watch(const struct ps_pager *pager)
{
	(void)pager;
	return false;
}

static int direct_cover(struct ps_pager *pager, uint8_t *base, uint64_t size, bool watch)
{
	(void)pager;
	(void)watch;
	memset(base, PAGER_NOBODYS, size);
	return 0;
}

static uint32_t direct_fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                            uint32_t length, bool watched)
{
	(void)pager;
	(void)watched;
	memcpy(to, bytes, length);
	pager_gate.fills++;
	return length;
}

static void direct_refuse(struct ps_pager *pager, uint8_t *at, uint32_t length)
{
	(void)pager;
	(void)at;
	(void)length;
}

/* --- mirrors --- */

static void direct_drop(struct ps_pager *pager, unsigned which)
{
	pager_source_drop(pager->env->ops, &pager->sources[which]);
}

static void direct_lead(struct ps_pager *pager, unsigned which,
                        const struct ps_known_addresses *way)
{
	pager_source_lead(pager->env->ops, &pager->sources[which], way);
}

static bool take_status(struct ps_pager *pager, struct pager_source *source)
{
	return pager_source_ask_status(pager->env->ops, source) &&
	       pager_source_take(pager->env->ops, source);
}

static bool direct_ask(struct ps_pager *pager, unsigned which,
                       const struct ps_fetch_request *missing)
{
	const struct ps_env_ops *env = pager->env->ops;
	struct pager_source *source = &pager->sources[which];
	struct ps_error error;

	if (!source->leads || !(pager_gate.mirrors >> which % PS_MIRRORS_MAX & 1) ||
	    !(pager_gate.lanes >> ps_source_lane(which) & 1) ||
	    missing->offset >= pager_gate.below || !pager_gate.budget)
		return false;
	direct_drop(pager, which);
	source->control = env->connect(pager->env, &source->address, &error);
	source->missing = *missing;
	if (!source->control || !take_status(pager, source) ||
	    !pager_source_ask_bytes(env, source) || !pager_source_take(env, source))
		return false;
	pager_gate.asks++;
	pager_gate.budget--;
	return true;
}

static int direct_answer(struct ps_pager *pager, unsigned which, struct ps_fetch_answer *fetched)
{
	struct pager_source *source = &pager->sources[which];

	if (pager_gate.held >> which % PS_MIRRORS_MAX & 1)
		return 0;
	if (!take_status(pager, source))
		return -1;
	pager_source_tell(source, fetched);
	return 1;
}

static const struct ps_pager_ops ops = {
	.granule = PAGER_GRANULE,
	.page = PAGER_GRANULE,
	.run = 1,
	.second_request_after_ns = PS_NEVER,
	.begin = direct_begin,
	.end = direct_end,
	.limitation_text = pager_has_no_limit,
	.wake = direct_wake,
	.look_up = pager_looks_up_nothing,
	.can_track_stores = direct_cannot_watch,
	.cover = direct_cover,
	.fault = pager_has_no_faults,
	.fill = direct_fill,
	.collapse = pager_gathers_all,
	.poison = direct_refuse,
	.set_source_address = direct_lead,
	.drop = direct_drop,
	.ask = direct_ask,
	.answer = direct_answer,
	.sleep = direct_sleep,
};

static void wait_a_turn(struct direct *d)
{
	pager_direct_turns(d, 1);
}

void pager_direct_use(struct direct *d)
{
	pager_gate = (struct pager_gate){
		.mirrors = ~0U, .lanes = ~0U, .below = UINT64_MAX, .budget = UINT_MAX
	};
	d->pager = &ops;
	d->on_wait = wait_a_turn;
}

void pager_direct_turns(struct direct *d, unsigned count)
{
	for (unsigned i = 0; i < count && current; i++) {
		d->now += 1000000;
		turn(current);
	}
}
