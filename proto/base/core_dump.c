/*
 * core_dump.c - see core_dump.h. If the kernel refuses the advice, the pages are dumped; nothing
 * else changes.
 */
#include "core_dump.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static pthread_once_t environment_once = PTHREAD_ONCE_INIT;
static bool is_wanted;

static void read_environment(void)
{
	const char *text = getenv(PS_CORE_DUMP_VARIABLE);

	is_wanted = text && strcmp(text, "on") == 0;
}

void ps_core_dump_omit(void *base, size_t size)
{
	const int error = errno;

	pthread_once(&environment_once, read_environment);
	if (!is_wanted)
		(void)madvise(base, size, MADV_DONTDUMP);
	errno = error;
}
