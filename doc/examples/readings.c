/*
 * readings.c - stores readings of sensors, in the records that readings.cpp and readings.py use.
 *
 *     readings LIST COUNT      checks the stored readings, and adds COUNT
 */
#include <perseas.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 10000, READING = 1 };

/* begin types */
struct reading {
	uint64_t at;      /* byte 0: ns since 1970 */
	int32_t celsius;  /* 8 */
	uint8_t flags;    /* 12 */
	char sensor[11];  /* 13: text, and zeros up to its end */
	double values[4]; /* 24 */
};                        /* 56 bytes, a multiple of its largest member */

struct readings {
	uint64_t count;
	struct reading rows[ROWS];
};
/* end types */

static struct reading reading_of(uint64_t number)
{
	struct reading made = {
		1000003 * number, (int32_t)(number % 100) - 50, (uint8_t)number, "", { 0, 0, 0, 0 }
	};

	(void)snprintf(made.sensor, sizeof(made.sensor), "s%06d", (int)(number % 1000000));
	for (int i = 0; i < 4; i++)
		made.values[i] = (double)number + 0.25 * i;
	return made;
}

static int is_same(const struct reading *a, const struct reading *b)
{
	return a->at == b->at && a->celsius == b->celsius && a->flags == b->flags &&
	       !strncmp(a->sensor, b->sensor, sizeof(a->sensor)) &&
	       !memcmp(a->values, b->values, sizeof(a->values));
}

/* begin check */
/* Checks every row, and the object that the root "last" leads to. */
static int check(perseas_heap_t *heap, const struct readings *all)
{
	void *last = NULL;
	int rc = perseas_root(heap, "last", READING, &last);

	for (uint64_t i = 0; i < all->count; i++) {
		const struct reading expected = reading_of(i);

		if (!is_same(&all->rows[i], &expected))
			return 1;
	}
	if (rc || !all->count)
		return rc || last;
	return !last || !is_same((const struct reading *)last, &all->rows[all->count - 1]);
}
/* end check */

/* begin add */
static int add(perseas_t *p, perseas_heap_t *heap, struct readings *all)
{
	struct reading *row = &all->rows[all->count];
	void *last = NULL, *old = NULL;
	perseas_tx_t *tx;
	int rc = perseas_root(heap, "last", READING, &old);

	if (rc || (rc = perseas_begin(p, 0, &tx)))
		return rc;
	if ((rc = perseas_set_range(tx, &all->count, sizeof(all->count))) ||
	    (rc = perseas_set_range(tx, row, sizeof(*row))) ||
	    (rc = perseas_zalloc(tx, heap, sizeof(*row), READING, &last)) ||
	    (rc = perseas_root_set(tx, heap, "last", READING, last)) ||
	    (rc = perseas_free(tx, heap, old))) {
		perseas_abort(tx);
		return rc;
	}
	*row = reading_of(all->count);
	memcpy(last, row, sizeof(*row));
	all->count++;
	return perseas_commit(tx, 0);
}
/* end add */

static int fail(const perseas_t *p)
{
	fprintf(stderr, "readings: %s\n", perseas_message(p));
	return 1;
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct perseas_heap_options objects = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;
	perseas_t *p;
	void *memory;
	struct readings *all;

	if (argc != 3)
		return 2;
	options.flags = PERSEAS_CREATE;
	objects.flags = PERSEAS_HEAP_CREATE;
	if (perseas_open("readings", argv[1], &options, &p))
		return fail(NULL);
	if (perseas_map(p, "readings", sizeof(*all), &memory) || perseas_publish(p) ||
	    perseas_heap_open(p, "objects", &objects, &heap))
		return fail(p);
	all = (struct readings *)memory;
	if (check(heap, all)) {
		fprintf(stderr, "readings: they are not what was kept\n");
		return 1;
	}
	printf("%" PRIu64 " readings, and all are right\n", all->count);
	fflush(stdout);
	for (long left = strtol(argv[2], NULL, 10); left > 0 && all->count < ROWS; left--) {
		if (add(p, heap, all))
			return fail(p);
		printf("kept %" PRIu64 "\n", all->count);
		fflush(stdout);
	}
	return perseas_close(p) ? 1 : 0;
}
