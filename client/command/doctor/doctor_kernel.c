/*
 * doctor_kernel.c - the kernel, its clock, and what it allows a process.
 */
#include "doctor.h"
#include "../../perseas.h"
#include "../../../proto/data/frame.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TESTED_MAJOR = 6, /* the oldest kernel that the tests run on: Debian 12's */
	TESTED_MINOR = 1,
	CAP_IPC_LOCK_BIT = 14,
	FILES_LEAST = 256, /* an owner of 16 mirrors, with room for its application */
	FILES_FEW = 1024,
	FILES_DAEMON = 4096, /* several descriptors for each session and store */
};

/* What an owner registers by default: its ring, and buffers. */
#define PINNED_OWNER ((uint64_t)65 << 20)

void ps_check_version(const struct ps_host *host, struct ps_finding *finding)
{
	(void)host;
	ps_finding_set(finding, PS_HEALTH_OK, "version %s, protocol version %d, built %s RDMA",
	               perseas_version(), PS_PROTOCOL_VERSION, PERSEAS_RDMA ? "with" : "without");
}

void ps_check_kernel(const struct ps_host *host, struct ps_finding *finding)
{
	unsigned major, minor;
	char release[128];

	ps_host_read(host, release, sizeof(release), "/proc/sys/kernel/osrelease");
	if (sscanf(release, "%u.%u", &major, &minor) != 2) {
		ps_finding_set(finding, PS_HEALTH_WARNING, "the kernel does not tell its release");
		ps_finding_advise(finding, "Mount /proc: mount -t proc proc /proc");
		return;
	}
	ps_finding_set(finding, PS_HEALTH_OK, "Linux %s", release);
	if (major > TESTED_MAJOR || (major == TESTED_MAJOR && minor >= TESTED_MINOR))
		return;
	ps_finding_fault(finding, PS_HEALTH_WARNING,
	                 "Perseas is tested on Linux %d.%d and later; the checks below "
	                 "say what is missing here.",
	                 TESTED_MAJOR, TESTED_MINOR);
}

void ps_check_proc(const struct ps_host *host, struct ps_finding *finding)
{
	char text[64];

	if (ps_host_read(host, text, sizeof(text), "/proc/self/limits") &&
	    ps_host_exists(host, "/proc/self/fd")) {
		ps_finding_set(finding, PS_HEALTH_OK, "/proc is mounted and can be read");
		return;
	}
	ps_finding_set(finding, PS_HEALTH_FAIL, "/proc/self cannot be read");
	ps_finding_advise(finding, "perseas doctor reads /proc: mount -t proc proc /proc");
}

void ps_check_membarrier(const struct ps_host *host, struct ps_finding *finding)
{
	const bool owner = host->has(PS_FEATURE_MEMBARRIER_OWNER);
	const bool mirror = host->has(PS_FEATURE_MEMBARRIER_MIRROR);

	if (owner && mirror) {
		ps_finding_set(finding, PS_HEALTH_OK,
		               "expedited membarrier(2), private and "
		               "global");
		return;
	}
	ps_finding_set(finding, PS_HEALTH_WARNING, "no %s expedited membarrier(2)%s",
	               owner ? "global" : "private", owner || mirror ? "" : ", nor a global one");
	ps_finding_advise(finding,
	                  "Each commit over shared memory takes a full fence instead, and "
	                  "is a little slower. Allow the system call (a container's seccomp "
	                  "profile), or take a kernel with CONFIG_MEMBARRIER, 4.16 or later.");
}

void ps_check_pidfd(const struct ps_host *host, struct ps_finding *finding)
{
	if (host->has(PS_FEATURE_PIDFD)) {
		ps_finding_set(finding, PS_HEALTH_OK, "pidfd_open(2) works");
		return;
	}
	ps_finding_set(finding, PS_HEALTH_WARNING, "no pidfd_open(2)");
	ps_finding_advise(finding, "A mirror cannot tell whether an owner on its own host is dead, "
	                           "and copies the image at each claim. Allow the system call (a "
	                           "container's seccomp profile), or take Linux 5.3 or later.");
}

