/*
 * test_verbs_end_to_end.c - the real library and real daemons in one process, over fake RDMA
 * devices.
 */
#include "verbs_nodes.h"

struct unit_fixture unit_fixture = { NULL, nodes_teardown };

enum { SIZE = 100000 };

static const struct rdma_options plain = { .enabled = true };

/* A store with a published segment. */
static perseas_t *begin(struct nodes *n, uint8_t **bytes)
{
	perseas_t *p = nodes_open_well(n, PERSEAS_CREATE);

	*bytes = map(p, SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		(*bytes)[i] = (uint8_t)(i * 7);
	if (perseas_publish(p))
		fail_msg("%s", perseas_message(p));
	return p;
}

static void assert_over(perseas_t *p, const char *fabric)
{
	struct perseas_stat stat;

	assert_int_equal(perseas_stat(p, &stat), 0);
	for (unsigned i = 0; i < stat.mirrors; i++) {
		struct perseas_mirror_stat m = mirror_stat(p, i);

		if (strcmp(m.fabric, fabric) != 0 || m.state != PERSEAS_MIRROR_LIVE)
			fail_msg("%s is %s over %s: %s", m.address,
			         perseas_mirror_state_name(m.state), m.fabric, m.trouble);
	}
}

/* Returns how many mirrors are live over the fabric. */
static unsigned count_over(perseas_t *p, const char *fabric)
{
	struct perseas_stat stat;
	unsigned count = 0;

	assert_int_equal(perseas_stat(p, &stat), 0);
	for (unsigned i = 0; i < stat.mirrors; i++) {
		struct perseas_mirror_stat m = mirror_stat(p, i);

		count += m.state == PERSEAS_MIRROR_LIVE && !strcmp(m.fabric, fabric);
	}
	return count;
}

static void await_over(perseas_t *p, const char *fabric, unsigned wanted)
{
	for (unsigned i = 0; count_over(p, fabric) != wanted;)
		wait_a_little(&i, fabric);
}

/* A bank from its making to the next owner, with three mirrors. */
TEST(a_store_lives_over_rdma)
{
	struct nodes *n = nodes_new(3, &plain, "");
	struct perseas_stat stat;
	uint8_t *bytes, *copy = malloc(SIZE);
	perseas_t *p = begin(n, &bytes);

	assert_over(p, "rdma");
	for (unsigned i = 0; i < 500; i++)
		put_well(p, bytes + i * 100, 1 + i % 200, (uint8_t)i);
	assert_int_equal(perseas_stat(p, &stat), 0);
	assert_int_equal(stat.reconnects, 0);
	memcpy(copy, bytes, SIZE);
	perseas_close(p);
	p = nodes_open_well(n, 0);
	assert_over(p, "rdma");
	bytes = map(p, 0);
	assert_memory_equal(bytes, copy, SIZE);
	put_well(p, bytes, 10, 1);
	perseas_close(p);
	free(copy);
}

/* A transaction costs one doorbell and one completion for each mirror. */
TEST(a_commit_is_one_doorbell_a_mirror)
{
	enum { COMMITS = 200, MIRRORS = 3 };
	struct nodes *n = nodes_new(MIRRORS, &plain, "");
	struct verbs_fake_counts counts;
	uint8_t *bytes;
	perseas_t *p = begin(n, &bytes);

	(void)verbs_fake_counts();
	for (unsigned i = 0; i < COMMITS; i++)
		put_well(p, bytes + 64 * i, 64, (uint8_t)i);
	assert_int_equal(perseas_flush(p), 0);
	counts = verbs_fake_counts();
	/* Signs of life, which are reads, are counted separately. */
	assert_int_equal(counts.writes, COMMITS * MIRRORS * 3);
	assert_true(counts.posts - counts.reads <= COMMITS * MIRRORS);
	assert_true(counts.signalled - counts.reads <= COMMITS * MIRRORS);
	perseas_close(p);
}

/* A second owner takes the store over while the first is alive. */
TEST(a_takeover_fences_the_owner_before)
{
	struct nodes *n = nodes_new(3, &plain, "");
	uint8_t *bytes, *theirs;
	perseas_t *p = begin(n, &bytes), *q;
	int rc;

	put_well(p, bytes, 100, 42);
	assert_int_equal(nodes_open(n, &verbs_fake_table, 0, &q), PERSEAS_EBUSY);
	q = nodes_open_well(n, PERSEAS_TAKEOVER);
	rc = put(p, bytes, 100, 66);
	for (int i = 0; rc == PERSEAS_EINDOUBT || rc == PERSEAS_EBLOCKED; i++) {
		assert_true(i < 100);
		rc = perseas_flush(p);
	}
	assert_int_equal(rc, PERSEAS_EFENCED);
	perseas_close(p); /* both map at the recorded address */
	theirs = map(q, 0);
	assert_int_equal(theirs[0], 42);
	assert_int_equal(theirs[99], 42);
	put_well(q, theirs, 10, 1);
	assert_over(q, "rdma");
	perseas_close(q);
}

/* Queue pairs break, at either end; nothing is lost, and the mirrors come back by replay: over tcp
 * those that broke often, until rdma is asked again. */
TEST(what_a_break_interrupted_is_replayed)
{
	struct nodes *n = nodes_new(3, &plain, "");
	uint8_t *bytes, *copy = malloc(SIZE);
	perseas_t *p = begin(n, &bytes);
	struct perseas_stat stat;
	unsigned commits = 0;

	for (unsigned round = 0; round < 9; round++) {
		struct ibv_qp *qp = round % 3 ? verbs_fake_active_qp() : verbs_fake_passive_qp();

		if (round % 3 == 2)
			verbs_fake_complete_with(IBV_WC_RETRY_EXC_ERR, round, round % 2);
		else
			verbs_fake_break(qp);
		for (unsigned i = 0; i < 10; i++, commits++)
			put_well(p, bytes + commits * 50, 77, (uint8_t)commits);
		for (unsigned i = 0; i < 3; i++)
			await_live(p, i);
	}
	await_over(p, "rdma", 3);
	assert_int_equal(perseas_flush(p), 0);
	assert_int_equal(perseas_stat(p, &stat), 0);
	assert_true(stat.reconnects >= 9);
	memcpy(copy, bytes, SIZE);
	perseas_close(p);
	/* Each mirror has it all. */
	for (unsigned i = 0; i < 2; i++)
		node_stop(n, i);
	p = NULL;
	assert_int_equal(nodes_open(n, &verbs_fake_table, 0, &p), PERSEAS_EQUORUM);
	node_start(n, 0);
	p = nodes_open_well(n, 0);
	bytes = map(p, 0);
	assert_memory_equal(bytes, copy, SIZE);
	perseas_close(p);
	free(copy);
}

/* A daemon stops, commits go on with the others, and it comes back. */
TEST(a_mirror_that_was_away_catches_up)
{
	struct nodes *n = nodes_new(3, &plain, "");
	uint8_t *bytes;
	perseas_t *p = begin(n, &bytes);

	for (unsigned round = 0; round < 3; round++) {
		node_stop(n, round);
		for (unsigned i = 0; i < 20; i++)
			put_well(p, bytes + i * 50, 77, (uint8_t)(i + round));
		node_start(n, round);
		await_live(p, round);
	}
	assert_over(p, "rdma");
	perseas_close(p);
}

/* No RDMA at one end or the other: tcp, and the reason is shown; or an error, where RDMA is
 * insisted on. */
TEST(without_rdma_it_is_tcp)
{
	struct nodes *n = nodes_new(1, &plain, "");
	uint8_t *bytes;
	perseas_t *p = begin(n, &bytes);

	perseas_close(p);
	verbs_fake_fail(VERBS_FAKE_create_event_channel, 0, UINT32_MAX, ENODEV);
	p = nodes_open_well(n, 0);
	assert_over(p, "tcp");
	assert_non_null(strstr(mirror_stat(p, 0).trouble, "no RDMA device"));
	assert_non_null(strstr(perseas_report(p), "no RDMA device"));
	bytes = map(p, 0);
	put_well(p, bytes, 10, 1);
	perseas_close(p);
	assert_int_equal(nodes_open(n, NULL, 0, &p), 0);
	assert_over(p, "tcp");
	assert_string_equal(mirror_stat(p, 0).trouble, "");
	perseas_close(p);
	verbs_fake_fail(VERBS_FAKE_create_event_channel, 0, 0, 0);
	p = nodes_open_well(n, 0);
	assert_over(p, "rdma");
	perseas_close(p);
}

static void await_later(perseas_t *p, unsigned index)
{
	const uint64_t first = p->mirrors[index].way_back.best_fabric_retest_delay_ns;

	for (unsigned i = 0; p->mirrors[index].way_back.best_fabric_retest_delay_ns == first;)
		wait_a_little(&i, "a later time");
}

/* The owner's connection manager sends nothing any more, as after a cable was out: sessions that
 * break are taken up over tcp, which says why, and stay there undisturbed. When it works again each
 * goes back to rdma once. */
TEST(rdma_that_works_again_is_taken_up)
{
	struct nodes *n = nodes_new(3, &plain, "");
	struct perseas_stat before, after;
	uint8_t *bytes;
	perseas_t *p = begin(n, &bytes);

	verbs_fake_fail(VERBS_FAKE_connect, 0, UINT32_MAX, EINVAL);
	for (unsigned i = 0; i < 3; i++) {
		verbs_fake_break(verbs_fake_active_qp());
		put_well(p, bytes, 100, (uint8_t)i);
		await_over(p, "tcp", i + 1);
	}
	assert_over(p, "tcp");
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(strstr(mirror_stat(p, i).trouble, "over tcp, since 127.0.0."));
	/* The question failed, so the next one comes later. */
	for (unsigned i = 0; i < 3; i++)
		await_later(p, i);
	put_well(p, bytes, 100, 7);
	assert_int_equal(perseas_stat(p, &before), 0);
	assert_int_equal(before.reconnects, 3);
	verbs_fake_fail(VERBS_FAKE_connect, 0, 0, 0);
	await_over(p, "rdma", 3);
	put_well(p, bytes, 100, 8);
	assert_int_equal(perseas_stat(p, &after), 0);
	assert_int_equal(after.reconnects, before.reconnects + 3);
	assert_string_equal(mirror_stat(p, 0).trouble, "");
	perseas_close(p);
}

/* Links come up, and each of them breaks, as where packets are lost. The third one is enough to go
 * over tcp, and one more when rdma has been taken up again. */
TEST(rdma_that_breaks_again_and_again_is_left)
{
	struct nodes *n = nodes_new(1, &plain, "");
	uint8_t *bytes;
	perseas_t *p = begin(n, &bytes);

	for (unsigned i = 0; i < 4; i++) {
		await_over(p, "rdma", 1);
		verbs_fake_break(verbs_fake_active_qp());
		put_well(p, bytes, 100, (uint8_t)i);
		await_over(p, i < 2 ? "rdma" : "tcp", 1);
		if (i < 2)
			assert_string_equal(mirror_stat(p, 0).trouble, "");
		else
			assert_non_null(strstr(mirror_stat(p, 0).trouble, "3 of them broke"));
	}
	perseas_close(p);
}

TEST(rdma_that_is_insisted_on_is_missed)
{
	const struct rdma_options off = { .enabled = false };
	struct nodes *n = nodes_new(1, &off, "rdma://");
	perseas_t *p = NULL;

	assert_int_not_equal(nodes_open(n, &verbs_fake_table, PERSEAS_CREATE, &p), 0);
	assert_null(p);
	if (!strstr(n->error.text, "--rdma off"))
		fail_msg("said: %s", n->error.text);
}

/* The mirror's host dies without a word while nothing is committed. */
TEST(a_dead_host_is_noticed_on_an_idle_link)
{
	struct nodes *n = nodes_new(3, &plain, "");
	uint8_t *bytes;
	perseas_t *p = begin(n, &bytes);

	n->nodes[1].device->dead = true;
	for (unsigned i = 0; mirror_stat(p, 1).state == PERSEAS_MIRROR_LIVE;) {
		wait_a_little(&i, "the end of a mirror's session");
		verbs_fake_expire();
	}
	put_well(p, bytes, 100, 5);
	n->nodes[1].device->dead = false;
	await_live(p, 1);
	perseas_close(p);
}
