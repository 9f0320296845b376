/*
 * piece_file.c - reserves, maps, unmaps and removes files while the rest of the daemon continues.
 * memory_file.c calls it. Functions named run_*() run outside of the loop and must use only their
 * arguments.
 */
#include "piece_file.h"

#include "../../proto/base/large_page.h"
#include "../../proto/image/sigbus_guard.h"
#include "../host/jobs.h"
#include "../store/memory.h"
#include "../store/status.h"
#include "small_file.h"
#include "../../proto/base/core_dump.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define POPULATE_MAX ((uint64_t)256 << 20) /* largest file whose pages are mapped at once */
#define RESERVE_SLICE ((uint64_t)16 << 20) /* bytes reserved between two checks for cancellation */
#define UNMAP_SLICE \
	((uint64_t)16 << 20)        /* bytes unmapped at once, during which other mappings wait */
#define SMALL_PAGE ((uint64_t)4096) /* size of the last small page in a large one */

uint64_t piece_file_size(int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

struct piece_work {
	int fd; /* descriptor of the piece's file or of its folder */
	uint64_t size;
	const char *name;
	void *base;
	int error;
	_Atomic uint64_t *unallocated_bytes;
};

static int reserve_range(int fd, uint64_t at, uint64_t len)
{
	int error;

	do
		error = job_cancelled() ? ECANCELED : posix_fallocate(fd, (off_t)at, (off_t)len);
	while (error == EINTR);
	return error;
}

/* Asks the kernel to back a slice of the file by large pages. When an owner on this host is killed,
 * the kernel unmaps a large page at once instead of page by page. The kernel makes a large page if
 * one small page of it exists, and preserves existing data; processes that have it mapped do not
 * notice. Returns false if the kernel refuses, which is harmless. */
static bool collapse_range(int fd, uint64_t at, uint64_t len)
{
	void *base;
	bool gathered;

	for (uint64_t end = PS_LARGE_PAGE; end <= len; end += PS_LARGE_PAGE)
		if (reserve_range(fd, at + end - SMALL_PAGE, SMALL_PAGE))
			return false;
	base = mmap(ps_large_page_hint(len), len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	            (off_t)at);
	if (base == MAP_FAILED)
		return false;
	gathered = !madvise(base, len, PS_MADV_COLLAPSE);
	munmap(base, len);
	return gathered;
}

/* Reserves in slices, so that it can stop when the request is cancelled. If the kernel finds no
 * large page for a slice, it is not asked again. */
static void run_reserve(void *arg)
{
	struct piece_work *work = arg;
	bool large = true;
	uint64_t at = 0;

	assert(atomic_load(work->unallocated_bytes) >= work->size);
	while (at < work->size && !work->error) {
		uint64_t left = work->size - at, len = left < RESERVE_SLICE ? left : RESERVE_SLICE;

		large = large && len >= PS_LARGE_PAGE && collapse_range(work->fd, at, len);
		work->error = reserve_range(work->fd, at, len);
		atomic_fetch_sub(work->unallocated_bytes, work->error ? left : len);
		at += len;
	}
}

int piece_file_reserve(int fd, uint64_t size, _Atomic uint64_t *unallocated)
{
	struct piece_work work = { .fd = fd, .size = size, .unallocated_bytes = unallocated };

	job_aside(size, run_reserve, &work);
	return work.error;
}

static void run_map(void *arg)
{
	struct piece_work *work = arg;
	int flags = MAP_SHARED | (work->size <= POPULATE_MAX ? MAP_POPULATE : 0);

	work->base = mmap(ps_large_page_hint(work->size), work->size, PROT_READ | PROT_WRITE, flags,
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

int piece_file_map(int folder, const char *name, int fd, uint64_t size, struct piece *piece)
{
	void *base = map_file(fd, size);

	if (base == MAP_FAILED)
		return file_status(errno);
	ps_core_dump_omit(base, size);
	piece->guard = ps_guard_new(base, size);
	if (!piece->guard) {
		munmap(base, size);
		errno = ENOMEM;
		return -STATUS(NO_MEMORY);
	}
	piece->fd_readonly = -1;
	if (strncmp(name, "promise", 7) == 0) {
		piece->fd_readonly = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (piece->fd_readonly < 0) {
			const int error = errno;

			ps_guard_free(piece->guard);
			munmap(base, size);
			errno = error;
			return -STATUS(IO);
		}
	}
	assert(fd >= 0 && size > 0);
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
	/* Blocks beyond the end of a file (FALLOC_FL_KEEP_SIZE) show neither in its size nor, if it
	 * has holes, in its number of blocks. */
	job_aside((uint64_t)st.st_blocks * 512, run_trim, &work);
	return work.error;
}

/* Unmaps in slices, because no other thread, such as the loop's, can map memory during a slice. */
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

static void run_close_removed(void *arg)
{
	struct piece_work *work = arg;

	close(work->fd);
}

void piece_file_close_removed(int fd, uint64_t size)
{
	struct piece_work work = { .fd = fd, .size = size };

	job_aside(size, run_close_removed, &work);
}
