/*
 * cmd_doctor.c - perseas doctor: checks this host and mirrors for what owners and daemons need.
 */
#include "command.h"
#include "doctor/doctor.h"
#include "../host/list_by_name.h"
#include "../../proto/base/json.h"
#include "ask/ask.h"
#include "ask/weak_acks.h"
#include "ask/tls_expiry.h"
#include "../perseas.h"
#include "../../proto/base/options.h"

#include <string.h>

enum { FOUND_COLUMN = 9 };

struct report {
	struct ps_json *json; /* NULL: print text */
	unsigned counts[PS_HEALTH_SKIPPED + 1];
};

static void report_finding(struct report *report, const char *name,
                           const struct ps_finding *finding)
{
	const char *health = ps_health_name(finding->health);
	char line[64 + sizeof(finding->found)];

	report->counts[finding->health]++;
	if (report->json) {
		ps_json_begin(report->json, NULL, '{');
		ps_json_text(report->json, "name", name);
		ps_json_text(report->json, "result", health);
		ps_json_text(report->json, "found", finding->found);
		ps_json_text(report->json, "advice", *finding->advice ? finding->advice : NULL);
		ps_json_end(report->json, '}');
		return;
	}
	snprintf(line, sizeof(line), "%s: %s", name, finding->found);
	printf("%-*s", FOUND_COLUMN, health);
	ps_print_wrapped(stdout, line, FOUND_COLUMN, FOUND_COLUMN);
	if (*finding->advice) {
		printf("%*s", FOUND_COLUMN, "");
		ps_print_wrapped(stdout, finding->advice, FOUND_COLUMN, FOUND_COLUMN);
	}
}

/* --- mirrors --- */

static const char *error_remedy(int code)
{
	switch (code) {
	case PERSEAS_EVERSION:
		return "Upgrade the older of the two: perseas --version, perseasd --version.";
	case PERSEAS_EUNREACHABLE:
		return "On its host: systemctl start perseasd, and let its TCP port through "
		       "firewalls (ss -ltn shows where it listens).";
	case PERSEAS_ETLS:
		return "See PerseasHandshakesFail in the runbook, and SECURITY.md for how "
		       "certificates are made.";
	default:
		return "Give the port at which a perseasd of this version listens: its log shows "
		       "it.";
	}
}

/* Finds images whose files were removed, so that the daemon has them in memory only. */
static void check_missing_files(const Perseas__ListReply *list, struct ps_finding *finding)
{
	for (size_t i = 0; i < list->n_stores; i++) {
		if (!*list->stores[i]->files_missing)
			continue;
		ps_finding_add(finding, ", would lose store %s if it were restarted: %s",
		               list->stores[i]->header->store, list->stores[i]->files_missing);
		ps_finding_worsen(
			finding, PS_HEALTH_FAIL,
			"Do not restart it before that is mended: see PerseasFilesMissing in "
			"the runbook.");
	}
}

/* Finds images that the daemon refuses: their headers are not known, or they are listed as
 * consistent, without a slot. */
static void check_refused_images(const Perseas__ListReply *list, struct ps_finding *finding)
{
	for (size_t i = 0; i < list->n_refused; i++) {
		ps_finding_add(finding, ", does not serve its image of store %s: %s",
		               list->refused[i]->store, list->refused[i]->why);
		ps_finding_worsen(finding, PS_HEALTH_FAIL,
		                  "See PerseasImageDamaged in the runbook.");
	}
	for (size_t i = 0; i < list->n_stores; i++) {
		const Perseas__Header *header = list->stores[i]->header;

		if (list->stores[i]->slot || header->state != PERSEAS__STATE__STATE_CONSISTENT)
			continue;
		ps_finding_add(finding, ", does not serve its image of store %s", header->store);
		ps_finding_worsen(finding, PS_HEALTH_FAIL,
		                  "perseas status %s says why: see PerseasImageDamaged in the "
		                  "runbook.",
		                  header->store);
	}
}

/* Finds images that the daemon set aside because they may be older than what they acknowledged. */
static void check_set_aside_images(const Perseas__ListReply *list, struct ps_finding *finding)
{
	for (size_t i = 0; i < list->n_set_aside; i++)
		ps_finding_add(finding, ", has set aside %s", list->set_aside[i]->folder);
	if (list->n_set_aside)
		ps_finding_worsen(finding, PS_HEALTH_WARNING,
		                  "It may be old, so it counts for nothing: see "
		                  "PerseasImageSetAside in the runbook.");
}

/* Finds stores that can lose acknowledged commits with one mirror. */
static void check_weak_acks(const Perseas__ListReply *list, struct ps_finding *finding)
{
	char text[PS_WEAK_ACKS_TEXT];

	for (size_t i = 0; i < list->n_stores; i++) {
		const Perseas__Header *header = list->stores[i]->header;

		if (!header || !*ps_weak_acks_text(text, header->roster))
			continue;
		ps_finding_add(finding, ", store %s has W = 1 of %zu", header->store,
		               header->roster->n_members);
		ps_finding_worsen(finding, PS_HEALTH_WARNING, "Store %s has %s.", header->store,
		                  text);
	}
}

