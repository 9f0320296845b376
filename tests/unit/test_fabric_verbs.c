/*
 * test_fabric_verbs.c - the data path over RDMA: what is posted, how, and when it counts.
 */
#include "verbs_mirror.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* Bytes of a write that the fake's writes cover, in order. */
static bool journal_has(const struct verbs_fake_write *writes, unsigned count, unsigned *next,
                        const uint8_t *to, uint32_t length)
{
	uint32_t have = 0;

	while (have < length) {
		if (*next == count || writes[*next].address != (uintptr_t)to + have)
			return false;
		have += writes[(*next)++].length;
	}
	return have == length;
}

/* A commit: undo record, data and slot go with one doorbell, and one completion stands for all. */
TEST(a_chain_is_one_doorbell_and_one_completion, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	const struct verbs_fake_write *writes;
	struct verbs_fake_counts counts;
	struct transaction t;
	unsigned count, next = 0;

	fill_transaction(m, &t, 7);
	verbs_fake_journal(true);
	(void)verbs_fake_counts();
	assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
	counts = verbs_fake_counts();
	assert_int_equal(counts.posts, 1);
	assert_int_equal(counts.requests, 4);
	assert_int_equal(counts.writes, 4);
	assert_int_equal(counts.signalled, 1);
	assert_int_equal(counts.inlined, 2); /* 64 bytes, and the slot */
	assert_int_equal(counts.calls, 1);   /* and nothing else is asked of the device */
	assert_int_equal(ps_fabric_rdma.poll(link), 0);
	assert_int_equal(verbs_fake_run(), 4);
	assert_int_equal(ps_fabric_rdma.poll(link), 1);
	assert_int_equal(ps_fabric_rdma.poll(link), 0);
	writes = verbs_fake_writes(&count);
	assert_true(journal_has(writes, count, &next, m->log + RECORD_AT, RECORD_LENGTH));
	assert_true(journal_has(writes, count, &next, m->segment + 100, 64));
	assert_true(journal_has(writes, count, &next, m->segment + 8000, 300));
	assert_true(journal_has(writes, count, &next, m->log, sizeof(struct ps_slot)));
	assert_int_equal(next, count);
	assert_int_equal(m->segment[8299], 7);
	assert_int_equal(m->segment[8300], 0);
	assert_int_equal(ps_verbs_counts(link).doorbells, 1);
	assert_int_equal(ps_verbs_counts(link).requests, 4);
	assert_int_equal(ps_verbs_counts(link).completions, 1);
	ps_fabric_rdma.detach(link);
}

/* Sources that are not in the ring may change as soon as post returns. */
TEST(what_is_not_in_the_ring_is_copied, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	uint8_t large[5000], slot[40];
	struct ps_write write = { large, 300, PS_REGION_SEGMENT, sizeof(large) };
	struct ps_chain chain = { &write, 1, 0, { slot, 0, PS_REGION_LOG, sizeof(slot) } };

	for (unsigned round = 1; round < 20; round++) {
		memset(large, (int)round, sizeof(large));
		memset(slot, (int)round + 100, sizeof(slot));
		assert_int_equal(ps_fabric_rdma.post(link, &chain), PS_LINK_OK);
		memset(large, 0xff, sizeof(large));
		memset(slot, 0xff, sizeof(slot));
		settle(link, 1);
		assert_int_equal(m->segment[300], round);
		assert_int_equal(m->segment[5299], round);
		assert_int_equal(m->log[0], round + 100);
		assert_int_equal(m->log[39], round + 100);
	}
	ps_fabric_rdma.detach(link);
}

static void limit_device(struct verbs_mirror *m)
{
	m->here->attr.max_qp_wr = 4;
	m->here->attr.max_sge = 1;
	m->here->attr.max_cqe = 8;
	m->here->max_inline = 0;
}

