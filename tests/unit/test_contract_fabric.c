/*
 * test_contract_fabric.c - has each fabric of the library keep the contract of client/core/fabric.h
 * (tests/support/contract_fabric.h), with a mirror of its own: tcp with the daemon's decoder behind
 * a socket, also inside TLS, shm with files that stand for a mirror's, rdma over fake devices, also
 * such as reorder writes, and with flushes.
 */
#include "../support/authority_tls.h"
#include "../support/contract_fabric.h"
#include "../support/unit.h"

struct unit_fixture unit_group = { unit_limit_time, NULL };

static void check(const struct fabric_clause *clause, struct fabric_stage *stage)
{
	clause_broken[0] = '\0';
	clause->check(stage);
	if (clause_broken[0])
		fail_msg("%s: %s", clause->name, clause_broken);
}

static void keep_over_tcp(struct ps_tls *owner, struct ps_tls *mirror)
{
	for (unsigned i = 0; i < fabric_clause_count; i++) {
		struct fabric_stage *stage = fabric_stage_tcp(owner, mirror);

		check(&fabric_clauses[i], stage);
		fabric_stage_tcp_end(stage);
	}
}

TEST(tcp_keeps_the_contract)
{
	keep_over_tcp(NULL, NULL);
}

TEST(tls_keeps_the_contract)
{
	const struct leaf leaves[] = {
		{ .stem = "mirror", .names = "IP:127.0.0.1", .use = "serverAuth" },
		{ .stem = "owner", .names = "DNS:bank", .use = "clientAuth" },
	};
	char folder[] = "/tmp/perseas-contract-XXXXXX";
	struct authority *authority;
	struct ps_tls *owner, *mirror;

	assert_non_null(mkdtemp(folder));
	authority = authority_new(folder, "ca");
	authority_issue(authority, &leaves[0]);
	authority_issue(authority, &leaves[1]);
	authority_free(authority);
	owner = authority_tls(folder, "owner", "ca", NULL);
	mirror = authority_tls(folder, "mirror", "ca", NULL);
	keep_over_tcp(owner, mirror);
	ps_tls_free(owner);
	ps_tls_free(mirror);
	unit_remove_folder(folder);
}

TEST(shm_keeps_the_contract)
{
	for (unsigned i = 0; i < fabric_clause_count; i++) {
		struct fabric_stage *stage = fabric_stage_shm();

		check(&fabric_clauses[i], stage);
		fabric_stage_shm_end(stage);
	}
}

#if PERSEAS_RDMA
static void keep_over_verbs(bool phased, bool flush)
{
	for (unsigned i = 0; i < fabric_clause_count; i++) {
		struct fabric_stage *stage = fabric_stage_verbs(phased, flush);
		const char *trouble;

		check(&fabric_clauses[i], stage);
		trouble = fabric_stage_verbs_end(stage);
		if (trouble[0])
			fail_msg("%s: %s", fabric_clauses[i].name, trouble);
	}
}

TEST(rdma_keeps_the_contract)
{
	keep_over_verbs(false, false);
}

TEST(rdma_in_phases_keeps_the_contract)
{
	keep_over_verbs(true, false);
}

TEST(rdma_with_flushes_keeps_the_contract)
{
	keep_over_verbs(false, true);
}
#endif
