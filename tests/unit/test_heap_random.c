/*
 * test_heap_random.c - a heap at random, beside a model of it. Three transactions are open at once;
 * they allocate, free, write, change sizes, set roots, go back to savepoints, commit and abort. Now
 * and then they free all that they may, the heap gives segments back, and the owner dies, also amid
 * a commit or such a trim, and the next one takes over.
 *
 *     test_heap_random [FIRST LAST]     with these seeds
 */
#include "heap_rig.h"

enum { OPEN = 3, THINGS = 200, DEPTH = 4, ROOTS = 4, NOBODY = -1, STEPS = 2500 };
enum { FIRST_SEED = 1, LAST_SEED = 17 };

/* An object as it must be. */
struct thing {
	uint64_t serial; /* no other has it; 0: this is none */
	uint8_t *at;
	size_t size;
	uint64_t type;
	uint8_t value;            /* of its bytes, as its writer has them */
	uint8_t before;           /* as it is committed */
	int owner, freer, writer; /* open transactions that allocated, free, and changed it */
	bool rooted;              /* a root leads to it, or did: nobody frees it */
};

struct root {
	uint64_t serial; /* of the object that it leads to; 0: there is no such root */
	uint64_t wanted; /* by its setter */
	int setter;
};

struct mark {
	uint64_t savepoint;
	struct thing things[THINGS];
	struct root roots[ROOTS];
};

struct model {
	struct owner *o;
	perseas_heap_t *heap;
	uint64_t seed, chance, serial;
	uint64_t told; /* number of the last commit that its owner did not survive */
	struct thing things[THINGS];
	struct root roots[ROOTS];
	struct {
		perseas_tx_t *tx;
		unsigned depth;
		struct mark marks[DEPTH];
	} open[OPEN];
	unsigned commits, deaths, too_big, refused, trims;
};

static const char *const root_names[ROOTS] = { "a", "b", "c", "d" };

#define WRONG(m, ...)                                                      \
	do {                                                               \
		print_error("seed %llu: ", (unsigned long long)(m)->seed); \
		fail_msg(__VA_ARGS__);                                     \
	} while (0)

static unsigned draw(struct model *m, unsigned bound)
{
	return (unsigned)(unit_draw(&m->chance) % bound);
}

static size_t draw_size(struct model *m)
{
	switch (draw(m, 12)) {
	case 0:
		return 32769 + draw(m, 200000);
	case 1:
		return 8193 + draw(m, 24576);
	default:
		return 1 + draw(m, 600);
	}
}

/* --- what must be so --- */

/* Its bytes are nobody's any more, though nobody else may get them yet. */
static bool is_taken_back(const struct thing *thing)
{
	return thing->owner != NOBODY && thing->owner == thing->freer;
}

static void look(struct model *m, const struct thing *thing)
{
	const size_t end = thing->size - 1;

	for (size_t i = 0; i <= end; i = i < end && i + 61 > end ? end : i + 61)
		if (thing->at[i] != thing->value)
			WRONG(m, "byte %zu of object %llu is %u, not %u", i,
			      (unsigned long long)thing->serial, thing->at[i], thing->value);
}

static void check_sound(struct model *m)
{
	if (perseas_heap_check(m->heap))
		WRONG(m, "%s", perseas_message(m->o->p));
	for (unsigned i = 0; i < THINGS; i++)
		if (m->things[i].serial && !is_taken_back(&m->things[i]))
			look(m, &m->things[i]);
}

static int walked(void *arg, const struct perseas_object *object)
{
	struct model *m = arg;

	for (unsigned i = 0; i < THINGS; i++) {
		const struct thing *thing = &m->things[i];

		if (thing->serial && thing->at == object->addr && thing->size == object->size &&
		    thing->type == object->type)
			return 0;
	}
	WRONG(m, "a walk shows an object at %p that nobody has", object->addr);
	return 1;
}