/* A chain of 50 writes over a queue pair that takes 4 requests, and no inline data. */
TEST(a_chain_longer_than_the_queue_completes_once, struct verbs_mirror *m)
{
	struct ps_write writes[50];
	struct ps_chain chain = { writes, 50, 10, staged(m, 0, PS_REGION_LOG, 0, 40) };
	const struct verbs_fake_write *written;
	struct ps_link *link;
	unsigned count;

	limit_device(m);
	m->here->inline_strict = true;
	link = attach_well(m);
	for (unsigned i = 0; i < 50; i++) {
		((uint8_t *)m->env.staging_memory)[64 + i] = (uint8_t)(i + 1);
		writes[i] = staged(m, 64 + i, PS_REGION_SEGMENT, i, 1);
	}
	verbs_fake_journal(true);
	(void)verbs_fake_counts();
	assert_int_equal(ps_fabric_rdma.post(link, &chain), PS_LINK_OK);
	settle(link, 1);
	written = verbs_fake_writes(&count);
	assert_int_equal(count, 51);
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(written[i].address, (uintptr_t)m->segment + i);
	assert_int_equal(written[50].address, (uintptr_t)m->log);
	assert_int_equal(verbs_fake_counts().inlined, 0);
	assert_int_equal(ps_fabric_rdma.poll(link), 0);
	ps_fabric_rdma.detach(link);
}

/* Many transactions before the first completes: they arrive in order, and all are counted. */
TEST(a_window_of_chains_keeps_its_order, struct verbs_mirror *m)
{
	enum { CHAINS = 3000 };
	const struct verbs_fake_write *written;
	struct ps_link *link;
	unsigned count;
	int completed = 0;

	m->here->attr.max_qp_wr = 64;
	link = attach_well(m);
	verbs_fake_journal(true);
	for (unsigned i = 0; i < CHAINS; i++) {
		struct ps_write write = staged(m, i, PS_REGION_SEGMENT, 2 * i, 1);
		struct ps_chain chain = { &write, 1, 1, staged(m, i, PS_REGION_LOG, i, 1) };

		assert_int_equal(ps_fabric_rdma.post(link, &chain), PS_LINK_OK);
		if (i % 7 == 0) {
			int n = ps_fabric_rdma.poll(link);

			verbs_fake_step(9);
			assert_true(n >= 0);
			completed += n;
		}
	}
	settle(link, CHAINS - completed);
	written = verbs_fake_writes(&count);
	assert_int_equal(count, 2 * CHAINS);
	for (unsigned i = 0; i < CHAINS; i++) {
		assert_int_equal(written[2 * i].address, (uintptr_t)m->segment + 2 * i);
		assert_int_equal(written[2 * i + 1].address, (uintptr_t)m->log + i);
	}
	ps_fabric_rdma.detach(link);
}

/* Returns true if the journal shows a record, data or slot before a part that must precede it. */
static bool is_out_of_order(unsigned chains)
{
	const uint32_t lengths[] = { RECORD_LENGTH, 64 + 300, sizeof(struct ps_slot) };
	const struct verbs_fake_write *writes;
	unsigned count, at = 0;
	bool out = false;

	writes = verbs_fake_writes(&count);
	for (unsigned chain = 0; chain < chains && !out; chain++)
		for (unsigned phase = 0; phase < 3 && !out; phase++)
			for (uint32_t have = 0; have < lengths[phase]; at++) {
				uint8_t value = (uint8_t)(10 * chain + phase + 1);

				have += writes[at].length;
				out |= writes[at].bytes[0] != value;
			}
	return out;
}

/* Ten transactions whose bytes tell which of them, and which part of it, they are. */
static void post_marked(struct verbs_mirror *m, struct ps_link *link, unsigned chains)
{
	uint8_t *ring = m->env.staging_memory;

	for (unsigned i = 0; i < chains; i++) {
		struct transaction t;
		size_t base = 4096 * (size_t)(i + 1);

		fill_transaction(m, &t, 0);
		memset(ring + base, (int)(10 * i + 1), 1024);
		memset(ring + base + 1024, (int)(10 * i + 2), 512);
		memset(ring + base + 1600, (int)(10 * i + 3), 40);
		for (unsigned w = 0; w < 3; w++)
			t.writes[w].src = (const uint8_t *)t.writes[w].src + base;
		t.chain.slot.src = (const uint8_t *)t.chain.slot.src + base;
		assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
	}
	settle(link, (int)chains);
}

/* A fabric that reorders: the phases hold it back, and without them it does harm. */
TEST(phases_keep_the_order_where_the_fabric_does_not, struct verbs_mirror *m)
{
	for (int phased = 0; phased < 2; phased++) {
		unsigned broken = 0;
		struct ps_link *link;

		m->grant.phased = phased;
		link = attach_well(m);
		verbs_fake_mode.reorder = true;
		verbs_fake_mode.packet = 64;
		for (unsigned round = 0; round < 50; round++) {
			verbs_fake_journal(true);
			post_marked(m, link, 10);
			broken += is_out_of_order(10);
		}
		if (phased)
			assert_int_equal(broken, 0);
		else
			assert_true(broken > 25);
		ps_fabric_rdma.detach(link);
	}
}

