/*
 * verbs_fake_run.c - moves the bytes of work requests, packet by packet. Tests step it, or
 * post_send does where `automatic` is set. Every byte is checked against keys and bounds, as a
 * device would.
 */
#include "verbs_fake_private.h"

#include <stdlib.h>
#include <string.h>

enum { PACKET_MAX = 4096, REORDER_WINDOW = 16 };

/* Returns the access that local memory needs to receive bytes. */
static int landing_access(const struct fake_qp *qp, const struct fake_wr *wr)
{
	/* In iWARP a read is answered by the peer's write. */
	bool remote = wr->opcode == IBV_WR_RDMA_READ &&
	              qp->qp.context->device->transport_type == IBV_TRANSPORT_IWARP;

	return IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0);
}

/* The bytes of a work request from `done` on, at their place in local memory: writes take them
 * from there (access 0), reads put them there. False: a key does not open it. */
static bool copy_local(const struct fake_qp *qp, const struct fake_wr *wr, uint32_t done,
                       uint8_t *bytes, uint32_t length, bool into)
{
	uint64_t at = 0;

	for (unsigned i = 0; i < wr->sge_count && length > 0; i++) {
		const struct ibv_sge *sge = &wr->sges[i];
		uint64_t skip = done > at ? done - at : 0, part;
		uint8_t *memory = (uint8_t *)(uintptr_t)sge->addr;

		at += sge->length;
		if (skip >= sge->length)
			continue;
		part = sge->length - skip < length ? sge->length - skip : length;
		if (!wr->inlined)
			memory = fake_memory(qp->qp.pd, sge->lkey, sge->addr, sge->length,
			                     into ? landing_access(qp, wr) : 0);
		if (!memory)
			return false;
		if (into)
			memcpy(memory + skip, bytes, part);
		else
			memcpy(bytes, memory + skip, part);
		bytes += part;
		done += (uint32_t)part;
		length -= (uint32_t)part;
	}
	return true;
}

static void write_down(const struct fake_qp *qp, uint64_t address, const uint8_t *bytes,
                       uint32_t length)
{
	uint8_t *copy;

	if (!fake.journal || length == 0)
		return;
	if (fake.write_count == fake.write_room) {
		fake.write_room = fake.write_room ? 2 * fake.write_room : 64;
		fake.writes = realloc(fake.writes, fake.write_room * sizeof(*fake.writes));
		if (!fake.writes)
			abort();
	}
	copy = fake_alloc(length);
	memcpy(copy, bytes, length);
	fake.writes[fake.write_count++] = (struct verbs_fake_write){
		qp->qp.qp_num,
		length,
		address,
		copy,
	};
}

/* Returns the responder's status for a part of a read or write, and carries it out on success. */
static enum ibv_wc_status respond(struct fake_qp *qp, struct fake_wr *wr, uint32_t length)
{
	bool read = wr->opcode == IBV_WR_RDMA_READ;
	uint8_t bytes[PACKET_MAX], *remote = NULL;

	if (read && qp->reads_out == 0)
		return IBV_WC_LOC_QP_OP_ERR;
	if (!read && !copy_local(qp, wr, wr->done, bytes, length, false))
		return IBV_WC_LOC_PROT_ERR;
	if (read && qp->peer->reads_in == 0)
		return IBV_WC_REM_INV_REQ_ERR;
	if (wr->length > 0) {
		/* The whole of it is checked when it begins, and again for each packet. */
		remote = fake_memory(qp->peer->qp.pd, wr->rkey, wr->remote, wr->length,
		                     read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);
		if (!remote)
			return IBV_WC_REM_ACCESS_ERR;
		remote += wr->done;
	}
	if (read && length > 0) {
		memcpy(bytes, remote, length);
		if (!copy_local(qp, wr, wr->done, bytes, length, true))
			return IBV_WC_LOC_PROT_ERR;
	} else if (length > 0) {
		memcpy(remote, bytes, length);
		write_down(qp, wr->remote + wr->done, bytes, length);
	}
	wr->done += length;
	return IBV_WC_SUCCESS;
}

/* Delivers a whole message into the peer's first receive. */
static enum ibv_wc_status deliver(struct fake_qp *qp, struct fake_wr *wr, bool *wait)
{
	struct fake_qp *peer = qp->peer;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	uint8_t *bytes;

	if (!peer->receives) {
		*wait = qp->rnr_forever;
		return IBV_WC_RNR_RETRY_EXC_ERR;
	}
	bytes = fake_alloc(wr->length + 1);
	if (!copy_local(qp, wr, 0, bytes, wr->length, false)) {
		status = IBV_WC_LOC_PROT_ERR;
	} else if (wr->length > peer->receives->length) {
		fake_receive_done(peer, IBV_WC_LOC_LEN_ERR, 0);
		fake_qp_error(peer);
		status = IBV_WC_REM_INV_REQ_ERR;
	} else if (!copy_local(peer, peer->receives, 0, bytes, wr->length, true)) {
		fake_receive_done(peer, IBV_WC_LOC_PROT_ERR, 0);
		fake_qp_error(peer);
		status = IBV_WC_REM_OP_ERR;
	} else {
		fake_receive_done(peer, IBV_WC_SUCCESS, wr->length);
	}
	free(bytes);
	wr->done = wr->length;
	return status;
}

static bool is_silent(const struct fake_qp *qp)
{
	return ((const struct verbs_fake_device *)qp->qp.context)->dead ||
	       (qp->peer && (((const struct verbs_fake_device *)qp->peer->qp.context)->dead ||
	                     qp->peer->qp.state == IBV_QPS_INIT));
}

