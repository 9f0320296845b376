/*
 * cancel.c - a program whose threads are cancelled in each call that can wait: "cancel MIRRORS".
 * Each call begins with a cancellation pending, so that the first cancellation point in it would
 * end its thread. It prints each call that did not return, and then "done".
 */
#include <perseas.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *mirrors;
static struct perseas_options options = PERSEAS_OPTIONS_INIT;
static perseas_t *p;
static int *number;

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

static int call_close(void)
{
	return perseas_close(p);
}

static const struct call {
	const char *name;
	int (*fn)(void);
} calls[] = {
	{ "open", call_open },     { "map", call_map },         { "publish", call_publish },
	{ "commit", call_commit }, { "serial", call_serial },   { "nowait", call_nowait },
	{ "flush", call_flush },   { "wait", call_wait },       { "stat", call_stat },
	{ "fd", call_fd },         { "commit", call_commit },   { "nowait", call_nowait },
	{ "flush", call_flush },   { "confirm", call_confirm }, { "close", call_close },
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
	options.flags = PERSEAS_CREATE;
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
