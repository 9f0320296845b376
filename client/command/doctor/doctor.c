/*
 * doctor.c - the table of checks, functions to write findings, and the functions of this host that
 * checks call.
 */
#include "doctor.h"
#include "../../core/demand.h"
#include "../../core/env.h"
#include "../../../proto/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The checks. Guides and messages name them. */
const struct ps_check ps_checks[] = {
	{ "core dumps", ps_check_core_dumps },
	{ "recovery on demand", ps_check_recovery_on_demand },
	{ "written pages", ps_check_page_tracking },
	{ "RDMA addresses", ps_check_rdma_addresses },
	{ "RemoveIPC", ps_check_remove_ipc },
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

void ps_finding_worsen(struct ps_finding *finding, enum ps_health health, const char *format, ...)
{
	va_list args;

	if (finding->health < health)
		finding->health = health;
	va_start(args, format);
	ps_text_vformat(finding->advice, sizeof(finding->advice), format, args);
	va_end(args);
}

void ps_finding_add_expiries(struct ps_finding *finding, const struct ps_expiries *expiries,
                             uint64_t now_s)
{
	char text[PS_EXPIRY_TEXT];

	for (unsigned i = 0; i < expiries->count; i++) {
		const enum ps_expiry_stage stage = ps_expiry_stage(&expiries->list[i], now_s);

		if (stage == PS_EXPIRY_FAR)
			continue;
		ps_finding_add(finding, ", %s", ps_expiry_text(&expiries->list[i], now_s, text));
		ps_finding_worsen(finding,
		                  stage == PS_EXPIRY_EXPIRED ? PS_HEALTH_FAIL : PS_HEALTH_WARNING,
		                  "Open connections go on after the end, but new ones are refused: "
		                  "renew it, as PerseasCertificateExpires in the runbook says.");
	}
}

/* --- this host --- */

static int probe_demand_paging_here(const char **limit, struct ps_error *error)
{
	struct ps_env *env = ps_env_posix(NULL, error);
	int rc;

	if (!env)
		return error->code;
	rc = ps_demand_probe(env, limit, error);
	env->ops->free(env);
	return rc;
}

static int probe_page_tracking_here(struct ps_error *error)
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
	const char *rdma = getenv("PERSEAS_RDMA");

	return (struct ps_host){
		.root = "",
		.memory_dir = memory_dir,
		.has_rdma = PERSEAS_RDMA && !(rdma && !strcmp(rdma, "off")),
		.demand = probe_demand_paging_here,
		.written = probe_page_tracking_here,
	};
}
