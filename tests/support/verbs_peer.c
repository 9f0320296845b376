/*
 * verbs_peer.c - the other end of an RDMA connection, made by hand over the fake devices. Tests
 * of both ends call it. It also does what neither end should, which the library and the daemon
 * must never be used for.
 */
#include "verbs_peer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct ps_verbs *const verbs = &verbs_fake_table;

static struct sockaddr_in address_of(const char *text, unsigned port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int ok = inet_aton(text, &address.sin_addr);

	assert(ok);
	(void)ok;
	return address;
}

static void open_channel(struct verbs_peer *peer)
{
	int failed;

	memset(peer, 0, sizeof(*peer));
	peer->channel = verbs->create_event_channel();
	assert(peer->channel);
	failed = ps_verbs_nonblocking(peer->channel->fd);
	failed |= verbs->create_id(peer->channel, &peer->id, peer, RDMA_PS_TCP);
	assert(!failed);
	(void)failed;
}

static void open_memory(struct verbs_peer *peer)
{
	struct ibv_context *context = peer->id->verbs;
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	int failed;

	peer->bytes = aligned_alloc(4096, PEER_BYTES);
	assert(peer->bytes);
	memset(peer->bytes, 0, PEER_BYTES);
	peer->pd = verbs->alloc_pd(context);
	peer->mr = verbs->reg_mr(peer->pd, peer->bytes, PEER_BYTES, access);
	peer->completions = verbs->create_comp_channel(context);
	failed = ps_verbs_nonblocking(peer->completions->fd);
	peer->cq = verbs->create_cq(context, 64, peer, peer->completions, 0);
	assert(peer->pd && peer->mr && !failed && peer->cq);
	(void)failed;
}

static int make_queue_pair(struct verbs_peer *peer, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = peer->cq,
		.recv_cq = peer->cq,
		.cap = { .max_send_wr = 32,
		         .max_recv_wr = 8,
		         .max_send_sge = 1,
		         .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return verbs->create_qp(id, peer->pd, &attr);
}

void peer_open(struct verbs_peer *peer, const char *address, unsigned port)
{
	struct sockaddr_in to = address_of(address, port);
	int event, failed;

	open_channel(peer);
	failed = verbs->resolve_addr(peer->id, NULL, (struct sockaddr *)&to, 1000);
	event = peer_event(peer, NULL);
	assert(!failed && event == RDMA_CM_EVENT_ADDR_RESOLVED);
	failed = verbs->resolve_route(peer->id, 1000);
	event = peer_event(peer, NULL);
	assert(!failed && event == RDMA_CM_EVENT_ROUTE_RESOLVED);
	open_memory(peer);
	failed = make_queue_pair(peer, peer->id);
	assert(!failed);
	(void)failed;
	(void)event;
}

unsigned peer_listen(struct verbs_peer *peer, const char *address)
{
	struct sockaddr_in at = address_of(address, 0);
	int failed;

	open_channel(peer);
	failed = verbs->bind_addr(peer->id, (struct sockaddr *)&at);
	failed |= verbs->listen(peer->id, 8);
	assert(!failed);
	(void)failed;
	open_memory(peer);
	return ntohs(peer->id->route.addr.src_sin.sin_port);
}

void peer_drop(struct rdma_cm_id *id)
{
	if (id->qp)
		verbs->destroy_qp(id->qp);
	id->qp = NULL;
	verbs->destroy_id(id);
}

void peer_close(struct verbs_peer *peer)
{
	if (!peer->channel)
		return;
	peer_drop(peer->id);
	verbs->destroy_cq(peer->cq);
	verbs->destroy_comp_channel(peer->completions);
	verbs->dereg_mr(peer->mr);
	verbs->dealloc_pd(peer->pd);
	verbs->destroy_event_channel(peer->channel);
	free(peer->bytes);
	memset(peer, 0, sizeof(*peer));
}

int peer_connect(struct verbs_peer *peer, const void *hello, unsigned length)
{
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = (uint8_t)length,
		.initiator_depth = 1,
		.retry_count = 1,
		.rnr_retry_count = 1,
	};

	return verbs->connect(peer->id, &param);
}

int peer_accept(struct verbs_peer *peer, struct rdma_cm_id *id, const void *answer, unsigned length)
{
	struct rdma_conn_param param = {
		.private_data = answer,
		.private_data_len = (uint8_t)length,
		.responder_resources = peer->param.responder_resources,
	};

	if (make_queue_pair(peer, id))
		return -1;
	return verbs->accept(id, &param);
}

int peer_event(struct verbs_peer *peer, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	int type;

	if (verbs->get_cm_event(peer->channel, &event))
		return -1;
	type = event->event;
	peer->status = event->status;
	peer->param = event->param.conn;
	memset(peer->given, 0, sizeof(peer->given));
	if (peer->param.private_data)
		memcpy(peer->given, peer->param.private_data, peer->param.private_data_len);
	peer->param.private_data = NULL;
	if (id)
		*id = event->id;
	verbs->ack_cm_event(event);
	return type;
}

static int post(struct verbs_peer *peer, enum ibv_wr_opcode opcode, unsigned at, unsigned length,
                uint64_t remote, uint32_t key)
{
	struct ibv_sge sge = { (uintptr_t)peer->bytes + at, length, peer->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = at,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = remote, .rkey = key },
	}, *bad;

	return verbs->post_send(peer->id->qp, &wr, &bad);
}

int peer_write(struct verbs_peer *peer, unsigned from, unsigned length, uint64_t to, uint32_t key)
{
	return post(peer, IBV_WR_RDMA_WRITE, from, length, to, key);
}

int peer_read(struct verbs_peer *peer, unsigned into, unsigned length, uint64_t from, uint32_t key)
{
	return post(peer, IBV_WR_RDMA_READ, into, length, from, key);
}

int peer_send(struct verbs_peer *peer, unsigned from, unsigned length)
{
	return post(peer, IBV_WR_SEND, from, length, 0, 0);
}

int peer_done(struct verbs_peer *peer)
{
	struct ibv_wc wc;

	return verbs->poll_cq(peer->cq, 1, &wc) == 1 ? (int)wc.status : -1;
}

int peer_settle(struct verbs_peer *peer)
{
	verbs_fake_run();
	return peer_done(peer);
}
