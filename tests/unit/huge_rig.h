/*
 * huge_rig.h - huge pages for tests, which root alone can have the kernel keep, and what a mapping
 * lies in. Whoever runs such a test has them to itself until it ends.
 */
#ifndef PERSEAS_TESTS_HUGE_RIG_H
#define PERSEAS_TESTS_HUGE_RIG_H

#define RIG_SIZE (8 << 20) /* four huge pages */

#include "demand_rig.h"

#include <inttypes.h>
#include <sys/file.h>

enum { HUGE = 2 << 20 };

#define HUGE_POOL "/proc/sys/vm/nr_hugepages"
#define HUGE_FREE "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"

static unsigned huge_before;
static int huge_lock = -1;

static inline unsigned huge_read(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned count = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%u", &count), 1);
	fclose(file);
	return count;
}

/* If not, it is said why. Also where the user is only called root, the file cannot be written. */
static inline bool huge_can_begin(void)
{
	const int fd = open(HUGE_POOL, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	else
		printf("1..1\nok 1 # SKIP only root can have the kernel keep huge pages\n");
	return fd >= 0;
}

static inline void huge_write(unsigned count)
{
	FILE *file = fopen(HUGE_POOL, "w");

	assert_non_null(file);
	fprintf(file, "%u\n", count);
	assert_int_equal(fclose(file), 0);
}

/* So many are free, also where a test left some that was killed. */
static inline void huge_keep(unsigned count)
{
	huge_write(huge_read(HUGE_POOL) - huge_read(HUGE_FREE) + count);
	assert_int_equal(huge_read(HUGE_FREE), count);
}

/* So many are free. Nobody else changes their number: other programs that do wait until this one
 * ends. */
static inline void huge_begin(unsigned count)
{
	if (huge_lock < 0) {
		huge_lock = open(HUGE_POOL, O_RDONLY | O_CLOEXEC);
		assert_true(huge_lock >= 0);
		assert_int_equal(flock(huge_lock, LOCK_EX), 0);
		huge_before = huge_read(HUGE_POOL);
	}
	huge_keep(count);
	setenv("PERSEAS_HUGE_PAGES", "on", 1);
}

static inline void huge_end(void)
{
	unsetenv("PERSEAS_HUGE_PAGES");
	huge_write(huge_before);
}

/* What the kernel says of the mapping that begins there: a line of smaps, as "VmFlags:". */
static inline void huge_smaps(const void *base, const char *what, char *text, size_t size)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	const uint64_t address = (uint64_t)(uintptr_t)base;
	uint64_t first, last;
	bool inside = false;
	char line[512];

	*text = 0;
	assert_non_null(file);
	while (!*text && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &first, &last) == 2)
			inside = first == address;
		else if (inside && !strncmp(line, what, strlen(what)))
			snprintf(text, size, "%s", line + strlen(what));
	}
	fclose(file);
}

/* Bytes of the pages there. */
static inline unsigned long huge_page_at(const void *base)
{
	char text[512];

	huge_smaps(base, "KernelPageSize:", text, sizeof(text));
	return strtoul(text, NULL, 10) << 10;
}

#endif
