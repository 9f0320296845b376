/*
 * reservations.c - see reservations.h. memory_file.c calls it. It identifies files by inode,
 * because processes that were given a file can change its name and size.
 */
#include "reservations.h"

#include "../../proto/base/large_page.h"
#include "../../proto/image/layout.h"
#include "piece_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct reservation {
	struct reservation *next;
	ino_t inode;
	int fd;         /* descriptor of the open piece; -1: closed */
	uint64_t size;  /* size of the piece */
	uint64_t bytes; /* bytes that a file of that size occupies */
};

static uint64_t round_up_to_page(uint64_t size, uint64_t page)
{
	return (size + page - 1) / page * page;
}

/* Returns how many bytes a file of `size` bytes may occupy, given that it occupies `taken`: between
 * whole pages and whole large pages, as the file system chooses. */
static uint64_t expected_occupied_bytes(uint64_t taken, uint64_t size)
{
	const uint64_t least = round_up_to_page(size, PS_PAGE),
		       most = round_up_to_page(size, PS_LARGE_PAGE);

	assert(least <= most);
	return taken < least ? least : taken > most ? most : taken;
}

static struct reservation *find_by_inode(struct reservation *list, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	while (list && list->inode != st.st_ino)
		list = list->next;
	return list;
}

static struct reservation *find_by_descriptor(struct reservation *list, int fd)
{
	while (list && list->fd != fd)
		list = list->next;
	return list;
}

int reservation_add(struct reservation **list, int fd, uint64_t size)
{
	struct reservation *reservation = find_by_inode(*list, fd);
	struct stat st;

	if (fstat(fd, &st) < 0)
		return errno;
	if (!reservation) {
		reservation = malloc(sizeof(*reservation));
		if (!reservation)
			return ENOMEM;
		reservation->next = *list;
		*list = reservation;
	}
	assert(size > 0 && reservation->next != reservation);
	reservation->inode = st.st_ino;
	reservation->fd = fd;
	reservation->size = size;
	reservation->bytes = expected_occupied_bytes((uint64_t)st.st_blocks * 512, size);
	return 0;
}

void reservation_mark_piece_closed(struct reservation *list, int fd)
{
	struct reservation *reservation = find_by_descriptor(list, fd);

	if (reservation)
		reservation->fd = -1;
}

uint64_t reservation_size(const struct reservation *list, int fd)
{
	const struct reservation *reservation = find_by_inode((struct reservation *)list, fd);
	struct stat st;

	if (reservation)
		return reservation->size;
	return fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? 0 : (uint64_t)st.st_size;
}

void reservation_remove(struct reservation **list, int fd)
{
	struct reservation *reservation = find_by_inode(*list, fd), **link = list;

	if (!reservation)
		return;
	while (*link != reservation)
		link = &(*link)->next;
	*link = reservation->next;
	free(reservation);
}

static uint64_t bytes_beyond_reservation(const struct reservation *reservation)
{
	struct stat st;
	uint64_t taken;

	if (reservation->fd < 0 || fstat(reservation->fd, &st) < 0)
		return 0;
	taken = (uint64_t)st.st_blocks * 512;
	return taken > reservation->bytes ? taken - reservation->bytes : 0;
}

uint64_t reservation_bytes_beyond(const struct reservation *list, int fd)
{
	const struct reservation *reservation = find_by_descriptor((struct reservation *)list, fd);

	return reservation ? bytes_beyond_reservation(reservation) : 0;
}

uint64_t reservations_total_bytes_beyond(const struct reservation *list)
{
	uint64_t bytes = 0;

	for (; list; list = list->next)
		bytes += bytes_beyond_reservation(list);
	return bytes;
}

static const struct reservation *find_file_beyond_reservation(const struct reservation *list)
{
	while (list && bytes_beyond_reservation(list) == 0)
		list = list->next;
	return list;
}

/* Duplicates the descriptor, because the piece may be closed and its descriptor reused while the
 * turn is given up. */
static void trim_piece(const struct reservation *reservation)
{
	const int fd = fcntl(reservation->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return;
	(void)piece_file_trim(fd, reservation->size);
	close(fd);
}

/* Searches the list again after each trim, because a trim gives up the turn (jobs.h) and the list
 * may change. Limits the number of trims, because a file may grow again at once. */
void reservations_trim_files(struct reservation *const *list)
{
	unsigned most = 0;

	for (const struct reservation *each = *list; each; each = each->next)
		most++;
	for (; most > 0; most--) {
		const struct reservation *oversized = find_file_beyond_reservation(*list);

		if (!oversized)
			return;
		trim_piece(oversized);
	}
}

void reservations_free(struct reservation **list)
{
	while (*list) {
		struct reservation *next = (*list)->next;

		free(*list);
		*list = next;
	}
}
