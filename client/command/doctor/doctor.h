/*
 * doctor.h - the checks of perseas doctor on this host, as a table, and the findings that they
 * report. cmd_doctor.c runs the table.
 *
 * A check reads files below a root, and calls the functions of struct ps_host for what no file
 * says. Tests use trees and functions of their own. A check must never change anything.
 */
#ifndef PERSEAS_COMMAND_DOCTOR_H
#define PERSEAS_COMMAND_DOCTOR_H

#include "../../core/error.h"
#include "../../../proto/base/expiry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ps_host {
	const char *root;       /* "" is this host, else a path without a slash at its end */
	const char *memory_dir; /* absolute path of perseasd's memory directory */
	bool has_rdma;          /* this build has RDMA, and the environment allows it */
	/* Tests whether this process can recover on demand. Returns what ps_demand_probe returns.
	 */
	int (*demand)(const char **limit, struct ps_error *error);
	/* Tests whether this process can learn which pages it wrote. Returns what ps_written_probe
	 * returns. */
	int (*written)(struct ps_error *error);
};

/* Returns the host that this process runs on. */
struct ps_host ps_host_here(const char *memory_dir);

enum ps_health { PS_HEALTH_OK, PS_HEALTH_WARNING, PS_HEALTH_FAIL, PS_HEALTH_SKIPPED };

/* What a check found. */
struct ps_finding {
	enum ps_health health;
	char found[2048]; /* a sentence without its full stop */
	char advice[512]; /* what to do, with the command; "": nothing */
};

struct ps_check {
	const char *name;
	/* Examines the host and sets the finding. */
	void (*examine)(const struct ps_host *host, struct ps_finding *finding);
};

extern const struct ps_check ps_checks[]; /* ends with a name of NULL */

const char *ps_health_name(enum ps_health health); /* "ok", "warning", "fail", "skipped" */

/* Sets the health and the sentence of the finding, and leaves its advice as it is. */
void ps_finding_set(struct ps_finding *finding, enum ps_health health, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ps_finding_advise(struct ps_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Makes the finding at least as bad as `health`, and replaces its advice. */
void ps_finding_worsen(struct ps_finding *finding, enum ps_health health, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Appends to the sentence of the finding. */
void ps_finding_add(struct ps_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Notes each TLS file that has expired, or will soon, as a fault. */
void ps_finding_add_expiries(struct ps_finding *finding, const struct ps_expiries *expiries,
                             uint64_t now_s);

/* --- doctor_files.c: reading below the root --- */

/* Reads a file, or its first size - 1 bytes, without the newline at its end. Returns false if the
 * file cannot be read; text is "" then. */
bool ps_host_read(const struct ps_host *host, char *text, size_t size, const char *path, ...)
	__attribute__((format(printf, 4, 5)));

/* Returns true if the file or folder exists below the root. */
bool ps_host_exists(const struct ps_host *host, const char *path, ...)
	__attribute__((format(printf, 2, 3)));

/* Lists the names in a folder, sorted, without those that begin with a dot. Returns their number,
 * or 0 if the folder cannot be read. The caller frees them with ps_host_names_free. */
unsigned ps_host_list_names(const struct ps_host *host, const char *path, char ***names);
void ps_host_names_free(char **names, unsigned count);

/* Calls line() for each line of a file until it returns true. Returns true if it did. */
bool ps_host_find_line(const struct ps_host *host, const char *path,
                       bool (*line)(void *arg, const char *text), void *arg);

/* --- the checks --- */

/* doctor_kernel.c: what the kernel lets an owner do, and where its core dump goes. */
void ps_check_core_dumps(const struct ps_host *host, struct ps_finding *finding);
void ps_check_recovery_on_demand(const struct ps_host *host, struct ps_finding *finding);
void ps_check_page_tracking(const struct ps_host *host, struct ps_finding *finding);

/* doctor_rdma.c: the addresses of RDMA devices. */
void ps_check_rdma_addresses(const struct ps_host *host, struct ps_finding *finding);

/* doctor_logind.c: whether logind removes images. */
void ps_check_remove_ipc(const struct ps_host *host, struct ps_finding *finding);

#endif
