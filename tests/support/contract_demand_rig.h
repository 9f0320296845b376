/*
 * contract_demand_rig.h - what the clauses of contract_demand.c are written with: mirrors that say
 * what a clause wants them to, and an owner, which is a bare handle without a keeper.
 */
#ifndef PERSEAS_TESTS_CONTRACT_DEMAND_RIG_H
#define PERSEAS_TESTS_CONTRACT_DEMAND_RIG_H

#include "contract_demand.h"

#include "../../client/core/handle.h"
#include "../../client/demand/demand.h"
#include "../../client/keeper/exclusive.h"
#include "messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FAR 20000000000ULL /* ns: longer than anything here takes */

enum { SOURCES = 2, RUN = 4, GRANULES = 7, LAST = 7 /* bytes of the last */, ASKS = 64, EPOCH = 7 };

/* --- the mirrors --- */

struct source {
	bool held; /* its answer is there, and does not come yet */
	bool dead;
	uint64_t epoch; /* that its image is promised to */
	struct message_header *before, *after;
	Perseas__StoreStatus first, second;
	Perseas__Slot slot;
	uint8_t *bytes;
	uint32_t length;
};

/* What a lane asked for, in this order. */
struct asking {
	unsigned count;
	uint64_t granules[ASKS];
};

/* With its lock: the threads that fetch are other ones. */
static struct script {
	pthread_mutex_t lock;
	struct source sources[PS_LANES][SOURCES];
	struct asking asking[PS_LANES];
	const struct ps_pager_ops *real;
	struct ps_pager_ops ops;
	struct ps_pager *pager;
	struct ps_env *env;
	uint8_t age; /* of what mirrors have */
	unsigned fills, filled, deaths;
	uint64_t come;         /* bytes, of whatever was asked for */
	uint64_t slow;         /* so long a fill waits before it happens, ns */
	bool touched;          /* memory has zeros in it before it is mapped */
	void (*answers)(void); /* called when the next answer is there; or NULL */
} script = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint8_t byte(uint64_t i, uint8_t age)
{
	return (uint8_t)(i * 7 + (i >> 7) + age);
}

static void rest(enum ps_sleeper who, uint64_t ns)
{
	const uint64_t until = script.env->ops->now(script.env) + ns;

	while (script.env->ops->now(script.env) < until)
		script.env->ops->pause(script.env, who, NULL, 0, until);
}

static void script_lead(struct ps_pager *pager, unsigned which,
                        const struct ps_known_addresses *way)
{
	(void)pager;
	(void)which;
	(void)way;
}

static void script_drop(struct ps_pager *pager, unsigned which)
{
	(void)pager;
	(void)which;
}

static struct source *source_of(unsigned which)
{
	return &script.sources[ps_source_lane(which)][which % PS_MIRRORS_MAX];
}

static bool script_ask(struct ps_pager *pager, unsigned which,
                       const struct ps_fetch_request *missing)
{
	struct asking *asking = &script.asking[ps_source_lane(which)];
	struct source *source = source_of(which);
	bool asked;

	pthread_mutex_lock(&script.lock);
	asked = !source->dead && asking->count < ASKS;
	if (asked) {
		asking->granules[asking->count++] = missing->offset / script.ops.granule;
		source->before->header.promised_epoch = source->slot.epoch = source->epoch;
		source->length = missing->length;
		for (uint32_t i = 0; i < missing->length; i++)
			source->bytes[i] = byte(missing->offset + i, script.age);
	}
	pthread_mutex_unlock(&script.lock);
	/* The answer has come. */
	if (asked)
		script.real->wake(pager, ps_source_lane(which));
	return asked;
}

static int script_answer(struct ps_pager *pager, unsigned which, struct ps_fetch_answer *fetched)
{
	struct source *source = source_of(which);
	void (*answers)(void) = NULL;
	int rc;

	(void)pager;
	pthread_mutex_lock(&script.lock);
	source->after->header.promised_epoch = source->epoch;
	*fetched = (struct ps_fetch_answer){ .before = &source->first,
		                             .after = &source->second,
		                             .bytes = { source->length, source->bytes } };
	rc = source->dead ? -1 : !source->held;
	script.deaths += source->dead;
	if (rc > 0) {
		answers = script.answers;
		script.answers = NULL;
	}
	pthread_mutex_unlock(&script.lock);
	if (answers)
		answers();
	return rc;
}

static uint64_t script_come(struct ps_pager *pager, unsigned which)
{
	uint64_t come;

	(void)pager;
	(void)which;
	pthread_mutex_lock(&script.lock);
	come = script.come;
	pthread_mutex_unlock(&script.lock);
	return come;
}

