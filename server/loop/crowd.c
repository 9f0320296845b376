/*
 * crowd.c - keeps the list of connections and origins, and picks the one that goes when there is
 * no room. Listeners and targets call it when a connection comes, moves or ends. It must never
 * let an owner's connection go.
 */
#include "crowd.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000u

enum { OWNER_PLACES = 2 }; /* for its control connection, and for its data path, which follows */

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

static void origin_forget(struct crowd *crowd, struct origin *origin)
{
	struct origin **link = &crowd->origins;

	while (*link != origin)
		link = &(*link)->next;
	*link = origin->next;
	free(origin);
}

/* Of those without connections the one goes whose bucket has been full for the longest, or is
 * nearest to that: what it took before matters least. */
static void forget_one(struct crowd *crowd)
{
	struct origin *first = NULL;

	for (struct origin *origin = crowd->origins; origin; origin = origin->next)
		if (origin->remembered &&
		    (!first || origin->bucket.next_ns < first->bucket.next_ns))
			first = origin;
	assert(first);
	origin_forget(crowd, first);
	crowd->remembered--;
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
	if (--origin->connections > 0)
		return;
	if (crowd->remembered == CROWD_REMEMBERED)
		forget_one(crowd);
	origin->remembered = true;
	crowd->remembered++;
}

static void origin_use(struct crowd *crowd, struct origin *origin)
{
	crowd->remembered -= origin->remembered;
	origin->remembered = false;
	origin->connections++;
}

void crowd_forget(struct crowd *crowd)
{
	while (crowd->remembered > 0)
		forget_one(crowd);
}

/* Should `guest` go rather than `other`, which came later? */
static bool goes_first(const struct guest *guest, const struct guest *other)
{
	unsigned count = guest->origin->connections, others = other->origin->connections;

	return count != others ? count > others : guest->heard_ms <= other->heard_ms;
}

/* The plain guests of one kind: over Unix sockets, or over TCP. */
struct kind {
	unsigned count;
	struct guest *first; /* that is to go; NULL: there is none */
};

static struct kind look_around(const struct crowd *crowd, bool local)
{
	struct kind kind = { 0 };

	for (struct guest *guest = crowd->guests; guest; guest = guest->next) {
		if (guest->local != local || guest->owns(guest))
			continue;
		kind.count++;
		if (!kind.first || goes_first(guest, kind.first))
			kind.first = guest;
	}
	return kind;
}

bool crowd_owner_fits(const struct crowd *crowd)
{
	unsigned taken = 0;

	for (const struct guest *guest = crowd->guests; guest; guest = guest->next)
		if (!guest->path && guest->owns(guest))
			taken += OWNER_PLACES;
	return taken + OWNER_PLACES <= crowd->max - crowd->operators;
}

static void evict_guest(struct crowd *crowd, struct guest *guest)
{
	crowd->evicted++;
	guest->evict(guest);
}

bool crowd_make_room(struct crowd *crowd)
{
	struct guest *near = look_around(crowd, true).first;
	struct guest *far = look_around(crowd, false).first;

	if (!near || (far && goes_first(far, near)))
		near = far;
	if (near)
		evict_guest(crowd, near);
	return near;
}

/* Where there is no room the kind that has more gives way, so that neither keeps the other from the
 * half of what owners leave; an odd place is for Unix sockets, by which operators come. */
static bool has_room(struct crowd *crowd, bool local)
{
	struct kind own, other;

	if (crowd->count < crowd->max - crowd->kept)
		return true;
	own = look_around(crowd, local);
	if (crowd->count < crowd->max && (local || own.count < crowd->max - crowd->kept))
		return true;
	if (crowd->count >= crowd->max) {
		other = look_around(crowd, !local);
		if (other.count > own.count + !local)
			own = other;
	}
	if (own.first)
		evict_guest(crowd, own.first);
	return own.first;
}

bool crowd_enter(struct crowd *crowd, struct guest *guest, const char *origin)
{
	if (!has_room(crowd, guest->local))
		return false;
	guest->origin = origin_named(crowd, origin);
	if (!guest->origin)
		return false;
	origin_use(crowd, guest->origin);
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
	origin_use(guest->crowd, origin);
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
