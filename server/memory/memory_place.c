/*
 * memory_place.c - asks the kernel what a directory is stored on and how much room it has.
 * memory_file.c calls it. It must never mistake a disk for memory: after a power failure a disk may
 * have old data, which would be served as the newest state. Persistent memory (DAX) counts as a
 * disk: Perseas does not flush the processor's caches, so a power failure can leave a commit slot
 * without its data, on all mirrors at once.
 */
#include "memory_place.h"

#include "../host/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Replacing a header creates up to two more files. */
enum { INODES_LEAST = 3 };

enum memory_place memory_place_find(int directory)
{
	struct statfs fs;

	if (fstatfs(directory, &fs) == 0 &&
	    (fs.f_type == TMPFS_MAGIC || fs.f_type == (__fsword_t)RAMFS_MAGIC))
		return PLACE_MEMORY;
	return PLACE_DISK;
}

const char *memory_place_explain_disk_refusal(const char *path)
{
	static char text[PATH_MAX + 300];

	snprintf(
		text, sizeof(text),
		"memory directory %s is not in memory (tmpfs, ramfs): after a power cut a disk, or "
		"persistent memory (DAX), would give back images that are old or torn, and they "
		"would be taken for the newest; choose one in memory, as --memory-dir "
		"/dev/shm/perseas",
		path);
	return text;
}

/* Returns the value of a line of /proc/meminfo in bytes, or UINT64_MAX if it is missing. */
static uint64_t meminfo_bytes(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	unsigned long long kib;

	if (!line || sscanf(line + strlen(name), ": %llu kB", &kib) != 1)
		return UINT64_MAX;
	return (uint64_t)kib << 10;
}

/* A tmpfs may be larger than the memory that the host has left, and filling it would stop all
 * processes. */
static uint64_t host_free_bytes(void)
{
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	char text[4096] = "";
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	uint64_t memory, swap;

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	memory = meminfo_bytes(text, "\nMemAvailable");
	swap = meminfo_bytes(text, "\nSwapFree");
	return memory == UINT64_MAX || swap == UINT64_MAX ? memory : memory + swap;
}

uint64_t memory_place_free_bytes(int directory, enum memory_place place, const char **advice)
{
	const uint64_t group = place == PLACE_MEMORY ? cgroup_room() : UINT64_MAX;
	uint64_t room = place == PLACE_MEMORY ? host_free_bytes() : UINT64_MAX;
	struct statvfs fs;

	*advice = NULL;
	/* A file system without a size limit (ramfs) reports no blocks. */
	if (fstatvfs(directory, &fs) == 0 && fs.f_blocks > 0 &&
	    (uint64_t)fs.f_bavail * fs.f_frsize < room)
		room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (group >= room)
		return room;
	*advice = "raise the memory limit of its control group (memory.max, MemoryMax=)";
	return group;
}

uint64_t memory_place_bytes_charged_to_other_cgroups(int directory, uint64_t images)
{
	struct statfs fs;
	uint64_t charged;

	if (fstatfs(directory, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return 0;
	charged = cgroup_charged();
	return images > charged ? images - charged : 0;
}

/* Returns true if the file system limits inodes and this user has too few left. */
static bool lacks_inodes(const struct statvfs *fs)
{
	return fs->f_files > 0 && fs->f_favail < INODES_LEAST;
}

const char *memory_place_advise_on_errno(int directory, int error)
{
	struct statvfs fs;

	if (error == EFBIG)
		return "raise its limit on the size of a file (LimitFSIZE=, ulimit -f)";
	if (error == EMFILE)
		return "raise its limit on open files (LimitNOFILE=, ulimit -n)";
	if (error == ENFILE)
		return "raise the host's limit on open files (fs.file-max)";
	if (error == ENOMEM)
		return "raise the limit on its address space (LimitAS=, ulimit -v), or give the "
		       "host more memory";
	if (error == EDQUOT)
		return "raise the quota of its user on that file system";
	if (error == ENOSPC && fstatvfs(directory, &fs) == 0 && lacks_inodes(&fs))
		return "its file system has no inodes left: remove files there, or mount it with "
		       "more (nr_inodes=)";
	return NULL;
}

bool memory_place_is_usable(int directory, enum memory_place place, char *why, size_t size)
{
	struct statvfs room;
	struct stat st;

	if (fstat(directory, &st) < 0 || fstatvfs(directory, &room) < 0)
		snprintf(why, size, "the memory directory cannot be used: %s", strerror(errno));
	else if (st.st_nlink == 0)
		snprintf(why, size, "the memory directory has been removed");
	else if (room.f_flag & ST_RDONLY)
		snprintf(why, size, "the memory directory's file system is read-only");
	else if (room.f_blocks > 0 && (uint64_t)room.f_bavail * room.f_frsize < MEMORY_ROOM_LEAST)
		snprintf(why, size, "the memory directory's file system is full");
	else if (lacks_inodes(&room))
		snprintf(why, size, "the memory directory's file system has no inodes left");
	else if (place == PLACE_MEMORY && cgroup_room() < MEMORY_ROOM_LEAST)
		snprintf(why, size, "the memory limit of its control group is reached");
	else
		return true;
	return false;
}

bool memory_barrier_works(void)
{
	long commands = syscall(__NR_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) &&
	       syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}
