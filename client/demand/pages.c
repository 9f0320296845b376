/*
 * pages.c - see pages.h. What it asks of the kernel is younger than some headers that this is built
 * with: PAGEMAP_SCAN (Linux 6.7), as Documentation/admin-guide/mm/pagemap.rst describes it, and
 * UFFDIO_MOVE (6.8).
 */
#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#define PAGE_HUGE ((uint64_t)1 << 6)

struct run {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size, flags, start, end, walk_end;
	uint64_t runs, runs_max, pages_max;
	uint64_t inverted, all_of, any_of, wanted;
};
#define SCAN _IOWR('f', 16, struct scan)

struct move {
	uint64_t to, from, length, mode;
	int64_t moved;
};
#define MOVE _IOWR(UFFDIO, 0x05, struct move)

int ps_pages_open(void)
{
	return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

bool ps_pages_large(int pages, const uint8_t *at, uint64_t length)
{
	const uint64_t start = (uint64_t)(uintptr_t)at;
	struct run run = { 0 };
	struct scan scan = { .size = sizeof(scan),
		             .start = start,
		             .end = start + length,
		             .runs = (uint64_t)(uintptr_t)&run,
		             .runs_max = 1,
		             .all_of = PAGE_HUGE,
		             .wanted = PAGE_HUGE };

	return ioctl(pages, SCAN, &scan) == 1 && run.start == start && run.end == start + length;
}

uint64_t ps_pages_move(int uffd, const uint8_t *to, const uint8_t *from, uint64_t length)
{
	uint64_t done = 0;

	while (done < length) {
		struct move move = { (uint64_t)(uintptr_t)to + done,
			             (uint64_t)(uintptr_t)from + done, length - done, 0, 0 };
		const int failed = ioctl(uffd, MOVE, &move) ? errno : 0;

		if (move.moved > 0)
			done += (uint64_t)move.moved;
		if (failed && failed != EAGAIN)
			break;
	}
	return done;
}