/* The request is over with an error: the queue pair, and at times the peer's, with it. */
static void fail(struct fake_qp *qp, enum ibv_wc_status status)
{
	struct fake_qp *peer = qp->peer;

	fake_send_done(qp, status);
	fake_qp_error(qp);
	if (status != IBV_WC_REM_ACCESS_ERR && status != IBV_WC_REM_INV_REQ_ERR)
		return;
	if (!peer || peer->qp.state != IBV_QPS_RTS)
		return;
	fake_qp_error(peer);
	fake_async_raise(peer->qp.context,
	                 status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR
	                                                 : IBV_EVENT_QP_REQ_ERR,
	                 peer);
}

/* Carries out one packet of a request. Sets *wait if it cannot go on now. */
static enum ibv_wc_status advance(struct fake_qp *qp, struct fake_wr *wr, bool *wait)
{
	uint32_t packet = verbs_fake_mode.packet, left = wr->length - wr->done;

	if (packet == 0 || packet > PACKET_MAX)
		packet = PACKET_MAX;
	if (!qp->peer || qp->peer->qp.state == IBV_QPS_ERR)
		return IBV_WC_RETRY_EXC_ERR;
	if (wr->opcode == IBV_WR_SEND)
		return deliver(qp, wr, wait);
	return respond(qp, wr, left < packet ? left : packet);
}

/* The test wants this request to complete with this status. */
static void complete_with(struct fake_qp *qp, enum ibv_wc_status status, bool applied)
{
	struct fake_wr *wr = qp->sends;
	bool wait = false;

	while (applied && wr->done < wr->length)
		if (advance(qp, wr, &wait) != IBV_WC_SUCCESS)
			break;
	fake_send_done(qp, status);
	if (status != IBV_WC_SUCCESS)
		fake_qp_error(qp);
}

/* In a fabric that reorders, returns any of the first writes, if only writes precede it. */
static struct fake_wr *choose(struct fake_qp *qp)
{
	struct fake_wr *candidates[REORDER_WINDOW];
	unsigned count = 0;

	if (!verbs_fake_mode.reorder)
		return qp->sends;
	for (struct fake_wr *wr = qp->sends; wr && count < REORDER_WINDOW; wr = wr->next) {
		if (wr->opcode != IBV_WR_RDMA_WRITE)
			break;
		if (!wr->finished)
			candidates[count++] = wr;
	}
	return count > 0 ? candidates[fake_draw(count)] : qp->sends;
}

/* Completes finished work requests in the order of posting. */
static void complete_finished(struct fake_qp *qp)
{
	while (qp->sends && qp->sends->finished)
		fake_send_done(qp, IBV_WC_SUCCESS);
}

bool fake_packet(struct fake_qp *qp)
{
	enum ibv_wc_status status;
	bool wait = false, applied;
	struct fake_wr *wr;

	if (!qp->sends || qp->qp.state != IBV_QPS_RTS || is_silent(qp))
		return false;
	if (!qp->sends->begun) {
		qp->sends->begun = true;
		if (fake_fault_completion(&status, &applied)) {
			complete_with(qp, status, applied);
			return true;
		}
	}
	wr = choose(qp);
	status = advance(qp, wr, &wait);
	if (status != IBV_WC_SUCCESS && wr != qp->sends) {
		/* A failure is reported after the work requests before it. */
		wr = qp->sends;
		status = advance(qp, wr, &wait);
	}
	if (wait)
		return false;
	if (status != IBV_WC_SUCCESS) {
		fail(qp, status);
		return true;
	}
	wr->finished = wr->done == wr->length;
	complete_finished(qp);
	return true;
}

/* Returns the next queue pair in turn, after the one that was served last. */
static struct fake_qp *next_qp(uint32_t after)
{
	struct fake_qp *best = NULL, *first = NULL;

	for (struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
		if (!first || qp->qp.qp_num < first->qp.qp_num)
			first = qp;
		if (qp->qp.qp_num > after && (!best || qp->qp.qp_num < best->qp.qp_num))
			best = qp;
	}
	return best ? best : first;
}

unsigned fake_run(unsigned packets)
{
	unsigned done = 0, idle = 0;

	while (done < packets && idle < fake.alive.qps) {
		struct fake_qp *qp = next_qp(fake.turn);

		fake.turn = qp->qp.qp_num;
		if (fake_packet(qp)) {
			done++;
			idle = 0;
		} else {
			idle++;
		}
	}
	return done;
}

unsigned verbs_fake_step(unsigned packets)
{
	unsigned done;

	fake_lock();
	done = fake_run(packets);
	fake_unlock();
	return done;
}

unsigned verbs_fake_run(void)
{
	return verbs_fake_step(UINT32_MAX);
}

unsigned verbs_fake_step_qp(uint32_t qp_num, unsigned packets)
{
	unsigned done = 0;

	fake_lock();
	for (struct fake_qp *qp = fake.qps; qp; qp = qp->next)
		while (qp->qp.qp_num == qp_num && done < packets && fake_packet(qp))
			done++;
	fake_unlock();
	return done;
}

void verbs_fake_expire(void)
{
	fake_lock();
	for (struct fake_qp *qp = fake.qps; qp; qp = qp->next)
		if (qp->sends && qp->qp.state == IBV_QPS_RTS && is_silent(qp))
			fail(qp, IBV_WC_RETRY_EXC_ERR);
	fake_unlock();
}
