/*
 * straight.c - see straight.h. What is read in which order is client/demand/direct_reader.c's to
 * say; when it happens, and what the memory has by then, is the simulator's.
 */
#include "straight.h"

#include "../../client/demand/direct_reader.h"
#include "../../server/store/store_private.h"
#include "fabric_sim.h"
#include "mirror.h"
#include "mistakes.h"
#include "schedule.h"

enum { HANGS = 15 }; /* percent of runs */

/* --- the fabrics --- */

static const uint8_t *part_of(const struct piece *piece, uint64_t offset, uint64_t length)
{
	if (!piece->base || length > piece->size || offset > piece->size - length)
		return NULL;
	return piece->base + offset;
}

/* Returns the mirror's memory, or NULL if it has none there now. */
static const uint8_t *memory_of(const struct ps_link *link, uint32_t region, uint64_t offset,
                                uint64_t length)
{
	const struct sim_mirror *m = link->mirror;
	const struct store *store;

	if (region >= PS_REGIONS_MAX)
		return NULL;
	if (link->memory)
		return part_of(&link->memory->pieces[region], offset, length);
	store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;
	return store ? part_of(&store->image.regions[region], offset, length) : NULL;
}

/* Returns true if the mirror's promise is this owner's. Over `stream` the mirror itself ends
 * sessions of other owners. */
static bool is_promised(const struct ps_link *link)
{
	const struct ps_promise *promise;

	if (!link->memory)
		return link->session && link->session->open && !link->broken;
	promise = (const void *)link->memory->pieces[PS_REGION_PROMISE].base;
	return promise->epoch == link->epoch;
}

/* Most often little time passes, and sometimes so much that others open the store meanwhile. */
static void let_pass(struct sim_owner *o)
{
	static const uint64_t most[] = { 0, 10 * SIM_US, SIM_MS, 20 * SIM_MS };
	uint64_t time;

	if (o->world->schedule->ending)
		return;
	time = sim_below(o->world, most[sim_below(o->world, 4)]);
	if (time)
		sim_owner_sleep(o, time);
}

static int read_parts(const struct ps_link *link, uint32_t region, uint64_t offset, uint8_t *to,
                      uint64_t length)
{
	struct sim_owner *o = link->owner;

	for (uint64_t done = 0, part; done < length; done += part) {
		const uint8_t *from = memory_of(link, region, offset, length);

		if (!from)
			return PS_LINK_BROKEN;
		part = sim_chance(o->world, 50) ? length - done
		                                : sim_between(o->world, 1, length - done);
		memcpy(to + done, from + done, part);
		let_pass(o);
	}
	return PS_LINK_OK;
}

static int peek(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                uint64_t length)
{
	struct sim_owner *o = link->owner;
	bool promised;
	int rc;

	if (link->detached)
		sim_fail(o->world, "owner %u reads mirror %u by a link that has ended", o->index,
		         link->mirror->index);
	promised = is_promised(link);
	link->peeks++;
	rc = read_parts(link, region, offset, bytes, length);
	link->peeks--;
	if (!sim_mistake_is(o->world, SIM_MISTAKE_PROMISED_BEFORE))
		promised = is_promised(link);
	return promised ? rc : PS_LINK_BROKEN;
}

/* Returns the link for counting its readers, which changes nothing else of it. */
static struct ps_link *counted(const struct ps_link *link)
{
	return (struct ps_link *)(uintptr_t)link;
}

int sim_shared_peek(const struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                    uint64_t length)
{
	return peek(counted(link), region, offset, bytes, length);
}

int sim_stream_peek(const struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                    uint64_t length)
{
	return peek(counted(link), region, offset, bytes, length);
}

void sim_straight_ends(const struct ps_link *link)
{
	const struct sim_owner *o = link->owner;

	if (link->peeks)
		sim_fail(o->world, "a link of owner %u to mirror %u ends while it is read",
		         o->index, link->mirror->index);
}

/* --- threads that read --- */

void sim_reader_init(struct sim_reader *reader, struct sim_owner *o, unsigned which, bool *wakes)
{
	reader->owner = o;
	reader->which = which;
	reader->wakes = wakes;
}

static void fetch(struct sim_reader *reader)
{
	ps_direct_read(&reader->fetch, reader->block, &reader->seen);
	sim_mistake_peeked(reader->owner, &reader->fetch, &reader->seen);
	reader->done = true;
	*reader->wakes = true;
	sim_owner_poke(reader->owner);
}

/* Some memory hangs for a while. */
static void run(void *arg)
{
	struct sim_reader *reader = arg;
	struct sim_owner *o = reader->owner;
	const struct sim_wait wait = { .until = PS_NEVER, .sleeper = -1, .flag = &reader->go };

	for (;;) {
		while (!reader->go)
			sim_task_block(o, &wait);
		reader->go = false;
		if (reader->quit)
			return;
		if (!o->world->schedule->ending && sim_chance(o->world, HANGS))
			sim_owner_sleep(o, sim_between(o->world, 50, 2000) * SIM_MS);
		fetch(reader);
	}
}

int sim_reader_hire(struct sim_reader *reader)
{
	struct sim_owner *o = reader->owner;
	struct sim_world *w = o->world;

	if (!w->schedule->direct_link || reader->which >= SIM_MIRRORS_MAX || sim_chance(w, 10))
		return -1;
	/* Waits until the reader has begun. */
	sim_owner_sleep(o, sim_below(w, SIM_MS));
	sim_task_begin(o, SIM_READER + (int)reader->which, run, reader);
	reader->hired = true;
	return 0;
}

void sim_reader_end(struct sim_reader *reader)
{
	if (!reader->hired)
		return;
	reader->quit = reader->go = true;
	sim_owner_poke(reader->owner);
	sim_task_join(reader->owner, SIM_READER + (int)reader->which);
}

void sim_reader_ask(struct sim_reader *reader, const struct ps_fetch_request *missing)
{
	reader->asked = true;
	reader->done = false;
	reader->fetch = *missing;
	if (missing->length <= SIM_GRANULE || !reader->hired) {
		fetch(reader);
		return;
	}
	reader->go = true;
	sim_owner_poke(reader->owner);
}

int sim_reader_answer(struct sim_reader *reader, struct ps_fetch_answer *fetched)
{
	if (!reader->done)
		return 0;
	reader->asked = false;
	sim_count(reader->owner->world, SIM_PEEKED, reader->seen.promised);
	*fetched = (struct ps_fetch_answer){ .seen = &reader->seen,
		                             .bytes = { reader->fetch.length, reader->block } };
	return 1;
}

void sim_reader_drop(struct sim_reader *reader)
{
	if (!reader->asked)
		return;
	reader->asked = false;
	reader->abandoned_request = true;
	sim_count(reader->owner->world, SIM_GIVEN_UP, !reader->done);
}

bool sim_reader_reads(struct sim_reader *reader)
{
	reader->abandoned_request &= !reader->done;
	return reader->abandoned_request;
}
