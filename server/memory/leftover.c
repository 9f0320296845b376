/*
 * leftover.c - watches removed files that others have. memory_file.c calls it. It must never keep a
 * file that nobody else has: its memory would not be given back.
 */
#include "leftover.h"

#include "../../proto/image/layout.h"
#include "../host/jobs.h"
#include "piece_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct leftover {
	struct leftover *next;
	struct leftover **list;
	char store[128];
	int fd;
	uint64_t size; /* of the piece */
	bool going;    /* nobody else has it, and it is being closed */
	uint64_t bytes;
	struct job job;
};

/* The kernel grants a lease for writing only if nobody else has the file open. */
static bool is_in_use(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return errno == EAGAIN;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

uint64_t leftover_blocks(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

bool leftover_note(struct leftover **list, const char *store, int fd, uint64_t size)
{
	struct leftover *leftover = is_in_use(fd) ? calloc(1, sizeof(*leftover)) : NULL;

	if (!leftover)
		return false;
	snprintf(leftover->store, sizeof(leftover->store), "%s", store);
	leftover->fd = fd;
	leftover->size = size;
	leftover->list = list;
	leftover->next = *list;
	*list = leftover;
	return true;
}

bool leftover_has(const struct leftover *list, int fd)
{
	struct stat open, st;

	if (fstat(fd, &open) < 0)
		return false;
	for (; list; list = list->next)
		if (fstat(list->fd, &st) == 0 && st.st_dev == open.st_dev &&
		    st.st_ino == open.st_ino)
			return true;
	return false;
}

static void forget_leftover(struct leftover *leftover)
{
	struct leftover **link = leftover->list;

	while (*link != leftover)
		link = &(*link)->next;
	*link = leftover->next;
	free(leftover);
}

/* Does nobody else have it any more? Then whoever asks closes it. */
static bool begin_to_go(struct leftover *leftover)
{
	if (leftover->going || is_in_use(leftover->fd))
		return false;
	leftover->going = true;
	leftover->bytes = leftover_blocks(leftover->fd);
	return true;
}

static void run_close(struct job *job)
{
	struct leftover *leftover = (struct leftover *)((char *)job -
	                                                offsetof(struct leftover, job));

	piece_file_release(leftover->fd, leftover->bytes);
}

static void forget_closed(struct job *job)
{
	forget_leftover((struct leftover *)((char *)job - offsetof(struct leftover, job)));
}

uint64_t leftover_sum(struct leftover **list, const char *store)
{
	struct leftover *next;
	uint64_t bytes = 0;

	for (struct leftover *leftover = *list; leftover; leftover = next) {
		next = leftover->next;
		if (store && strcmp(leftover->store, store) != 0)
			continue;
		if (begin_to_go(leftover)) {
			leftover->job = (struct job){ .run = run_close, .done = forget_closed };
			if (job_later(&leftover->job)) {
				forget_leftover(leftover);
				continue;
			}
		}
		bytes += leftover->going ? leftover->bytes : leftover_blocks(leftover->fd);
	}
	return bytes;
}

static uint64_t excess_of(const struct leftover *leftover)
{
	const uint64_t taken = leftover->going ? 0 : leftover_blocks(leftover->fd);
	const uint64_t own = (leftover->size + PS_PAGE - 1) / PS_PAGE * PS_PAGE;

	return taken > own ? taken - own : 0;
}

uint64_t leftover_excess(const struct leftover *list)
{
	uint64_t bytes = 0;

	for (; list; list = list->next)
		bytes += excess_of(list);
	return bytes;
}

static const struct leftover *first_exceeded(const struct leftover *list)
{
	while (list && excess_of(list) == 0)
		list = list->next;
	return list;
}

/* The list may be another one after each trim, and what was trimmed be closed. A file that grows
 * again at once does not keep this going for ever. */
void leftover_trim(struct leftover *const *list)
{
	unsigned most = 0;

	for (const struct leftover *each = *list; each; each = each->next)
		most++;
	for (; most > 0; most--) {
		const struct leftover *exceeded = first_exceeded(*list);
		const int fd = exceeded ? fcntl(exceeded->fd, F_DUPFD_CLOEXEC, 0) : -1;

		if (fd < 0)
			return;
		(void)piece_file_trim(fd, exceeded->size);
		close(fd);
	}
}

/* The list may be another one after each that goes. */
void leftover_settle(struct leftover **list)
{
	struct leftover *leftover = *list;

	while (leftover) {
		if (begin_to_go(leftover)) {
			run_close(&leftover->job);
			forget_leftover(leftover);
			leftover = *list;
		} else {
			leftover = leftover->next;
		}
	}
}

void leftover_forget(struct leftover **list)
{
	while (*list) {
		close((*list)->fd);
		forget_leftover(*list);
	}
}
