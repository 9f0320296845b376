/*
 * listen_name.c - see listen_name.h. A lookup is shared by its thread and its caller and freed by
 * the last of them, because getaddrinfo() may take arbitrarily long.
 */
#include "listen_name.h"

#include "../../proto/base/detached.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct name_lookup {
	atomic_uint users; /* 2, or 1 after the thread or the caller has released it */
	atomic_bool ended; /* set after `refused` and `found` */
	int fd;            /* eventfd, written when the lookup has ended */
	int refused;       /* error of getaddrinfo(); 0: none */
	struct addrinfo *found;
	struct endpoint endpoint;
};

static int resolve_host(const struct endpoint *endpoint, int flags, struct addrinfo **found)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV | flags,
	};

	*found = NULL;
	return getaddrinfo(endpoint->host, endpoint->port, &hints, found);
}

static void release_lookup(struct name_lookup *lookup)
{
	if (atomic_fetch_sub(&lookup->users, 1) > 1)
		return;
	if (lookup->found)
		freeaddrinfo(lookup->found);
	close(lookup->fd);
	free(lookup);
}

static void *run_lookup(void *arg)
{
	struct name_lookup *lookup = arg;
	const uint64_t one = 1;

	lookup->refused = resolve_host(&lookup->endpoint, 0, &lookup->found);
	atomic_store(&lookup->ended, true);
	(void)!write(lookup->fd, &one, sizeof(one));
	release_lookup(lookup);
	return NULL;
}

/* Returns NULL with errno set on failure. */
static struct name_lookup *start_lookup(const struct endpoint *endpoint)
{
	struct name_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup)
		return NULL;
	lookup->endpoint = *endpoint;
	lookup->users = 2;
	lookup->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lookup->fd >= 0) {
		errno = ps_detached_thread_start(run_lookup, lookup);
		if (!errno)
			return lookup;
		close(lookup->fd);
	}
	free(lookup);
	return NULL;
}

static void explain_refusal(const struct endpoint *endpoint, int refused, char *why, size_t size)
{
	if (refused == EAI_AGAIN)
		snprintf(why, size,
		         "cannot listen on %s:%s: no name server says now which address that is; "
		         "give the address as a number, put the name into /etc/hosts, or start the "
		         "name server first",
		         endpoint->host, endpoint->port);
	else
		snprintf(why, size, "cannot listen on %s:%s: %s", endpoint->host, endpoint->port,
		         gai_strerror(refused));
}

/* Waits for at most limit_ms. Returns true if the lookup has ended. */
static bool await_lookup(const struct name_lookup *lookup, int limit_ms)
{
	struct pollfd fd = { .fd = lookup->fd, .events = POLLIN };
	int ready;

	do
		ready = poll(&fd, 1, limit_ms);
	while (ready < 0 && errno == EINTR);
	return atomic_load(&lookup->ended);
}

struct addrinfo *listen_lookup(const struct endpoint *endpoint, int limit_ms, char *why,
                               size_t size)
{
	struct name_lookup *lookup;
	struct addrinfo *found;
	int refused = EAI_AGAIN;

	if (!resolve_host(endpoint, AI_NUMERICHOST, &found))
		return found;
	lookup = start_lookup(endpoint);
	if (!lookup) {
		snprintf(why, size, "cannot look up %s: %s", endpoint->host, strerror(errno));
		return NULL;
	}
	if (await_lookup(lookup, limit_ms)) {
		refused = lookup->refused;
		found = lookup->found;
		lookup->found = NULL;
	}
	release_lookup(lookup);
	if (refused)
		explain_refusal(endpoint, refused, why, size);
	return refused ? NULL : found;
}
