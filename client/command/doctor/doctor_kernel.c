/*
 * doctor_kernel.c - checks what the kernel lets an owner do, and where it writes the core dump of
 * an owner that crashes.
 */
#include "doctor.h"

#include <stdio.h>

/* Says where core dumps go. A core pattern that starts a program ignores the limit on the size of
 * core files, unless the limit is 1. */
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

static bool is_linux_6_6(const struct ps_host *host)
{
	unsigned major, minor;
	char release[64];

	ps_host_read(host, release, sizeof(release), "/proc/sys/kernel/osrelease");
	return sscanf(release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 6));
}

/* Finds a host that cannot recover on demand: owners there read all memory before they open. */
void ps_check_recovery_on_demand(const struct ps_host *host, struct ps_finding *finding)
{
	struct ps_error error = { 0 };
	const char *limit = NULL;

	if (host->demand(&limit, &error)) {
		ps_finding_set(finding, PS_HEALTH_WARNING, "not for this user, here: %s",
		               error.text);
		ps_finding_advise(finding,
		                  "An owner's first commit waits until all memory is read%s",
		                  is_linux_6_6(host)
		                          ? ". Allow userfaultfd(2) and close_range(2): in a "
		                            "container by its seccomp profile (Docker's default "
		                            "refuses the former), elsewhere by a kernel with "
		                            "CONFIG_USERFAULTFD."
		                          : ": PERSEAS_RECOVERY_ON_DEMAND takes Linux 6.6 or "
		                            "later.");
	} else if (!limit) {
		ps_finding_set(finding, PS_HEALTH_OK,
		               "this user's processes can, and their system calls wait for "
		               "memory, too");
	} else {
		ps_finding_set(finding, PS_HEALTH_OK, "this user's processes can, but %s", limit);
		ps_finding_advise(finding,
		                  "Without that right, let an owner call perseas_wait_whole before "
		                  "it gives its memory to system calls.");
	}
}

/* Finds a host that cannot tell which pages were written. Only owners that ask for this are slower.
 */
void ps_check_page_tracking(const struct ps_host *host, struct ps_finding *finding)
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