/* A program gets the dump whatever the limit on the size of core files says, unless that is 1. */
void ps_check_core_dumps(const struct ps_host *host, struct ps_finding *finding)
{
	char pattern[128];

	if (!ps_host_read(host, pattern, sizeof(pattern), "/proc/sys/kernel/core_pattern")) {
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "core_pattern cannot be read");
		return;
	}
	if (pattern[0] != '|') {
		ps_finding_set(finding, PS_HEALTH_OK,
		               "they go to files, '%s', of the size that ulimit -c allows",
		               pattern);
		return;
	}
	ps_finding_set(finding, PS_HEALTH_OK, "they go to a program: %s", pattern + 1);
	ps_finding_advise(
		finding, "They leave the memory of stores out, unless PERSEAS_CORE_DUMP=on is set, "
			 "but an owner keeps its store until the rest of its memory is written. If "
			 "that takes long, set LimitCORE=1 for the owner.");
}

void ps_check_clock(const struct ps_host *host, struct ps_finding *finding)
{
	switch (host->clock()) {
	case PS_CLOCK_SYNCHRONISED:
		ps_finding_set(finding, PS_HEALTH_OK, "the clock is synchronised");
		return;
	case PS_CLOCK_FREE:
		ps_finding_set(finding, PS_HEALTH_WARNING, "the clock is not synchronised");
		ps_finding_advise(finding,
		                  "Nothing is lost by it, but perseas history shows the "
		                  "owner's times: apt-get install chrony, or timedatectl set-ntp "
		                  "true");
		return;
	case PS_CLOCK_UNKNOWN:
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "the kernel does not tell (adjtimex)");
		return;
	}
}

void ps_check_clock_source(const struct ps_host *host, struct ps_finding *finding)
{
	static const char *const slow[] = { "hpet",    "acpi_pm",         "pit",
		                            "jiffies", "refined-jiffies", "xen" };
	static const char place[] = "/sys/devices/system/clocksource/clocksource0";
	char source[64], others[128];

	if (!ps_host_read(host, source, sizeof(source), "%s/current_clocksource", place)) {
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "%s cannot be read", place);
		return;
	}
	source[strcspn(source, " ")] = '\0';
	ps_finding_set(finding, PS_HEALTH_OK, "%s", source);
	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		if (strcmp(slow[i], source) != 0)
			continue;
		ps_host_read(host, others, sizeof(others), "%s/available_clocksource", place);
		ps_finding_set(finding, PS_HEALTH_WARNING,
		               "%s, of which each reading is a system "
		               "call of its own",
		               source);
		ps_finding_advise(finding,
		                  "A commit reads the clock while it spins. There is also "
		                  "%s: boot with clocksource=tsc where the host has a stable one "
		                  "(tsc=reliable in a virtual machine).",
		                  others);
	}
}

/* --- limits --- */

/* A limit of processes, and what is to be said of one that has it. */
struct resource {
	const char *name;
	const char *unit;
	unsigned shift; /* to that unit */
	void (*judge)(const struct ps_host *host, struct ps_finding *finding, const char *process,
	              uint64_t limit);
};

static const char *limit_text(char text[32], uint64_t limit, const struct resource *resource)
{
	if (limit == UINT64_MAX)
		return "unlimited";
	snprintf(text, 32, "%" PRIu64 "%s", limit >> resource->shift, resource->unit);
	return text;
}

static bool read_limit(const struct ps_host *host, const char *process,
                       const struct resource *resource, uint64_t *limit)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/limits", process);
	return ps_host_number(host, path, resource->name, limit);
}

