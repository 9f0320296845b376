/*
 * doctor_memory.c - where images lie, and what the kernel does with their pages.
 */
#include "../ui/ui.h"
#include "doctor.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define ROOM_LEAST ((uint64_t)64 << 20) /* a store with a log of 16 MiB, and some data */

enum { ROOM_FEW_PERCENT = 10 };

struct mount {
	const char *path; /* that is looked for */
	size_t matched;   /* bytes of it that the best mount point has */
	bool found;
	char type[32];
	char options[512];
};

/* Is `path` the folder, or in it? */
static bool path_is_below(const char *path, const char *folder, size_t len)
{
	if (len == 1 && folder[0] == '/')
		return true;
	return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* The last mount on the longest folder is what is seen. */
static bool mount_consider(void *arg, const char *line)
{
	struct mount *mount = arg;
	char folder[PATH_MAX], type[32], options[512];

	if (sscanf(line, "%*s %4095s %31s %511s", folder, type, options) != 3)
		return false;
	if (strlen(folder) >= mount->matched &&
	    path_is_below(mount->path, folder, strlen(folder))) {
		mount->found = true;
		mount->matched = strlen(folder);
		memcpy(mount->type, type, sizeof(type));
		memcpy(mount->options, options, sizeof(options));
	}
	return false;
}

static bool find_mount(const struct ps_host *host, struct mount *mount)
{
	*mount = (struct mount){ .path = host->memory_dir };
	ps_host_lines(host, "/proc/self/mounts", mount_consider, mount);
	return mount->found;
}

static bool has_option(const struct mount *mount, const char *name)
{
	const char *at = mount->options;
	size_t len = strlen(name);

	while (*at) {
		size_t own = strcspn(at, ",");

		if (own == len && strncmp(at, name, len) == 0)
			return true;
		at += own + (at[own] == ',');
	}
	return false;
}

/* The directory, or the nearest one above it that is there: the daemon makes the rest. */
static bool directory_find(const struct ps_host *host, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s%s", host->root, host->memory_dir) >= PATH_MAX)
		return false;
	while (!ps_host_exists(host, "%s", path + strlen(host->root))) {
		char *slash = strrchr(path + strlen(host->root), '/');

		if (!slash)
			return false;
		*slash = '\0';
	}
	return true;
}

static void judge_room(const struct ps_host *host, struct ps_finding *finding)
{
	char path[PATH_MAX], room[PS_SIZE_TEXT], all[PS_SIZE_TEXT];
	uint64_t size, available;

	if (!directory_find(host, path) || !host->space(path, &size, &available))
		return;
	ps_finding_add(finding, ", %s of %s free", ps_size_text(room, available),
	               ps_size_text(all, size));
	if (available >= ROOM_LEAST &&
	    (available >= size / 100 * ROOM_FEW_PERCENT || finding->health != PS_HEALTH_OK))
		return;
	ps_finding_fault(finding, available < ROOM_LEAST ? PS_HEALTH_FAIL : PS_HEALTH_WARNING,
	                 "Make room: perseas ls shows which stores take how much; mount "
	                 "-o remount,size=BYTES raises the limit of a tmpfs.");
}

void ps_check_memory_dir(const struct ps_host *host, struct ps_finding *finding)
{
	const char *dir = host->memory_dir;
	struct mount mount;

	if (dir[0] != '/') {
		ps_finding_set(finding, PS_HEALTH_FAIL, "%s is not an absolute path", dir);
		ps_finding_advise(finding, "Give it as --memory-dir /dev/shm/perseas");
		return;
	}
	if (!find_mount(host, &mount)) {
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "/proc/self/mounts cannot be read");
		return;
	}
	ps_finding_set(finding, PS_HEALTH_OK, "%s%s is on %s%s", dir,
	               ps_host_exists(host, "%s", dir) ? "" : " is not there yet, and", mount.type,
	               has_option(&mount, "noexec") ? " (noexec, which does no harm)" : "");
	if (strcmp(mount.type, "tmpfs") != 0 && strcmp(mount.type, "ramfs") != 0) {
		ps_finding_fault(finding, PS_HEALTH_FAIL,
		                 "perseasd does not start there: what a disk, or persistent "
		                 "memory (DAX), has after a power cut may be old. Choose a "
		                 "directory on a tmpfs, as --memory-dir "
		                 "/dev/shm/perseas");
	}
	judge_room(host, finding);
	if (has_option(&mount, "ro")) {
		ps_finding_add(finding, ", mounted read-only");
		ps_finding_fault(finding, PS_HEALTH_FAIL,
		                 "mount -o remount,rw it, or choose another "
		                 "--memory-dir");
	}
}

struct swap {
	unsigned count;
	uint64_t kib;
};

static bool count_swap(void *arg, const char *line)
{
	struct swap *swap = arg;
	uint64_t kib;

	if (sscanf(line, "/%*s %*s %" SCNu64, &kib) == 1) {
		swap->count++;
		swap->kib += kib;
	}
	return false;
}

