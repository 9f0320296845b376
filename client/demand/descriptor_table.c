/*
 * descriptor_table.c - see descriptor_table.h. The new table must not keep the application's files
 * open: when the application closes a socket, its peer must see that.
 */
#include "descriptor_table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNSHARE (1u << 1) /* CLOSE_RANGE_UNSHARE of linux/close_range.h */

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int close_between(unsigned first, unsigned last, unsigned flags)
{
	return first > last ? 0 : (int)syscall(__NR_close_range, first, last, flags);
}

bool ps_unshare_descriptor_table(int *kept, unsigned count)
{
	unsigned next = 0;

	qsort(kept, count, sizeof(kept[0]), by_number);
	/* No descriptor has this number: the call only gives the thread a table of its own. */
	if (close_between(~0U, ~0U, UNSHARE))
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (kept[i] > 0 && close_between(next, (unsigned)kept[i] - 1, 0))
			return false;
		next = (unsigned)kept[i] + 1;
	}
	if (close_between(next, ~0U, 0))
		return false;
	/* Takes the numbers of the standard streams, so that no connection gets one. */
	while (next = (unsigned)open("/dev/null", O_RDWR | O_CLOEXEC), next < 2)
		;
	return next != ~0U;
}
