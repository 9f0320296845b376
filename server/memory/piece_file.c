/*
 * piece_file.c - reserves, maps, unmaps and removes files while the rest of the daemon goes on.
 * memory_file.c calls it. What runs aside must touch nothing but what it was given.
 */
#include "piece_file.h"

#include "../../proto/base/large_page.h"
#include "../../proto/image/sigbus_guard.h"
#include "../host/jobs.h"
#include "../store/memory.h"
#include "../store/status.h"
#include "small_file.h"
#include "../../proto/base/core_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define POPULATE_MAX ((uint64_t)256 << 20) /* bytes that are mapped page by page at once */
#define RESERVE_SLICE ((uint64_t)16 << 20) /* bytes between two looks at who wants them */
#define UNMAP_SLICE ((uint64_t)16 << 20)   /* bytes for which others' mappings wait */
#define LAST_PAGE ((uint64_t)4096)         /* of a large one */

uint64_t piece_file_size(int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

struct piece_work {
	int fd; /* of the piece, or of its folder */
	uint64_t size;
	const char *name;
	void *base;
	int error;
	_Atomic uint64_t *taking;
};

static int take_space(int fd, uint64_t at, uint64_t len)
{
	int error;

	do
		error = job_cancelled() ? ECANCELED : posix_fallocate(fd, (off_t)at, (off_t)len);
	while (error == EINTR);
	return error;
}

/*
 * Has the kernel gather a slice to large pages, which it does where one page of each is there.
 * Owners on this host map them, and such a mapping is undone at once when its owner is killed, in
 * place of page by page. What is there already is kept, and nobody who has it mapped notices. All
 * of it is help that may be refused: false.
 */
static bool gather_space(int fd, uint64_t at, uint64_t len)
{
	void *base;
	bool gathered;

	for (uint64_t end = PS_LARGE_PAGE; end <= len; end += PS_LARGE_PAGE)
		if (take_space(fd, at + end - LAST_PAGE, LAST_PAGE))
			return false;
	base = mmap(ps_large_place(len), len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
	if (base == MAP_FAILED)
		return false;
	gathered = !madvise(base, len, PS_MADV_COLLAPSE);
	munmap(base, len);
	return gathered;
}

/* In slices: who no longer wants it does not get the rest. Where the kernel has a large page for
 * none of a slice, it is not made to search for more. */
static void run_reserve(void *arg)
{
	struct piece_work *work = arg;
	bool large = true;
	uint64_t at = 0;

	while (at < work->size && !work->error) {
		uint64_t left = work->size - at, len = left < RESERVE_SLICE ? left : RESERVE_SLICE;

		large = large && len >= PS_LARGE_PAGE && gather_space(work->fd, at, len);
		work->error = take_space(work->fd, at, len);
		atomic_fetch_sub(work->taking, work->error ? left : len);
		at += len;
	}
}

int piece_file_reserve(int fd, uint64_t size, _Atomic uint64_t *taking)
{
	struct piece_work work = { .fd = fd, .size = size, .taking = taking };

	job_aside(size, run_reserve, &work);
	return work.error;
}

static void run_map(void *arg)
{
	struct piece_work *work = arg;
	int flags = MAP_SHARED | (work->size <= POPULATE_MAX ? MAP_POPULATE : 0);

	work->base = mmap(ps_large_place(work->size), work->size, PROT_READ | PROT_WRITE, flags,
	                  work->fd, 0);
	work->error = errno;
}

static void *map_file(int fd, uint64_t size)
{
	struct piece_work work = { .fd = fd, .size = size };

	job_aside(size, run_map, &work);
	errno = work.error;
	return work.base;
}

int piece_file_take(int folder, const char *name, int fd, uint64_t size, struct piece *piece)
{
	void *base = map_file(fd, size);

	if (base == MAP_FAILED)
		return file_status(errno);
	ps_core_dump_omit(base, size);
	piece->guard = ps_guard_new(base, size);
	if (!piece->guard) {
		munmap(base, size);
		return -STATUS(NO_MEMORY);
	}
	piece->fd_readonly = -1;
	if (strncmp(name, "promise", 7) == 0) {
		piece->fd_readonly = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (piece->fd_readonly < 0) {
			ps_guard_free(piece->guard);
			munmap(base, size);
			return -STATUS(IO);
		}
	}
	piece->base = base;
	piece->size = size;
	piece->fd = fd;
	return 0;
}

static void run_trim(void *arg)
{
	struct piece_work *work = arg;

	work->error = ftruncate(work->fd, (off_t)work->size) < 0 ? errno : 0;
}

int piece_file_trim(int fd, uint64_t size)
{
	struct piece_work work = { .fd = fd, .size = size };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return errno;
	if ((uint64_t)st.st_size < size)
		work.size = (uint64_t)st.st_size;
	/* Blocks beyond the end of a file (FALLOC_FL_KEEP_SIZE) do not show in its size, nor in
	 * their number, where it has holes. */
	job_aside((uint64_t)st.st_blocks * 512, run_trim, &work);
	return work.error;
}

/* In slices: the loop may want a mapping of its own meanwhile. */
static void run_unmap(void *arg)
{
	struct piece_work *work = arg;
	uint8_t *base = work->base;

	for (uint64_t left = work->size; left > 0;) {
		const uint64_t len = left < UNMAP_SLICE ? left : UNMAP_SLICE;

		munmap(base, len);
		base += len;
		left -= len;
	}
	close(work->fd);
}

void piece_file_unmap(void *base, uint64_t size, int fd)
{
	struct piece_work work = { .fd = fd, .size = size, .base = base };

	(void)piece_file_trim(fd, size);
	job_aside(size, run_unmap, &work);
}

static void run_unlink(void *arg)
{
	struct piece_work *work = arg;

	(void)unlinkat(work->fd, work->name, 0);
}

void piece_file_unlink(int folder, const char *name, uint64_t size)
{
	struct piece_work work = { .fd = folder, .size = size, .name = name };

	job_aside(size, run_unlink, &work);
}

static void run_release(void *arg)
{
	struct piece_work *work = arg;

	close(work->fd);
}

void piece_file_release(int fd, uint64_t size)
{
	struct piece_work work = { .fd = fd, .size = size };

	job_aside(size, run_release, &work);
}
