/*
 * objects.c - the heap of objects.h. Which objects exist, their sizes and their bytes follow from
 * the counter in the object that the root refers to. medley.c calls it. The check must compute
 * everything else from the counter and never from the objects.
 */
#include "objects.h"

#include <stdio.h>
#include <string.h>

enum { PLACES = 48, SHELF = 1, THING = 2, LONGEST = 3000 };

#define HEAP_BYTES ((uint64_t)1 << 20)

struct shelf {
	uint64_t count;
	uint8_t *things[PLACES];
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static size_t thing_size(uint64_t k)
{
	return 16 + mix(k) % LONGEST;
}

static uint8_t thing_byte(uint64_t k, size_t at)
{
	return (uint8_t)(mix(k) + at * 7);
}

/* --- changes --- */

static int make_shelf(struct objects *o)
{
	perseas_tx_t *tx;
	void *addr;
	int rc = perseas_begin(o->p, 0, &tx);

	if (rc)
		return rc;
	rc = perseas_zalloc(tx, o->heap, sizeof(*o->shelf), SHELF, &addr);
	if (!rc)
		rc = perseas_root_set(tx, o->heap, "shelf", SHELF, addr);
	if (rc) {
		perseas_abort(tx);
		return rc;
	}
	o->shelf = addr;
	return perseas_commit(tx, 0);
}

int objects_open(struct objects *o, perseas_t *p)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	void *addr;
	int rc;

	*o = (struct objects){ .p = p };
	options.flags = PERSEAS_HEAP_CREATE;
	options.first = HEAP_BYTES;
	rc = perseas_heap_open(p, "objects", &options, &o->heap);
	if (!rc)
		rc = perseas_root(o->heap, "shelf", SHELF, &addr);
	if (rc)
		return rc;
	o->shelf = addr;
	return addr ? 0 : make_shelf(o);
}

uint64_t objects_count(const struct objects *o)
{
	return o->shelf->count;
}

/* Allocates an object and changes the counter, then rolls both back to a savepoint. */
static int waver(struct objects *o, perseas_tx_t *tx, uint64_t k)
{
	uint64_t savepoint;
	void *addr;
	int rc = perseas_savepoint(tx, &savepoint);

	if (!rc)
		rc = perseas_zalloc(tx, o->heap, thing_size(~k), THING, &addr);
	if (!rc)
		rc = perseas_set_range(tx, &o->shelf->count, sizeof(o->shelf->count));
	if (rc)
		return rc;
	o->shelf->count = ~k;
	return perseas_rollback_to(tx, savepoint);
}

static int put(struct objects *o, perseas_tx_t *tx, uint64_t k)
{
	uint8_t **place = &o->shelf->things[k % PLACES], *thing;
	void *addr;
	int rc = perseas_free(tx, o->heap, *place);

	if (!rc)
		rc = perseas_alloc(tx, o->heap, thing_size(k), THING, &addr);
	if (rc)
		return rc;
	thing = addr;
	for (size_t i = 0; i < thing_size(k); i++)
		thing[i] = thing_byte(k, i);
	rc = waver(o, tx, k);
	if (!rc)
		rc = perseas_set_range(tx, place, sizeof(*place));
	if (!rc)
		rc = perseas_set_range(tx, &o->shelf->count, sizeof(o->shelf->count));
	if (rc)
		return rc;
	*place = thing;
	o->shelf->count = k;
	return 0;
}

/* Begins transaction k and does everything but commit it. */
static int prepare(struct objects *o, uint64_t k, perseas_tx_t **tx)
{
	int rc = perseas_begin(o->p, 0, tx);

	if (rc)
		return rc;
	rc = put(o, *tx, k);
	if (rc)
		perseas_abort(*tx);
	return rc;
}

static int commit(struct objects *o, perseas_tx_t *tx, uint64_t k, unsigned flags,
                  struct page *page)
{
	struct perseas_token token, held;
	int rc = perseas_commit_token(tx, flags, &token);

	if (!rc)
		rc = perseas_durable(o->p, &held);
	/* Each transaction here is one transaction of the store. */
	if (!rc && k > token.seq - held.seq)
		page->acked = k - (token.seq - held.seq);
	return rc;
}

int objects_change(struct objects *o, uint64_t last, unsigned flags, struct page *page)
{
	int rc = 0;

	for (uint64_t k = objects_count(o) + 1; k <= last && !rc; k++) {
		perseas_tx_t *tx;

		page->attempted = k;
		if (k % 3 == 0) {
			rc = prepare(o, k, &tx);
			if (!rc)
				rc = perseas_abort(tx);
		}
		if (!rc)
			rc = prepare(o, k, &tx);
		if (!rc)
			rc = commit(o, tx, k, flags, page);
	}
	return rc ? rc : perseas_flush(o->p);
}

/* --- the check --- */

/* Returns the last transaction that put a thing into a place, or 0. */
static uint64_t last_of(uint64_t count, unsigned place)
{
	uint64_t k = count - (count % PLACES + PLACES - place) % PLACES;

	return k > count ? 0 : k;
}

static bool check_thing(const uint8_t *thing, uint64_t k)
{
	if (!thing != !k)
		return false;
	for (size_t i = 0; k && i < thing_size(k); i++)
		if (thing[i] != thing_byte(k, i))
			return false;
	return true;
}

static int count_one(void *arg, const struct perseas_object *object)
{
	(void)object;
	++*(uint64_t *)arg;
	return 0;
}

bool objects_check(struct objects *o)
{
	const uint64_t count = objects_count(o);
	uint64_t here = 0, wanted = 1;

	if (perseas_heap_check(o->heap) ||
	    perseas_heap_walk(o->heap, PERSEAS_ANY_TYPE, count_one, &here)) {
		fprintf(stderr, "%s\n", perseas_message(o->p));
		return false;
	}
	for (unsigned i = 0; i < PLACES; i++) {
		uint64_t k = last_of(count, i);

		wanted += k != 0;
		if (!check_thing(o->shelf->things[i], k)) {
			fprintf(stderr, "thing %u is not as transaction %llu left it\n", i,
			        (unsigned long long)k);
			return false;
		}
	}
	if (here != wanted)
		fprintf(stderr, "%llu objects are there, and %llu should be\n",
		        (unsigned long long)here, (unsigned long long)wanted);
	return here == wanted;
}
