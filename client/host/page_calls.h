/*
 * page_calls.h - kernel interfaces for pages of this process that older headers lack: modes of
 * userfaultfd(2), and PAGEMAP_SCAN (Linux 6.7) as in Documentation/admin-guide/mm/pagemap.rst.
 * written_pages.c and client/demand use them. Nothing here may be changed.
 */
#ifndef PERSEAS_CLIENT_PAGE_CALLS_H
#define PERSEAS_CLIENT_PAGE_CALLS_H

#include <stdint.h>
#include <sys/ioctl.h>

/* The mode of userfaultfd(2) that ignores faults in the kernel: Linux 5.11. */
#define PS_UFFD_USER_MODE_ONLY 1
/* The feature by which the kernel itself unprotects a page at the first store to it: Linux 6.7. */
#define PS_UFFD_WP_ASYNC ((uint64_t)1 << 15)

/* Categories of pages. */
#define PS_PAGE_WRITTEN ((uint64_t)1 << 1)
#define PS_PAGE_PRESENT ((uint64_t)1 << 3)
#define PS_PAGE_SWAPPED ((uint64_t)1 << 4)
#define PS_PAGE_HUGE ((uint64_t)1 << 6)

/* Adjacent pages with the same categories (struct page_region of the kernel). */
struct ps_page_run {
	uint64_t start, end, categories;
};

/* The argument of PAGEMAP_SCAN (struct pm_scan_arg of the kernel): which pages to look for, and
 * where to put their runs. */
struct ps_page_scan {
	uint64_t size, flags, start, end, walk_end;
	uint64_t runs, runs_max, pages_max;
	uint64_t inverted, all_of, any_of, wanted;
};
#define PS_PAGE_SCAN _IOWR('f', 16, struct ps_page_scan)

#endif
