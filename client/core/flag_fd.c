/*
 * flag_fd.c - a flag as an eventfd(2); see flag_fd.h.
 */
#include "flag_fd.h"
#include "../../proto/base/standard_streams.h"
#include "cancel.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int ps_flag_fd_new(struct ps_error *error)
{
	int flag = ps_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));

	return flag >= 0 ? flag
	                 : ps_error_set(error, PERSEAS_ESYSTEM,
	                                "no eventfd (%s); raise the limit on open files",
	                                strerror(errno));
}

void ps_flag_fd_raise(int flag)
{
	PS_UNCANCELLED;
	const uint64_t one = 1;
	const int error = errno;

	(void)!write(flag, &one, sizeof(one));
	errno = error;
}

void ps_flag_fd_lower(int flag)
{
	PS_UNCANCELLED;
	uint64_t count;

	(void)!read(flag, &count, sizeof(count));
}