TEST(a_phase_waits_for_the_one_before, struct verbs_mirror *m)
{
	struct transaction t;
	struct ps_link *link;

	m->grant.phased = true;
	link = attach_well(m);
	fill_transaction(m, &t, 9);
	assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
	assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
	for (int chain = 0; chain < 2; chain++) {
		assert_int_equal(verbs_fake_run(), 1);
		assert_int_equal(ps_fabric_rdma.poll(link), 0);
		assert_int_equal(verbs_fake_run(), 2);
		assert_int_equal(ps_fabric_rdma.poll(link), 0);
		assert_int_equal(verbs_fake_run(), 1);
		assert_int_equal(ps_fabric_rdma.poll(link), 1);
	}
	assert_int_equal(verbs_fake_run(), 0);
	ps_fabric_rdma.detach(link);
}

/* Each phase ends with a read, and the chain with the slot's read. */
static void expect_flushes(struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	struct verbs_fake_counts counts;
	struct transaction t;

	memset(m->log, 0, 64);
	fill_transaction(m, &t, 9);
	(void)verbs_fake_counts();
	assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
	assert_int_equal(verbs_fake_run(), 2);
	assert_int_equal(ps_fabric_rdma.poll(link), 0);
	assert_int_equal(verbs_fake_run(), 3);
	assert_int_equal(ps_fabric_rdma.poll(link), 0);
	/* The slot is there, and does not count before its read. */
	assert_int_equal(verbs_fake_step(1), 1);
	assert_int_equal(m->log[0], 9);
	assert_int_equal(ps_fabric_rdma.poll(link), 0);
	assert_int_equal(verbs_fake_step(1), 1);
	assert_int_equal(ps_fabric_rdma.poll(link), 1);
	counts = verbs_fake_counts();
	assert_int_equal(counts.reads, 3);
	assert_int_equal(counts.writes, 4);
	assert_int_equal(counts.signalled, 3);
	ps_fabric_rdma.detach(link);
}

/* The mirror's operator asked for flushes (perseasd --rdma-flush on). */
TEST(a_flush_ends_each_phase_with_a_read, struct verbs_mirror *m)
{
	m->grant.flush = true;
	expect_flushes(m);
}

/* There a write is complete when TCP has it. */
TEST(a_device_over_tcp_is_flushed_too, struct verbs_mirror *m)
{
	m->here->device.transport_type = IBV_TRANSPORT_IWARP;
	m->here->exact = m->there->exact = true;
	m->here->gid_type = IBV_GID_TYPE_IB;
	expect_flushes(m);
}

/* After every status that a queue pair can give, the link is broken; earlier completions count. */
TEST(every_error_breaks_the_link, struct verbs_mirror *m)
{
	for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++) {
		for (unsigned delay = 4; delay < 8; delay++) {
			struct ps_link *link = attach_well(m);
			struct transaction t;

			fill_transaction(m, &t, (uint8_t)status);
			verbs_fake_complete_with((enum ibv_wc_status)status, delay, delay % 2);
			assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
			assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
			assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
			verbs_fake_run();
			assert_int_equal(ps_fabric_rdma.poll(link), 1);
			assert_int_equal(ps_fabric_rdma.poll(link), PS_LINK_BROKEN);
			assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_BROKEN);
			assert_int_equal(ps_fabric_rdma.poll(link), PS_LINK_BROKEN);
			ps_fabric_rdma.detach(link);
		}
	}
}

/* The device refuses a request; a look at its completions fails. */
TEST(calls_that_fail_break_the_link, struct verbs_mirror *m)
{
	const enum verbs_fake_member members[] = { VERBS_FAKE_post_send, VERBS_FAKE_poll_cq };

	for (unsigned i = 0; i < 2; i++) {
		struct ps_link *link = attach_well(m);
		struct transaction t;

		fill_transaction(m, &t, 3);
		assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
		verbs_fake_fail(members[i], 0, 1, EIO);
		(void)ps_fabric_rdma.post(link, &t.chain);
		verbs_fake_run();
		for (int looks = 0; ps_fabric_rdma.poll(link) >= 0; looks++)
			assert_true(looks < 3);
		assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_BROKEN);
		ps_fabric_rdma.detach(link);
	}
}

