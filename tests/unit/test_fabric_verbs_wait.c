/*
 * test_fabric_verbs_wait.c - the data path over RDMA: sleeping, reading, signs of life.
 */
#include "verbs_mirror.h"

struct unit_fixture unit_fixture = { setup, teardown };

static bool is_ready(const struct pollfd *fd)
{
	struct pollfd now = { .fd = fd->fd, .events = fd->events };

	return poll(&now, 1, 0) == 1;
}

static void post_one(struct verbs_mirror *m, struct ps_link *link)
{
	struct transaction t;

	fill_transaction(m, &t, 5);
	assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
}

/* A link with nothing in flight has nothing to wait for; else a completion wakes. */
TEST(a_completion_wakes, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	struct pollfd fd;

	assert_false(ps_fabric_rdma.waits(link, &fd));
	for (int round = 0; round < 200; round++) {
		post_one(m, link);
		assert_int_equal(ps_fabric_rdma.poll(link), 0);
		assert_true(ps_fabric_rdma.waits(link, &fd));
		assert_false(is_ready(&fd));
		verbs_fake_run();
		assert_true(is_ready(&fd));
		assert_int_equal(ps_fabric_rdma.poll(link), 1);
		assert_false(ps_fabric_rdma.waits(link, &fd));
	}
	/* A thread that does not sleep asks the device for no events. */
	(void)verbs_fake_counts();
	for (int round = 0; round < 10; round++) {
		post_one(m, link);
		settle(link, 1);
	}
	assert_int_equal(verbs_fake_counts().notifies, 0);
	ps_fabric_rdma.detach(link);
}

static int notify_late(struct ibv_cq *cq, int solicited_only)
{
	int rc;

	verbs_fake_run();
	rc = verbs_fake_table.req_notify_cq(cq, solicited_only);
	return rc;
}

static int notify_early(struct ibv_cq *cq, int solicited_only)
{
	int rc = verbs_fake_table.req_notify_cq(cq, solicited_only);

	verbs_fake_run();
	return rc;
}

/* The completion comes after poll() looked: just before the channel is armed, or just after. */
TEST(no_completion_is_slept_over, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	struct pollfd fd;

	for (int round = 0; round < 20; round++) {
		m->verbs.req_notify_cq = round % 2 ? notify_late : notify_early;
		post_one(m, link);
		assert_int_equal(ps_fabric_rdma.poll(link), 0);
		assert_true(ps_fabric_rdma.waits(link, &fd));
		assert_true(is_ready(&fd));
		assert_int_equal(ps_fabric_rdma.poll(link), 1);
	}
	m->verbs.req_notify_cq = verbs_fake_table.req_notify_cq;
	post_one(m, link);
	verbs_fake_run();
	assert_true(ps_fabric_rdma.waits(link, &fd));
	assert_true(is_ready(&fd));
	assert_int_equal(ps_fabric_rdma.poll(link), 1);
	ps_fabric_rdma.detach(link);
}

/* An event of a completion that was taken already does not keep the link awake for ever. */
TEST(a_stale_event_wakes_once, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	struct pollfd fd;

	post_one(m, link);
	m->verbs.req_notify_cq = notify_early;
	assert_true(ps_fabric_rdma.waits(link, &fd));
	assert_int_equal(ps_fabric_rdma.poll(link), 1);
	m->verbs.req_notify_cq = verbs_fake_table.req_notify_cq;
	post_one(m, link);
	for (int looks = 0;; looks++) {
		assert_true(looks < 3);
		assert_true(ps_fabric_rdma.waits(link, &fd));
		if (!is_ready(&fd))
			break;
		assert_int_equal(ps_fabric_rdma.poll(link), 0);
	}
	verbs_fake_run();
	assert_true(is_ready(&fd));
	assert_int_equal(ps_fabric_rdma.poll(link), 1);
	ps_fabric_rdma.detach(link);
}

/* The mirror hangs up, or the device goes, while the owner sleeps. */
TEST(the_end_of_the_connection_wakes, struct verbs_mirror *m)
{
	const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_DISCONNECTED,
		RDMA_CM_EVENT_DEVICE_REMOVAL,
	};

	for (unsigned i = 0; i < 2; i++) {
		struct ps_link *link = attach_well(m);
		struct pollfd fd;

		post_one(m, link);
		assert_true(ps_fabric_rdma.waits(link, &fd));
		assert_false(is_ready(&fd));
		verbs_fake_event(verbs_fake_id(verbs_fake_active_qp()), types[i], 0);
		assert_true(is_ready(&fd));
		assert_int_equal(ps_fabric_rdma.poll(link), PS_LINK_BROKEN);
		assert_true(ps_fabric_rdma.waits(link, &fd));
		assert_true(is_ready(&fd));
		ps_fabric_rdma.detach(link);
	}
}

