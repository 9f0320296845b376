/*
 * retained.c - see retained.h. The list belongs to the process, since the handle that left the
 * memory no longer exists when another one wants it. A range that is left again is noted once.
 */
#include "retained.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct range {
	struct range *next;
	uint64_t start, end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;

void ps_retained_add_range(uint64_t start, uint64_t size)
{
	const uint64_t end = start + size;
	struct range *range;

	pthread_mutex_lock(&lock);
	for (range = ranges; range && (range->start != start || range->end != end);)
		range = range->next;
	if (!range && (range = malloc(sizeof(*range)))) {
		*range = (struct range){ ranges, start, end };
		ranges = range;
	}
	pthread_mutex_unlock(&lock);
}

/* Returns how far memory is retained from `at` on; `at` if it is not. */
static uint64_t end_of_retained_memory(uint64_t at)
{
	uint64_t end = at;

	assert(pthread_mutex_trylock(&lock) == EBUSY);
	for (const struct range *range = ranges; range; range = range->next)
		if (range->start <= at && range->end > end)
			end = range->end;
	return end;
}

bool ps_retained_covers_whole_range(uint64_t start, uint64_t size)
{
	const uint64_t end = start + size;
	uint64_t at = start, next;

	pthread_mutex_lock(&lock);
	while (at < end && (next = end_of_retained_memory(at)) > at)
		at = next;
	pthread_mutex_unlock(&lock);
	return at >= end;
}
