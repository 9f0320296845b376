/*
 * verbs_fake_qp.c - queue pairs: their states, capacities and work requests. Code under test
 * calls it through struct ps_verbs. It takes requests and moves no bytes; verbs_fake_run.c does
 * that.
 */
#include "verbs_fake_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The opcode of a failed completion, which has no meaning. */
enum { NO_OPCODE = 0x55 };

struct fake_qp *fake_qp_of(const struct ibv_qp *qp)
{
	struct fake_qp *at = fake.qps;

	while (at && &at->qp != qp)
		at = at->next;
	return at;
}

/* --- completions --- */

static enum ibv_wc_opcode opcode_of(enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_RDMA_READ)
		return IBV_WC_RDMA_READ;
	return opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
}

void fake_send_done(struct fake_qp *qp, enum ibv_wc_status status)
{
	struct fake_wr *wr = qp->sends;
	struct fake_cqe cqe = {
		.wc = {
			.wr_id = wr->wr_id,
			.status = status,
			.opcode = status ? (enum ibv_wc_opcode)NO_OPCODE : opcode_of(wr->opcode),
			.byte_len = wr->length,
			.qp_num = qp->qp.qp_num,
		},
		.qp = qp,
		.retires = qp->unretired + 1,
	};

	qp->unretired++;
	if (status || wr->signalled) {
		qp->unretired = 0;
		fake_cq_add((struct fake_cq *)qp->qp.send_cq, &cqe);
	}
	qp->sends = wr->next;
	free(wr);
}

void fake_receive_done(struct fake_qp *qp, enum ibv_wc_status status, uint32_t length)
{
	struct fake_wr *wr = qp->receives;
	struct fake_cqe cqe = {
		.wc = {
			.wr_id = wr->wr_id,
			.status = status,
			.opcode = status ? (enum ibv_wc_opcode)NO_OPCODE : IBV_WC_RECV,
			.byte_len = length,
			.qp_num = qp->qp.qp_num,
		},
		.qp = qp,
		.receive = true,
	};

	fake_cq_add((struct fake_cq *)qp->qp.recv_cq, &cqe);
	qp->receives = wr->next;
	free(wr);
}

void fake_qp_error(struct fake_qp *qp)
{
	qp->qp.state = IBV_QPS_ERR;
	while (qp->sends)
		fake_send_done(qp, IBV_WC_WR_FLUSH_ERR);
	while (qp->receives)
		fake_receive_done(qp, IBV_WC_WR_FLUSH_ERR, 0);
}

void verbs_fake_break(struct ibv_qp *qp)
{
	fake_lock();
	fake_qp_error((struct fake_qp *)qp);
	fake_unlock();
}

static struct ibv_qp *newest(bool passive)
{
	struct fake_qp *qp;

	fake_lock();
	qp = fake.qps;
	while (qp && !(qp->id && qp->id->passive == passive))
		qp = qp->next;
	fake_unlock();
	return qp ? &qp->qp : NULL;
}

struct ibv_qp *verbs_fake_active_qp(void)
{
	return newest(false);
}

struct ibv_qp *verbs_fake_passive_qp(void)
{
	return newest(true);
}

struct rdma_cm_id *verbs_fake_id(const struct ibv_qp *qp)
{
	struct fake_id *id = ((const struct fake_qp *)qp)->id;

	return id ? &id->id : NULL;
}

/* --- life --- */

/* Checks whether the device makes such a queue pair, and fills in what it grants. */
static int check_attr(const struct fake_id *id, const struct ibv_pd *pd,
                      struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_cap *cap = &attr->cap;

	if (!id->id.verbs || !pd || pd->context != id->id.verbs || id->id.qp ||
	    attr->qp_type != IBV_QPT_RC || attr->srq)
		return EINVAL;
	if (!attr->send_cq || !attr->recv_cq || attr->send_cq->context != pd->context ||
	    attr->recv_cq->context != pd->context)
		return EINVAL;
	if (cap->max_send_wr > (uint32_t)id->device->attr.max_qp_wr ||
	    cap->max_recv_wr > (uint32_t)id->device->attr.max_qp_wr ||
	    cap->max_send_sge > (uint32_t)id->device->attr.max_sge ||
	    cap->max_recv_sge > (uint32_t)id->device->attr.max_sge)
		return EINVAL;
	if (cap->max_inline_data > id->device->max_inline) {
		if (id->device->inline_strict)
			return EINVAL;
		cap->max_inline_data = id->device->max_inline;
	}
	return fake.alive.qps >= (unsigned)id->device->attr.max_qp ? ENOMEM : 0;
}

