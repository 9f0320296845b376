/*
 * pages.c - see pages.h.
 */
#include "pages.h"

#include "../host/page_calls.h"
#include "../../proto/image/layout.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <sys/ioctl.h>

/* Arguments of UFFDIO_MOVE (Linux 6.8) and UFFDIO_POISON (6.6), which some kernel headers lack. */
struct move {
	uint64_t to, from, length, mode;
	int64_t moved;
};
#define MOVE _IOWR(UFFDIO, 0x05, struct move)

struct poison {
	struct uffdio_range range;
	uint64_t mode;
	int64_t updated;
};
#define POISON _IOWR(UFFDIO, 0x08, struct poison)

int ps_pages_open(void)
{
	return ps_above_standard(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
}

bool ps_pages_are_large(int pages, const uint8_t *at, uint64_t length)
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

static uint64_t length_at_once(uint64_t left, bool parted)
{
	return parted ? PS_PAGE : left;
}

/* Returns true if the range is not, or not wholly, memory that was covered. A single such page was
 * mapped anew by the application. EINVAL: a userfaultfd of the application has it, and does not
 * take pages of this kind. */
static bool is_other_memory(int failed)
{
	return failed == ENOENT || failed == EINVAL;
}

static void wake(int uffd, uint64_t at, uint64_t length)
{
	struct uffdio_range range = { at, length };

	(void)ioctl(uffd, UFFDIO_WAKE, &range);
}

uint64_t ps_pages_copy(int uffd, const uint8_t *to, const uint8_t *from, uint64_t length,
                       bool watched)
{
	uint64_t done = 0;
	bool parted = false;

	while (done < length) {
		struct uffdio_copy copy = { .dst = (uint64_t)(uintptr_t)to + done,
			                    .src = (uint64_t)(uintptr_t)from + done,
			                    .len = length_at_once(length - done, parted),
			                    .mode = watched ? UFFDIO_COPY_MODE_WP : 0 };
		const int failed = ioctl(uffd, UFFDIO_COPY, &copy) ? errno : 0;

		if (copy.copy > 0)
			done += (uint64_t)copy.copy;
		else if (failed == ENOMEM || failed == EFAULT)
			break;
		else if (failed == EEXIST || (is_other_memory(failed) && parted))
			done += PS_PAGE;
		else if (is_other_memory(failed))
			parted = true;
		else if (failed != EAGAIN)
			abort(); /* waiting threads would wait for ever */
	}
	if (parted)
		wake(uffd, (uint64_t)(uintptr_t)to, done);
	return done;
}

/* Removes the mark that PAGEMAP_SCAN leaves where a tracked page was discarded, because the kernel
 * refuses no page with a mark. A page that is here then counts as written, which does no harm.
 * Returns true if the refusal must be tried again. */
static bool take_mark(int uffd, uint64_t at)
{
	struct uffdio_writeprotect none = { .range = { at, PS_PAGE } };

	return !ioctl(uffd, UFFDIO_WRITEPROTECT, &none);
}

void ps_pages_poison(int uffd, const uint8_t *at, uint64_t length, bool watches)
{
	const uint64_t start = (uint64_t)(uintptr_t)at;
	uint64_t unmarked = UINT64_MAX;
	bool parted = false;

	for (uint64_t done = 0; done < length;) {
		struct poison poison = { .range = { start + done,
			                            length_at_once(length - done, parted) } };
		const int failed = ioctl(uffd, POISON, &poison) ? errno : 0;

		if (poison.updated > 0)
			done += (uint64_t)poison.updated;
		else if (failed == EEXIST && watches && unmarked != done &&
		         take_mark(uffd, start + done))
			unmarked = done;
		else if (failed == EEXIST || (is_other_memory(failed) && parted))
			done += PS_PAGE; /* the page is here, or not ours */
		else if (is_other_memory(failed))
			parted = true;
		else if (failed != EAGAIN && failed != ENOMEM)
			abort();
	}
	wake(uffd, start, length);
}
