/*
 * memory_limit.c - reads the limits from the kernel and puts them into words (memory_limit.h).
 */
#include "memory_limit.h"

#include "standard_streams.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t limit_of(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static char read_overcommit(void)
{
	const int fd = ps_above_standard(
		open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC));
	char mode = '?';

	if (fd < 0)
		return mode;
	if (read(fd, &mode, 1) != 1)
		mode = '?';
	close(fd);
	return mode;
}

struct ps_memory_limits ps_memory_limits(void)
{
	return (struct ps_memory_limits){ limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA),
		                          read_overcommit() };
}

const char *ps_memory_limit_text(const struct ps_memory_limits *limits,
                                 char text[PS_MEMORY_LIMIT_TEXT])
{
	const char *why = "look at the host's memory and at vm.max_map_count";

	if (limits->overcommit == '0')
		why = "the host has less memory and swap space (vm.overcommit_memory is 0)";
	if (limits->overcommit == '2')
		why = "raise vm.overcommit_ratio or vm.overcommit_kbytes (vm.overcommit_memory is "
		      "2)";
	if (limits->space != UINT64_MAX)
		snprintf(text, PS_MEMORY_LIMIT_TEXT,
		         "raise the limit of this process's address space, which is %llu bytes "
		         "(ulimit -v)",
		         (unsigned long long)limits->space);
	else if (limits->data != UINT64_MAX)
		snprintf(text, PS_MEMORY_LIMIT_TEXT,
		         "raise the limit of this process's data, which is %llu bytes (ulimit -d)",
		         (unsigned long long)limits->data);
	else
		snprintf(text, PS_MEMORY_LIMIT_TEXT, "%s", why);
	return text;
}