/* Outside of a region, into one that there is not, into the promise; of no bytes at all. */
TEST(what_lies_outside_a_region_is_refused, struct verbs_mirror *m)
{
	const struct ps_write tries[] = {
		staged(m, 0, PS_REGION_SEGMENT, SEGMENT_SIZE, 1),
		staged(m, 0, PS_REGION_SEGMENT, SEGMENT_SIZE - 7, 8),
		staged(m, 0, PS_REGION_SEGMENT, UINT64_MAX - 3, 8),
		staged(m, 0, PS_REGION_SEGMENT + 1, 0, 8),
		staged(m, 0, PS_REGIONS_MAX, 0, 8),
		staged(m, 0, PS_REGION_PROMISE, 0, 8),
		staged(m, 0, PS_REGION_SEGMENT, 0, 0),
	};

	(void)verbs_fake_counts();
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct ps_chain chain = { &tries[i], 1, 0, staged(m, 0, PS_REGION_LOG, 0, 40) };
		struct ps_link *link = attach_well(m);
		uint8_t byte;

		assert_int_equal(ps_fabric_rdma.post(link, &chain), PS_LINK_BROKEN);
		assert_int_equal(ps_fabric_rdma.poll(link), PS_LINK_BROKEN);
		ps_fabric_rdma.detach(link);
		link = attach_well(m);
		if (tries[i].length > 0)
			assert_int_equal(ps_fabric_rdma.read(link, tries[i].region, tries[i].offset,
			                                     &byte, tries[i].length, PATIENCE),
			                 PS_LINK_BROKEN);
		ps_fabric_rdma.detach(link);
	}
	assert_int_equal(verbs_fake_counts().posts, 0);
}

/* A copy of 11 MiB in one write. */
TEST(a_large_write_goes_in_messages, struct verbs_mirror *m)
{
	const uint32_t length = 11 << 20;
	struct ps_link *link = attach_well(m);
	struct ps_write write = staged(m, 5, PS_REGION_SEGMENT, 77, length);
	struct ps_chain chain = { &write, 1, 0, { 0 } };
	uint8_t *ring = m->env.staging_memory;

	for (uint32_t i = 0; i < length; i++)
		ring[5 + i] = (uint8_t)(i * 31 + (i >> 12));
	assert_int_equal(ps_fabric_rdma.post(link, &chain), PS_LINK_OK);
	settle(link, 1);
	assert_memory_equal(m->segment + 77, ring + 5, length);
	assert_int_equal(m->segment[77 + length], 0);
	ps_fabric_rdma.detach(link);
}

/* A segment more, with other keys; one without a key; one twice. */
TEST(an_update_brings_new_keys, struct verbs_mirror *m)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ps_link *link = attach_well(m);
	struct ibv_mr *mr = m->verbs.reg_mr(m->peer.pd, m->segment, 4096, access);
	struct transaction t;
	struct ps_error error = { 0 };

	fill_transaction(m, &t, 6);
	m->regions[1].key = mr->rkey;
	m->regions[1].address = (uintptr_t)m->segment;
	m->regions[1].length = 4096;
	m->verbs.dereg_mr(m->segment_mr);
	assert_int_equal(ps_fabric_rdma.update(link, &m->grant, NULL, &error), 0);
	t.chain.write_count = 2;
	assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
	settle(link, 1);
	m->regions[1].key = 0;
	m->regions[1].address = 0;
	m->grant.rdma_trouble = (char *)"the device is full";
	assert_int_equal(ps_fabric_rdma.update(link, &m->grant, NULL, &error), PERSEAS_ERDMA);
	assert_non_null(strstr(error.text, "the device is full"));
	m->regions[1] = m->regions[0];
	assert_int_equal(ps_fabric_rdma.update(link, &m->grant, NULL, &error), PERSEAS_EPROTOCOL);
	m->regions[1].id = PS_REGION_SEGMENT;
	m->regions[1].address = UINT64_MAX - 100;
	assert_int_equal(ps_fabric_rdma.update(link, &m->grant, NULL, &error), PERSEAS_EPROTOCOL);
	ps_fabric_rdma.detach(link);
	m->segment_mr = mr;
}
