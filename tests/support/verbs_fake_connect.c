/*
 * verbs_fake_connect.c - connecting two ids of the fake devices: connect, accept, reject and
 * disconnect. Code under test calls it through struct ps_verbs. It answers at once, but where a
 * test holds an event back.
 */
#include "verbs_fake_private.h"

#include <errno.h>
#include <string.h>

static int result(int error)
{
	errno = error;
	return error ? -1 : 0;
}

static bool is_cut(const struct fake_id *id)
{
	return id->device->dead || (id->peer && id->peer->device->dead);
}

/* The id's queue pair; NULL: it has none, or one that was destroyed. */
static struct fake_qp *qp_of(const struct fake_id *id)
{
	for (struct fake_qp *qp = fake.qps; qp; qp = qp->next)
		if (qp->id == id)
			return qp;
	return NULL;
}

/* --- asking --- */

static struct fake_id *listener_of(const struct fake_id *id)
{
	const struct sockaddr_in *to = &id->id.route.addr.dst_sin;

	for (struct fake_id *at = fake.ids; at; at = at->next) {
		const struct sockaddr_in *on = &at->id.route.addr.src_sin;

		if (at->state == FAKE_LISTENING && on->sin_port == to->sin_port &&
		    (on->sin_addr.s_addr == to->sin_addr.s_addr || on->sin_addr.s_addr == 0))
			return at;
	}
	return NULL;
}

static void push_reject(struct fake_id *to, int status, const void *bytes, uint8_t length)
{
	struct fake_push push = {
		.id = to,
		.type = RDMA_CM_EVENT_REJECTED,
		.status = status,
		.param = { .private_data = bytes, .private_data_len = length },
		.pad = to->device->exact ? 0 : FAKE_PRIVATE_REJECT,
	};

	to->state = FAKE_OVER;
	fake_push_full(&push);
}

/* The request arrives at the listener: there is an id for it from now on. */
static void request(struct fake_id *active, struct fake_id *listener)
{
	const struct sockaddr_in *to = &active->id.route.addr.dst_sin;
	struct fake_id *passive = fake_id_new(listener->id.channel, listener->id.context);
	struct fake_push push = {
		.id = passive,
		.listener = listener,
		.type = RDMA_CM_EVENT_CONNECT_REQUEST,
		.param = active->param,
		.pad = active->device->exact ? 0 : FAKE_PRIVATE_REQUEST,
	};

	passive->passive = true;
	passive->state = FAKE_REQUESTED;
	passive->device = fake_device_at(to->sin_addr.s_addr);
	passive->id.verbs = &passive->device->context;
	passive->id.port_num = 1;
	passive->id.route.addr.src_sin = *to;
	passive->id.route.addr.dst_sin = active->id.route.addr.src_sin;
	passive->peer = active;
	active->peer = passive;
	push.param.responder_resources = active->param.initiator_depth;
	push.param.initiator_depth = active->param.responder_resources;
	passive->param = push.param;
	if (!fake_push_full(&push)) {
		active->peer = NULL;
		fake_id_drop(passive);
	}
}

/* Checks the limits that librdmacm checks; 255 means the device's own. */
static bool limit_reads(const struct verbs_fake_device *device, struct rdma_conn_param *param)
{
	if (param->initiator_depth == RDMA_MAX_INIT_DEPTH)
		param->initiator_depth = (uint8_t)device->attr.max_qp_init_rd_atom;
	if (param->responder_resources == RDMA_MAX_RESP_RES)
		param->responder_resources = (uint8_t)device->attr.max_qp_rd_atom;
	return param->initiator_depth <= device->attr.max_qp_init_rd_atom &&
	       param->responder_resources <= device->attr.max_qp_rd_atom;
}

static int begin_connect(struct fake_id *id, const struct rdma_conn_param *param)
{
	struct fake_qp *qp = qp_of(id);
	struct fake_id *listener;

	if (id->state != FAKE_ROUTED || !qp || qp->qp.state != IBV_QPS_INIT ||
	    param->private_data_len > FAKE_PRIVATE_REQUEST)
		return EINVAL;
	id->param = *param;
	if (!limit_reads(id->device, &id->param))
		return EINVAL;
	fake.connected = id->param;
	fake.connected.private_data = NULL;
	fake.ack_timeout = id->ack_timeout;
	if (param->retry_count > 7 || param->rnr_retry_count > 7)
		return EINVAL;
	if (param->retry_count == 7)
		fake_wrong("retry_count 7 retries for ever");
	id->state = FAKE_CONNECTING;
	qp->rnr_forever = param->rnr_retry_count == 7;
	if (id->device->dead || fake_device_at(id->id.route.addr.dst_sin.sin_addr.s_addr)->dead)
		return 0;
	listener = listener_of(id);
	if (listener)
		request(id, listener);
	else
		push_reject(id, FAKE_NO_LISTENER, NULL, 0);
	return 0;
}

int fake_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	void (*call)(void *arg);
	void *arg;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_connect);
	if (!error)
		error = begin_connect((struct fake_id *)id, param);
	call = error ? NULL : fake.on_request;
	arg = fake.on_request_arg;
	fake_unlock();
	if (call)
		call(arg);
	return result(error);
}

/* --- answering --- */