/* More of what is held has come. */
static void go_on(uint64_t bytes)
{
	pthread_mutex_lock(&script.lock);
	script.come += bytes;
	pthread_mutex_unlock(&script.lock);
}

static uint32_t script_fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                            uint32_t length, bool watched)
{
	uint32_t filled;

	pthread_mutex_lock(&script.lock);
	script.fills++;
	pthread_mutex_unlock(&script.lock);
	if (script.slow)
		rest(PS_COMMITTER, script.slow);
	filled = script.real->fill(pager, to, bytes, length, watched);
	pthread_mutex_lock(&script.lock);
	script.filled++;
	pthread_mutex_unlock(&script.lock);
	return filled;
}

static unsigned count_of(const unsigned *count)
{
	unsigned is;

	pthread_mutex_lock(&script.lock);
	is = *count;
	pthread_mutex_unlock(&script.lock);
	return is;
}

static unsigned asks(enum ps_lane lane)
{
	return count_of(&script.asking[lane].count);
}

static bool asked_in_order(enum ps_lane lane, const uint64_t *order, unsigned count)
{
	return asks(lane) == count &&
	       !memcmp(script.asking[lane].granules, order, count * sizeof(order[0]));
}

static unsigned fills(void)
{
	return count_of(&script.fills);
}

static bool none_is_filling(void)
{
	bool none;

	pthread_mutex_lock(&script.lock);
	none = script.fills == script.filled;
	pthread_mutex_unlock(&script.lock);
	return none;
}

/* What a mirror does from now on, as the lane reaches it. */
static void set(enum ps_lane lane, unsigned mirror, bool held, bool dead)
{
	pthread_mutex_lock(&script.lock);
	script.sources[lane][mirror].held = held;
	script.sources[lane][mirror].dead = dead;
	pthread_mutex_unlock(&script.lock);
	script.ops.wake(script.pager, lane);
}

/* All of them at once, so that none is asked for what another one did not give. */
static void set_lane(enum ps_lane lane, bool held, bool dead)
{
	pthread_mutex_lock(&script.lock);
	for (unsigned i = 0; i < SOURCES; i++) {
		script.sources[lane][i].held = held;
		script.sources[lane][i].dead = dead;
	}
	pthread_mutex_unlock(&script.lock);
	script.ops.wake(script.pager, lane);
}

static void set_all(bool held, bool dead)
{
	set_lane(PS_FAULT_LANE, held, dead);
	set_lane(PS_BULK_LANE, held, dead);
}

/* It is promised to the same owner, with another epoch. */
static void promise(unsigned mirror, uint64_t epoch)
{
	pthread_mutex_lock(&script.lock);
	for (unsigned lane = 0; lane < PS_LANES; lane++)
		script.sources[lane][mirror].epoch = epoch;
	pthread_mutex_unlock(&script.lock);
}

/* Transactions have changed every byte since. */
static void age(void)
{
	pthread_mutex_lock(&script.lock);
	script.age++;
	pthread_mutex_unlock(&script.lock);
}

/* True: it is so many, or more, in the end. */
static bool comes_to(const unsigned *count, unsigned many)
{
	const uint64_t until = script.env->ops->now(script.env) + FAR;

	while (count_of(count) < many && script.env->ops->now(script.env) < until)
		rest(PS_KEEPER, 1000000);
	return count_of(count) >= many;
}

/* True: it is so many, and no more. */
static bool becomes(const unsigned *count, unsigned many)
{
	return comes_to(count, many) && count_of(count) == many;
}

static bool asked(enum ps_lane lane, unsigned many)
{
	return becomes(&script.asking[lane].count, many);
}

/* So many answers will not come. */
static bool died(unsigned many)
{
	return becomes(&script.deaths, many);
}

static bool filled(unsigned many)
{
	return becomes(&script.fills, many);
}

static struct ps_pager *script_begin(struct ps_env *env, void (*const lanes[PS_LANES])(void *arg),
                                     void *arg, struct ps_error *error)
{
	script.pager = script.real->begin(env, lanes, arg, error);
	return script.pager;
}

static void make_source(struct source *source)
{
	*source = (struct source){ .epoch = EPOCH,
		                   .before = message_header_new(),
		                   .after = message_header_new(),
		                   .bytes = malloc((size_t)script.real->granule * RUN) };
	perseas__store_status__init(&source->first);
	perseas__store_status__init(&source->second);
	perseas__slot__init(&source->slot);
	source->first.header = &source->before->header;
	source->second.header = &source->after->header;
	source->first.slot = &source->slot;
	if (!source->bytes)
		abort();
}

