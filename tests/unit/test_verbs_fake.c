/*
 * test_verbs_fake.c - the devices of the tests do what devices do.
 */
#include "../support/unit.h"
#include "../support/verbs_peer.h"

#include <arpa/inet.h>

static const struct ps_verbs *const verbs = &verbs_fake_table;

/* Two ends on two devices, connected. */
struct pair {
	struct verbs_fake_device *here, *there;
	struct verbs_peer owner, mirror;
	struct rdma_cm_id *passive;
};

static void join(struct pair *pair)
{
	unsigned port = ntohs(pair->mirror.id->route.addr.src_sin.sin_port);

	peer_open(&pair->owner, "10.9.0.2", port);
	assert_int_equal(peer_connect(&pair->owner, "hello", 5), 0);
	while (peer_event(&pair->mirror, &pair->passive) != RDMA_CM_EVENT_CONNECT_REQUEST)
		;
	assert_int_equal(peer_accept(&pair->mirror, pair->passive, "welcome", 7), 0);
	assert_int_equal(peer_event(&pair->owner, NULL), RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(peer_event(&pair->mirror, NULL), RDMA_CM_EVENT_ESTABLISHED);
}

static void part(struct pair *pair)
{
	if (pair->passive)
		peer_drop(pair->passive);
	pair->passive = NULL;
	peer_close(&pair->owner);
	while (peer_done(&pair->mirror) >= 0)
		;
}

static int setup(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	verbs_fake_begin();
	pair->here = verbs_fake_device("fake0", "10.9.0.1");
	pair->there = verbs_fake_device("fake1", "10.9.0.2");
	verbs_fake_source(pair->here);
	peer_listen(&pair->mirror, "10.9.0.2");
	join(pair);
	*state = pair;
	return 0;
}

/* Ends the world, in which this many things must be wrong. */
static void end(struct pair *pair, unsigned wrong)
{
	part(pair);
	peer_close(&pair->mirror);
	if (verbs_fake_end() != wrong)
		fail_msg("wrong: %s", verbs_fake_trouble());
	free(pair);
}

static int teardown(void **state)
{
	if (*state)
		end(*state, 0);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static uint64_t there(struct pair *pair, unsigned offset)
{
	return (uintptr_t)pair->mirror.bytes + offset;
}

/* Private data goes both ways, padded as InfiniBand's connection manager pads it. */
TEST(private_data_arrives, struct pair *pair)
{
	assert_string_equal((char *)pair->owner.given, "welcome");
	assert_int_equal(pair->owner.param.private_data_len, 196);
	assert_int_equal(pair->owner.param.initiator_depth, 1);
	part(pair);
	peer_open(&pair->owner, "10.9.0.2", ntohs(pair->mirror.id->route.addr.src_sin.sin_port));
	assert_int_equal(peer_connect(&pair->owner, "again", 5), 0);
	while (peer_event(&pair->mirror, &pair->passive) != RDMA_CM_EVENT_CONNECT_REQUEST)
		;
	assert_string_equal((char *)pair->mirror.given, "again");
	assert_int_equal(pair->mirror.param.private_data_len, 56);
	assert_int_equal(pair->mirror.param.responder_resources, 1);
	assert_int_equal(verbs->reject(pair->passive, "no", 2), 0);
	assert_int_equal(peer_event(&pair->owner, NULL), RDMA_CM_EVENT_REJECTED);
	assert_int_equal(pair->owner.status, 28);
	assert_string_equal((char *)pair->owner.given, "no");
	assert_int_equal(pair->owner.param.private_data_len, 148);
}

/* Addresses, ports and devices that are not there. */
TEST(a_way_that_does_not_lead_anywhere_is_told, struct pair *pair)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct rdma_cm_id *id;

	part(pair);
	peer_open(&pair->owner, "10.9.0.2", 9);
	assert_int_equal(peer_connect(&pair->owner, "", 0), 0);
	assert_int_equal(peer_event(&pair->owner, NULL), RDMA_CM_EVENT_REJECTED);
	assert_int_equal(pair->owner.status, 8);
	to.sin_addr.s_addr = htonl(0x0a090003);
	assert_int_equal(verbs->create_id(pair->owner.channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(verbs->resolve_addr(id, NULL, (struct sockaddr *)&to, 1), 0);
	assert_int_equal(peer_event(&pair->owner, NULL), RDMA_CM_EVENT_ADDR_ERROR);
	assert_null(id->verbs);
	assert_int_equal(verbs->bind_addr(id, (struct sockaddr *)&to), -1);
	assert_int_equal(errno, ENODEV);
	peer_drop(id);
}

/* Writes and reads move bytes, packet by packet, when they are told to. */
TEST(bytes_move_step_by_step, struct pair *pair)
{
	uint32_t key = pair->mirror.mr->rkey;

	memset(pair->owner.bytes, 7, 10000);
	assert_int_equal(peer_write(&pair->owner, 0, 10000, there(pair, 100), key), 0);
	assert_int_equal(verbs_fake_step(1), 1);
	assert_int_equal(pair->mirror.bytes[100 + 4095], 7);
	assert_int_equal(pair->mirror.bytes[100 + 4096], 0);
	assert_int_equal(peer_done(&pair->owner), -1);
	assert_int_equal(verbs_fake_run(), 2);
	assert_int_equal(pair->mirror.bytes[100 + 9999], 7);
	assert_int_equal(peer_done(&pair->owner), IBV_WC_SUCCESS);
	pair->mirror.bytes[0] = 9;
	assert_int_equal(peer_read(&pair->owner, 20000, 200, there(pair, 0), key), 0);
	assert_int_equal(peer_settle(&pair->owner), IBV_WC_SUCCESS);
	assert_int_equal(pair->owner.bytes[20000], 9);
	assert_int_equal(pair->owner.bytes[20100], 7);
}

/* Every way to reach memory that one has no right to. */
TEST(what_is_not_allowed_is_refused, struct pair *pair)
{
	struct ibv_pd *other = verbs->alloc_pd(pair->mirror.id->verbs);
	struct ibv_mr *foreign = verbs->reg_mr(other, pair->mirror.bytes, 4096,
	                                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mr *sealed = verbs->reg_mr(pair->mirror.pd, pair->mirror.bytes, 4096,
	                                      IBV_ACCESS_REMOTE_READ);
	const struct {
		uint32_t key;
		unsigned offset, length;
	} tries[] = {
		{ foreign->rkey, 0, 8 },
		{ sealed->rkey, 0, 8 },
		{ pair->mirror.mr->rkey, PEER_BYTES - 7, 8 },
		{ pair->mirror.mr->rkey, PEER_BYTES, 1 },
		{ pair->mirror.mr->rkey ^ 1, 0, 8 },
	};

	assert_int_equal(peer_read(&pair->owner, 0, 8, there(pair, 0), sealed->rkey), 0);
	assert_int_equal(peer_settle(&pair->owner), IBV_WC_SUCCESS);
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		assert_int_equal(peer_write(&pair->owner, 0, tries[i].length,
		                            there(pair, tries[i].offset), tries[i].key),
		                 0);
		assert_int_equal(peer_write(&pair->owner, 0, 8, there(pair, 0),
		                            pair->mirror.mr->rkey),
		                 0);
		assert_int_equal(peer_settle(&pair->owner), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(peer_done(&pair->owner), IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(pair->passive->qp->state, IBV_QPS_ERR);
		part(pair);
		join(pair);
	}
	verbs->dereg_mr(foreign);
	verbs->dereg_mr(sealed);
	verbs->dealloc_pd(other);
}

/* Memory that is not registered here, or no longer. */
TEST(local_keys_are_checked, struct pair *pair)
{
	struct ibv_sge sge = { (uintptr_t)pair->owner.bytes, 8, 12345 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE },
			   *bad;

	wr.wr.rdma.remote_addr = there(pair, 0);
	wr.wr.rdma.rkey = pair->mirror.mr->rkey;
	memset(pair->owner.bytes, 3, 8);
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(verbs->post_send(pair->owner.id->qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	wr.send_flags = 0;
	assert_int_equal(verbs->post_send(pair->owner.id->qp, &wr, &bad), 0);
	assert_int_equal(peer_settle(&pair->owner), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(pair->mirror.bytes[0], 0);
}

/* Places in the send queue come back with the completions that are taken, not before. */
TEST(a_send_queue_is_full_until_completions_are_taken, struct pair *pair)
{
	uint32_t key = pair->mirror.mr->rkey;

	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(peer_write(&pair->owner, i, 1, there(pair, i), key), 0);
	assert_int_equal(peer_write(&pair->owner, 0, 1, there(pair, 0), key), ENOMEM);
	verbs_fake_run();
	assert_int_equal(peer_write(&pair->owner, 0, 1, there(pair, 0), key), ENOMEM);
	assert_int_equal(peer_done(&pair->owner), IBV_WC_SUCCESS);
	assert_int_equal(peer_write(&pair->owner, 0, 1, there(pair, 0), key), 0);
}

/* The peer's queue pair is destroyed; or its device says nothing any more. */
TEST(a_peer_that_is_gone_runs_out_of_retries, struct pair *pair)
{
	uint32_t key = pair->mirror.mr->rkey;

	verbs->destroy_qp(pair->passive->qp);
	pair->passive->qp = NULL;
	assert_int_equal(peer_write(&pair->owner, 0, 1, there(pair, 0), key), 0);
	assert_int_equal(peer_settle(&pair->owner), IBV_WC_RETRY_EXC_ERR);
	part(pair);
	join(pair);
	assert_int_equal(peer_write(&pair->owner, 0, 1, there(pair, 0), key), 0);
	pair->there->dead = true;
	assert_int_equal(peer_settle(&pair->owner), -1);
	verbs_fake_expire();
	assert_int_equal(peer_done(&pair->owner), IBV_WC_RETRY_EXC_ERR);
	pair->there->dead = false;
}

/* A message without a receive for it, and one with. */
TEST(messages_need_receives, struct pair *pair)
{
	struct ibv_sge sge = { (uintptr_t)pair->mirror.bytes, 8, pair->mirror.mr->lkey };
	struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(verbs->post_recv(pair->passive->qp, &receive, &bad), 0);
	pair->owner.bytes[0] = 42;
	assert_int_equal(peer_send(&pair->owner, 0, 8), 0);
	assert_int_equal(peer_settle(&pair->owner), IBV_WC_SUCCESS);
	assert_int_equal(peer_done(&pair->mirror), IBV_WC_SUCCESS);
	assert_int_equal(pair->mirror.bytes[0], 42);
	assert_int_equal(peer_send(&pair->owner, 0, 8), 0);
	assert_int_equal(peer_settle(&pair->owner), IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(verbs->post_recv(pair->passive->qp, &receive, &bad), 0);
	verbs_fake_break(pair->passive->qp);
	assert_int_equal(peer_done(&pair->mirror), IBV_WC_WR_FLUSH_ERR);
}

/* Arming tells of what comes, not of what has come. */
TEST(a_channel_tells_of_what_comes_after_arming, struct pair *pair)
{
	struct pollfd fd = { .fd = pair->owner.completions->fd, .events = POLLIN };
	uint32_t key = pair->mirror.mr->rkey;
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(peer_write(&pair->owner, 0, 1, there(pair, 0), key), 0);
	verbs_fake_run();
	assert_int_equal(verbs->req_notify_cq(pair->owner.cq, 0), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(verbs->get_cq_event(pair->owner.completions, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(peer_write(&pair->owner, 0, 1, there(pair, 0), key), 0);
	assert_int_equal(peer_write(&pair->owner, 0, 1, there(pair, 0), key), 0);
	verbs_fake_run();
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(verbs->get_cq_event(pair->owner.completions, &cq, &context), 0);
	assert_ptr_equal(cq, pair->owner.cq);
	assert_ptr_equal(context, &pair->owner);
	assert_int_equal(poll(&fd, 1, 0), 0);
	verbs->ack_cq_events(cq, 1);
}

/* Writes overtake each other; completions do not. */
TEST(a_fabric_that_reorders_keeps_completions_in_order, struct pair *pair)
{
	const struct verbs_fake_write *writes;
	uint32_t key = pair->mirror.mr->rkey;
	bool moved = false;
	unsigned count;

	verbs_fake_journal(true);
	verbs_fake_mode.reorder = true;
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(peer_write(&pair->owner, i, 1, there(pair, i), key), 0);
	verbs_fake_run();
	for (unsigned i = 0; i < 16; i++) {
		struct ibv_wc wc;

		assert_int_equal(verbs->poll_cq(pair->owner.cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
	}
	writes = verbs_fake_writes(&count);
	assert_int_equal(count, 16);
	for (unsigned i = 0; i < 16; i++)
		moved |= writes[i].address != there(pair, i);
	assert_true(moved);
}

/* Who ends a connection is not told; the other end is, and later of its time-wait. */
TEST(the_end_of_a_connection_is_told_to_the_other, struct pair *pair)
{
	struct rdma_cm_id *id;

	assert_int_equal(verbs->disconnect(pair->owner.id), 0);
	assert_int_equal(peer_event(&pair->owner, NULL), -1);
	assert_int_equal(peer_event(&pair->mirror, &id), RDMA_CM_EVENT_DISCONNECTED);
	assert_ptr_equal(id, pair->passive);
	assert_int_equal(verbs->disconnect(pair->passive), 0);
	assert_int_equal(peer_event(&pair->owner, NULL), RDMA_CM_EVENT_DISCONNECTED);
	verbs_fake_timewait();
	assert_int_equal(peer_event(&pair->owner, NULL), RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(peer_event(&pair->mirror, NULL), RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(peer_event(&pair->mirror, NULL), -1);
}

/* A fault strikes the call that it is meant for, and no other. */
TEST(faults_strike_as_told, struct pair *pair)
{
	uint32_t key = pair->mirror.mr->rkey;

	verbs_fake_fail(VERBS_FAKE_post_send, 1, 2, EIO);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(peer_write(&pair->owner, 0, 1, there(pair, 0), key),
		                 i == 1 || i == 2 ? EIO : 0);
	verbs_fake_fail_any(0, ENOMEM);
	assert_int_equal(peer_done(&pair->owner), -1);
	assert_int_equal(verbs_fake_failed(), VERBS_FAKE_poll_cq);
	verbs_fake_complete_with(IBV_WC_GENERAL_ERR, 1, true);
	pair->owner.bytes[0] = 5;
	verbs_fake_run();
	assert_int_equal(peer_done(&pair->owner), IBV_WC_SUCCESS);
	assert_int_equal(peer_done(&pair->owner), IBV_WC_GENERAL_ERR);
	assert_int_equal(pair->mirror.bytes[0], 5);
	verbs_fake_before(RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ADDR_CHANGE);
	verbs_fake_instead(RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DEVICE_REMOVAL, -5);
	verbs->disconnect(pair->owner.id);
	assert_int_equal(peer_event(&pair->mirror, NULL), RDMA_CM_EVENT_ADDR_CHANGE);
	assert_int_equal(peer_event(&pair->mirror, NULL), RDMA_CM_EVENT_DEVICE_REMOVAL);
	assert_int_equal(pair->mirror.status, -5);
}

/* What would block for ever, or overrun, or be left behind, is counted. */
TEST(misuse_is_counted, struct pair *pair)
{
	uint32_t key = pair->mirror.mr->rkey;
	struct rdma_cm_event *event;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	void *context;

	*unit_state = NULL;
	mr = verbs->reg_mr(pair->owner.pd, pair->owner.bytes, 8,
	                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	assert_int_equal(verbs->dealloc_pd(pair->owner.pd), EBUSY);
	verbs->dereg_mr(mr);
	assert_int_equal(verbs_fake_wrong(), 1);
	assert_non_null(verbs->create_cq(pair->owner.id->verbs, 1, NULL, NULL, 0));
	assert_int_equal(verbs->destroy_cq(pair->owner.cq), EBUSY);
	verbs->req_notify_cq(pair->owner.cq, 0);
	peer_write(&pair->owner, 0, 1, there(pair, 0), key);
	verbs_fake_run();
	assert_int_equal(verbs->get_cq_event(pair->owner.completions, &cq, &context), 0);
	verbs->disconnect(pair->passive);
	assert_int_equal(verbs->get_cm_event(pair->owner.channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_DISCONNECTED);
	peer_close(&pair->owner); /* an event of the id, and one of the completion queue */
	assert_int_equal(verbs_fake_wrong(), 3);
	verbs->ack_cm_event(event);
	end(pair, 4); /* a completion queue is left */
}