TEST(other_events_are_passed_over, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	struct rdma_cm_id *id = verbs_fake_id(verbs_fake_active_qp());
	struct pollfd fd;

	post_one(m, link);
	assert_true(ps_fabric_rdma.waits(link, &fd));
	verbs_fake_event(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	verbs_fake_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	verbs_fake_event(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_true(is_ready(&fd));
	assert_int_equal(ps_fabric_rdma.poll(link), 0);
	assert_true(ps_fabric_rdma.waits(link, &fd));
	assert_false(is_ready(&fd));
	settle(link, 1);
	ps_fabric_rdma.detach(link);
}

/* Reading what the channels have to say is interrupted, finds nothing, or fails for good. */
TEST(channels_may_fail, struct verbs_mirror *m)
{
	const enum verbs_fake_member members[] = {
		VERBS_FAKE_get_cq_event,
		VERBS_FAKE_get_cm_event,
		VERBS_FAKE_req_notify_cq,
	};
	const int errors[] = { EAGAIN, EINTR, EIO };

	for (unsigned i = 0; i < 3; i++)
		for (unsigned e = i < 2 ? 0 : 2; e < 3; e++) {
			struct ps_link *link = attach_well(m);
			struct pollfd fd;
			int n = 0;

			post_one(m, link);
			verbs_fake_fail(members[i], 0, 2, errors[e]);
			assert_true(ps_fabric_rdma.waits(link, &fd));
			verbs_fake_event(verbs_fake_id(verbs_fake_active_qp()),
			                 RDMA_CM_EVENT_ADDR_CHANGE, 0);
			verbs_fake_run();
			for (int looks = 0; looks < 5 && n == 0; looks++) {
				assert_true(is_ready(&fd));
				n = ps_fabric_rdma.poll(link);
			}
			assert_true(n == 1 || n == PS_LINK_BROKEN);
			if (errors[e] != EIO) {
				assert_int_equal(n, 1);
				assert_int_equal(ps_fabric_rdma.poll(link), 0);
			}
			verbs_fake_fail(members[i], 0, 0, 0);
			ps_fabric_rdma.detach(link);
		}
}

/* A mirror that is gone without a word: a sign of life is asked for, and does not come. */
TEST(a_beat_finds_a_dead_mirror, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	struct pollfd fd;

	for (int round = 0; round < 3; round++) {
		(void)verbs_fake_counts();
		ps_fabric_rdma.beat(link);
		ps_fabric_rdma.beat(link);
		assert_int_equal(verbs_fake_counts().requests, 1);
		assert_int_equal(ps_fabric_rdma.poll(link), 0);
		assert_true(ps_fabric_rdma.waits(link, &fd));
		verbs_fake_run();
		assert_true(is_ready(&fd));
		assert_int_equal(ps_fabric_rdma.poll(link), 0);
		assert_false(ps_fabric_rdma.waits(link, &fd));
	}
	/* Commits next to the heartbeat. */
	ps_fabric_rdma.beat(link);
	post_one(m, link);
	settle(link, 1);
	m->there->dead = true;
	ps_fabric_rdma.beat(link);
	verbs_fake_run();
	assert_int_equal(ps_fabric_rdma.poll(link), 0);
	verbs_fake_expire();
	assert_int_equal(ps_fabric_rdma.poll(link), PS_LINK_BROKEN);
	ps_fabric_rdma.beat(link);
	ps_fabric_rdma.detach(link);
	m->there->dead = false;
}

/* --- reading --- */

static unsigned most_posted;

/* Bytes move only during a look for completions: what was posted before that is in flight. */
static int poll_and_run(struct ibv_cq *cq, int entries, struct ibv_wc *completions)
{
	struct verbs_fake_counts counts = verbs_fake_counts();

	if (counts.reads > most_posted)
		most_posted = counts.reads;
	verbs_fake_step(100);
	return verbs_fake_table.poll_cq(cq, entries, completions);
}

static void fill_segment(struct verbs_mirror *m)
{
	for (size_t i = 0; i < SEGMENT_SIZE; i++)
		m->segment[i] = (uint8_t)(i * 13 + (i >> 10));
}

static int read_segment(struct ps_link *link, uint64_t offset, uint8_t *bytes, uint64_t length)
{
	return ps_fabric_rdma.read(link, PS_REGION_SEGMENT, offset, bytes, length, PATIENCE);
}

/* A segment is read in many pieces, many of them at the same time. */
TEST(a_read_is_pipelined, struct verbs_mirror *m)
{
	const uint64_t ranges[][2] = {
		{ 0, SEGMENT_SIZE },
		{ 1, SEGMENT_SIZE - 1 },
		{ 4097, 1 },
		{ 12345, 1234567 },
	};
	uint8_t *bytes = pages(SEGMENT_SIZE);
	struct ps_link *link;

	fill_segment(m);
	m->verbs.poll_cq = poll_and_run;
	link = attach_well(m);
	for (unsigned i = 0; i < 4; i++) {
		memset(bytes, 0, SEGMENT_SIZE);
		assert_int_equal(read_segment(link, ranges[i][0], bytes, ranges[i][1]), PS_LINK_OK);
		assert_memory_equal(bytes, m->segment + ranges[i][0], ranges[i][1]);
	}
	assert_true(most_posted >= 8);
	assert_int_equal(read_segment(link, 0, bytes, 0), PS_LINK_OK);
	assert_int_equal(ps_fabric_rdma.poll(link), 0);
	post_one(m, link);
	settle(link, 1);
	ps_fabric_rdma.detach(link);
	free(bytes);
}

/* Over a queue pair of four requests, with a device that serves one read at a time. */
TEST(a_read_fits_small_devices, struct verbs_mirror *m)
{
	uint8_t *bytes = pages(SEGMENT_SIZE);
	struct ps_link *link;

	fill_segment(m);
	m->here->attr.max_qp_wr = 4;
	m->here->attr.max_qp_init_rd_atom = 1;
	m->there->attr.max_qp_rd_atom = 1;
	m->verbs.poll_cq = poll_and_run;
	link = attach_well(m);
	assert_int_equal(read_segment(link, 3, bytes, SEGMENT_SIZE - 3), PS_LINK_OK);
	assert_memory_equal(bytes, m->segment + 3, SEGMENT_SIZE - 3);
	ps_fabric_rdma.detach(link);
	free(bytes);
}

/* The bytes come only when the reader sleeps on the channel: it is woken each time. */
TEST(a_reader_that_sleeps_is_woken, struct verbs_mirror *m)
{
	uint8_t bytes[10000];
	struct ps_link *link;

	fill_segment(m);
	m->verbs.req_notify_cq = notify_early;
	link = attach_well(m);
	assert_int_equal(read_segment(link, 0, bytes, sizeof(bytes)), PS_LINK_OK);
	assert_memory_equal(bytes, m->segment, sizeof(bytes));
	m->verbs.req_notify_cq = notify_late;
	assert_int_equal(read_segment(link, 5, bytes, sizeof(bytes)), PS_LINK_OK);
	assert_memory_equal(bytes, m->segment + 5, sizeof(bytes));
	ps_fabric_rdma.detach(link);
}

/* Bytes that arrive while the reader sleeps on the channel, some 128 KiB, take 5 ms. */
static int notify_slowly(struct ibv_cq *cq, int solicited_only)
{
	int rc = verbs_fake_table.req_notify_cq(cq, solicited_only);

	ps_poll(NULL, 0, ps_monotonic() + 5000000);
	verbs_fake_step(32);
	return rc;
}

/* All of it takes longer than a caller has for an answer. */
TEST(a_read_goes_on_as_long_as_pieces_land, struct verbs_mirror *m)
{
	const uint64_t patience = 300000000;
	uint8_t *bytes = pages(SEGMENT_SIZE);
	struct ps_link *link;
	uint64_t began;

	fill_segment(m);
	m->verbs.req_notify_cq = notify_slowly;
	link = attach_well(m);
	began = ps_monotonic();
	assert_int_equal(ps_fabric_rdma.read(link, PS_REGION_SEGMENT, 0, bytes, SEGMENT_SIZE,
	                                     patience),
	                 PS_LINK_OK);
	assert_true(ps_monotonic() - began > patience);
	assert_memory_equal(bytes, m->segment, SEGMENT_SIZE);
	ps_fabric_rdma.detach(link);
	free(bytes);
}

/* The mirror says nothing; a piece in the middle fails. */
TEST(a_read_that_fails_breaks_the_link, struct verbs_mirror *m)
{
	uint8_t *bytes = pages(SEGMENT_SIZE);
	struct ps_link *link = attach_well(m);

	m->there->dead = true;
	assert_int_equal(ps_fabric_rdma.read(link, PS_REGION_SEGMENT, 0, bytes, 100000, 20000000),
	                 PS_LINK_BROKEN);
	assert_int_equal(ps_fabric_rdma.poll(link), PS_LINK_BROKEN);
	ps_fabric_rdma.detach(link);
	m->there->dead = false;
	m->verbs.poll_cq = poll_and_run;
	for (unsigned delay = 0; delay < 12; delay++) {
		link = attach_well(m);
		verbs_fake_complete_with(IBV_WC_REM_ACCESS_ERR, delay, false);
		assert_int_equal(read_segment(link, 0, bytes, SEGMENT_SIZE), PS_LINK_BROKEN);
		assert_int_equal(ps_fabric_rdma.poll(link), PS_LINK_BROKEN);
		ps_fabric_rdma.detach(link);
	}
	free(bytes);
}