void ps_check_swap(const struct ps_host *host, struct ps_finding *finding)
{
	struct swap swap = { 0 };
	struct mount mount;
	char size[PS_SIZE_TEXT];

	if (!ps_host_exists(host, "/proc/swaps")) {
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "/proc/swaps cannot be read");
		return;
	}
	ps_host_lines(host, "/proc/swaps", count_swap, &swap);
	if (swap.count == 0) {
		ps_finding_set(finding, PS_HEALTH_OK, "there is no swap");
		return;
	}
	ps_finding_set(finding, PS_HEALTH_OK, "%s in %u place%s",
	               ps_size_text(size, swap.kib << 10), swap.count, ps_plural(swap.count));
	if (find_mount(host, &mount) && has_option(&mount, "noswap")) {
		ps_finding_add(finding, ", but %s is mounted with noswap", host->memory_dir);
		return;
	}
	ps_finding_fault(finding, PS_HEALTH_WARNING,
	                 "Pages of images may be swapped out, and then a commit waits "
	                 "for the disk: swapoff -a, or mount the tmpfs of --memory-dir with "
	                 "noswap (Linux 6.4).");
}

/* The word in brackets. */
static void word_chosen(const char *words, char *word, size_t size)
{
	const char *open = strchr(words, '[');
	size_t len = open ? strcspn(open + 1, "]") : 0;

	snprintf(word, size, "%.*s", (int)(len < size ? len : size - 1), open ? open + 1 : "");
}

/* Is it Linux 6.`least`, or later? */
static bool kernel_from_6(const struct ps_host *host, unsigned least)
{
	unsigned major, minor;
	char release[64];

	ps_host_read(host, release, sizeof(release), "/proc/sys/kernel/osrelease");
	return sscanf(release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= least));
}

/* From 6.1 on a process may ask for huge pages whatever is set, but for `deny`. */
static bool kernel_gathers(const struct ps_host *host)
{
	return kernel_from_6(host, 1);
}

void ps_check_thp(const struct ps_host *host, struct ps_finding *finding)
{
	static const char place[] = "/sys/kernel/mm/transparent_hugepage";
	char words[128], enabled[32], shmem[32];

	if (!ps_host_read(host, words, sizeof(words), "%s/enabled", place)) {
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "this kernel has none");
		return;
	}
	word_chosen(words, enabled, sizeof(enabled));
	ps_host_read(host, words, sizeof(words), "%s/shmem_enabled", place);
	word_chosen(words, shmem, sizeof(shmem));
	ps_finding_set(finding, PS_HEALTH_OK, "%s, for shared memory %s", enabled,
	               *shmem ? shmem : "none");
	if (!strcmp(enabled, "never")) {
		ps_finding_fault(finding, PS_HEALTH_WARNING,
		                 "Segments get small pages, of which random changes look "
		                 "up many: echo madvise >%s/enabled",
		                 place);
	} else if (!strcmp(shmem, "never") && kernel_gathers(host)) {
		ps_finding_add(finding, " but on request (MADV_COLLAPSE)");
	} else if (!strcmp(shmem, "deny") || !strcmp(shmem, "never")) {
		ps_finding_fault(finding, PS_HEALTH_WARNING,
		                 "Images that owners on this host write to, over "
		                 "unix://, get small pages: echo advise >%s/shmem_enabled",
		                 place);
	}
}

/* Owners read all memory first where they cannot, which costs them time and nothing else. */
static void advise_demand(const struct ps_host *host, struct ps_finding *finding)
{
	if (!kernel_from_6(host, 6))
		ps_finding_advise(finding,
		                  "An owner's first commit waits until all memory is read: "
		                  "PERSEAS_RECOVERY_ON_DEMAND takes Linux 6.6 or later.");
	else
		ps_finding_advise(finding,
		                  "An owner's first commit waits until all memory is read. Allow "
		                  "userfaultfd(2) and close_range(2): in a container by its "
		                  "seccomp profile (Docker's default refuses the former), "
		                  "elsewhere by a kernel with CONFIG_USERFAULTFD.");
}

void ps_check_demand(const struct ps_host *host, struct ps_finding *finding)
{
	struct ps_error error = { 0 };
	const char *limit = NULL;

	if (host->demand(&limit, &error)) {
		ps_finding_set(finding, PS_HEALTH_WARNING, "not for this user, here: %s",
		               error.text);
		advise_demand(host, finding);
		return;
	}
	if (!limit) {
		ps_finding_set(finding, PS_HEALTH_OK,
		               "this user's processes can, and their system calls wait for "
		               "memory, too");
		return;
	}
	ps_finding_set(finding, PS_HEALTH_OK, "this user's processes can, but %s", limit);
	ps_finding_advise(finding,
	                  "Without that right, let an owner call perseas_wait_whole before "
	                  "it gives its memory to system calls.");
}

/* Only who asks for it is slower without. */
void ps_check_written(const struct ps_host *host, struct ps_finding *finding)
{
	struct ps_error error = { 0 };

	if (!host->written(&error)) {
		ps_finding_set(finding, PS_HEALTH_OK,
		               "this user's processes learn which pages they wrote");
		return;
	}
	ps_finding_set(finding, PS_HEALTH_OK, "not told to this user's processes here: %s",
	               error.text);
	ps_finding_advise(finding,
	                  "With PERSEAS_CHECK_WRITES or PERSEAS_TRACK each commit compares all "
	                  "memory. It compares what was written from Linux 6.7 on, where "
	                  "userfaultfd(2) is allowed (Docker's default refuses it).");
}
