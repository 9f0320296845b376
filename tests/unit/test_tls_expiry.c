/*
 * test_tls_expiry.c - what the command says of TLS files that expire: which of its own, of those
 * that daemons told of, and of the certificates that mirrors showed.
 */
#include "../../client/command/ask/tls_expiry.h"
#include "../../client/command/doctor/doctor.h"
#include "../../proto/base/json.h"
#include "../support/env_direct.h"
#include "../support/unit.h"

enum { DAY = 86400, MIRRORS = 2 };

struct rig {
	struct direct *d;
	struct ps_peers peers;
	Perseas__Reply reply;
	Perseas__ListReply list;
	Perseas__Expiry told, *told_list[1];
	char *page;
};

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct ps_error error;

	assert_non_null(rig);
	rig->d = direct_new(MIRRORS, 1);
	assert_int_equal(ps_peers_begin(&rig->peers, direct_env(rig->d), direct_list(rig->d), 1000,
	                                &error),
	                 0);
	rig->reply = (Perseas__Reply)PERSEAS__REPLY__INIT;
	rig->list = (Perseas__ListReply)PERSEAS__LIST_REPLY__INIT;
	rig->told = (Perseas__Expiry)PERSEAS__EXPIRY__INIT;
	rig->reply.body_case = PERSEAS__REPLY__BODY_LIST;
	rig->reply.list = &rig->list;
	rig->list.expiries = rig->told_list;
	rig->told_list[0] = &rig->told;
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	rig->peers.replies[1] = NULL;
	ps_peers_end(&rig->peers);
	rig->peers.env->ops->free(rig->peers.env);
	direct_free(rig->d);
	free(rig->page);
	free(rig);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void add(struct rig *rig, struct ps_expiries *expiries, const char *name, uint64_t whole_s,
                uint64_t left_s)
{
	const uint64_t until_s = ps_env_clock_seconds(rig->peers.env) + left_s;
	struct ps_expiry expiry;

	ps_expiry_set(&expiry, PS_EXPIRY_CERTIFICATE, name, until_s - whole_s, until_s);
	ps_expiries_add(expiries, &expiry);
}

static void assert_says(struct rig *rig, const char *words)
{
	struct ps_json json = { 0 };
	size_t len;

	free(rig->page);
	json.out = open_memstream(&rig->page, &len);
	ps_json_begin(&json, NULL, '{');
	ps_tls_expiry_json(&json, &rig->peers);
	ps_json_end(&json, '}');
	fclose(json.out);
	if (!strstr(rig->page, words))
		fail_msg("no %s in %s", words, rig->page);
}

/* Without TLS nothing is said. Of those that are far the earliest is; but one that is urgent goes
 * before it. */
TEST(the_most_urgent_is_said, struct rig *rig)
{
	assert_says(rig, "\"tls_expires\": null");
	add(rig, &rig->d->expiries, "own", 400 * DAY, 300 * DAY);
	assert_says(rig, "\"mirror\": null");
	add(rig, &rig->d->mirrors[0].expiries, "m0", DAY, DAY);
	assert_says(rig, "\"name\": \"m0\"");
	assert_says(rig, "\"mirror\": \"sim://0\"");
	assert_says(rig, "\"stage\": \"far\"");
	add(rig, &rig->d->mirrors[1].expiries, "m1", 400 * DAY, 10 * DAY);
	assert_says(rig, "\"name\": \"m1\"");
	assert_says(rig, "\"stage\": \"near\"");
	add(rig, &rig->d->expiries, "own-2", 400 * DAY, DAY);
	assert_says(rig, "\"name\": \"own-2\"");
	assert_says(rig, "\"stage\": \"urgent\"");
}

/* A daemon told of a list, with dates that contradict each other; the mirror showed more. */
TEST(what_a_daemon_told_counts, struct rig *rig)
{
	struct ps_expiries expiries;

	rig->told.kind = PERSEAS__EXPIRY__KIND__CRL;
	rig->told.name = (char *)(uintptr_t) "CN=ca";
	rig->told.valid_from = UINT64_MAX;
	rig->list.n_expiries = 1;
	rig->peers.replies[1] = &rig->reply;
	add(rig, &rig->d->mirrors[1].expiries, "m1", 400 * DAY, 10 * DAY);
	ps_peers_list_expiries(&rig->peers, 1, &expiries);
	assert_int_equal(expiries.count, 2);
	assert_int_equal(expiries.list[0].kind, PS_EXPIRY_CRL);
	assert_int_equal(expiries.list[0].from_s, 0);
	assert_says(rig, "\"kind\": \"crl\"");
	assert_says(rig, "\"stage\": \"over\"");
	ps_peers_list_expiries(&rig->peers, 0, &expiries);
	assert_int_equal(expiries.count, 0);
}

/* A distant end is no finding; an expired file is worse than one that expires soon. */
TEST(the_doctor_finds_what_expires, struct rig *rig)
{
	const uint64_t now_s = ps_env_clock_seconds(rig->peers.env);
	struct ps_finding finding = { 0 };
	struct ps_expiries expiries = { 0 };

	add(rig, &expiries, "far", 400 * DAY, 300 * DAY);
	ps_finding_add_expiries(&finding, &expiries, now_s);
	assert_int_equal(finding.health, PS_HEALTH_OK);
	assert_string_equal(finding.advice, "");
	add(rig, &expiries, "near", 400 * DAY, 10 * DAY);
	ps_finding_add_expiries(&finding, &expiries, now_s);
	assert_int_equal(finding.health, PS_HEALTH_WARNING);
	assert_non_null(strstr(finding.found, "the certificate near expires on"));
	assert_null(strstr(finding.found, "far"));
	add(rig, &expiries, "over", 400 * DAY, 0);
	ps_finding_add_expiries(&finding, &expiries, now_s);
	assert_int_equal(finding.health, PS_HEALTH_FAIL);
	assert_non_null(strstr(finding.advice, "renew it"));
}
