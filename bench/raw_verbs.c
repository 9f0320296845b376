/*
 * raw_verbs.c - the near end of the bare fabric.
 */
#include "raw_verbs.h"

#include "clock.h"
#include "../proto/image/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	QUEUE = 1024,        /* work requests that the send queue takes */
	BACKLOG = QUEUE / 4, /* chains under way, each of up to 3 work requests */
	TIMEOUT_MS = 3000,
	BATCH = 16, /* completions taken at once */
	/* As the library's: after a loss 4.096 us * 2^15 = 134 ms pass until it is sent again. */
	ACK_TIMEOUT = 15,
	RETRIES = 6,
};

struct raw_link {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *staging;
	struct ibv_mr *reads; /* NULL: none prepared */
	uint8_t *memory;      /* that reads go to */
	struct raw_memory far;
	uint64_t spin_ns;
	unsigned inline_bytes;
	unsigned depth;             /* reads that both ends take */
	uint64_t posted, completed; /* signalled work requests */
	uint64_t state;             /* of the random places */
	uint64_t position;          /* of the next undo record in the ring */
	unsigned slot;
	const char *trouble; /* why it broke, if it did */
	struct ibv_send_wr wr[3];
	struct ibv_sge sge[3];
	uint8_t bytes[3 * RAW_BYTES_MAX]; /* what is written */
};

/* --- connecting --- */

static int resolve(struct raw_link *link, const char *host, unsigned port, const char *from,
                   char *why)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *to = NULL, *source = NULL;
	char service[8];
	int code;

	snprintf(service, sizeof(service), "%u", port);
	code = getaddrinfo(host, service, &hints, &to);
	if (!code && from)
		code = getaddrinfo(from, NULL, &hints, &source);
	if (code)
		snprintf(why, RAW_WHY, "%s: %s", to ? from : host, gai_strerror(code));
	else if (rdma_resolve_addr(link->id, source ? source->ai_addr : NULL, to->ai_addr,
	                           TIMEOUT_MS) ||
	         rdma_resolve_route(link->id, TIMEOUT_MS))
		code = raw_fail(why, "no way to it over an RDMA device");
	if (to)
		freeaddrinfo(to);
	if (source)
		freeaddrinfo(source);
	return code ? -1 : 0;
}

/* Devices that do not have this much room for inline data refuse, or give less. */
static int make_queue_pair(struct raw_link *link, unsigned inline_bytes)
{
	for (;;) {
		struct ibv_qp_init_attr attr = {
			.send_cq = link->cq,
			.recv_cq = link->cq,
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = QUEUE,
			         .max_recv_wr = 1,
			         .max_send_sge = 1,
			         .max_recv_sge = 1,
			         .max_inline_data = inline_bytes },
		};

		if (!rdma_create_qp(link->id, NULL, &attr)) {
			link->inline_bytes = attr.cap.max_inline_data;
			if (link->inline_bytes > inline_bytes)
				link->inline_bytes = inline_bytes;
			return 0;
		}
		if (!inline_bytes)
			return -1;
		inline_bytes /= 2;
	}
}

static int make_queues(struct raw_link *link, unsigned inline_bytes, char *why)
{
	struct ibv_context *context = link->id->verbs;

	link->channel = ibv_create_comp_channel(context);
	if (!link->channel || fcntl(link->channel->fd, F_SETFL, O_NONBLOCK))
		return raw_fail(why, "no completion channel");
	link->cq = ibv_create_cq(context, QUEUE, NULL, link->channel, 0);
	if (!link->cq || make_queue_pair(link, inline_bytes))
		return raw_fail(why, "no queue pair");
	link->staging = ibv_reg_mr(link->id->pd, link->bytes, sizeof(link->bytes), 0);
	return link->staging ? 0 : raw_fail(why, "no memory region");
}

static int meet(struct raw_link *link, char *why)
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
	uint8_t timeout = ACK_TIMEOUT;

	if (!link || rdma_create_id(NULL, &link->id, NULL, RDMA_PS_TCP)) {
		raw_fail(why, "no RDMA connection manager");
		free(link);
		return NULL;
	}
	/* Not every device can do that. */
	(void)rdma_set_option(link->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
	                      sizeof(timeout));
	link->spin_ns = options->spin_ns;
	link->state = 0x9e3779b97f4a7c15u;
	link->position = PS_FIRST_POSITION;
	memset(link->bytes, 0x5a, sizeof(link->bytes));
	if (resolve(link, host, port, options->from, why) ||
	    make_queues(link, (unsigned)options->inline_bytes, why) || meet(link, why)) {
		raw_disconnect(link);
		return NULL;
	}
	return link;
}

void raw_disconnect(struct raw_link *link)
{
	if (!link)
		return;
	/* rdma_disconnect would wait for an answer; the far end hears of destroy_id, too. */
	if (link->id->qp)
		rdma_destroy_qp(link->id);
	if (link->reads)
		ibv_dereg_mr(link->reads);
	if (link->memory)
		munmap(link->memory, link->far.segment);
	if (link->staging)
		ibv_dereg_mr(link->staging);
	if (link->cq)
		ibv_destroy_cq(link->cq);
	if (link->channel)
		ibv_destroy_comp_channel(link->channel);
	rdma_destroy_id(link->id);
	free(link);
}

const char *raw_device(const struct raw_link *link)
{
	return ibv_get_device_name(link->id->verbs->device);
}

unsigned raw_inline(const struct raw_link *link)
{
	return link->inline_bytes;
}

unsigned raw_mtu(const struct raw_link *link)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(link->id->qp, &attr, IBV_QP_PATH_MTU, &init))
		return 0;
	return 128u << attr.path_mtu;
}