static void make_qp(struct fake_id *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp = fake_alloc(sizeof(*qp));

	qp->qp.context = pd->context;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.pd = pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.qp_num = fake.numbers++;
	qp->qp.state = IBV_QPS_INIT;
	qp->qp.qp_type = IBV_QPT_RC;
	qp->cap = attr->cap;
	qp->all_signalled = attr->sq_sig_all != 0;
	qp->id = id;
	qp->next = fake.qps;
	fake.qps = qp;
	fake.alive.qps++;
	((struct fake_pd *)pd)->users++;
	((struct fake_cq *)attr->send_cq)->users++;
	((struct fake_cq *)attr->recv_cq)->users++;
	id->id.qp = &qp->qp;
	id->id.pd = pd;
}

int fake_create_qp(struct rdma_cm_id *given, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_id *id = (struct fake_id *)given;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_create_qp);
	if (!error)
		error = check_attr(id, pd, attr);
	if (!error)
		make_qp(id, pd, attr);
	fake_unlock();
	errno = error;
	return error ? -1 : 0;
}

int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_modify_qp);
	if (!error && mask == IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR)
		fake_qp_error((struct fake_qp *)qp);
	else if (!error)
		error = EINVAL; /* the connection manager does the rest */
	fake_unlock();
	return error;
}

static void free_list(struct fake_wr *list)
{
	while (list) {
		struct fake_wr *wr = list;

		list = wr->next;
		free(wr);
	}
}

static void free_qp(struct fake_qp *qp)
{
	struct fake_qp **at = &fake.qps;

	while (*at != qp)
		at = &(*at)->next;
	*at = qp->next;
	for (struct fake_qp *other = fake.qps; other; other = other->next)
		if (other->peer == qp)
			other->peer = NULL;
	fake_async_drop(qp);
	fake_cq_forget(qp);
	((struct fake_pd *)qp->qp.pd)->users--;
	((struct fake_cq *)qp->qp.send_cq)->users--;
	((struct fake_cq *)qp->qp.recv_cq)->users--;
	free_list(qp->sends);
	free_list(qp->receives);
	free(qp);
	fake.alive.qps--;
}

int fake_destroy_qp(struct ibv_qp *given)
{
	struct fake_qp *qp = (struct fake_qp *)given;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_destroy_qp);
	if (!error) {
		if (qp->async_unacked > 0)
			fake_wrong("destroy_qp would block: %u asynchronous events are not "
			           "acknowledged",
			           qp->async_unacked);
		error = fake_destroyed(qp->qp.context);
		free_qp(qp);
	}
	fake_unlock();
	return error;
}

/* --- posting --- */

static void append(struct fake_wr **list, struct fake_wr *wr)
{
	while (*list)
		list = &(*list)->next;
	*list = wr;
}

static uint64_t length_of(const struct ibv_sge *sges, int count)
{
	uint64_t length = 0;

	for (int i = 0; i < count; i++)
		length += sges[i].length;
	return length;
}

static int check_send(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	length = length_of(wr->sg_list, wr->num_sge);
	if (wr->opcode != IBV_WR_RDMA_WRITE && wr->opcode != IBV_WR_RDMA_READ &&
	    wr->opcode != IBV_WR_SEND)
		return EINVAL;
	if (length > FAKE_MESSAGE_MAX)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (wr->opcode == IBV_WR_RDMA_READ || length > qp->cap.max_inline_data))
		return EINVAL;
	return qp->send_used == qp->cap.max_send_wr ? ENOMEM : 0;
}

