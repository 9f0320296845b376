/*
 * list_lookup.c - see list_lookup.h. Its thread and its caller share a lookup, and the last of the
 * two frees it. There is no lock: after a fork the child may drop a lookup whose thread only the
 * parent has.
 */
#include "list_lookup.h"

#include "../../proto/base/detached.h"
#include "list_by_name.h"
#include "socket.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct ps_list_lookup {
	atomic_uint users;
	atomic_bool ended; /* set last, after `error` and `list` */
	int fd;            /* an eventfd that is written when the lookup ends */
	struct ps_error error;
	char list[PS_LIST_TEXT];
	char text[];
};

static void release_lookup(struct ps_list_lookup *lookup)
{
	if (atomic_fetch_sub(&lookup->users, 1) > 1)
		return;
	close(lookup->fd);
	free(lookup);
}

static void *run_lookup(void *arg)
{
	struct ps_list_lookup *lookup = arg;
	const uint64_t one = 1;

	(void)ps_list_by_name(lookup->text, lookup->list, &lookup->error);
	atomic_store(&lookup->ended, true);
	(void)!write(lookup->fd, &one, sizeof(one));
	release_lookup(lookup);
	return NULL;
}

static int fail_start(struct ps_error *error, const char *text, int number)
{
	return ps_error_set(error, PERSEAS_ESYSTEM,
	                    "the mirrors of %.300s cannot be looked up: %s; raise the limits of "
	                    "threads and descriptors (ulimit -u, ulimit -n)",
	                    text, strerror(number));
}

int ps_list_lookup_begin(struct ps_env *env, const char *text, struct ps_list_lookup **lookup,
                         struct ps_error *error)
{
	struct ps_list_lookup *made;
	int number;

	(void)env;
	*lookup = NULL;
	if (!ps_list_is_named(text))
		return 0;
	made = calloc(1, sizeof(*made) + strlen(text) + 1);
	if (!made)
		return ps_error_set(error, PERSEAS_ENOMEM, "out of memory");
	strcpy(made->text, text);
	made->users = 2;
	made->fd = ps_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	number = made->fd < 0 ? errno : ps_detached_thread_start(run_lookup, made);
	if (!number) {
		*lookup = made;
		return 0;
	}
	if (made->fd >= 0)
		close(made->fd);
	free(made);
	return fail_start(error, text, number);
}

bool ps_list_lookup_wait(struct ps_list_lookup *lookup, uint64_t until_ns, char list[PS_LIST_TEXT],
                         struct ps_error *error)
{
	struct pollfd fd = { .fd = lookup->fd, .events = POLLIN };

	while (!atomic_load(&lookup->ended))
		if (!ps_poll(&fd, 1, until_ns) && ps_monotonic() >= until_ns)
			return false;
	strcpy(list, lookup->list);
	*error = lookup->error;
	return true;
}

int ps_list_lookup_fd(const struct ps_list_lookup *lookup)
{
	return lookup->fd;
}

void ps_list_lookup_drop(struct ps_list_lookup *lookup)
{
	release_lookup(lookup);
}