static const struct thing *thing_of(const struct model *m, uint64_t serial)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (serial && m->things[i].serial == serial)
			return &m->things[i];
	return NULL;
}

/* No transaction is open: the heap has what the model has. */
static void check_all(struct model *m)
{
	unsigned objects = 0;
	void *addr;

	check_sound(m);
	for (unsigned i = 0; i < THINGS; i++) {
		objects += m->things[i].serial != 0;
		m->things[i].rooted = false;
	}
	if (figures(m->o).objects != objects)
		WRONG(m, "there are %llu objects, not %u",
		      (unsigned long long)figures(m->o).objects, objects);
	assert_int_equal(perseas_heap_walk(m->heap, PERSEAS_ANY_TYPE, walked, m), 0);
	for (unsigned i = 0; i < ROOTS; i++) {
		const struct thing *thing = thing_of(m, m->roots[i].serial);

		if (perseas_root(m->heap, root_names[i], thing ? thing->type : 0, &addr) ||
		    addr != (thing ? thing->at : NULL))
			WRONG(m, "root '%s' leads to %p: %s", root_names[i], addr,
			      perseas_message(m->o->p));
		if (thing)
			m->things[thing - m->things].rooted = true;
	}
}

/* --- objects --- */

static void add(struct model *m, int w, uint8_t *at, uint64_t type)
{
	struct thing *place = NULL;
	struct perseas_object object;

	if (perseas_object(m->heap, at, &object) || object.addr != at || object.type != type)
		WRONG(m, "what was allocated at %p is no object", (void *)at);
	for (unsigned i = 0; i < THINGS; i++) {
		struct thing *thing = &m->things[i];

		if (!thing->serial)
			place = thing;
		else if (at < thing->at + thing->size && thing->at < at + object.size)
			WRONG(m, "%p is given out twice", (void *)at);
	}
	assert_non_null(place);
	*place = (struct thing){ .serial = ++m->serial,
		                 .at = at,
		                 .size = object.size,
		                 .type = type,
		                 .value = (uint8_t)draw(m, 256),
		                 .owner = w,
		                 .freer = NOBODY,
		                 .writer = w };
	memset(at, place->value, place->size);
}

/* Picks an object that the transaction may change, or NULL. */
static struct thing *pick(struct model *m, int w)
{
	for (unsigned tries = 0; tries < 40; tries++) {
		struct thing *thing = &m->things[draw(m, THINGS)];

		if (thing->serial && thing->freer == NOBODY &&
		    (thing->owner == NOBODY || thing->owner == w) &&
		    (thing->writer == NOBODY || thing->writer == w))
			return thing;
	}
	return NULL;
}

static bool has_room(const struct model *m)
{
	unsigned used = 0;

	for (unsigned i = 0; i < THINGS; i++)
		used += m->things[i].serial != 0;
	return used < THINGS;
}

/* Did it work? A transaction that can take no more is as it was. */
static bool worked(struct model *m, int rc, const char *what)
{
	if (rc && rc != PERSEAS_ETOOBIG)
		WRONG(m, "%s: %s", what, perseas_message(m->o->p));
	m->too_big += rc != 0;
	return !rc;
}

static void allocate(struct model *m, int w)
{
	const uint64_t type = draw(m, 3);
	const bool zeroed = draw(m, 4) == 0;
	const size_t size = draw_size(m);
	void *at;
	int rc;

	if (!has_room(m))
		return;
	rc = (zeroed ? perseas_zalloc : perseas_alloc)(m->open[w].tx, m->heap, size, type, &at);
	if (!worked(m, rc, "alloc"))
		return;
	for (size_t i = 0; zeroed && i < size; i++)
		if (((uint8_t *)at)[i])
			WRONG(m, "zalloc left byte %zu as it was", i);
	add(m, w, at, type);
}

