/*
 * hashmap.c - texts by their names, in a hash table (hash.h) that several threads change.
 *
 *     hashmap LIST put KEY VALUE | get KEY | remove KEY | show | work THREADS COUNT
 */
#include "hash.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 16, KEPT = 100 };

static perseas_t *p;
static perseas_heap_t *heap;
static struct hash hash;

static struct hash_bytes bytes_of(const char *text)
{
	struct hash_bytes bytes = { text, strlen(text) + 1 };

	return bytes;
}

/* begin transact */
/* Runs `change` in a transaction, and again after each lock that an older transaction holds.
 * Returns the result of `change` (0 or 1), or an error. */
static int transact(int (*change)(perseas_tx_t *tx, void *arg), void *arg)
{
	perseas_tx_t *tx;
	int code, rc = perseas_begin(p, 0, &tx);

	if (rc)
		return rc;
	while ((code = change(tx, arg)) == PERSEAS_ECONFLICT) {
		rc = perseas_retry(tx);
		if (rc)
			return rc; /* the transaction has ended */
	}
	if (code < 0) {
		perseas_abort(tx);
		return code;
	}
	rc = perseas_commit(tx, 0);
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc ? rc : code;
}
/* end transact */

struct request {
	char **words; /* a verb, a key, and a value */
	char *found;  /* a copy, which is printed after the transaction */
};

static int obey_words(perseas_tx_t *tx, void *arg)
{
	struct request *request = (struct request *)arg;
	struct hash_bytes key = bytes_of(request->words[1]), value;
	int rc;

	if (strcmp(request->words[0], "put") == 0)
		return hash_put(tx, &hash, key, bytes_of(request->words[2]));
	if (strcmp(request->words[0], "remove") == 0)
		return hash_remove(tx, &hash, key);
	rc = hash_get(tx, &hash, key, &value);
	if (!rc) {
		free(request->found);
		request->found = (char *)malloc(value.size);
		if (!request->found)
			return PERSEAS_ENOMEM;
		memcpy(request->found, value.at, value.size);
	}
	return rc;
}

static int print(void *arg, struct hash_bytes key, struct hash_bytes value)
{
	(void)arg;
	printf("%s = %.40s\n", (const char *)key.at, (const char *)value.at);
	return 0;
}

static int show(perseas_tx_t *tx, void *arg)
{
	struct perseas_heap_stat stat;
	uint64_t count;
	int rc = perseas_heap_check(heap);

	(void)arg;
	if (!rc)
		rc = perseas_heap_stat(heap, &stat);
	if (!rc)
		rc = hash_walk(tx, &hash, print, NULL);
	if (!rc)
		rc = hash_count(tx, &hash, &count);
	if (!rc)
		printf("%" PRIu64 " keys, %" PRIu64 " objects\n", count, stat.objects);
	return rc;
}

/* --- threads --- */

struct worker {
	pthread_t thread;
	int number;
	long count; /* transactions to make */
	long last;  /* last number that it stored */
	int rc;
};

/* Each thread stores the numbers that it counts, removes old ones, and stores the last number under
 * its own name. */
static int count_on(perseas_tx_t *tx, void *arg)
{
	struct worker *worker = (struct worker *)arg;
	char name[32], key[64], text[320];
	struct hash_bytes value;
	long next = 0;
	int rc;

	snprintf(name, sizeof(name), "%d", worker->number);
	rc = hash_get(tx, &hash, bytes_of(name), &value);
	if (!rc)
		next = atol((const char *)value.at) + 1;
	snprintf(key, sizeof(key), "%d-%ld", worker->number, next);
	/* Each text has another length: */
	snprintf(text, sizeof(text), "%ld %*s", next, (int)(next % 300), "");
	if (rc >= 0)
		rc = hash_put(tx, &hash, bytes_of(name), bytes_of(text));
	if (!rc)
		rc = hash_insert(tx, &hash, bytes_of(key), bytes_of(text));
	if (!rc && next >= KEPT) {
		snprintf(name, sizeof(name), "%d-%ld", worker->number, next - KEPT);
		rc = hash_remove(tx, &hash, bytes_of(name));
	}
	if (rc > 0)
		rc = PERSEAS_EHEAP; /* the contents are not as this program left them */
	worker->last = next;
	return rc;
}

static void *run_worker(void *arg)
{
	struct worker *worker = (struct worker *)arg;

	for (long left = worker->count; left > 0 && !worker->rc; left--) {
		worker->rc = transact(count_on, worker);
		if (worker->rc) /* only this thread knows the error */
			fprintf(stderr, "hashmap: thread %d: %s\n", worker->number,
			        perseas_message(p));
		else
			printf("%d-%ld\n", worker->number, worker->last);
	}
	return NULL;
}

static int work(int threads, long count)
{
	static struct worker workers[THREADS];
	int started = 0, rc = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (; started < threads && started < THREADS; started++) {
		workers[started].number = started;
		workers[started].count = count;
		if (pthread_create(&workers[started].thread, NULL, run_worker, &workers[started]))
			break;
	}
	for (int i = 0; i < started; i++) {
		pthread_join(workers[i].thread, NULL);
		rc = rc ? rc : workers[i].rc;
	}
	return rc;
}

/* --- the program --- */

static int open_table(void)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	int rc;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 1 << 20; /* bytes; the heap grows when they are used up */
	rc = perseas_heap_open(p, "map", &options, &heap);
	return rc ? rc : hash_open(p, heap, "map", &hash);
}

static int obey(char **words)
{
	struct request request = { words, NULL };
	int rc = open_table();

	if (rc)
		return rc;
	if (strcmp(words[0], "show") == 0)
		return transact(show, NULL);
	if (strcmp(words[0], "work") == 0)
		return work(atoi(words[1]), atol(words[2]));
	rc = transact(obey_words, &request);
	if (rc >= 0 && (rc || request.found))
		printf("%s\n", rc ? "not there" : request.found);
	free(request.found);
	return rc > 0 ? 0 : rc;
}

static int is_known(int argc, char **argv)
{
	static const char *const verbs[] = { "show", "get", "remove", "put", "work" };
	static const int words[] = { 3, 4, 4, 5, 5 };
	int known = 0;

	for (int i = 0; i < 5 && argc > 2; i++)
		known |= strcmp(argv[2], verbs[i]) == 0 && argc == words[i];
	return known;
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	int rc;

	if (!is_known(argc, argv)) {
		fprintf(stderr, "hashmap LIST put KEY VALUE | get KEY | remove KEY | show | "
		                "work THREADS COUNT\n");
		return 2;
	}
	options.flags = PERSEAS_CREATE;
	rc = perseas_open("map", argv[1], &options, &p);
	if (rc) {
		fprintf(stderr, "hashmap: %s\n", perseas_message(NULL));
		return 1;
	}
	rc = obey(argv + 2);
	if (rc)
		fprintf(stderr, "hashmap: %s: %s\n", perseas_error_name(rc), perseas_message(p));
	perseas_close(p);
	return rc != 0;
}
