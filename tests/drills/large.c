/*
 * large.c - the owner of large.h. Every byte follows from the number of the last transaction, which
 * makes the check independent of the store. teller.c's main calls it.
 */
#include "large.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 8 }; /* words that a transaction changes, besides the counter */

#define SEGMENT "large"

struct large {
	struct owner *owner;
	uint64_t *words; /* mapped; the first is the counter */
	uint64_t count;
	uint64_t began, opened, first, missing;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* Returns the index of the j-th word that transaction k changes; never the counter. */
static uint64_t place(const struct large *l, uint64_t k, unsigned j)
{
	return 1 + mix(k * WORDS + j) % (l->count - 1);
}

static uint64_t value(uint64_t k, unsigned j)
{
	return mix(~(k * WORDS + j));
}

/* --- the store --- */

static int make(struct large *l, uint64_t mib)
{
	void *addr;
	int rc = perseas_map(l->owner->p, SEGMENT, mib << 20, &addr);

	if (rc)
		return rc;
	l->words = addr;
	l->count = (mib << 20) / sizeof(*l->words);
	for (uint64_t i = 1; i < l->count; i++)
		l->words[i] = mix(i);
	return perseas_publish(l->owner->p);
}

static int begin(struct large *l, const char *store, const char *mirrors,
                 const struct perseas_options *options, uint64_t mib)
{
	struct perseas_segment_info info;
	void *addr = NULL;
	int rc;

	l->began = now_ns();
	rc = perseas_open(store, mirrors, options, &l->owner->p);
	if (rc)
		return rc;
	l->opened = now_ns();
	if (perseas_segment(l->owner->p, SEGMENT, &info))
		return make(l, mib);
	rc = perseas_map(l->owner->p, SEGMENT, 0, &addr);
	l->words = addr;
	l->count = info.size / sizeof(*l->words);
	return rc;
}

static int change(struct large *l, perseas_tx_t *tx, uint64_t word, uint64_t to)
{
	int rc = perseas_set_range(tx, &l->words[word], sizeof(l->words[word]));

	if (!rc)
		l->words[word] = to;
	return rc;
}

static uint64_t missing_bytes(const struct large *l)
{
	struct perseas_stat stat;

	return perseas_stat(l->owner->p, &stat) ? 0 : stat.missing;
}

static int transact(struct large *l, uint64_t k)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(l->owner->p, 0, &tx);

	if (rc)
		return rc;
	for (unsigned j = 0; j < WORDS && !rc; j++)
		rc = change(l, tx, place(l, k, j), value(k, j));
	if (!rc)
		rc = change(l, tx, 0, k);
	l->owner->page->attempted = k;
	if (!rc)
		rc = perseas_commit(tx, 0);
	if (rc == PERSEAS_EINDOUBT)
		rc = perseas_flush(l->owner->p);
	if (!rc)
		l->owner->page->acked = k;
	l->owner->page->missing = missing_bytes(l);
	return rc;
}

static void report(struct large *l, uint64_t found, uint64_t acked)
{
	l->first = now_ns();
	printf("open=%llu first=%llu found=%llu acked=%llu missing=%llu\n",
	       (unsigned long long)(l->opened - l->began),
	       (unsigned long long)(l->first - l->began), (unsigned long long)found,
	       (unsigned long long)acked, (unsigned long long)l->owner->page->missing);
	fflush(stdout);
}

static int run(struct large *l, uint64_t count)
{
	const uint64_t found = l->words[0], acked = l->owner->page->acked;
	int rc = transact(l, found + 1);

	if (rc)
		return rc;
	report(l, found, acked);
	for (uint64_t done = 1; done < count && !l->owner->page->stop && !rc; done++)
		rc = transact(l, found + done + 1);
	return rc;
}

/* --- the check --- */

static int compare(const struct large *l)
{
	uint64_t *expected = malloc(l->count * sizeof(*expected)), wrong = 0;

	if (!expected)
		return EXIT_FAILURE;
	expected[0] = l->words[0];
	for (uint64_t i = 1; i < l->count; i++)
		expected[i] = mix(i);
	for (uint64_t k = 1; k <= expected[0]; k++)
		for (unsigned j = 0; j < WORDS; j++)
			expected[place(l, k, j)] = value(k, j);
	for (uint64_t i = 0; i < l->count; i++)
		wrong += expected[i] != l->words[i];
	free(expected);
	if (wrong)
		fprintf(stderr, "%llu words are not as transaction %llu left them\n",
		        (unsigned long long)wrong, (unsigned long long)l->words[0]);
	return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

int large_run(struct owner *owner, const char *store, const char *mirrors,
              const struct perseas_options *options, uint64_t mib, uint64_t count, bool check)
{
	struct large l = { .owner = owner };
	int rc = begin(&l, store, mirrors, options, mib), status = EXIT_SUCCESS;

	if (!rc)
		rc = run(&l, count);
	if (!rc && check)
		rc = perseas_wait_whole(owner->p, -1);
	if (!rc && check)
		status = compare(&l);
	if (rc) {
		fprintf(stderr, "%s: %s\n%s", perseas_error_name(rc), perseas_message(owner->p),
		        owner->p ? perseas_report(owner->p) : "");
		return EXIT_FAILURE;
	}
	perseas_close(owner->p);
	owner->p = NULL;
	return status;
}