static void release(struct model *m, int w)
{
	struct thing *thing = pick(m, w);

	if (!thing || thing->rooted)
		return;
	look(m, thing);
	if (!worked(m, perseas_free(m->open[w].tx, m->heap, thing->at), "free"))
		return;
	thing->freer = w;
}

/* Frees an object that another open transaction allocated or frees, which must be refused. */
static void release_wrongly(struct model *m, int w)
{
	const struct thing *thing = &m->things[draw(m, THINGS)];
	int rc;

	if (!thing->serial ||
	    (thing->freer == NOBODY && (thing->owner == NOBODY || thing->owner == w)))
		return;
	rc = perseas_free(m->open[w].tx, m->heap, thing->at);
	if (rc != PERSEAS_EOBJECT && rc != PERSEAS_ETOOBIG &&
	    !(rc == PERSEAS_ECONFLICT && thing->rooted))
		WRONG(m, "object %llu is freed by %d, allocated by %d, and %d frees it: %s",
		      (unsigned long long)thing->serial, thing->freer, thing->owner, w,
		      perseas_error_name(rc));
	m->refused++;
}

static void resize(struct model *m, int w)
{
	struct thing *thing = pick(m, w);
	const size_t size = draw_size(m);
	void *to;

	if (!thing || thing->rooted || !has_room(m))
		return;
	if (!worked(m, perseas_realloc(m->open[w].tx, m->heap, thing->at, size, thing->type, &to),
	            "realloc"))
		return;
	thing->writer = w;
	if (to == thing->at) {
		look(m, thing);
		return;
	}
	for (size_t i = 0; i < size && i < thing->size; i++)
		if (((uint8_t *)to)[i] != thing->value)
			WRONG(m, "realloc lost byte %zu", i);
	thing->freer = w;
	add(m, w, to, thing->type);
}

static void change(struct model *m, int w)
{
	struct thing *thing = pick(m, w);

	if (!thing ||
	    !worked(m, perseas_set_range(m->open[w].tx, thing->at, thing->size), "set_range"))
		return;
	thing->writer = w;
	thing->value = (uint8_t)draw(m, 256);
	memset(thing->at, thing->value, thing->size);
}

static void set_root(struct model *m, int w)
{
	const unsigned i = draw(m, ROOTS);
	struct root *root = &m->roots[i];
	struct thing *thing = draw(m, 4) ? pick(m, w) : NULL;
	const bool theirs = root->setter != NOBODY && root->setter != w;
	int rc = perseas_root_set(m->open[w].tx, m->heap, root_names[i], thing ? thing->type : 0,
	                          thing ? thing->at : NULL);

	if (theirs && rc != PERSEAS_ECONFLICT && rc != PERSEAS_ETOOBIG)
		WRONG(m, "root '%s' is set by two: %s", root_names[i], perseas_error_name(rc));
	if (theirs || !worked(m, rc, "root_set"))
		return;
	/* To take away what is not there changes nothing. */
	if (!thing && root->setter == NOBODY && !root->serial)
		return;
	root->setter = w;
	root->wanted = thing ? thing->serial : 0;
	if (thing)
		thing->rooted = true;
}

/* --- savepoints --- */

static void save(struct model *m, int w)
{
	struct mark *mark = &m->open[w].marks[m->open[w].depth];

	if (m->open[w].depth == DEPTH)
		return;
	assert_int_equal(perseas_savepoint(m->open[w].tx, &mark->savepoint), 0);
	memcpy(mark->things, m->things, sizeof(mark->things));
	memcpy(mark->roots, m->roots, sizeof(mark->roots));
	m->open[w].depth++;
}

static void roll_back_thing(struct thing *thing, const struct thing *then, int w)
{
	const bool was = then->serial == thing->serial;

	if (thing->owner == w && !was) {
		thing->freer = w;
		return;
	}
	if (thing->freer == w && !(was && then->freer == w))
		thing->freer = NOBODY;
	if (thing->writer != w)
		return;
	thing->value = was && then->writer == w ? then->value : thing->before;
}

