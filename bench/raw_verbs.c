/*
 * raw_verbs.c - the near end of the bare fabric.
 */
#include "raw_verbs.h"

#include "area.h"
#include "clock.h"
#include "work.h"
#include "../proto/image/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	QUEUE = 1024,        /* work requests that the send queue has room for */
	BACKLOG = QUEUE / 4, /* upper bound of chains in flight, each with up to 3 work requests */
	BATCH = 16,          /* completions taken at a time */
	/* As in the library: a lost packet is sent again after 4.096 us * 2^15 = 134 ms. */
	ACK_TIMEOUT = 15,
	RETRIES = 6,
};

/* --- connecting --- */

static int make_id(struct raw_link *link, const char *host, unsigned port, const char *from,
                   char *why)
{
	struct rdma_addrinfo *to = raw_resolve(host, port, false, from, why);
	uint8_t timeout = ACK_TIMEOUT;
	int code;

	if (!to)
		return -1;
	code = rdma_create_ep(&link->id, to, NULL, NULL);
	if (code)
		raw_fail(why, "no way to it over an RDMA device");
	else
		/* Not every device supports this option. */
		(void)rdma_set_option(link->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
		                      &timeout, sizeof(timeout));
	rdma_freeaddrinfo(to);
	return code;
}

/* Creates the queue pair. Halves the inline size until the device accepts it. Returns 0, or -1 with
 * the reason in `why`. */
static int make_queues(struct raw_link *link, unsigned inline_bytes, char *why)
{
	for (;; inline_bytes /= 2) {
		struct ibv_qp_init_attr attr = {
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = QUEUE,
			         .max_recv_wr = 1,
			         .max_send_sge = 1,
			         .max_recv_sge = 1,
			         .max_inline_data = inline_bytes },
		};

		if (!rdma_create_qp(link->id, NULL, &attr)) {
			link->inline_bytes = attr.cap.max_inline_data < inline_bytes
			                             ? attr.cap.max_inline_data
			                             : inline_bytes;
			break;
		}
		if (!inline_bytes)
			return raw_fail(why, "no queue pair");
	}
	if (fcntl(link->id->send_cq_channel->fd, F_SETFL, O_NONBLOCK))
		return raw_fail(why, "no completion channel");
	link->staging = ibv_reg_mr(link->id->pd, link->bytes, sizeof(link->bytes), 0);
	return link->staging ? 0 : raw_fail(why, "no memory region");
}

static int meet_far_end(struct raw_link *link, char *why)
{
	struct rdma_conn_param param = { .retry_count = RETRIES, .rnr_retry_count = RETRIES };
	struct ibv_device_attr device;
	const struct rdma_conn_param *told;

	if (ibv_query_device(link->id->verbs, &device))
		return raw_fail(why, "ibv_query_device");
	param.initiator_depth = (uint8_t)(device.max_qp_init_rd_atom < 255
	                                          ? device.max_qp_init_rd_atom
	                                          : 255);
	if (rdma_connect(link->id, &param))
		return raw_fail(why, "cannot connect");
	told = &link->id->event->param.conn;
	if (told->private_data_len < sizeof(link->far)) {
		snprintf(why, RAW_WHY, "who answers is not a far end of this program");
		return -1;
	}
	memcpy(&link->far, told->private_data, sizeof(link->far));
	link->depth = param.initiator_depth;
	if (link->depth > link->far.reads)
		link->depth = link->far.reads;
	return 0;
}

struct raw_link *raw_connect(const char *host, unsigned port, const struct raw_options *options,
                             char *why)
{
	struct raw_link *link = calloc(1, sizeof(*link));

	if (!link) {
		raw_fail(why, "memory");
		return NULL;
	}
	link->spin_ns = options->spin_ns;
	link->state = WORK_SEED;
	link->position = PS_FIRST_POSITION;
	memset(link->bytes, 0x5a, sizeof(link->bytes));
	if (make_id(link, host, port, options->from, why) ||
	    make_queues(link, (unsigned)options->inline_bytes, why) || meet_far_end(link, why)) {
		raw_disconnect(link);
		return NULL;
	}
	return link;
}

void raw_disconnect(struct raw_link *link)
{
	if (!link)
		return;
	/* rdma_disconnect would wait for an answer. The far end is notified by rdma_destroy_ep,
	 * too. */
	if (link->id && link->id->qp)
		rdma_destroy_qp(link->id);
	if (link->reads)
		ibv_dereg_mr(link->reads);
	area_free(link->memory, link->far.segment);
	if (link->staging)
		ibv_dereg_mr(link->staging);
	if (link->id)
		rdma_destroy_ep(link->id);
	free(link);
}

unsigned raw_mtu(const struct raw_link *link)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(link->id->qp, &attr, IBV_QP_PATH_MTU, &init))
		return 0;
	return 128u << attr.path_mtu;
}

/* --- writing --- */

/* Prepares work request `i`: a write of its part of the staging area to `offset` of the far end's
 * memory. */
static void prepare_write(struct raw_link *link, unsigned i, unsigned bytes, uint64_t offset)
{
	struct ibv_send_wr *wr = &link->wr[i];

	link->sge[i] = (struct ibv_sge){ (uintptr_t)(link->bytes + i * RAW_BYTES_MAX), bytes,
		                         link->staging->lkey };
	wr->next = NULL;
	wr->sg_list = &link->sge[i];
	wr->num_sge = 1;
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->send_flags = bytes <= link->inline_bytes ? IBV_SEND_INLINE : 0;
	wr->wr.rdma.remote_addr = link->far.address + offset;
	wr->wr.rdma.rkey = link->far.key;
}

