/*
 * pager_sim.c - recovery on demand in a schedule: its thread is a task of the owner's process, and
 * asks mirrors over the simulated control connections. env_sim.c offers it to the library.
 */
#include "pager_sim.h"

#include "../../client/demand/demand.h"
#include "env_sim.h"
#include "mistakes.h"

#include <string.h>

enum { ANSWERS = 3, NOBODYS = 0xee };

struct source {
	bool leads;
	struct ps_address address;
	struct ps_control *control;
	bool asking;               /* answers are due */
	struct ps_missing missing; /* what was asked for */
	unsigned answered;
	Perseas__Reply *answers[ANSWERS];
};

struct ps_pager {
	struct sim_owner *owner;
	struct ps_demand *demand;
	bool woken;
	struct source sources[PS_MIRRORS_MAX];
};

static struct ps_pager *pager_begin(struct ps_env *env, void (*fn)(void *arg), void *arg,
                                    struct ps_error *error)
{
	struct sim_owner *o = (struct sim_owner *)env;
	struct ps_pager *pager = sim_alloc(o->world, sizeof(*pager));

	(void)error;
	pager->owner = o;
	pager->demand = arg;
	sim_task_begin(o, SIM_FETCHER, fn, arg);
	return pager;
}

static void pager_end(struct ps_pager *pager)
{
	sim_task_join(pager->owner, SIM_FETCHER);
}

static const char *pager_limit(const struct ps_pager *pager)
{
	(void)pager;
	return NULL;
}

static void pager_wake(struct ps_pager *pager)
{
	pager->woken = true;
	sim_owner_poke(pager->owner);
}

static int pager_look_up(struct ps_pager *pager, const struct ps_address *address,
                         struct ps_way *way, struct ps_error *error)
{
	(void)pager;
	(void)error;
	memset(way, 0, sizeof(*way));
	way->address = *address;
	return 0;
}

/* --- memory --- */

static int pager_cover(struct ps_pager *pager, uint8_t *base, uint64_t size)
{
	(void)pager;
	memset(base, NOBODYS, size);
	return 0;
}

static bool pager_fault(struct ps_pager *pager, uint64_t *address)
{
	(void)pager;
	(void)address;
	return false;
}

static bool pager_fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes, uint32_t length)
{
	memcpy(to, bytes, length);
	sim_count(pager->owner->world, SIM_FETCHED, 1);
	return true;
}

static void pager_refuse(struct ps_pager *pager, uint8_t *at, uint32_t length)
{
	(void)at;
	(void)length;
	sim_count(pager->owner->world, SIM_UNFETCHED, 1);
}

/* --- mirrors --- */

static void forget_answers(struct source *source)
{
	for (unsigned i = 0; i < source->answered; i++)
		perseas__reply__free_unpacked(source->answers[i], NULL);
	source->answered = 0;
}

static void pager_drop(struct ps_pager *pager, unsigned which)
{
	struct source *source = &pager->sources[which];

	forget_answers(source);
	sim_env_ops.disconnect(source->control);
	source->control = NULL;
	source->asking = false;
}

static void pager_lead(struct ps_pager *pager, unsigned which, const struct ps_way *way)
{
	struct source *source = &pager->sources[which];

	pager_drop(pager, which);
	source->leads = way != NULL;
	if (way)
		source->address = way->address;
}

static bool ask_status(struct source *source, const struct ps_missing *missing)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_error error;

	status.store = (char *)(uintptr_t)missing->store;
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &status;
	return !sim_env_ops.send(source->control, &request, &error);
}

static bool ask_bytes(struct source *source, const struct ps_missing *missing)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_error error;

	read.store = (char *)(uintptr_t)missing->store;
	read.region = missing->region;
	read.offset = missing->offset;
	read.length = missing->length;
	request.body_case = PERSEAS__REQUEST__BODY_READ;
	request.read = &read;
	return !sim_env_ops.send(source->control, &request, &error);
}

static bool pager_ask(struct ps_pager *pager, unsigned which, const struct ps_missing *missing)
{
	struct source *source = &pager->sources[which];
	struct ps_error error;

	if (!source->leads)
		return false;
	forget_answers(source);
	if (!source->control)
		source->control = sim_env_ops.connect(&pager->owner->env, &source->address, &error);
	source->asking = true;
	source->missing = *missing;
	return source->control && ask_status(source, missing) && ask_bytes(source, missing) &&
	       ask_status(source, missing);
}

static bool is_answer(const struct source *source, const Perseas__Reply *reply)
{
	return reply->status == PERSEAS__STATUS__STATUS_OK &&
	       reply->body_case == (source->answered == 1 ? PERSEAS__REPLY__BODY_READ
	                                                  : PERSEAS__REPLY__BODY_STORE);
}

/* The next answer, where it is there. */
static int take(struct source *source)
{
	unsigned count;
	int fds[PS_REGIONS_MAX];
	struct ps_error error;
	Perseas__Reply *reply;

	if (!sim_env_ops.answered(source->control))
		return 0;
	if (sim_env_ops.receive(source->control, 0, &reply, fds, &count, &error))
		return -1;
	if (!is_answer(source, reply)) {
		perseas__reply__free_unpacked(reply, NULL);
		return -1;
	}
	source->answers[source->answered++] = reply;
	return 1;
}

static int pager_answer(struct ps_pager *pager, unsigned which, struct ps_fetched *fetched)
{
	struct source *source = &pager->sources[which];

	while (source->answered < ANSWERS) {
		const int rc = take(source);

		if (rc <= 0)
			return rc;
	}
	source->asking = false;
	fetched->before = source->answers[0]->store->status;
	fetched->bytes = source->answers[1]->read->bytes;
	fetched->after = source->answers[2]->store->status;
	sim_mistake_fetched(pager->owner, &pager->demand->fetching[which].wanted, fetched);
	sim_mistake_late(pager->owner, pager->demand, which, &source->missing, fetched);
	return 1;
}

/* The dead wait for nobody. */
static void let_go(struct ps_pager *pager)
{
	struct ps_demand *d = pager->demand;

	pthread_mutex_lock(&d->lock);
	d->fenced = true;
	d->env->ops->broadcast(d->env, &d->change);
	pthread_mutex_unlock(&d->lock);
}

static void pager_sleep(struct ps_pager *pager, uint64_t until_ns)
{
	struct pollfd fds[PS_MIRRORS_MAX];
	struct sim_wait wait = { .until = until_ns, .sleeper = -1, .fds = fds };

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		if (pager->sources[i].asking && pager->sources[i].control)
			sim_env_ops.control_waits(pager->sources[i].control, &fds[wait.count++]);
	wait.flag = &pager->woken;
	if (pager->owner->dead)
		let_go(pager);
	sim_task_block(pager->owner, &wait);
	pager->woken = false;
}

const struct ps_pager_ops sim_pager_ops = {
	.granule = SIM_GRANULE,
	.begin = pager_begin,
	.end = pager_end,
	.limit = pager_limit,
	.wake = pager_wake,
	.look_up = pager_look_up,
	.cover = pager_cover,
	.fault = pager_fault,
	.fill = pager_fill,
	.refuse = pager_refuse,
	.lead = pager_lead,
	.drop = pager_drop,
	.ask = pager_ask,
	.answer = pager_answer,
	.sleep = pager_sleep,
};
