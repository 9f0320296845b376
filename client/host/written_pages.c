/*
 * written_pages.c - finds out from the kernel which pages were written: the range is
 * write-protected through userfaultfd(2) in a mode in which the kernel itself takes the protection
 * off at the first store to a page. PAGEMAP_SCAN lists the pages without protection, and protects
 * them again. shadow.c calls it. It must never leave out a page that was written: if anything is
 * unclear, it reports all pages.
 *
 * A store to a large page that is protected splits it for good into small ones. So each large page
 * is split once, and not at each commit.
 */
#include "../core/env.h"
#include "page_calls.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 6.4; missing in older headers. */
#define FEATURE_WP_UNPOPULATED ((uint64_t)1 << 13)

/* Protects the pages that match in the same step that lists them. */
#define SCAN_PROTECT ((uint64_t)1 << 0)
#define SCAN_CHECK ((uint64_t)1 << 1) /* fails if a range is not protected in this way */

enum { RUNS = 128 }; /* runs that one call lists at most */

struct ps_written {
	int uffd, pagemap;
};

static struct ps_written *fail_begin(struct ps_written *written, struct ps_error *error,
                                     const char *what)
{
	ps_error_set(error, PERSEAS_ESYSTEM, "%s (%s)", what, strerror(errno));
	if (written->pagemap >= 0)
		close(written->pagemap);
	if (written->uffd >= 0)
		close(written->uffd);
	free(written);
	return NULL;
}

static bool has_pagemap_scan(const struct ps_written *written)
{
	struct ps_page_scan nothing = { .size = sizeof(nothing), .wanted = PS_PAGE_WRITTEN };

	return ioctl(written->pagemap, PS_PAGE_SCAN, &nothing) == 0;
}

static struct ps_written *pages_begin(struct ps_env *env, struct ps_error *error)
{
	struct uffdio_api api = { .api = UFFD_API,
		                  .features = FEATURE_WP_UNPOPULATED | PS_UFFD_WP_ASYNC };
	struct ps_written *written = malloc(sizeof(*written));

	(void)env;
	if (!written) {
		ps_error_set(error, PERSEAS_ENOMEM, "out of memory");
		return NULL;
	}
	written->pagemap = -1;
	/* In this mode the kernel's own stores are noted, too, and no thread has to resolve
	 * faults. */
	written->uffd = ps_above_standard(
		(int)syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | PS_UFFD_USER_MODE_ONLY));
	if (written->uffd < 0)
		return fail_begin(written, error, "this process may not use userfaultfd(2)");
	if (ioctl(written->uffd, UFFDIO_API, &api))
		return fail_begin(
			written, error,
			"this kernel does not tell which pages were written: it takes Linux 6.7");
	written->pagemap = ps_above_standard(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
	if (written->pagemap < 0)
		return fail_begin(written, error, "/proc/self/pagemap cannot be opened");
	if (!has_pagemap_scan(written))
		return fail_begin(written, error,
		                  "this kernel has no PAGEMAP_SCAN: it takes Linux 6.7");
	return written;
}

static void pages_end(struct ps_written *written)
{
	close(written->pagemap);
	close(written->uffd);
	free(written);
}

static uint64_t round_up_to_pages(uint64_t size)
{
	return (size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
}

static int pages_watch(struct ps_written *written, const uint8_t *base, uint64_t size)
{
	const struct uffdio_range range = { (uint64_t)(uintptr_t)base, round_up_to_pages(size) };
	struct uffdio_register watched = { .range = range, .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect protect = { .range = range,
		                               .mode = UFFDIO_WRITEPROTECT_MODE_WP };

	if (ioctl(written->uffd, UFFDIO_REGISTER, &watched))
		return -1;
	while (ioctl(written->uffd, UFFDIO_WRITEPROTECT, &protect))
		/* EAGAIN: another thread changes the process's mappings. */
		if (errno != EAGAIN) {
			(void)ioctl(written->uffd, UFFDIO_UNREGISTER, &range);
			return -1;
		}
	return 0;
}

static void add_run(uint64_t *set, uint64_t base, uint64_t size, const struct ps_page_run *run)
{
	uint64_t page = (run->start - base) / PS_PAGE, end = (run->end - base) / PS_PAGE;
	const uint64_t pages = round_up_to_pages(size) / PS_PAGE;

	for (end = end < pages ? end : pages; page < end; page++)
		set[page / PS_WRITTEN_WORD] |= (uint64_t)1 << page % PS_WRITTEN_WORD;
}

static int pages_take(struct ps_written *written, const uint8_t *base, uint64_t offset,
                      uint64_t length, uint64_t *set)
{
	const uint64_t start = (uint64_t)(uintptr_t)base + offset;
	const uint64_t end = start + round_up_to_pages(length);
	struct ps_page_run runs[RUNS];
	struct ps_page_scan scan = {
		.size = sizeof(scan),
		.flags = SCAN_PROTECT | SCAN_CHECK,
		.start = start,
		.end = end,
		.runs = (uint64_t)(uintptr_t)runs,
		.runs_max = RUNS,
		.all_of = PS_PAGE_WRITTEN,
		.wanted = PS_PAGE_WRITTEN,
	};

	while (scan.start < end) {
		const int count = ioctl(written->pagemap, PS_PAGE_SCAN, &scan);

		/* The failed call may have protected some pages without listing them. */
		if (count < 0 || scan.walk_end <= scan.start)
			return -1;
		for (int i = 0; i < count; i++)
			add_run(set, start - offset, offset + length, &runs[i]);
		scan.start = scan.walk_end;
	}
	return 0;
}

const struct ps_written_ops ps_written_pages = {
	.begin = pages_begin,
	.end = pages_end,
	.watch = pages_watch,
	.take = pages_take,
};

int ps_written_probe(struct ps_env *env, struct ps_error *error)
{
	struct ps_written *written;

	*error = (struct ps_error){ PERSEAS_ENOMEM, "out of memory" };
	if (!env->written) {
		return ps_error_set(error, PERSEAS_ESYSTEM,
		                    "PERSEAS_WRITTEN_PAGES=off is in the environment");
	}
	written = env->written->begin(env, error);
	if (!written)
		return error->code;
	env->written->end(written);
	return 0;
}
