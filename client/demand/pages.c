/*
 * pages.c - see pages.h.
 */
#include "pages.h"

#include "../host/page_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

/* UFFDIO_MOVE (Linux 6.8), which some headers that this is built with are too old to have. */
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
	struct ps_page_run run = { 0 };
	struct ps_page_scan scan = { .size = sizeof(scan),
		                     .start = start,
		                     .end = start + length,
		                     .runs = (uint64_t)(uintptr_t)&run,
		                     .runs_max = 1,
		                     .all_of = PS_PAGE_HUGE,
		                     .wanted = PS_PAGE_HUGE };

	return ioctl(pages, PS_PAGE_SCAN, &scan) == 1 && run.start == start &&
	       run.end == start + length;
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
