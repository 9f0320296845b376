/*
 * admission.c - keeps the lists of connections and origins, and chooses which connection is evicted
 * when there are too many. Listeners and targets call it when a connection begins, gets its
 * identity or ends. It must never evict an owner's connection.
 */
#include "admission.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000u

enum { OWNER_PLACES = 2 }; /* an owner's control connection, and the data connection that follows */

uint64_t bucket_take_token(struct bucket *bucket, uint64_t rate, uint64_t now_ns)
{
	uint64_t due;

	assert(rate > 0 && rate <= SECOND);
	/* A caller that was idle can use the tokens of at most one second at once. */
	if (bucket->next_ns + SECOND < now_ns + SECOND / rate)
		bucket->next_ns = now_ns + SECOND / rate - SECOND;
	due = bucket->next_ns;
	bucket->next_ns += SECOND / rate;
	return due > now_ns ? due - now_ns : 0;
}

void bucket_return_token(struct bucket *bucket, uint64_t rate)
{
	bucket->next_ns -= SECOND / rate;
}

static void remove_origin(struct admission *admission, struct origin *origin)
{
	struct origin **link = &admission->origins;

	while (*link != origin)
		link = &(*link)->next;
	*link = origin->next;
	free(origin);
}

/* Forgets the origin without connections whose bucket has been full for the longest time, or is
 * closest to full: its past requests matter least. */
static void forget_origin(struct admission *admission)
{
	struct origin *first = NULL;

	for (struct origin *origin = admission->origins; origin; origin = origin->next)
		if (origin->is_idle && (!first || origin->bucket.next_ns < first->bucket.next_ns))
			first = origin;
	assert(first);
	remove_origin(admission, first);
	admission->idle_origin_count--;
}

static struct origin *find_or_add_origin(struct admission *admission, const char *name)
{
	struct origin *origin;

	for (origin = admission->origins; origin; origin = origin->next)
		if (strcmp(origin->name, name) == 0)
			return origin;
	origin = calloc(1, sizeof(*origin) + strlen(name) + 1);
	if (!origin)
		return NULL;
	strcpy(origin->name, name);
	origin->next = admission->origins;
	admission->origins = origin;
	return origin;
}

static void origin_remove_connection(struct admission *admission, struct origin *origin)
{
	assert(origin->connection_count > 0);
	if (--origin->connection_count > 0)
		return;
	if (admission->idle_origin_count == ORIGINS_REMEMBERED_MAX)
		forget_origin(admission);
	origin->is_idle = true;
	admission->idle_origin_count++;
}

static void origin_add_connection(struct admission *admission, struct origin *origin)
{
	assert(admission->idle_origin_count >= origin->is_idle);
	admission->idle_origin_count -= origin->is_idle;
	origin->is_idle = false;
	origin->connection_count++;
}

void admission_free_origins(struct admission *admission)
{
	while (admission->idle_origin_count > 0)
		forget_origin(admission);
}

/* Returns true if the connection `admitted` must be evicted before `other`, which began later. */
static bool is_evicted_before(const struct admitted *admitted, const struct admitted *other)
{
	unsigned count = admitted->origin->connection_count,
		 others = other->origin->connection_count;

	return count != others ? count > others : admitted->last_heard_ms <= other->last_heard_ms;
}

/* The plain connections of one kind: over Unix sockets or over TCP. */
struct kind {
	unsigned count;
	struct admitted *first; /* the connection to evict first; NULL: there is none */
};

static struct kind find_next_to_evict(const struct admission *admission, bool local)
{
	struct kind kind = { 0 };

	for (struct admitted *admitted = admission->admitted; admitted; admitted = admitted->next) {
		if (admitted->is_unix_socket != local || admitted->is_owner(admitted))
			continue;
		kind.count++;
		if (!kind.first || is_evicted_before(admitted, kind.first))
			kind.first = admitted;
	}
	return kind;
}

bool admission_owner_fits(const struct admission *admission)
{
	unsigned taken = 0;

	for (const struct admitted *admitted = admission->admitted; admitted;
	     admitted = admitted->next)
		if (!admitted->is_data_path && admitted->is_owner(admitted))
			taken += OWNER_PLACES;
	return taken + OWNER_PLACES <=
	       admission->max_connections - admission->reserved_for_operators;
}

static void evict_connection(struct admission *admission, struct admitted *admitted)
{
	admission->evicted_count++;
	admitted->evict(admitted);
}

bool admission_evict_one(struct admission *admission)
{
	struct admitted *near = find_next_to_evict(admission, true).first;
	struct admitted *far = find_next_to_evict(admission, false).first;

	if (!near || (far && is_evicted_before(far, near)))
		near = far;
	if (near)
		evict_connection(admission, near);
	return near;
}

/* Returns true if a connection may be admitted, after evicting another one if necessary. The kind
 * with more connections gives way, so that each kind can have half of the places that owners leave.
 * An odd place goes to Unix sockets, which operators use. */
static bool has_room_for_connection(struct admission *admission, bool local)
{
	struct kind own, other;

	if (admission->connection_count <
	    admission->max_connections - admission->reserved_for_owners_and_unix)
		return true;
	own = find_next_to_evict(admission, local);
	if (admission->connection_count < admission->max_connections &&
	    (local ||
	     own.count < admission->max_connections - admission->reserved_for_owners_and_unix))
		return true;
	if (admission->connection_count >= admission->max_connections) {
		other = find_next_to_evict(admission, !local);
		if (other.count > own.count + !local)
			own = other;
	}
	if (own.first)
		evict_connection(admission, own.first);
	return own.first;
}

bool admission_admit(struct admission *admission, struct admitted *admitted, const char *origin)
{
	if (!has_room_for_connection(admission, admitted->is_unix_socket))
		return false;
	admitted->origin = find_or_add_origin(admission, origin);
	if (!admitted->origin)
		return false;
	origin_add_connection(admission, admitted->origin);
	admitted->admission = admission;
	admitted->next = admission->admitted;
	admitted->link = &admission->admitted;
	if (admitted->next)
		admitted->next->link = &admitted->next;
	admission->admitted = admitted;
	admission->connection_count++;
	return true;
}

bool admission_change_origin(struct admitted *admitted, const char *name)
{
	struct origin *origin = find_or_add_origin(admitted->admission, name);

	if (!origin)
		return false;
	origin_add_connection(admitted->admission, origin);
	origin_remove_connection(admitted->admission, admitted->origin);
	admitted->origin = origin;
	return true;
}

void admission_remove(struct admitted *admitted)
{
	if (!admitted->link)
		return;
	if (admitted->next)
		admitted->next->link = admitted->link;
	*admitted->link = admitted->next;
	admitted->link = NULL;
	assert(admitted->admission->connection_count > 0);
	admitted->admission->connection_count--;
	origin_remove_connection(admitted->admission, admitted->origin);
}
