/*
 * threads.c - several threads that commit at the same time. The program isolates them by locks of
 * its own, one for each shelf.
 *
 *     threads LIST
 */
#define _POSIX_C_SOURCE 200809L
#include <perseas.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

enum { SHELVES = 8, THREADS = 4, ROUNDS = 500 };

struct shelf {
	long boxes;
};

/* begin locks */
/* Locks belong to this process. The next owner would find a lock in a segment locked for ever. */
static pthread_mutex_t locks[SHELVES] = {
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
};
static struct shelf *shelves;
static perseas_t *p;

/* Moves a box. Holds the locks until commit has returned, because the changes can be undone until
 * then. */
static int move_box(int from, int to)
{
	int low = from < to ? from : to, high = from < to ? to : from;
	perseas_tx_t *tx;
	bool open = true;
	int rc;

	pthread_mutex_lock(&locks[low]); /* in order, to avoid a deadlock */
	pthread_mutex_lock(&locks[high]);
	rc = perseas_begin(p, 0, &tx);
	if (!rc) {
		rc = perseas_set_range(tx, &shelves[from], sizeof(shelves[from]));
		if (!rc)
			rc = perseas_set_range(tx, &shelves[to], sizeof(shelves[to]));
		if (!rc) {
			shelves[from].boxes--;
			shelves[to].boxes++;
			rc = perseas_commit(tx, 0);
			open = rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED;
		}
		if (open)
			perseas_abort(tx);
	}
	pthread_mutex_unlock(&locks[high]);
	pthread_mutex_unlock(&locks[low]);
	return rc;
}
/* end locks */

static void *run(void *arg)
{
	const int number = (int)(size_t)arg;
	int rc = 0;

	for (int i = 0; i < ROUNDS && !rc; i++) {
		int from = (number + i) % SHELVES;

		rc = move_box(from, (from + 1 + i % (SHELVES - 1)) % SHELVES);
	}
	if (rc)
		fprintf(stderr, "thread %d: %s: %s\n", number, perseas_error_name(rc),
		        perseas_message(p)); /* of this thread's last call */
	return NULL;
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	pthread_t threads[THREADS];
	struct perseas_stat stat;
	void *memory;
	long sum = 0;

	if (argc != 2)
		return 2;
	options.flags = PERSEAS_CREATE | PERSEAS_CHECK_OVERLAP;
	if (perseas_open("shelves", argv[1], &options, &p)) {
		fprintf(stderr, "threads: %s\n", perseas_message(NULL));
		return 1;
	}
	if (perseas_map(p, "shelves", SHELVES * sizeof(*shelves), &memory) || perseas_publish(p)) {
		fprintf(stderr, "threads: %s\n", perseas_message(p));
		return 1;
	}
	shelves = (struct shelf *)memory;
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SHELVES; i++)
		sum += shelves[i].boxes;
	perseas_stat(p, &stat);
	printf("%d threads, %lu commits, %ld boxes\n", THREADS, (unsigned long)stat.commits, sum);
	return perseas_close(p);
}