/* Returns the offset of a random place for `bytes` bytes in the segment, before its last word. */
static uint64_t draw_place(struct raw_link *link, unsigned bytes)
{
	uint64_t room = link->far.segment - bytes - sizeof(uint64_t);

	return RAW_SEGMENT_OFFSET + work_below(&link->state, (uint32_t)room);
}

static int take_completions(struct raw_link *link)
{
	struct ibv_wc wc[BATCH];
	int count = ibv_poll_cq(link->id->send_cq, BATCH, wc);

	for (int i = 0; i < count; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			link->trouble = ibv_wc_status_str(wc[i].status);
			return -1;
		}
	}
	if (count > 0)
		link->completed += (unsigned)count;
	return count;
}

/* Posts the prepared work requests from `first` to `last` with one doorbell; only `last` is
 * signalled. Returns 0 or -1. */
static int post_writes(struct raw_link *link, struct ibv_send_wr *first, struct ibv_send_wr *last)
{
	struct ibv_send_wr *bad;

	while (link->posted - link->completed >= BACKLOG)
		if (take_completions(link) < 0)
			return -1;
	last->send_flags |= IBV_SEND_SIGNALED;
	link->posted++;
	return ibv_post_send(link->id->qp, first, &bad) ? -1 : 0;
}

int raw_post_write(struct raw_link *link, unsigned bytes)
{
	prepare_write(link, 0, bytes, draw_place(link, bytes));
	return post_writes(link, &link->wr[0], &link->wr[0]);
}

int raw_post_chain(struct raw_link *link, unsigned bytes)
{
	unsigned record = (unsigned)(sizeof(struct ps_record) + sizeof(struct ps_range) +
	                             ps_align8(bytes));

	if (RAW_RING - link->position < record)
		link->position = 0;
	prepare_write(link, 0, record, PS_RING_OFFSET + link->position);
	prepare_write(link, 1, bytes, draw_place(link, bytes));
	prepare_write(link, 2, sizeof(struct ps_slot), link->slot * PS_SLOT_STRIDE);
	link->wr[0].next = &link->wr[1];
	link->wr[1].next = &link->wr[2];
	link->position += ps_align64(record);
	link->slot = !link->slot;
	return post_writes(link, &link->wr[0], &link->wr[2]);
}

/* --- waiting --- */

/* Sleeps until a link has completions, unless one has some already. Returns 0 or -1. */
static int sleep_until_news(struct raw_link *const *links, unsigned count)
{
	struct pollfd fds[RAW_TARGETS_MAX];
	struct ibv_cq *cq;
	void *context;
	int news = 0;

	for (unsigned i = 0; i < count; i++) {
		int taken;

		fds[i] = (struct pollfd){ links[i]->id->send_cq_channel->fd, POLLIN, 0 };
		if (ibv_req_notify_cq(links[i]->id->send_cq, 0))
			return -1;
		taken = take_completions(links[i]);
		if (taken < 0)
			return -1;
		news += taken;
	}
	if (!news && poll(fds, count, -1) < 0 && errno != EINTR)
		return -1;
	for (unsigned i = 0; i < count; i++)
		while (!ibv_get_cq_event(links[i]->id->send_cq_channel, &cq, &context))
			ibv_ack_cq_events(cq, 1);
	return 0;
}

/* Waits until `enough` links have at most `left` work requests in flight: polls, then sleeps.
 * Returns 0, or -1 if a link broke. */
static int await_links(struct raw_link *const *links, unsigned count, unsigned enough,
                       unsigned left)
{
	uint64_t until = 0;

	for (;;) {
		unsigned done = 0;

		for (unsigned i = 0; i < count; i++) {
			if (links[i]->completed != links[i]->posted &&
			    take_completions(links[i]) < 0)
				return -1;
			done += links[i]->posted - links[i]->completed <= left;
		}
		if (done >= enough)
			return 0;
		if (!until)
			until = clock_ns() + links[0]->spin_ns;
		else if (clock_ns() >= until && sleep_until_news(links, count))
			return -1;
	}
}

int raw_wait(struct raw_link *const *links, unsigned count, unsigned enough)
{
	return await_links(links, count, enough, 0);
}

int raw_leave(struct raw_link *link, unsigned left)
{
	return await_links(&link, 1, 1, left);
}

/* --- reading --- */

int raw_prepare_reads(struct raw_link *link, char *why)
{
	link->memory = area_filled(link->far.segment, 0);
	if (!link->memory)
		return raw_fail(why, "memory for reads");
	link->reads = ibv_reg_mr(link->id->pd, link->memory, link->far.segment,
	                         IBV_ACCESS_LOCAL_WRITE);
	return link->reads ? 0 : raw_fail(why, "memory for reads");
}

int raw_read(struct raw_link *link, unsigned size, unsigned depth)
{
	uint64_t total = link->far.segment;
	uint64_t *end = (uint64_t *)(void *)(link->memory + total) - 1;

	if (depth > link->depth)
		depth = link->depth;
	*end = 0;
	for (uint64_t offset = 0; offset < total; offset += size) {
		if (await_links(&link, 1, 1, depth - 1))
			return -1;
		link->posted++;
		if (rdma_post_read(link->id, NULL, link->memory + offset,
		                   total - offset < size ? total - offset : size, link->reads,
		                   IBV_SEND_SIGNALED,
		                   link->far.address + RAW_SEGMENT_OFFSET + offset, link->far.key))
			return -1;
	}
	if (raw_wait(&link, 1, 1))
		return -1;
	if (*end == RAW_END)
		return 0;
	link->trouble = "what was read is not what is there";
	return -1;
}
