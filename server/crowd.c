#include "crowd.h"

#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000u

uint64_t bucket_take(struct bucket *bucket, uint64_t rate, uint64_t now_ns)
{
	uint64_t due;

	/* A second's worth may have been saved up. */
	if (bucket->next_ns + SECOND < now_ns + SECOND / rate)
		bucket->next_ns = now_ns + SECOND / rate - SECOND;
	due = bucket->next_ns;
	bucket->next_ns += SECOND / rate;
	return due > now_ns ? due - now_ns : 0;
}

void bucket_return(struct bucket *bucket, uint64_t rate)
{
	bucket->next_ns -= SECOND / rate;
}

static struct origin *origin_named(struct crowd *crowd, const char *name)
{
	struct origin *origin;

	for (origin = crowd->origins; origin; origin = origin->next)
		if (strcmp(origin->name, name) == 0)
			return origin;
	origin = calloc(1, sizeof(*origin) + strlen(name) + 1);
	if (!origin)
		return NULL;
	strcpy(origin->name, name);
	origin->next = crowd->origins;
	crowd->origins = origin;
	return origin;
}

static void origin_drop(struct crowd *crowd, struct origin *origin)
{
	struct origin **link = &crowd->origins;

	if (--origin->connections > 0)
		return;
	while (*link != origin)
		link = &(*link)->next;
	*link = origin->next;
	free(origin);
}

/* Should `guest` go rather than `other`? */
static bool goes_first(const struct guest *guest, const struct guest *other)
{
	unsigned count = guest->origin->connections, others = other->origin->connections;

	return count != others ? count > others : guest->heard_ms < other->heard_ms;
}

/* How many plain guests there are over TCP, and which plain one is to go: NULL, none. */
static unsigned look_around(const struct crowd *crowd, bool tcp_only, struct guest **first)
{
	unsigned plain = 0;

	*first = NULL;
	for (struct guest *guest = crowd->guests; guest; guest = guest->next) {
		if ((tcp_only && guest->local) || guest->owns(guest))
			continue;
		plain += !guest->local;
		if (!*first || goes_first(guest, *first))
			*first = guest;
	}
	return plain;
}

static void evict(struct crowd *crowd, struct guest *guest)
{
	crowd->evicted++;
	guest->evict(guest);
}

bool crowd_make_room(struct crowd *crowd)
{
	struct guest *first;

	look_around(crowd, false, &first);
	if (first)
		evict(crowd, first);
	return first;
}

/* Whoever comes over TCP takes no Unix socket's place. */
static bool has_room(struct crowd *crowd, bool local)
{
	struct guest *first;
	unsigned plain;

	if (crowd->count < crowd->max - crowd->kept)
		return true;
	plain = look_around(crowd, true, &first);
	if (crowd->count < crowd->max && (local || plain < crowd->max - crowd->kept))
		return true;
	if (!first && local)
		return crowd_make_room(crowd);
	if (first)
		evict(crowd, first);
	return first;
}

bool crowd_enter(struct crowd *crowd, struct guest *guest, const char *origin)
{
	if (!has_room(crowd, guest->local))
		return false;
	guest->origin = origin_named(crowd, origin);
	if (!guest->origin)
		return false;
	guest->origin->connections++;
	guest->crowd = crowd;
	guest->next = crowd->guests;
	guest->link = &crowd->guests;
	if (guest->next)
		guest->next->link = &guest->next;
	crowd->guests = guest;
	crowd->count++;
	return true;
}

bool crowd_move(struct guest *guest, const char *name)
{
	struct origin *origin = origin_named(guest->crowd, name);

	if (!origin)
		return false;
	origin->connections++;
	origin_drop(guest->crowd, guest->origin);
	guest->origin = origin;
	return true;
}

void crowd_leave(struct guest *guest)
{
	if (!guest->link)
		return;
	if (guest->next)
		guest->next->link = guest->link;
	*guest->link = guest->next;
	guest->link = NULL;
	guest->crowd->count--;
	origin_drop(guest->crowd, guest->origin);
}