static void roll_back(struct model *m, int w)
{
	const struct mark *mark;

	if (!m->open[w].depth)
		return;
	m->open[w].depth = draw(m, m->open[w].depth) + 1;
	mark = &m->open[w].marks[m->open[w].depth - 1];
	assert_int_equal(perseas_rollback_to(m->open[w].tx, mark->savepoint), 0);
	for (unsigned i = 0; i < THINGS; i++)
		if (m->things[i].serial)
			roll_back_thing(&m->things[i], &mark->things[i], w);
	for (unsigned i = 0; i < ROOTS; i++) {
		if (m->roots[i].setter != w)
			continue;
		m->roots[i].wanted = mark->roots[i].wanted;
		if (mark->roots[i].setter != w)
			m->roots[i].setter = NOBODY;
	}
}

/* --- ends --- */

static void end_thing(struct thing *thing, int w, bool committed)
{
	if ((committed && thing->freer == w) || (!committed && thing->owner == w)) {
		thing->serial = 0;
		return;
	}
	if (thing->owner == w)
		thing->owner = NOBODY;
	if (thing->freer == w)
		thing->freer = NOBODY;
	if (thing->writer != w)
		return;
	thing->writer = NOBODY;
	if (committed)
		thing->before = thing->value;
	else
		thing->value = thing->before;
}

static void end(struct model *m, int w, bool committed)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (m->things[i].serial)
			end_thing(&m->things[i], w, committed);
	for (unsigned i = 0; i < ROOTS; i++) {
		if (m->roots[i].setter != w)
			continue;
		m->roots[i].setter = NOBODY;
		if (committed)
			m->roots[i].serial = m->roots[i].wanted;
	}
	m->open[w].tx = NULL;
	m->open[w].depth = 0;
}

static void finish(struct model *m, int w, bool commits)
{
	if (commits && perseas_commit(m->open[w].tx, 0))
		WRONG(m, "commit: %s", perseas_message(m->o->p));
	if (!commits)
		assert_int_equal(perseas_abort(m->open[w].tx), 0);
	m->commits += commits;
	end(m, w, commits);
}

/* The commit of transaction `w` was cut short, so it may be committed or not; -1: no commit was.
 * All other open transactions are gone. */
static void take_over(struct model *m, int w, bool acknowledged)
{
	uint64_t told;

	owner_die(m->o);
	m->deaths++;
	owner_reopen(m->o);
	m->heap = heap_of(m->o);
	memcpy(&told, m->o->bytes, sizeof(told));
	if (acknowledged && told != m->told)
		WRONG(m, "what was acknowledged is lost");
	for (int i = 0; i < OPEN; i++)
		if (m->open[i].tx)
			end(m, i, i == w && told == m->told);
	check_all(m);
}

/* Its writes break off, on each mirror at another one. */
static void die_committing(struct model *m, int w)
{
	int rc = perseas_set_range(m->open[w].tx, m->o->bytes, sizeof(m->told));

	if (!worked(m, rc, "set_range"))
		return;
	m->told++;
	memcpy(m->o->bytes, &m->told, sizeof(m->told));
	for (unsigned i = 0; i < m->o->d->count; i++)
		m->o->d->mirrors[i].writes_left = draw(m, 12);
	rc = perseas_commit(m->open[w].tx, 0);
	take_over(m, w, rc == 0);
}

/* All that it may, so that segments become empty now and then. */
static void release_all(struct model *m, int w)
{
	for (unsigned i = 0; i < THINGS; i++) {
		struct thing *thing = &m->things[i];

		if (!thing->serial || thing->rooted || thing->freer != NOBODY ||
		    (thing->owner != NOBODY && thing->owner != w) ||
		    (thing->writer != NOBODY && thing->writer != w))
			continue;
		if (worked(m, perseas_free(m->open[w].tx, m->heap, thing->at), "free"))
			thing->freer = w;
	}
}

