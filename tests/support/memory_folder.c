/*
 * memory_folder.c - where a test's mirrors keep their images.
 */
#include "memory_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include <cmocka.h>

/* Bytes that several tests with large images may need at the same time. */
#define ROOM ((uint64_t)512 << 20)

void memory_folder(char *path, size_t size, const char *name)
{
	struct statvfs there = { 0 };
	const int found = statvfs("/dev/shm", &there);
	const uint64_t room = (uint64_t)there.f_bavail * there.f_frsize;

	snprintf(path, size, "%s/perseas-%s-XXXXXX", !found && room >= ROOM ? "/dev/shm" : "/tmp",
	         name);
	assert_non_null(mkdtemp(path));
}