const char *raw_trouble(const struct raw_link *link)
{
	return link->trouble;
}

uint64_t raw_segment(const struct raw_link *link)
{
	return link->far.segment;
}

/* --- writing --- */

/* Prepares work request `i`: a write of what stands in the staging area, to `offset`. */
static void put_write(struct raw_link *link, unsigned i, unsigned bytes, uint64_t offset)
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

/* A random place for `bytes` in the segment, before its last word. */
static uint64_t place(struct raw_link *link, unsigned bytes)
{
	uint64_t x = link->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	link->state = x;
	return RAW_SEGMENT_OFFSET +
	       ((x * 0x2545f4914f6cdd1du >> 32) * (link->far.segment - bytes - sizeof(uint64_t)) >>
	        32);
}

static int take_completions(struct raw_link *link)
{
	struct ibv_wc wc[BATCH];
	int count = ibv_poll_cq(link->cq, BATCH, wc);

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

/* Rings the doorbell for the prepared work requests from `first` on; the last one is signalled. */
static int post(struct raw_link *link, struct ibv_send_wr *first, struct ibv_send_wr *last)
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
	put_write(link, 0, bytes, place(link, bytes));
	return post(link, &link->wr[0], &link->wr[0]);
}

int raw_post_chain(struct raw_link *link, unsigned bytes)
{
	unsigned record = (unsigned)(sizeof(struct ps_record) + sizeof(struct ps_range) +
	                             ps_align8(bytes));

	if (RAW_RING - link->position < record)
		link->position = 0;
	put_write(link, 0, record, PS_RING_OFFSET + link->position);
	put_write(link, 1, bytes, place(link, bytes));
	put_write(link, 2, sizeof(struct ps_slot), link->slot * PS_SLOT_STRIDE);
	link->wr[0].next = &link->wr[1];
	link->wr[1].next = &link->wr[2];
	link->position += ps_align64(record);
	link->slot = !link->slot;
	return post(link, &link->wr[0], &link->wr[2]);
}

/* --- waiting --- */

/* Sleeps until a link has something to tell, unless one has at once. 0 or -1. */
static int rest(struct raw_link *const *links, unsigned count)
{
	struct pollfd fds[RAW_TARGETS_MAX];
	struct ibv_cq *cq;
	void *context;
	int news = 0;

	for (unsigned i = 0; i < count; i++) {
		int taken;

		fds[i] = (struct pollfd){ links[i]->channel->fd, POLLIN, 0 };
		if (ibv_req_notify_cq(links[i]->cq, 0))
			return -1;
		taken = take_completions(links[i]);
		if (taken < 0)
			return -1;
		news += taken;
	}
	if (!news && poll(fds, count, -1) < 0 && errno != EINTR)
		return -1;
	for (unsigned i = 0; i < count; i++)
		while (!ibv_get_cq_event(links[i]->channel, &cq, &context))
			ibv_ack_cq_events(cq, 1);
	return 0;
}

int raw_wait(struct raw_link *const *links, unsigned count, unsigned enough)
{
	uint64_t until = 0;

	for (;;) {
		unsigned done = 0;

		for (unsigned i = 0; i < count; i++) {
			if (links[i]->completed != links[i]->posted &&
			    take_completions(links[i]) < 0)
				return -1;
			done += links[i]->completed == links[i]->posted;
		}
		if (done >= enough)
			return 0;
		if (!until)
			until = clock_ns() + links[0]->spin_ns;
		else if (clock_ns() >= until && rest(links, count))
			return -1;
	}
}

/* Until something has completed: polls first, then sleeps. 0 or -1. */
static int await_any(struct raw_link *link)
{
	const uint64_t before = link->completed;
	uint64_t until = 0;

	while (link->completed == before) {
		if (take_completions(link) < 0)
			return -1;
		if (!until)
			until = clock_ns() + link->spin_ns;
		else if (link->completed == before && clock_ns() >= until && rest(&link, 1))
			return -1;
	}
	return 0;
}

/* --- reading --- */

int raw_prepare_reads(struct raw_link *link, char *why)
{
	void *memory = mmap(NULL, link->far.segment, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		return raw_fail(why, "memory for reads");
	link->memory = memory;
	link->reads = ibv_reg_mr(link->id->pd, memory, link->far.segment, IBV_ACCESS_LOCAL_WRITE);
	return link->reads ? 0 : raw_fail(why, "memory for reads");
}

static int post_read(struct raw_link *link, uint64_t offset, unsigned size)
{
	struct ibv_sge sge = { (uintptr_t)link->memory + offset, size, link->reads->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_RDMA_READ,
		                  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = link->far.address + RAW_SEGMENT_OFFSET + offset;
	wr.wr.rdma.rkey = link->far.key;
	link->posted++;
	return ibv_post_send(link->id->qp, &wr, &bad) ? -1 : 0;
}

int raw_read(struct raw_link *link, unsigned size, unsigned depth)
{
	uint64_t total = link->far.segment, *end;
	uint64_t offset = 0;

	if (depth > link->depth)
		depth = link->depth;
	end = (uint64_t *)(void *)(link->memory + total) - 1;
	*end = 0;
	while (offset < total || link->completed != link->posted) {
		while (offset < total && link->posted - link->completed < depth) {
			unsigned length = total - offset < size ? (unsigned)(total - offset) : size;

			if (post_read(link, offset, length))
				return -1;
			offset += length;
		}
		if (await_any(link))
			return -1;
	}
	if (*end == RAW_END)
		return 0;
	link->trouble = "what was read is not what is there";
	return -1;
}