static void check_mirror(struct ps_peers *peers, unsigned i, struct ps_finding *finding)
{
	const Perseas__ListReply *list = peers->replies[i] ? peers->replies[i]->list : NULL;
	char used[PS_SIZE_TEXT];
	struct ps_expiries expiries;

	memset(finding, 0, sizeof(*finding));
	if (!list) {
		ps_finding_set(finding, PS_HEALTH_FAIL, "%s", peers->errors[i].text);
		ps_finding_advise(finding, "%s", error_remedy(peers->errors[i].code));
		return;
	}
	ps_finding_set(finding, PS_HEALTH_OK,
	               "perseasd %s answers, the same protocol; %zu "
	               "store%s, %s",
	               list->version, list->n_stores, ps_plural(list->n_stores),
	               ps_size_text(used, list->memory_used));
	if (strcmp(list->version, perseas_version()) != 0) {
		ps_finding_worsen(finding, PS_HEALTH_WARNING,
		                  "This is %s: upgrade the older of the two, mirrors "
		                  "first.",
		                  perseas_version());
	}
	ps_peers_list_expiries(peers, i, &expiries);
	check_weak_acks(list, finding);
	check_missing_files(list, finding);
	check_refused_images(list, finding);
	check_set_aside_images(list, finding);
	ps_finding_add_expiries(finding, &expiries, ps_env_clock_seconds(peers->env));
}

/* Looks at each mirror. A mirror that does not answer is a finding, not PS_EXIT_PARTLY. */
static enum ps_exit check_mirrors(struct report *report, const struct ps_args *args)
{
	struct ps_peers peers;
	enum ps_exit status = ps_peers_open(&peers, args->mirrors, &args->options);

	if (status)
		return status;
	ps_peers_ask_all(&peers, ps_peers_list_request());
	for (unsigned i = 0; i < peers.count; i++) {
		struct ps_finding finding;
		char name[300];

		check_mirror(&peers, i, &finding);
		snprintf(name, sizeof(name), "mirror %s", peers.addresses[i].text);
		report_finding(report, name, &finding);
	}
	ps_peers_close(&peers);
	return PS_EXIT_OK;
}

/* Reports when the TLS files that the command was given expire, also without mirrors. Reports
 * nothing without TLS. */
static void check_certificates(struct report *report, const struct ps_args *args)
{
	struct ps_finding finding = { 0 };
	struct ps_expiries expiries = { 0 };
	char text[PS_EXPIRY_TEXT];
	struct ps_error error = { 0 };
	struct ps_env *env = ps_env_posix(&args->options, &error);
	uint64_t now_s = 0;

	if (env) {
		now_s = ps_env_clock_seconds(env);
		ps_env_list_expiries(env, &expiries);
		env->ops->free(env);
	}
	if (error.code == PERSEAS_ETLS)
		ps_finding_set(&finding, PS_HEALTH_FAIL, "%s", error.text);
	else if (expiries.count == 0)
		return;
	else if (ps_expiry_stage(&expiries.list[0], now_s) == PS_EXPIRY_FAR)
		ps_finding_set(&finding, PS_HEALTH_OK, "the first to expire: %s",
		               ps_expiry_text(&expiries.list[0], now_s, text));
	else
		ps_finding_set(&finding, PS_HEALTH_OK, "the files that are given here can be read");
	ps_finding_add_expiries(&finding, &expiries, now_s);
	report_finding(report, "certificates", &finding);
}

/* --- the verb --- */

/* Refuses a wrong list of mirrors before any check runs. */
enum ps_exit ps_verb_doctor_check(const struct ps_args *args)
{
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_error error = { 0 };
	unsigned count;

	if (args->mirrors && !ps_list_is_named(args->mirrors) &&
	    ps_address_parse_list(args->mirrors, addresses, &count, &error))
		return ps_complain(PS_EXIT_USAGE, "%s", error.text);
	return PS_EXIT_OK;
}

static void print_totals(const struct report *report)
{
	const unsigned *counts = report->counts;

	if (report->json) {
		ps_json_end(report->json, ']');
		ps_json_number(report->json, "failures", counts[PS_HEALTH_FAIL]);
		ps_json_number(report->json, "warnings", counts[PS_HEALTH_WARNING]);
		ps_json_end(report->json, '}');
		return;
	}
	printf("%u ok, %u warning%s, %u failure%s, %u skipped\n", counts[PS_HEALTH_OK],
	       counts[PS_HEALTH_WARNING], ps_plural(counts[PS_HEALTH_WARNING]),
	       counts[PS_HEALTH_FAIL], ps_plural(counts[PS_HEALTH_FAIL]),
	       counts[PS_HEALTH_SKIPPED]);
}

enum ps_exit ps_verb_doctor(const struct ps_args *args)
{
	struct ps_json json = { .out = stdout };
	struct report report = { .json = args->json ? &json : NULL };
	struct ps_host host = ps_host_here(args->memory_dir);
	enum ps_exit status = PS_EXIT_OK;

	if (args->json) {
		ps_json_begin(&json, NULL, '{');
		ps_json_begin(&json, "checks", '[');
	}
	for (const struct ps_check *check = ps_checks; check->name; check++) {
		struct ps_finding finding = { 0 };

		check->examine(&host, &finding);
		report_finding(&report, check->name, &finding);
	}
	check_certificates(&report, args);
	if (args->mirrors)
		status = check_mirrors(&report, args);
	print_totals(&report);
	if (status)
		return status;
	return report.counts[PS_HEALTH_FAIL] ? PS_EXIT_NO : PS_EXIT_OK;
}
