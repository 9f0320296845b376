/*
 * world.c - the queue of events, chance and counts of one schedule, and its memory, which is
 * freed at once at the end. Everything in tests/sim calls it; it calls nothing back but the
 * events that it was given.
 */
#include "world.h"

#include "mistakes.h"

#include <stdarg.h>
#include <unistd.h>

/* A schedule with more events than this does not end. */
#define EVENTS_MAX ((uint64_t)10000000)

enum { CHUNK = 1 << 20, FIRST_ENDPOINT = 1 << 24, STATE_TEXT = 48 };

struct sim_chunk {
	struct sim_chunk *next;
	size_t used, size;
	_Alignas(16) unsigned char bytes[];
};

static void *check(void *memory)
{
	if (!memory) {
		fputs("the simulator is out of memory\n", stderr);
		exit(3);
	}
	return memory;
}

/* Begins the random numbers of the world's seed. Consecutive seeds below SIM_WIDE_SEEDS draw the
 * same numbers, shifted by one draw. */
static void begin_chance(struct sim_world *w)
{
	w->chance = w->seed * 0x9e3779b97f4a7c15u + 1;
	if (w->seed >= SIM_WIDE_SEEDS)
		w->chance = sim_draw(w);
}

/* Memory of the schedule before is used again. */
void sim_world_begin(struct sim_world *w, uint64_t seed)
{
	for (struct sim_chunk *chunk = w->chunks; chunk; chunk = chunk->next)
		chunk->used = 0;
	w->chunk = w->chunks;
	w->seed = seed;
	begin_chance(w);
	w->hash = 0xcbf29ce484222325u;
	w->now = 1000 * SIM_MS;
	w->events = 0;
	w->order = 0;
	w->endpoint_count = 0;
	w->mirror_count = 0;
	w->owner_count = 0;
	w->oracle = NULL;
	w->settled = w->next = NULL;
	memset(w->removed_id, 0, sizeof(w->removed_id));
	w->removed_level = 0;
	w->schedule = NULL;
}

void sim_world_free(struct sim_world *w)
{
	while (w->chunks) {
		struct sim_chunk *next = w->chunks->next;

		free(w->chunks);
		w->chunks = next;
	}
	free(w->heap);
	free(w->endpoints);
}

static struct sim_chunk *next_chunk(struct sim_world *w, size_t size)
{
	struct sim_chunk **link = &w->chunks;
	size_t room = size > CHUNK ? size : CHUNK;

	while (*link && (*link)->size - (*link)->used < size)
		link = &(*link)->next;
	if (!*link) {
		*link = check(malloc(sizeof(**link) + room));
		(*link)->next = NULL;
		(*link)->used = 0;
		(*link)->size = room;
	}
	return *link;
}

void *sim_alloc(struct sim_world *w, size_t size)
{
	void *memory;

	size = (size + 15) & ~(size_t)15;
	if (!w->chunk || w->chunk->size - w->chunk->used < size)
		w->chunk = next_chunk(w, size);
	memory = w->chunk->bytes + w->chunk->used;
	w->chunk->used += size;
	return memset(memory, 0, size);
}

/* splitmix64 */
uint64_t sim_draw(struct sim_world *w)
{
	uint64_t z = w->chance += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t sim_below(struct sim_world *w, uint64_t n)
{
	return n ? sim_draw(w) % n : 0;
}

uint64_t sim_between(struct sim_world *w, uint64_t low, uint64_t high)
{
	return low + sim_below(w, high - low + 1);
}

bool sim_chance(struct sim_world *w, unsigned percent)
{
	return sim_below(w, 100) < percent;
}

void sim_fill(struct sim_world *w, void *bytes, size_t len)
{
	uint8_t *to = bytes;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t drawn = sim_draw(w);

		memcpy(to + i, &drawn, len - i < 8 ? len - i : 8);
	}
}

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void sim_at(struct sim_world *w, uint64_t time, sim_event_fn *fn, void *arg, uint64_t ticket)
{
	struct sim_event event = { time > w->now ? time : w->now, w->order++, fn, arg, ticket };
	unsigned at = w->events++;

	if (at == w->events_max) {
		w->events_max = w->events_max ? 2 * w->events_max : 256;
		w->heap = check(realloc(w->heap, w->events_max * sizeof(*w->heap)));
	}
	while (at > 0 && earlier(&event, &w->heap[(at - 1) / 2])) {
		w->heap[at] = w->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	w->heap[at] = event;
}

static struct sim_event take_first(struct sim_world *w)
{
	struct sim_event first = w->heap[0], last = w->heap[--w->events];
	unsigned at = 0;

	for (;;) {
		unsigned child = 2 * at + 1;

		if (child + 1 < w->events && earlier(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (child >= w->events || !earlier(&w->heap[child], &last))
			break;
		w->heap[at] = w->heap[child];
		at = child;
	}
	w->heap[at] = last;
	return first;
}

bool sim_step(struct sim_world *w)
{
	struct sim_event event;

	if (!w->events)
		return false;
	event = take_first(w);
	w->now = event.time;
	sim_count(w, SIM_EVENTS, 1);
	if (w->order > EVENTS_MAX)
		sim_fail(w, "%llu events, and no end", (unsigned long long)w->order);
	event.fn(w, event.arg, event.ticket);
	return true;
}

int sim_endpoint_new(struct sim_world *w, void *thing)
{
	if (w->endpoint_count == w->endpoint_max) {
		w->endpoint_max = w->endpoint_max ? 2 * w->endpoint_max : 256;
		w->endpoints = check(
			realloc(w->endpoints, w->endpoint_max * sizeof(*w->endpoints)));
	}
	w->endpoints[w->endpoint_count] = thing;
	return FIRST_ENDPOINT + (int)w->endpoint_count++;
}

void *sim_endpoint(struct sim_world *w, int fd)
{
	unsigned index = (unsigned)(fd - FIRST_ENDPOINT);

	if (fd < FIRST_ENDPOINT || index >= w->endpoint_count)
		sim_fail(w, "the library waits for descriptor %d, which nobody gave it", fd);
	return w->endpoints[index];
}

void sim_trace(struct sim_world *w, const char *format, ...)
{
	char line[400];
	va_list args;

	if (!w->tracing)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	w->hash = (w->hash ^ w->now) * 0x100000001b3u;
	for (const char *at = line; *at; at++)
		w->hash = (w->hash ^ (unsigned char)*at) * 0x100000001b3u;
	if (w->printing)
		printf("%12.6f  %s\n", (double)w->now / 1e9, line);
}

const char *sim_state(struct sim_world *w, uint64_t epoch, uint64_t seq)
{
	char *text = sim_alloc(w, STATE_TEXT);

	snprintf(text, STATE_TEXT, "%llu:%llu", (unsigned long long)epoch, (unsigned long long)seq);
	return text;
}

void sim_fail(struct sim_world *w, const char *format, ...)
{
	char text[1000];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fflush(stdout);
	if (w->sound)
		printf("  without the mistake: seed %llu, %.6f s: %s\n",
		       (unsigned long long)w->seed, (double)w->now / 1e9, text);
	else if (w->mistake)
		printf("  seed %llu, %.6f s: %s\n", (unsigned long long)w->seed,
		       (double)w->now / 1e9, text);
	else
		printf("seed %llu FAILED at %.6f s: %s\n  again: sim --seed %llu --trace\n",
		       (unsigned long long)w->seed, (double)w->now / 1e9, text,
		       (unsigned long long)w->seed);
	fflush(stdout);
	_exit(1);
}