static void free_source(struct source *source)
{
	free(source->before);
	free(source->after);
	free(source->bytes);
}

/* --- the owner --- */

struct owner {
	struct demand_stage *stage;
	struct perseas *p;
	struct ps_segment segment;
	uint64_t granule; /* bytes */
};

static void step(struct owner *o)
{
	ps_admin_enter(o->p);
	ps_demand_step(o->p);
	ps_admin_leave(o->p);
}

static uint64_t pages(const struct owner *o)
{
	return (o->segment.size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
}

static bool map(struct owner *o)
{
	void *at = mmap(NULL, pages(o), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	if (script.touched) {
		(void)mlock(at, pages(o));
		memset(at, 0, pages(o));
	}
	o->segment.base = at;
	return ps_demand_map(o->p, &o->segment, NULL);
}

static void unmap(struct owner *o)
{
	ps_demand_unmap(o->p, &o->segment);
	munmap(o->segment.base, pages(o));
	o->segment.base = NULL;
}

/* A bare handle whose mirrors are sources. */
static struct perseas *handle_new(struct demand_stage *s)
{
	struct perseas *p = calloc(1, sizeof(*p));
	const Perseas__Header *header = &script.sources[0][0].before->header;

	if (!p)
		abort();
	p->env = s->env;
	strcpy(p->store, header->store);
	memcpy(p->store_id, header->store_id.data, PS_ID_SIZE);
	memcpy(p->owner, header->promised_owner.data, PS_ID_SIZE);
	p->options.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	p->options.connect_timeout_ms = FAR / 1000000;
	p->epoch = EPOCH;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->commit.wait_line.changed, NULL);
	p->mirror_count = SOURCES;
	for (unsigned i = 0; i < SOURCES; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (ps_address_parse(s->address, &m->address, NULL))
			abort();
		m->is_image_in_roster = true;
		memcpy(m->image_id, header->image_id.data, PS_ID_SIZE);
	}
	return p;
}

/* Opened, and nothing is mapped. */
static bool begin(struct demand_stage *s, struct owner *o)
{
	script.real = s->env->pager;
	script.ops = *script.real;
	script.ops.second_request_after_ns = PS_NEVER;
	script.ops.run = 1;
	script.ops.can_move = NULL;
	script.ops.begin = script_begin;
	script.ops.set_source_address = script_lead;
	script.ops.drop = script_drop;
	script.ops.ask = script_ask;
	script.ops.answer = script_answer;
	script.ops.received_bytes = script_come;
	script.ops.fill = script_fill;
	script.env = s->env;
	script.age = 0;
	script.fills = script.filled = script.deaths = 0;
	memset(script.asking, 0, sizeof(script.asking));
	script.come = 0;
	script.slow = 0;
	script.touched = false;
	script.answers = NULL;
	for (unsigned i = 0; i < PS_LANES * SOURCES; i++)
		make_source(&script.sources[i / SOURCES][i % SOURCES]);
	s->env->pager = &script.ops;
	*o = (struct owner){ .stage = s, .p = handle_new(s), .granule = script.ops.granule };
	o->segment.size = (GRANULES - 1) * o->granule + LAST;
	ps_demand_begin(o->p);
	return o->p->demand != NULL;
}

static void end(struct owner *o)
{
	if (o->segment.base)
		unmap(o);
	ps_demand_end(o->p);
	o->stage->env->pager = script.real;
	pthread_cond_destroy(&o->p->commit.wait_line.changed);
	pthread_mutex_destroy(&o->p->lock);
	free(o->p->report.text);
	free(o->p);
	for (unsigned i = 0; i < PS_LANES * SOURCES; i++)
		free_source(&script.sources[i / SOURCES][i % SOURCES]);
}

/* All of it, as it was of this age. */
static bool has(const struct owner *o, uint8_t of)
{
	for (uint64_t i = 0; i < o->segment.size; i++)
		if (o->segment.base[i] != byte(i, of))
			return false;
	return true;
}

static bool want(struct owner *o, uint64_t granule)
{
	return ps_demand_request(o->p, &o->segment, granule * o->granule, 1);
}

static int look(struct owner *o, uint64_t i)
{
	return o->stage->look(o->p, o->segment.base + i);
}

static bool comes(struct owner *o)
{
	return !perseas_wait_whole(o->p, FAR / 1000000);
}

static bool does_not_come(struct owner *o)
{
	const int64_t ms = (int64_t)(o->stage->short_ns / 1000000);

	return perseas_wait_whole(o->p, ms) == PERSEAS_EUNREACHABLE;
}

#endif
