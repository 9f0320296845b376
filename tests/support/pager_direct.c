/*
 * pager_direct.c - the pager of pager_direct.h: a thread that is handed each of its turns, and asks
 * mirrors over control connections of env_direct.c.
 */
#include "pager_direct.h"

#include "../../client/core/demand.h"
#include "env_direct_private.h"

#include <assert.h>
#include <limits.h>
#include <semaphore.h>
#include <string.h>

enum { ANSWERS = 3, TURNS = 1000000 };

struct pager_gate pager_gate;

struct source {
	bool leads;
	struct ps_address address;
	struct ps_control *control;
	struct ps_missing missing;
	unsigned answered;
	Perseas__Reply *answers[ANSWERS];
};

struct ps_pager {
	struct ps_env *env;
	void (*fn)(void *arg);
	void *arg;
	pthread_t thread;
	sem_t turn, slept;
	bool ended;
	unsigned turns;
	struct source sources[PS_MIRRORS_MAX];
};

static struct ps_pager *current;

static void *run(void *arg)
{
	struct ps_pager *pager = arg;

	while (sem_wait(&pager->turn))
		;
	pager->fn(pager->arg);
	pager->ended = true;
	sem_post(&pager->slept);
	return NULL;
}

static void turn(struct ps_pager *pager)
{
	if (pager->ended)
		return;
	/* A test that waits for what cannot come ends. */
	assert(++pager->turns < TURNS);
	sem_post(&pager->turn);
	while (sem_wait(&pager->slept))
		;
}

static void direct_sleep(struct ps_pager *pager, uint64_t until_ns)
{
	(void)until_ns;
	sem_post(&pager->slept);
	while (sem_wait(&pager->turn))
		;
}

static struct ps_pager *direct_begin(struct ps_env *env, void (*fn)(void *arg), void *arg,
                                     struct ps_error *error)
{
	struct ps_pager *pager = calloc(1, sizeof(*pager));

	(void)error;
	assert(pager && !current);
	pager->env = env;
	pager->fn = fn;
	pager->arg = arg;
	sem_init(&pager->turn, 0, 0);
	sem_init(&pager->slept, 0, 0);
	if (pthread_create(&pager->thread, NULL, run, pager))
		abort();
	current = pager;
	return pager;
}

static void direct_end(struct ps_pager *pager)
{
	while (!pager->ended)
		turn(pager);
	pthread_join(pager->thread, NULL);
	sem_destroy(&pager->turn);
	sem_destroy(&pager->slept);
	free(pager);
	current = NULL;
}

static const char *direct_limit(const struct ps_pager *pager)
{
	(void)pager;
	return NULL;
}

static void direct_wake(struct ps_pager *pager)
{
	(void)pager;
}

static int direct_look_up(struct ps_pager *pager, const struct ps_address *address,
                          struct ps_way *way, struct ps_error *error)
{
	(void)pager;
	(void)error;
	memset(way, 0, sizeof(*way));
	way->address = *address;
	return 0;
}

/* --- memory --- */

static int direct_cover(struct ps_pager *pager, uint8_t *base, uint64_t size)
{
	(void)pager;
	memset(base, PAGER_NOBODYS, size);
	return 0;
}

static bool direct_fault(struct ps_pager *pager, uint64_t *address)
{
	(void)pager;
	(void)address;
	return false;
}

static bool direct_fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes, uint32_t length)
{
	(void)pager;
	memcpy(to, bytes, length);
	pager_gate.fills++;
	return true;
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
	struct source *source = &pager->sources[which];

	for (unsigned i = 0; i < source->answered; i++)
		perseas__reply__free_unpacked(source->answers[i], NULL);
	source->answered = 0;
	pager->env->ops->disconnect(source->control);
	source->control = NULL;
}

static void direct_lead(struct ps_pager *pager, unsigned which, const struct ps_way *way)
{
	struct source *source = &pager->sources[which];

	direct_drop(pager, which);
	source->leads = way != NULL;
	if (way)
		source->address = way->address;
}

/* Asked, and answered. */
static bool take(struct ps_pager *pager, struct source *source, const Perseas__Request *request,
                 Perseas__Reply__BodyCase kind)
{
	Perseas__Reply *reply;
	struct ps_error error;
	unsigned count;

	if (pager->env->ops->send(source->control, request, &error) ||
	    pager->env->ops->receive(source->control, 0, &reply, NULL, &count, &error))
		return false;
	source->answers[source->answered++] = reply;
	return reply->status == PERSEAS__STATUS__STATUS_OK && reply->body_case == kind;
}

static bool take_status(struct ps_pager *pager, struct source *source)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	status.store = (char *)(uintptr_t)source->missing.store;
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &status;
	return take(pager, source, &request, PERSEAS__REPLY__BODY_STORE);
}

static bool take_bytes(struct ps_pager *pager, struct source *source)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	read.store = (char *)(uintptr_t)source->missing.store;
	read.region = source->missing.region;
	read.offset = source->missing.offset;
	read.length = source->missing.length;
	request.body_case = PERSEAS__REQUEST__BODY_READ;
	request.read = &read;
	return take(pager, source, &request, PERSEAS__REPLY__BODY_READ);
}

static bool direct_ask(struct ps_pager *pager, unsigned which, const struct ps_missing *missing)
{
	struct source *source = &pager->sources[which];
	struct ps_error error;

	if (!source->leads || !(pager_gate.mirrors >> which & 1) ||
	    missing->offset >= pager_gate.below || !pager_gate.budget)
		return false;
	direct_drop(pager, which);
	source->control = pager->env->ops->connect(pager->env, &source->address, &error);
	source->missing = *missing;
	if (!source->control || !take_status(pager, source) || !take_bytes(pager, source))
		return false;
	pager_gate.asks++;
	pager_gate.budget--;
	return true;
}

static int direct_answer(struct ps_pager *pager, unsigned which, struct ps_fetched *fetched)
{
	struct source *source = &pager->sources[which];

	if (pager_gate.held >> which & 1)
		return 0;
	if (!take_status(pager, source))
		return -1;
	fetched->before = source->answers[0]->store->status;
	fetched->bytes = source->answers[1]->read->bytes;
	fetched->after = source->answers[2]->store->status;
	return 1;
}

static const struct ps_pager_ops ops = {
	.granule = PAGER_GRANULE,
	.begin = direct_begin,
	.end = direct_end,
	.limit = direct_limit,
	.wake = direct_wake,
	.look_up = direct_look_up,
	.cover = direct_cover,
	.fault = direct_fault,
	.fill = direct_fill,
	.refuse = direct_refuse,
	.lead = direct_lead,
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
	pager_gate = (struct pager_gate){ .mirrors = ~0U, .below = UINT64_MAX, .budget = UINT_MAX };
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