static struct fake_wr *copy_send(const struct ibv_send_wr *from, bool signalled)
{
	uint64_t length = length_of(from->sg_list, from->num_sge);
	bool inlined = from->send_flags & IBV_SEND_INLINE;
	size_t sges = (size_t)(inlined ? 1 : from->num_sge) * sizeof(struct ibv_sge);
	struct fake_wr *wr = fake_alloc(sizeof(*wr) + sges + (inlined ? length : 0));
	uint8_t *bytes = (uint8_t *)(wr + 1) + sges;

	wr->wr_id = from->wr_id;
	wr->opcode = from->opcode;
	wr->signalled = signalled;
	wr->remote = from->wr.rdma.remote_addr;
	wr->rkey = from->wr.rdma.rkey;
	wr->length = (uint32_t)length;
	wr->sges = (struct ibv_sge *)(wr + 1);
	wr->inlined = inlined;
	if (!inlined) {
		wr->sge_count = (unsigned)from->num_sge;
		if (sges > 0)
			memcpy(wr->sges, from->sg_list, sges);
		return wr;
	}
	wr->sge_count = 1;
	wr->sges[0] = (struct ibv_sge){ (uintptr_t)bytes, (uint32_t)length, 0 };
	for (int i = 0; i < from->num_sge; i++) {
		const struct ibv_sge *sge = &from->sg_list[i];

		if (sge->length > 0)
			memcpy(bytes, (const void *)(uintptr_t)sge->addr, sge->length);
		bytes += sge->length;
	}
	return wr;
}

static void count_send(const struct fake_wr *wr)
{
	struct verbs_fake_counts *counts = &fake.counts;

	counts->requests++;
	counts->signalled += wr->signalled;
	counts->inlined += wr->inlined;
	counts->reads += wr->opcode == IBV_WR_RDMA_READ;
	counts->writes += wr->opcode == IBV_WR_RDMA_WRITE;
	counts->sends += wr->opcode == IBV_WR_SEND;
	counts->zero += wr->length == 0;
}

int fake_post_send(struct ibv_qp *given, struct ibv_send_wr *list, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)given;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_post_send);
	fake.counts.posts++;
	if (!error && qp->qp.state != IBV_QPS_RTS && qp->qp.state != IBV_QPS_ERR)
		error = EINVAL;
	for (; !error && list; list = list->next) {
		struct fake_wr *wr;

		error = check_send(qp, list);
		if (error)
			break;
		wr = copy_send(list, qp->all_signalled || list->send_flags & IBV_SEND_SIGNALED);
		count_send(wr);
		append(&qp->sends, wr);
		qp->send_used++;
	}
	if (error)
		*bad = list;
	if (qp->qp.state == IBV_QPS_ERR)
		fake_qp_error(qp);
	fake_unlock();
	return error;
}

int fake_post_recv(struct ibv_qp *given, struct ibv_recv_wr *list, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)given;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_post_recv);
	for (; !error && list; list = list->next) {
		size_t sges = (size_t)list->num_sge * sizeof(struct ibv_sge);
		struct fake_wr *wr;

		if (list->num_sge < 0 || (uint32_t)list->num_sge > qp->cap.max_recv_sge)
			error = EINVAL;
		else if (qp->receive_used == qp->cap.max_recv_wr)
			error = ENOMEM;
		if (error)
			break;
		wr = fake_alloc(sizeof(*wr) + sges);
		wr->wr_id = list->wr_id;
		wr->sge_count = (unsigned)list->num_sge;
		wr->sges = (struct ibv_sge *)(wr + 1);
		if (sges > 0)
			memcpy(wr->sges, list->sg_list, sges);
		wr->length = (uint32_t)length_of(list->sg_list, list->num_sge);
		append(&qp->receives, wr);
		qp->receive_used++;
	}
	if (error)
		*bad = list;
	if (qp->qp.state == IBV_QPS_ERR)
		fake_qp_error(qp);
	fake_unlock();
	return error;
}
