/*
 * doctor.h - what a host needs to run perseasd or an owner, as a table of checks.
 *
 * A check only looks. What it reads are files below a root, and what no file says it asks through
 * the host's functions: tests put trees and functions of their own in their places.
 */
#ifndef PERSEAS_COMMAND_DOCTOR_H
#define PERSEAS_COMMAND_DOCTOR_H

#include "../../core/error.h"
#include "../../../proto/base/expiry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ps_feature {
	PS_FEATURE_MEMBARRIER_OWNER,  /* private expedited: barriers of an owner's threads */
	PS_FEATURE_MEMBARRIER_MIRROR, /* global expedited: fences that reach owners on this host */
	PS_FEATURE_PIDFD,
	PS_FEATURE_RDMA, /* this build has it, and the environment allows it */
};

enum ps_clock_state { PS_CLOCK_UNKNOWN, PS_CLOCK_FREE, PS_CLOCK_SYNCHRONISED };

struct ps_host {
	const char *root;       /* "" is this host, else a path without a slash at its end */
	const char *memory_dir; /* absolute */
	bool (*has)(enum ps_feature feature);
	enum ps_clock_state (*clock)(void);
	/* Bytes of the file system that `path`, which has the root before it, is on. */
	bool (*space)(const char *path, uint64_t *size, uint64_t *available);
	/* Can this process recover on demand? As ps_demand_probe says it. */
	int (*demand)(const char **limit, struct ps_error *error);
	/* Does this process learn which pages it wrote? As ps_written_probe says it. */
	int (*written)(struct ps_error *error);
};

/* This host. */
struct ps_host ps_host_here(const char *memory_dir);

enum ps_health { PS_HEALTH_OK, PS_HEALTH_WARNING, PS_HEALTH_FAIL, PS_HEALTH_SKIPPED };

struct ps_finding {
	enum ps_health health;
	char found[2048]; /* a sentence without its full stop */
	char advice[512]; /* what to do, with the command; "": nothing */
};

struct ps_check {
	const char *name;
	void (*look)(const struct ps_host *host, struct ps_finding *finding);
};

extern const struct ps_check ps_checks[]; /* ends with a name of NULL */

const char *ps_health_name(enum ps_health health); /* "ok", "warning", "fail", "skipped" */

void ps_finding_set(struct ps_finding *finding, enum ps_health health, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ps_finding_advise(struct ps_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Is at least as bad as `health`, and this is what to do about it. */
void ps_finding_fault(struct ps_finding *finding, enum ps_health health, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same words behind what was found so far. */
void ps_finding_add(struct ps_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* doctor_expiry.c: adds each of these that has expired, or will soon, as a fault. */
void ps_finding_expiries(struct ps_finding *finding, const struct ps_expiries *expiries,
                         uint64_t now_s);

/* --- doctor_files.c: reading below the root --- */

/* A file, whole or its first size - 1 bytes, without the newline at its end; "" when it cannot be
 * read. Returns whether it could. */
bool ps_host_read(const struct ps_host *host, char *text, size_t size, const char *path, ...)
	__attribute__((format(printf, 4, 5)));

bool ps_host_exists(const struct ps_host *host, const char *path, ...)
	__attribute__((format(printf, 2, 3)));

/* The names in a folder, sorted, without those that begin with a dot; each and the array are the
 * caller's to free (ps_host_names_free). 0 when it cannot be read. */
unsigned ps_host_names(const struct ps_host *host, const char *path, char ***names);
void ps_host_names_free(char **names, unsigned count);

/* Calls line() for every line of a file until it returns true; was it so? */
bool ps_host_lines(const struct ps_host *host, const char *path,
                   bool (*line)(void *arg, const char *text), void *arg);

/* The number behind "key" at the beginning of a line of a file; "unlimited" is UINT64_MAX. */
bool ps_host_number(const struct ps_host *host, const char *path, const char *key,
                    uint64_t *number);

/* --- doctor_processes.c: the daemons of this host --- */

enum {
	PS_DAEMONS_MAX = 64,
	PS_LISTENERS_MAX = 256,
	PS_LISTENER_TEXT = 128,
};

struct ps_daemon_seen {
	pid_t pid;
	uint64_t uid;
	bool readable; /* its sockets can be seen: else only root can */
};

struct ps_daemons {
	struct ps_daemon_seen daemons[PS_DAEMONS_MAX];
	unsigned count;
	char listeners[PS_LISTENERS_MAX][PS_LISTENER_TEXT]; /* as an owner here has them */
	unsigned listener_count;
	bool more; /* than are here */
};

void ps_daemons_find(const struct ps_host *host, struct ps_daemons *daemons);

/* --- the checks, by file --- */

void ps_check_version(const struct ps_host *host, struct ps_finding *finding);
void ps_check_kernel(const struct ps_host *host, struct ps_finding *finding);
void ps_check_proc(const struct ps_host *host, struct ps_finding *finding);
void ps_check_membarrier(const struct ps_host *host, struct ps_finding *finding);
void ps_check_pidfd(const struct ps_host *host, struct ps_finding *finding);
void ps_check_core_dumps(const struct ps_host *host, struct ps_finding *finding);
void ps_check_clock(const struct ps_host *host, struct ps_finding *finding);
void ps_check_clock_source(const struct ps_host *host, struct ps_finding *finding);
void ps_check_open_files(const struct ps_host *host, struct ps_finding *finding);

void ps_check_memory_dir(const struct ps_host *host, struct ps_finding *finding);
void ps_check_swap(const struct ps_host *host, struct ps_finding *finding);
void ps_check_thp(const struct ps_host *host, struct ps_finding *finding);
void ps_check_demand(const struct ps_host *host, struct ps_finding *finding);
void ps_check_written(const struct ps_host *host, struct ps_finding *finding);

void ps_check_rdma_devices(const struct ps_host *host, struct ps_finding *finding);
void ps_check_rdma_addresses(const struct ps_host *host, struct ps_finding *finding);
void ps_check_memlock(const struct ps_host *host, struct ps_finding *finding);

void ps_check_daemon(const struct ps_host *host, struct ps_finding *finding);
void ps_check_remove_ipc(const struct ps_host *host, struct ps_finding *finding);

#endif
