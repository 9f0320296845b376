/*
 * handles.c - schedules of client/python/native*.c that Python cannot be made to run, with the
 * library and a mirror. test_handles.py compiles it with sanitizers, which see memory that is used
 * when it is freed; pthread_mutex_lock, pthread_cond_wait and perseas_set_range are wrapped
 * (ld --wrap).
 *
 *     handles MIRRORS TEST
 */
#include "native.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                               \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

static const char *mirrors;
static char area[4096];
static struct ps_py_store *store;
static struct ps_py_tx *tx;

/* --- what is wrapped --- */

/* What the calling thread is, in the schedule of a test. */
static _Thread_local enum { NOBODY, WORKER, CLOSER } who;
static sem_t in_call, may_return, waits, is_freed;

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_perseas_set_range(perseas_tx_t *t, const void *addr, size_t len);
int __wrap_perseas_set_range(perseas_tx_t *t, const void *addr, size_t len);

/* A lock that is freed is no lock: the sanitizer sees it here, and not only what is read behind it,
 * which nobody would come to. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	(void)*(volatile char *)lock;
	return __real_pthread_mutex_lock(lock);
}

/* The thread that closes is woken late: when the other one has freed its transaction. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	int is_closer = who == CLOSER, rc;

	if (is_closer)
		sem_post(&waits);
	rc = __real_pthread_cond_wait(cond, lock);
	if (is_closer) {
		pthread_mutex_unlock(lock);
		sem_wait(&is_freed);
		sem_post(&is_freed);
		pthread_mutex_lock(lock);
	}
	return rc;
}

int __wrap_perseas_set_range(perseas_tx_t *t, const void *addr, size_t len)
{
	if (who == WORKER) {
		sem_post(&in_call);
		sem_wait(&may_return);
	}
	return __real_perseas_set_range(t, addr, len);
}

/* --- tests --- */

static struct ps_py_store *open_store(const char *name, unsigned flags)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_py_store *s = ps_py_store_new(1);
	int rc;

	options.flags = flags;
	rc = ps_py_open(s, name, mirrors, &options);
	if (rc)
		fprintf(stderr, "%s\n", perseas_message(NULL));
	EXPECT(rc == 0);
	return s;
}

static void *work(void *arg)
{
	(void)arg;
	who = WORKER;
	EXPECT(ps_py_begin(tx, 0) == 0);
	(void)ps_py_set_range(tx, area, 1);
	ps_py_tx_free(tx);
	sem_post(&is_freed);
	return NULL;
}

static void *end(void *arg)
{
	(void)arg;
	who = CLOSER;
	EXPECT(ps_py_close(store) == 0);
	return NULL;
}

/* A transaction is freed when its call has returned and a close, which waited for that call, has
 * not got on yet. It must be out of the list that the close walks. */
static void test_freed_during_a_close(void)
{
	pthread_t worker, closer;

	store = open_store("s", PERSEAS_CREATE);
	tx = ps_py_tx_new(store);
	EXPECT(!pthread_create(&worker, NULL, work, NULL));
	sem_wait(&in_call);
	EXPECT(!pthread_create(&closer, NULL, end, NULL));
	sem_wait(&waits);
	sem_post(&may_return);
	pthread_join(worker, NULL);
	pthread_join(closer, NULL);
	ps_py_store_free(store);
}

/* A standby is freed before the store that it opened: events still come to it. */
static void test_standby_is_freed_first(void)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_py_standby *by = ps_py_standby_new();
	struct perseas_event event;
	struct ps_py_store *next;

	options.flags = PERSEAS_CREATE;
	EXPECT(ps_py_standby(by, "s", mirrors, &options) == 0);
	store = ps_py_store_new(1);
	EXPECT(ps_py_standby_wait(by, -1, store) == 0);
	ps_py_standby_free(by);
	next = open_store("s", PERSEAS_TAKEOVER);
	EXPECT(ps_py_event_next(store, &event) == 1 && event.text[0]);
	ps_py_store_free(store);
	ps_py_store_free(next);
}

/* A store is freed before its transaction, which was not ended: it is taken back then. */
static void test_store_is_freed_first(void)
{
	struct perseas_stat stat;

	store = open_store("s", PERSEAS_CREATE);
	tx = ps_py_tx_new(store);
	EXPECT(ps_py_begin(tx, 0) == 0);
	EXPECT(ps_py_stat(store, &stat) == 0 && stat.open == 1);
	ps_py_store_free(store);
	EXPECT(!ps_py_is_open(tx) && ps_py_commit(tx, 0) == PS_PY_CLOSED);
	ps_py_tx_free(tx);
}

int main(int argc, char **argv)
{
	EXPECT(argc == 3);
	mirrors = argv[1];
	sem_init(&in_call, 0, 0);
	sem_init(&may_return, 0, 0);
	sem_init(&waits, 0, 0);
	sem_init(&is_freed, 0, 0);
	if (!strcmp(argv[2], "freed-during-a-close"))
		test_freed_during_a_close();
	else if (!strcmp(argv[2], "standby-is-freed-first"))
		test_standby_is_freed_first();
	else if (!strcmp(argv[2], "store-is-freed-first"))
		test_store_is_freed_first();
	else
		return 2;
	return 0;
}
