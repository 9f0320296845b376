/*
 * resolver_rig.h - a name service for tests of names: getaddrinfo, in place of the C library's.
 * Numbers go on to that. What names lead to, and whether an answer comes at all, a test says. Only
 * one program can include it, since the library calls this getaddrinfo.
 */
#ifndef PERSEAS_TESTS_RESOLVER_RIG_H
#define PERSEAS_TESTS_RESOLVER_RIG_H

#include "../../client/host/resolver.h"
#include "../support/unit.h"

#include <dlfcn.h>
#include <netdb.h>

static struct name_service {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool silent;          /* no answer comes until it is not */
	const char *leads_to; /* the number behind every name; NULL: there is no such name */
	unsigned asked;       /* how often names were asked for */
	unsigned waiting;     /* threads that have no answer yet */
} names = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

typedef int (*getaddrinfo_function)(const char *, const char *, const struct addrinfo *,
                                    struct addrinfo **);

static int find_number(const char *number, const char *port, struct addrinfo **list)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		                        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	getaddrinfo_function real;

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(number, port, &hints, list);
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **list)
{
	char number[64];
	bool known;

	if (hints->ai_flags & AI_NUMERICHOST)
		return find_number(host, port, list);
	pthread_mutex_lock(&names.lock);
	names.asked++;
	names.waiting++;
	pthread_cond_broadcast(&names.changed);
	while (names.silent)
		pthread_cond_wait(&names.changed, &names.lock);
	known = names.leads_to != NULL;
	snprintf(number, sizeof(number), "%s", known ? names.leads_to : "");
	names.waiting--;
	pthread_cond_broadcast(&names.changed);
	pthread_mutex_unlock(&names.lock);
	return known ? find_number(number, port, list) : EAI_NONAME;
}

static inline void names_set(bool silent, const char *leads_to)
{
	pthread_mutex_lock(&names.lock);
	names.silent = silent;
	names.leads_to = leads_to;
	pthread_cond_broadcast(&names.changed);
	pthread_mutex_unlock(&names.lock);
}

/* Waits until so many threads have asked and have no answer. */
static inline void names_await(unsigned waiting)
{
	struct timespec until;
	int late = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	pthread_mutex_lock(&names.lock);
	while (names.waiting != waiting && !late)
		late = pthread_cond_timedwait(&names.changed, &names.lock, &until);
	pthread_mutex_unlock(&names.lock);
	assert_int_equal(late, 0);
}

/* The number of questions since the last call. */
static inline unsigned names_asked(void)
{
	unsigned asked;

	pthread_mutex_lock(&names.lock);
	asked = names.asked;
	names.asked = 0;
	pthread_mutex_unlock(&names.lock);
	return asked;
}

#endif