/* What this process may, which is what owners get. False: nobody tells. */
static bool find_own_limit(const struct ps_host *host, struct ps_finding *finding,
                           const struct resource *resource, uint64_t *limit)
{
	char text[32];
	const bool found = read_limit(host, "self", resource, limit);

	if (found)
		ps_finding_set(finding, PS_HEALTH_OK, "%s here",
		               limit_text(text, *limit, resource));
	else
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "/proc/self/limits cannot be read");
	return found;
}

/* Judges that, and what each perseasd may. */
static void judge_limits(const struct ps_host *host, struct ps_finding *finding,
                         const struct resource *resource, uint64_t own)
{
	struct ps_daemons daemons;
	char text[32], pid[16];
	uint64_t limit;

	resource->judge(host, finding, "self", own);
	ps_daemons_find(host, &daemons);
	for (unsigned i = 0; i < daemons.count; i++) {
		snprintf(pid, sizeof(pid), "%d", (int)daemons.daemons[i].pid);
		if (!read_limit(host, pid, resource, &limit))
			continue;
		ps_finding_add(finding, ", %s for perseasd %s", limit_text(text, limit, resource),
		               pid);
		resource->judge(host, finding, pid, limit);
	}
}

static void judge_files(const struct ps_host *host, struct ps_finding *finding, const char *process,
                        uint64_t limit)
{
	const bool own = strcmp(process, "self") == 0;

	(void)host;
	if (own && limit < FILES_FEW)
		ps_finding_fault(finding, limit < FILES_LEAST ? PS_HEALTH_FAIL : PS_HEALTH_WARNING,
		                 "Raise it for owners: ulimit -n 65536, or "
		                 "LimitNOFILE=65536 in their unit.");
	if (!own && limit < FILES_DAEMON)
		ps_finding_fault(finding, PS_HEALTH_WARNING,
		                 "perseasd needs several for each store and session: "
		                 "LimitNOFILE=65536 in its unit.");
}

void ps_check_open_files(const struct ps_host *host, struct ps_finding *finding)
{
	static const struct resource files = { "Max open files", "", 0, judge_files };
	uint64_t limit;

	if (find_own_limit(host, finding, &files, &limit))
		judge_limits(host, finding, &files, limit);
}

/* A process that may lock memory has no limit. */
static bool may_lock(const struct ps_host *host, const char *process)
{
	char status[4096];
	const char *line;

	if (!ps_host_read(host, status, sizeof(status), "/proc/%s/status", process))
		return false;
	line = strstr(status, "\nCapEff:");
	return line && strtoull(line + 8, NULL, 16) >> CAP_IPC_LOCK_BIT & 1;
}

static void judge_memlock(const struct ps_host *host, struct ps_finding *finding,
                          const char *process, uint64_t limit)
{
	const bool own = strcmp(process, "self") == 0;

	if (may_lock(host, process)) {
		if (own)
			ps_finding_add(finding, " (of no effect: CAP_IPC_LOCK)");
		return;
	}
	if (limit != UINT64_MAX)
		ps_finding_fault(finding, limit < PINNED_OWNER ? PS_HEALTH_FAIL : PS_HEALTH_WARNING,
		                 "RDMA pins what it registers: at an owner its ring, 65 MiB by "
		                 "default, at a mirror all images. For %s: ulimit -l unlimited, "
		                 "or LimitMEMLOCK=infinity in the unit.",
		                 own ? "owners" : "perseasd");
}

void ps_check_memlock(const struct ps_host *host, struct ps_finding *finding)
{
	static const struct resource locked = { "Max locked memory", " KiB", 10, judge_memlock };
	uint64_t limit;
	char **names;
	unsigned devices = ps_host_names(host, "/sys/class/infiniband", &names);

	ps_host_names_free(names, devices);
	if (!find_own_limit(host, finding, &locked, &limit))
		return;
	if (devices == 0 || !host->has(PS_FEATURE_RDMA))
		ps_finding_add(finding, "; only RDMA needs it, which there is none of");
	else
		judge_limits(host, finding, &locked, limit);
}
