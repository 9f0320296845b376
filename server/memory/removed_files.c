/*
 * removed_files.c - watches removed files that other processes still have. memory_file.c calls it.
 * A file that no other process has must be closed, or its memory would never be freed.
 */
#include "removed_files.h"

#include "../../proto/image/layout.h"
#include "../host/jobs.h"
#include "piece_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct removed_file {
	struct removed_file *next;
	struct removed_file **list;
	char store[128];
	int fd;
	uint64_t size;   /* size of the piece */
	bool is_closing; /* no other process has the file, and it is being closed */
	uint64_t bytes;  /* bytes that the file occupied when its closing began */
	struct job job;
};

/* The kernel grants a write lease only if no other process has the file open. */
static bool is_open_elsewhere(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return errno == EAGAIN;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

uint64_t occupied_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

bool removed_files_add(struct removed_file **list, const char *store, int fd, uint64_t size)
{
	struct removed_file *removed_file = is_open_elsewhere(fd) ? calloc(1, sizeof(*removed_file))
	                                                          : NULL;

	if (!removed_file)
		return false;
	snprintf(removed_file->store, sizeof(removed_file->store), "%s", store);
	removed_file->fd = fd;
	removed_file->size = size;
	removed_file->list = list;
	removed_file->next = *list;
	*list = removed_file;
	return true;
}

bool removed_files_contain(const struct removed_file *list, int fd)
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

static void remove_from_list(struct removed_file *removed_file)
{
	struct removed_file **link = removed_file->list;

	assert(*link);
	while (*link != removed_file)
		link = &(*link)->next;
	*link = removed_file->next;
	free(removed_file);
}

/* Returns true if no other process has the file any more; the caller must then close it. */
static bool begin_close_job(struct removed_file *removed_file)
{
	if (removed_file->is_closing || is_open_elsewhere(removed_file->fd))
		return false;
	assert(!removed_file->is_closing);
	removed_file->is_closing = true;
	removed_file->bytes = occupied_bytes(removed_file->fd);
	return true;
}

static void run_close(struct job *job)
{
	struct removed_file *removed_file =
		(struct removed_file *)((char *)job - offsetof(struct removed_file, job));

	piece_file_close_removed(removed_file->fd, removed_file->bytes);
}

static void finish_close_job(struct job *job)
{
	remove_from_list((struct removed_file *)((char *)job - offsetof(struct removed_file, job)));
}

uint64_t removed_files_bytes(struct removed_file **list, const char *store)
{
	struct removed_file *next;
	uint64_t bytes = 0;

	for (struct removed_file *removed_file = *list; removed_file; removed_file = next) {
		next = removed_file->next;
		if (store && strcmp(removed_file->store, store) != 0)
			continue;
		if (begin_close_job(removed_file)) {
			removed_file->job = (struct job){ .run = run_close,
				                          .done = finish_close_job };
			if (job_queue(&removed_file->job)) {
				remove_from_list(removed_file);
				continue;
			}
		}
		bytes += removed_file->is_closing ? removed_file->bytes
		                                  : occupied_bytes(removed_file->fd);
	}
	return bytes;
}

static uint64_t bytes_beyond_size(const struct removed_file *removed_file)
{
	const uint64_t taken = removed_file->is_closing ? 0 : occupied_bytes(removed_file->fd);
	const uint64_t own = (removed_file->size + PS_PAGE - 1) / PS_PAGE * PS_PAGE;

	return taken > own ? taken - own : 0;
}

uint64_t removed_files_bytes_beyond_pieces(const struct removed_file *list)
{
	uint64_t bytes = 0;

	for (; list; list = list->next)
		bytes += bytes_beyond_size(list);
	return bytes;
}

static const struct removed_file *find_file_beyond_piece(const struct removed_file *list)
{
	while (list && bytes_beyond_size(list) == 0)
		list = list->next;
	return list;
}

/* Searches the list again after each trim, because a trim may give up the turn (jobs.h) and the
 * list may change. Limits the number of trims, because a file may grow again at once. */
void removed_files_trim_to_pieces(struct removed_file *const *list)
{
	unsigned most = 0;

	for (const struct removed_file *each = *list; each; each = each->next)
		most++;
	for (; most > 0; most--) {
		const struct removed_file *oversized = find_file_beyond_piece(*list);
		const int fd = oversized ? fcntl(oversized->fd, F_DUPFD_CLOEXEC, 0) : -1;

		if (fd < 0)
			return;
		(void)piece_file_trim(fd, oversized->size);
		close(fd);
	}
}

/* Begins again after each file that is closed, because the list may have changed. */
void removed_files_close_unused(struct removed_file **list)
{
	struct removed_file *removed_file = *list;

	while (removed_file) {
		if (begin_close_job(removed_file)) {
			run_close(&removed_file->job);
			remove_from_list(removed_file);
			removed_file = *list;
		} else {
			removed_file = removed_file->next;
		}
	}
}

void removed_files_close_all(struct removed_file **list)
{
	while (*list) {
		close((*list)->fd);
		remove_from_list(*list);
	}
}
