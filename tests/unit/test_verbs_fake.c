/*
 * test_verbs_fake.c - the devices of the tests do what devices do. Other tests show more of that:
 * they fail with devices that move no bytes, check no keys of the peer, or lose the end of a
 * connection.
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

/* Asks for a write of the byte at `offset` to the same place of the mirror. */
static int write_byte(struct pair *pair, unsigned offset)
{
	return peer_write(&pair->owner, offset, 1, there(pair, offset), pair->mirror.mr->rkey);
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
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(write_byte(pair, i), 0);
	assert_int_equal(write_byte(pair, 0), ENOMEM);
	verbs_fake_run();
	assert_int_equal(write_byte(pair, 0), ENOMEM);
	assert_int_equal(peer_done(&pair->owner), IBV_WC_SUCCESS);
	assert_int_equal(write_byte(pair, 0), 0);
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
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(write_byte(pair, 0), 0);
	verbs_fake_run();
	assert_int_equal(verbs->req_notify_cq(pair->owner.cq, 0), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(verbs->get_cq_event(pair->owner.completions, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(write_byte(pair, 0), 0);
	assert_int_equal(write_byte(pair, 0), 0);
	verbs_fake_run();
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(verbs->get_cq_event(pair->owner.completions, &cq, &context), 0);
	assert_ptr_equal(cq, pair->owner.cq);
	assert_ptr_equal(context, &pair->owner);
	assert_int_equal(poll(&fd, 1, 0), 0);
	verbs->ack_cq_events(cq, 1);
}

/* Calls that would block for ever or overrun, and objects left behind, are counted. */
TEST(misuse_is_counted, struct pair *pair)
{
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
	write_byte(pair, 0);
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
