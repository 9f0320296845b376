/*
 * inserts_bare.c - the upper bound of commits that wait over TCP, for bench/inserts.c: threads that
 * send as many bytes as an insert does, sleep until they are answered, and do nothing else.
 * Messages that several threads send at about the same time take one system call and one answer.
 * There is no table and no transaction: this is what threads that wait for another process can
 * reach on this host.
 */
#include "inserts.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ASKED = 320,
	ANSWERED = 16,
	THREADS = INSERTS_THREADS
}; /* bytes of an insert, and of its answer */

struct waiter {
	pthread_cond_t call;
	uint64_t number;
	bool waits;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter waiters[THREADS];
static uint64_t asked, sent, answered;
static bool led;
static int near_end = -1, far_end = -1;
static pthread_t mirror;
static bool runs;

/* Runs the far end: answers all complete messages that have arrived, together. */
static void *run_mirror(void *arg)
{
	static char bytes[THREADS * ASKED];
	size_t have = 0;
	ssize_t n;

	(void)arg;
	while ((n = recv(far_end, bytes, sizeof(bytes), 0)) > 0) {
		have += (size_t)n;
		if (have >= ASKED &&
		    send(far_end, bytes, have / ASKED * ANSWERED, MSG_NOSIGNAL) < 0)
			break;
		have %= ASKED;
	}
	return NULL;
}

static int connect_ends(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	int rc = -1;

	near_end = socket(AF_INET, SOCK_STREAM, 0);
	if (listener >= 0 && near_end >= 0 && !bind(listener, (struct sockaddr *)&at, length) &&
	    !listen(listener, 1) && !getsockname(listener, (struct sockaddr *)&at, &length) &&
	    !connect(near_end, (struct sockaddr *)&at, length)) {
		far_end = accept(listener, NULL, NULL);
		rc = far_end < 0 ? -1 : 0;
	}
	if (listener >= 0)
		close(listener);
	return rc;
}

static int open_bare(const struct inserts_place *place, char *why)
{
	(void)place;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_cond_init(&waiters[i].call, NULL);
	runs = !connect_ends() && !pthread_create(&mirror, NULL, run_mirror, NULL);
	if (runs)
		return 0;
	snprintf(why, INSERTS_WHY, "no connection on this host");
	return -1;
}

/* Collects the condition variables of threads whose answers have arrived. If the leader is done,
 * adds one thread that still waits, which becomes the next leader. Returns how many there are. */
static unsigned take_called(bool ends, pthread_cond_t **calls)
{
	struct waiter *next = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		struct waiter *w = &waiters[i];

		if (!w->waits)
			continue;
		if (w->number > answered) {
			next = w;
			continue;
		}
		w->waits = false;
		calls[count++] = &w->call;
	}
	if (ends && next) {
		next->waits = false;
		calls[count++] = &next->call;
	}
	return count;
}

/* Sends the messages of all threads, waits for answers, and wakes the threads. Caller holds `lock`,
 * which is released meanwhile. Returns 0, or -1 if the connection broke. */
static int lead(uint64_t number)
{
	static const char bytes[THREADS * ASKED];
	char answers[THREADS * ANSWERED];
	pthread_cond_t *calls[THREADS];
	const size_t count = (size_t)(asked - sent);
	unsigned called;
	ssize_t n;

	led = true;
	sent = asked;
	pthread_mutex_unlock(&lock);
	if (count && send(near_end, bytes, count * ASKED, MSG_NOSIGNAL) < 0)
		n = -1;
	else
		n = recv(near_end, answers, sizeof(answers), 0);
	pthread_mutex_lock(&lock);
	led = false;
	answered += n > 0 ? (uint64_t)n / ANSWERED : 0;
	called = take_called(answered >= number, calls);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < called; i++)
		pthread_cond_signal(calls[i]);
	pthread_mutex_lock(&lock);
	return n > 0 ? 0 : -1;
}

static int insert_bare(uint64_t key, const void *value, char *why)
{
	static unsigned threads;
	static _Thread_local unsigned own; /* index of the thread; threads of earlier rounds leave
	                                      theirs unused */
	uint64_t number;
	int rc = 0;

	(void)key;
	(void)value;
	pthread_mutex_lock(&lock);
	if (!own)
		own = ++threads;
	number = ++asked;
	while (answered < number && !rc) {
		struct waiter *w = &waiters[own % THREADS];

		if (!led) {
			rc = lead(number);
			continue;
		}
		w->number = number;
		w->waits = true;
		pthread_cond_wait(&w->call, &lock);
		w->waits = false;
	}
	pthread_mutex_unlock(&lock);
	if (rc)
		snprintf(why, INSERTS_WHY, "the connection broke");
	return rc;
}

static int content_bare(struct inserts_content *content, char *why)
{
	(void)why;
	content->keys = answered;
	return 0;
}

static void close_bare(void)
{
	if (near_end >= 0)
		shutdown(near_end, SHUT_RDWR);
	if (runs)
		pthread_join(mirror, NULL);
	if (near_end >= 0)
		close(near_end);
	if (far_end >= 0)
		close(far_end);
}

const struct inserts inserts_bare = {
	"bare",      open_bare,
	insert_bare, NULL,
	NULL,        content_bare,
	close_bare,  "keeps nothing: it sends as many bytes as an insert, and waits for an answer",
};
