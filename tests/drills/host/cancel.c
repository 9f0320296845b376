/*
 * cancel.c - a program whose threads are cancelled in each call that can wait: "cancel MIRRORS".
 * Each call begins with a cancellation pending, so that the first cancellation point in it would
 * end its thread. It prints each call that did not return, and then "done".
 */
#include <perseas.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *mirrors;
static struct perseas_options options = PERSEAS_OPTIONS_INIT;
static perseas_t *p;
static int *number;
static void *retained; /* memory of segment "moves" that the first close leaves mapped */

static int begin_and_commit(unsigned begin, unsigned commit)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(p, begin, &tx);

	if (!rc)
		rc = perseas_lock(tx, 1, PERSEAS_LOCK_EXCLUSIVE);
	if (!rc)
		rc = perseas_set_range(tx, number, sizeof(*number));
	++*number;
	return rc ? rc : perseas_commit(tx, commit);
}

static int call_create(void)
{
	return perseas_create("cancel", mirrors, &options);
}

static int call_open(void)
{
	return perseas_open("cancel", mirrors, &options, &p);
}

static int call_map(void)
{
	void *memory;
	int rc = perseas_map(p, "number", 4096, &memory);

	number = memory;
	return rc;
}

static int call_publish(void)
{
	return perseas_publish(p);
}

static int call_commit(void)
{
	return begin_and_commit(0, 0);
}

static int call_serial(void)
{
	return begin_and_commit(PERSEAS_SERIAL, 0);
}

static int call_nowait(void)
{
	return begin_and_commit(0, PERSEAS_NOWAIT);
}

static int call_flush(void)
{
	return perseas_flush(p);
}

static int call_confirm(void)
{
	return perseas_confirm(p);
}

static int call_wait(void)
{
	struct perseas_token token;
	int rc = perseas_posted(p, &token);

	return rc ? rc : perseas_wait(p, &token, -1);
}

static int call_stat(void)
{
	struct perseas_stat stat;

	return perseas_stat(p, &stat);
}

static int call_fd(void)
{
	return perseas_fd(p) >= 0 ? 0 : -1;
}

static int call_durable(void)
{
	struct perseas_token token;

	return perseas_durable(p, &token);
}

static int call_figures(void)
{
	static struct perseas_latency latency;
	struct perseas_mirror_stat mirror;
	struct perseas_segment_info segment;
	struct perseas_transaction list[4];
	size_t count;
	int rc = perseas_latency(p, &latency);

	if (!rc)
		rc = perseas_mirror_stat(p, 0, &mirror);
	if (!rc)
		rc = perseas_segment_at(p, 0, &segment);
	if (!rc)
		rc = perseas_open_transactions(p, list, 4, &count);
	return rc || !*perseas_report(p);
}

static int call_copy(void)
{
	int copy;
	const struct perseas_piece piece = { number, sizeof(copy), &copy };

	return perseas_copy_committed(p, &piece, 1, NULL);
}

static int call_retry(void)
{
	perseas_tx_t *tx;
	uint64_t savepoint;
	int rc = perseas_begin(p, 0, &tx);

	if (!rc)
		rc = perseas_savepoint(tx, &savepoint);
	if (!rc)
		rc = perseas_rollback_to(tx, savepoint);
	if (!rc)
		rc = perseas_retry(tx);
	return rc ? rc : perseas_abort(tx);
}

/* perseas_retry_conflict sleeps, with an open transaction and without. */
static int call_retry_conflict(void)
{
	perseas_tx_t *tx;
	unsigned tries = 0;
	int rc = perseas_begin(p, 0, &tx);

	if (!rc)
		rc = perseas_retry_conflict(p, tx, &tries);
	if (!rc)
		rc = perseas_abort(tx);
	return rc ? rc : perseas_retry_conflict(p, NULL, &tries);
}

static int call_grow(void)
{
	size_t whole;
	void *memory;
	int rc = perseas_map_reserve(p, "grows", 4096, 1 << 20, &memory, &whole);

	if (!rc)
		rc = perseas_publish(p);
	if (!rc)
		rc = perseas_segment_grow(p, "grows", 65536);
	return rc ? rc : perseas_unmap(p, memory);
}

static int call_destroy(void)
{
	return perseas_segment_destroy(p, "grows");
}

static int call_map_at(void)
{
	int rc = perseas_map_at(p, "moves", 4096, NULL, &retained, NULL);

	return rc ? rc : perseas_publish(p);
}

static int call_segment(void)
{
	struct perseas_segment_info segment;

	return perseas_segment(p, "moves", &segment);
}

static int call_retain(void)
{
	return perseas_retain(p, retained);
}