static void link_up(struct fake_id *passive, const struct rdma_conn_param *param)
{
	struct fake_id *active = passive->peer;
	struct fake_qp *own = qp_of(passive), *other = qp_of(active);
	struct fake_push push = {
		.id = active,
		.type = RDMA_CM_EVENT_ESTABLISHED,
		.response = true,
		.param = *param,
		.pad = active->device->exact ? 0 : FAKE_PRIVATE_ACCEPT,
	};

	own->reads_in = param->responder_resources;
	own->reads_out = param->initiator_depth;
	own->qp.state = IBV_QPS_RTS;
	own->rnr_forever = param->rnr_retry_count == 7;
	own->peer = other;
	if (other)
		other->peer = own;
	active->accepted_reads = param->responder_resources;
	push.param.responder_resources = param->initiator_depth;
	push.param.initiator_depth = param->responder_resources;
	passive->state = FAKE_ACCEPTED;
	if (!is_cut(passive))
		fake_push_full(&push);
}

static int accept_request(struct fake_id *id, const struct rdma_conn_param *given)
{
	struct rdma_conn_param param = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
	};
	struct fake_qp *qp = qp_of(id);

	if (given)
		param = *given;
	if (!id->passive || !qp || qp->qp.state != IBV_QPS_INIT ||
	    param.private_data_len > FAKE_PRIVATE_ACCEPT || !limit_reads(id->device, &param))
		return EINVAL;
	if (param.rnr_retry_count > 7)
		return EINVAL;
	if (id->state != FAKE_REQUESTED)
		return id->state == FAKE_OVER ? EINVAL : ENOTCONN;
	link_up(id, &param);
	return 0;
}

int fake_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_accept);
	if (!error)
		error = accept_request((struct fake_id *)id, param);
	fake_unlock();
	return result(error);
}

int fake_reject(struct rdma_cm_id *given, const void *bytes, uint8_t length)
{
	struct fake_id *id = (struct fake_id *)given;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_reject);
	if (!error && (id->state != FAKE_REQUESTED || length > FAKE_PRIVATE_REJECT))
		error = EINVAL;
	if (!error) {
		if (!is_cut(id))
			push_reject(id->peer, FAKE_CONSUMER_REJECT, bytes, length);
		id->peer->peer = NULL;
		id->peer = NULL;
		id->state = FAKE_OVER;
	}
	fake_unlock();
	return result(error);
}

void fake_established(struct fake_id *id)
{
	struct fake_qp *qp = qp_of(id);

	if (id->state != FAKE_CONNECTING)
		return;
	id->state = FAKE_CONNECTED;
	if (qp && qp->qp.state == IBV_QPS_INIT) {
		qp->qp.state = IBV_QPS_RTS;
		qp->reads_in = id->param.responder_resources;
		qp->reads_out = id->param.initiator_depth < id->accepted_reads
		                        ? id->param.initiator_depth
		                        : id->accepted_reads;
	}
	if (!id->peer || is_cut(id))
		return;
	if (id->peer->state == FAKE_ACCEPTED)
		id->peer->state = FAKE_CONNECTED;
	fake_push(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* --- ending --- */

static void tell_disconnected(struct fake_id *id)
{
	if (id->told)
		return;
	id->told = true;
	id->state = FAKE_OVER;
	fake_push(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void fake_hang_up(struct fake_id *id)
{
	struct fake_id *peer = id->peer;
	bool cut = peer && is_cut(id);

	if (!peer)
		return;
	peer->peer = NULL;
	id->peer = NULL;
	if (cut)
		return;
	if (id->state == FAKE_REQUESTED && peer->state == FAKE_CONNECTING)
		push_reject(peer, FAKE_CONSUMER_REJECT, NULL, 0);
	else if (peer->state == FAKE_REQUESTED || peer->state == FAKE_ACCEPTED)
		push_reject(peer, FAKE_CONSUMER_REJECT, NULL, 0);
	else
		tell_disconnected(peer);
}

/* Tells the other end. This end hears of the end when the other one hangs up, too. */
static int disconnect(struct fake_id *id)
{
	struct fake_id *peer = id->peer;
	struct fake_qp *qp = qp_of(id);

	if (id->id.qp && !qp)
		fake_wrong("disconnect on an id whose queue pair is destroyed, with id->qp set");
	if (id->state != FAKE_CONNECTED && id->state != FAKE_ACCEPTED && id->state != FAKE_OVER)
		return EINVAL;
	if (id->id.qp && qp)
		fake_qp_error(qp);
	id->state = FAKE_OVER;
	if (!peer || is_cut(id))
		return 0;
	if (peer->state == FAKE_CONNECTING)
		push_reject(peer, FAKE_CONSUMER_REJECT, NULL, 0);
	else
		tell_disconnected(peer);
	return 0;
}

int fake_disconnect(struct rdma_cm_id *id)
{
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_disconnect);
	if (!error)
		error = disconnect((struct fake_id *)id);
	fake_unlock();
	return result(error);
}

void verbs_fake_timewait(void)
{
	fake_lock();
	for (struct fake_id *id = fake.ids; id; id = id->next)
		if (id->state == FAKE_OVER && id->given)
			fake_push(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	fake_unlock();
}