/* Trims the heap. Objects of open transactions, and all others, stay where they are. */
static void trim(struct model *m)
{
	const uint64_t size = figures(m->o).size, keep = draw(m, 3) ? 0 : draw(m, 1 << 20);
	uint64_t given = 1;

	if (perseas_heap_trim(m->heap, keep, &given))
		WRONG(m, "trim: %s", perseas_message(m->o->p));
	if (figures(m->o).size != size - given || (given && size - given < keep))
		WRONG(m, "of %llu bytes %llu were given back, with %llu to keep",
		      (unsigned long long)size, (unsigned long long)given,
		      (unsigned long long)keep);
	m->trims += given != 0;
	check_sound(m);
}

/* Its writes break off, on each mirror at another one. */
static void die_trimming(struct model *m)
{
	for (unsigned i = 0; i < m->o->d->count; i++)
		m->o->d->mirrors[i].writes_left = draw(m, 5);
	(void)perseas_heap_trim(m->heap, 0, NULL);
	take_over(m, NOBODY, false);
}

static void step(struct model *m)
{
	static void (*const steps[])(struct model *, int) = {
		allocate, allocate, allocate, allocate,        allocate, allocate, release, release,
		release,  release,  release,  release_wrongly, resize,   resize,   resize,  change,
		change,   set_root, save,     roll_back,
	};
	const int w = (int)draw(m, OPEN);

	if (!m->open[w].tx)
		m->open[w].tx = begin(m->o);
	if (draw(m, 40) == 0)
		trim(m);
	else if (draw(m, 150) == 0)
		release_all(m, w);
	else if (draw(m, 12))
		steps[draw(m, sizeof(steps) / sizeof(steps[0]))](m, w);
	else if (draw(m, 12))
		finish(m, w, draw(m, 3) > 0);
	else if (draw(m, 3))
		die_committing(m, w);
	else if (draw(m, 2))
		die_trimming(m);
	else
		take_over(m, NOBODY, false);
}

static unsigned trims;

static void run(uint64_t seed)
{
	static struct model model;
	struct model *m = &model;

	memset(m, 0, sizeof(*m));
	m->seed = seed;
	m->chance = seed * 0x9e3779b97f4a7c15ull | 1;
	for (unsigned i = 0; i < ROOTS; i++)
		m->roots[i].setter = NOBODY;
	m->o = owner_new(seed % 2 ? 3 : 1);
	m->o->options.log_size = 1 << 20;
	m->o->options.ring_size = 8 << 20;
	owner_begin(m->o);
	memcpy(m->o->bytes, &m->told, sizeof(m->told));
	m->heap = heap_of(m->o);
	for (unsigned i = 0; i < STEPS; i++) {
		step(m);
		if (i % 50 == 0)
			check_sound(m);
	}
	for (int w = 0; w < OPEN; w++)
		if (m->open[w].tx)
			finish(m, w, draw(m, 2));
	check_all(m);
	owner_reopen(m->o);
	m->heap = heap_of(m->o);
	check_all(m);
	print_message("seed %llu: %u commits, %u deaths, %u too big, %u refused, %u trims, %u "
	              "extents\n",
	              (unsigned long long)seed, m->commits, m->deaths, m->too_big, m->refused,
	              m->trims, figures(m->o).extents);
	assert_true(m->commits && m->deaths && m->refused);
	trims += m->trims;
	owner_free(m->o);
}

static uint64_t first = FIRST_SEED, last = LAST_SEED;

static void test_a_heap_is_as_its_model(void **state)
{
	(void)state;
	for (uint64_t seed = first; seed <= last; seed++)
		run(seed);
	/* Over several seeds some trims must have happened; a single seed may have none. */
	assert_true(trims || first == last);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_heap_is_as_its_model) };

	if (argc == 3) {
		first = strtoull(argv[1], NULL, 10);
		last = strtoull(argv[2], NULL, 10);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
