/*
 * doctor.c - the table of checks, what they say, and what they ask of this host.
 */
#include "doctor.h"
#include "../../core/demand.h"
#include "../../core/env.h"
#include "../../../proto/base/text.h"

#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

const struct ps_check ps_checks[] = {
	{ "perseas", ps_check_version },
	{ "kernel", ps_check_kernel },
	{ "proc", ps_check_proc },
	{ "membarrier", ps_check_membarrier },
	{ "pidfd", ps_check_pidfd },
	{ "core dumps", ps_check_core_dumps },
	{ "clock", ps_check_clock },
	{ "clock source", ps_check_clock_source },
	{ "open files", ps_check_open_files },
	{ "memory directory", ps_check_memory_dir },
	{ "swap", ps_check_swap },
	{ "transparent huge pages", ps_check_thp },
	{ "recovery on demand", ps_check_demand },
	{ "written pages", ps_check_written },
	{ "RDMA devices", ps_check_rdma_devices },
	{ "RDMA addresses", ps_check_rdma_addresses },
	{ "locked memory", ps_check_memlock },
	{ "RemoveIPC", ps_check_remove_ipc },
	{ "perseasd", ps_check_daemon },
	{ NULL, NULL },
};

/* --- findings --- */

const char *ps_health_name(enum ps_health health)
{
	static const char *const names[] = { "ok", "warning", "fail", "skipped" };

	return names[health];
}

void ps_finding_set(struct ps_finding *finding, enum ps_health health, const char *format, ...)
{
	va_list args;

	finding->health = health;
	va_start(args, format);
	ps_text_vformat(finding->found, sizeof(finding->found), format, args);
	va_end(args);
}

void ps_finding_add(struct ps_finding *finding, const char *format, ...)
{
	size_t len = strlen(finding->found);
	va_list args;

	va_start(args, format);
	ps_text_vformat(finding->found + len, sizeof(finding->found) - len, format, args);
	va_end(args);
}

void ps_finding_advise(struct ps_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	ps_text_vformat(finding->advice, sizeof(finding->advice), format, args);
	va_end(args);
}

void ps_finding_fault(struct ps_finding *finding, enum ps_health health, const char *format, ...)
{
	va_list args;

	if (finding->health < health)
		finding->health = health;
	va_start(args, format);
	ps_text_vformat(finding->advice, sizeof(finding->advice), format, args);
	va_end(args);
}

/* --- this host --- */

static bool has_membarrier(int first, int second)
{
	long commands = syscall(__NR_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands > 0 && (commands & first) && (commands & second);
}

static bool has_pidfd(void)
{
	int fd = pidfd_open(getpid(), 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool has_here(enum ps_feature feature)
{
	const char *rdma = getenv("PERSEAS_RDMA");

	switch (feature) {
	case PS_FEATURE_MEMBARRIER_OWNER:
		return has_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
		                      MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	case PS_FEATURE_MEMBARRIER_MIRROR:
		return has_membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
		                      MEMBARRIER_CMD_GLOBAL_EXPEDITED);
	case PS_FEATURE_PIDFD:
		return has_pidfd();
	case PS_FEATURE_RDMA:
		return PERSEAS_RDMA && !(rdma && !strcmp(rdma, "off"));
	}
	return false;
}

static enum ps_clock_state clock_here(void)
{
	struct timex state = { .modes = 0 };

	if (adjtimex(&state) < 0)
		return PS_CLOCK_UNKNOWN;
	return state.status & STA_UNSYNC ? PS_CLOCK_FREE : PS_CLOCK_SYNCHRONISED;
}

static bool space_here(const char *path, uint64_t *size, uint64_t *available)
{
	struct statvfs space;

	if (statvfs(path, &space))
		return false;
	*size = (uint64_t)space.f_blocks * space.f_frsize;
	*available = (uint64_t)space.f_bavail * space.f_frsize;
	return true;
}

static int demand_here(const char **limit, struct ps_error *error)
{
	struct ps_env *env = ps_env_posix(NULL, error);
	int rc;

	if (!env)
		return error->code;
	rc = ps_demand_probe(env, limit, error);
	env->ops->free(env);
	return rc;
}

static int written_here(struct ps_error *error)
{
	struct ps_env *env = ps_env_posix(NULL, error);
	int rc;

	if (!env)
		return error->code;
	rc = ps_written_probe(env, error);
	env->ops->free(env);
	return rc;
}

struct ps_host ps_host_here(const char *memory_dir)
{
	return (struct ps_host){
		.root = "",
		.memory_dir = memory_dir,
		.has = has_here,
		.clock = clock_here,
		.space = space_here,
		.demand = demand_here,
		.written = written_here,
	};
}