static int call_map_over(void)
{
	return perseas_map_over(p, "moves", retained);
}

static int call_open_on_demand(void)
{
	options.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	return call_open();
}

static int call_prefetch(void)
{
	return perseas_prefetch(p, number, 4096);
}

static int call_wait_whole(void)
{
	return perseas_wait_whole(p, -1);
}

static int each_object(void *arg, const struct perseas_object *object)
{
	(void)arg;
	(void)object;
	return 0;
}

static int call_heap(void)
{
	struct perseas_heap_options made = PERSEAS_HEAP_OPTIONS_INIT;
	struct perseas_heap_stat stat;
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	uint64_t given;
	void *object;
	int rc;

	made.flags = PERSEAS_HEAP_CREATE;
	rc = perseas_heap_open(p, "heap", &made, &heap);
	if (!rc)
		rc = perseas_begin(p, 0, &tx);
	if (!rc)
		rc = perseas_alloc(tx, heap, 100, 1, &object);
	if (!rc)
		rc = perseas_root_set(tx, heap, "root", 1, object);
	if (!rc)
		rc = perseas_commit(tx, 0);
	if (!rc)
		rc = perseas_root(heap, "root", 1, &object);
	if (!rc)
		rc = perseas_heap_stat(heap, &stat);
	if (!rc)
		rc = perseas_heap_check(heap);
	if (!rc)
		rc = perseas_heap_walk(heap, PERSEAS_ANY_TYPE, each_object, NULL);
	return rc ? rc : perseas_heap_trim(heap, 0, &given);
}

/* The second mirror leaves, and joins again. */
static int call_roster(void)
{
	const char *second = strchr(mirrors, ',') + 1;
	const struct perseas_roster_change leaves = { .kind = PERSEAS_ROSTER_REMOVE,
		                                      .address = second };
	const struct perseas_roster_change joins = { .kind = PERSEAS_ROSTER_ADD, .with = second };
	const int rc = perseas_roster(p, &leaves);

	return rc ? rc : perseas_roster(p, &joins);
}

static int call_standby(void)
{
	struct perseas_standby_stat stat;
	perseas_standby_t *standby;
	perseas_t *opened;
	int rc = perseas_standby("cancel", mirrors, &options, &standby);

	if (!rc && perseas_standby_wait(standby, 1, &opened) != PERSEAS_ETIMEOUT)
		rc = -1;
	if (!rc)
		rc = perseas_standby_stat(standby, &stat);
	perseas_standby_close(standby);
	return rc;
}

static int call_close(void)
{
	return perseas_close(p);
}

static const struct call {
	const char *name;
	int (*fn)(void);
} calls[] = {
	{ "create", call_create },
	{ "open", call_open },
	{ "map", call_map },
	{ "publish", call_publish },
	{ "commit", call_commit },
	{ "serial", call_serial },
	{ "nowait", call_nowait },
	{ "flush", call_flush },
	{ "wait", call_wait },
	{ "stat", call_stat },
	{ "fd", call_fd },
	{ "durable", call_durable },
	{ "commit", call_commit },
	{ "nowait", call_nowait },
	{ "flush", call_flush },
	{ "confirm", call_confirm },
	{ "figures", call_figures },
	{ "copy", call_copy },
	{ "retry", call_retry },
	{ "retry_conflict", call_retry_conflict },
	{ "grow", call_grow },
	{ "destroy", call_destroy },
	{ "map_at", call_map_at },
	{ "segment", call_segment },
	{ "heap", call_heap },
	{ "roster", call_roster },
	{ "standby", call_standby },
	{ "retain", call_retain },
	{ "close", call_close },
	{ "open_on_demand", call_open_on_demand },
	{ "map", call_map },
	{ "map_over", call_map_over },
	{ "prefetch", call_prefetch },
	{ "wait_whole", call_wait_whole },
	{ "close", call_close },
};

static void *run(void *arg)
{
	const struct call *call = arg;
	static char failed;
	int rc;

	pthread_cancel(pthread_self());
	rc = call->fn();
	return rc ? &failed : NULL;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	mirrors = argv[1];
	options.spin_us = UINT32_MAX;
	options.connect_timeout_ms = options.commit_timeout_ms = options.mirror_timeout_ms = 18000;
	options.open_timeout_ms = 90000;
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		pthread_t thread;
		void *result;

		if (pthread_create(&thread, NULL, run, (void *)&calls[i]) ||
		    pthread_join(thread, &result))
			return 1;
		if (result) {
			printf("%s %s\n", calls[i].name,
			       result == PTHREAD_CANCELED ? "was cancelled" : "failed");
			return 1;
		}
	}
	puts("done");
	return 0;
}
