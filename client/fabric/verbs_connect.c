/*
 * verbs_connect.c - establishes an RDMA connection step by step: address, route, queue pair, hello,
 * answer. fabric_verbs.c calls the steps, which do not block. No failure leaves an id, a queue pair
 * or memory behind.
 */
#include "verbs_connect.h"

#include "../host/socket.h"
#include "verbs_pair.h"
#include "verbs_refuse.h"
#include "../../proto/data/frame.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	/*
	 * A dead peer is noticed after a request has been sent 1 + RETRIES times and has waited
	 * 4.096 us * 2^ACK_TIMEOUT (134 ms) for its acknowledgement each time: after about a second
	 * (a device may take up to four times as long). That is short compared to the seconds after
	 * which a commit is in doubt. It is long for a network that drops packets now and then, or
	 * for soft-RoCE on busy hosts. Not 7 retries: some devices take 7 for "forever".
	 */
	ACK_TIMEOUT = 15,
	RETRIES = 6,
	RNR_RETRIES = 3,
	/* reads that the mirror serves at the same time, if the devices can */
	READS = 8,
	ACK_BATCH = 64, /* completion events that are acknowledged together */
	/* Times that the device towards an address is requested. After a device was created, the
	 * request is repeated, and may now lead to another device that is not created yet. */
	ROUTES_MAX = 3,
	GIDS = 1024,         /* most entries of a device's table of addresses that are examined */
	DESTROY_TRIES = 100, /* attempts to destroy a queue pair, a millisecond apart */
};

/* --- events of the connection manager --- */

static void copy_event(const struct rdma_cm_event *event, struct ps_verbs_event *copy)
{
	const struct rdma_conn_param *conn = &event->param.conn;

	memset(copy, 0, sizeof(*copy));
	copy->type = event->event;
	copy->status = event->status;
	if (!conn->private_data || conn->private_data_len < sizeof(copy->answer))
		return;
	memcpy(&copy->answer, conn->private_data, sizeof(copy->answer));
	copy->answered = true;
}

/* Copies the next event, and acknowledges it at once: an id cannot be destroyed while it has an
 * unacknowledged event. Returns 1, 0 if no event is there, or -1 if the channel has failed. */
static int next_event(struct ps_connection *c, struct ps_verbs_event *copy)
{
	struct rdma_cm_event *event;

	if (c->verbs->get_cm_event(c->channel, &event))
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	copy_event(event, copy);
	c->verbs->ack_cm_event(event);
	return 1;
}

/* Returns the milliseconds left for the connection manager's own timers, 1 to 60,000. */
static int time_left_ms(const struct ps_attempt *a)
{
	uint64_t now = ps_monotonic();
	uint64_t left = a->until_ns > now ? (a->until_ns - now) / 1000000 : 0;

	return left < 1 ? 1 : left > 60000 ? 60000 : (int)left;
}

/* --- the route --- */

/* Opens an event channel. Returns NULL on failure, with *error set. */
static struct rdma_event_channel *
open_channel(const struct ps_verbs *verbs, const struct ps_address *address, struct ps_error *error)
{
	struct rdma_event_channel *channel = verbs->create_event_channel();

	if (!channel && errno == ENODEV)
		ps_error_set(error, PERSEAS_ERDMA,
		             "%s: this host has no RDMA device (`rdma link` lists them); give "
		             "tcp://%s:%s to go without, or set soft-RoCE up with perseas-rxe",
		             address->text, address->host, address->port);
	else if (!channel)
		ps_error_set(error, PERSEAS_ERDMA,
		             "%s: the RDMA connection manager cannot be opened (%s); is the "
		             "module rdma_ucm loaded, and may this user open "
		             "/dev/infiniband/rdma_cm?",
		             address->text, strerror(errno));
	return channel;
}

int ps_verbs_check_possible(const struct ps_verbs *verbs, const struct ps_address *address,
                            struct ps_error *error)
{
	struct rdma_event_channel *channel = open_channel(verbs, address, error);

	if (!channel)
		return PERSEAS_ERDMA;
	verbs->destroy_event_channel(channel);
	return 0;
}

/* Opens an event channel and creates an id on it. */
static int open_id(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	uint8_t timeout = ACK_TIMEOUT;

	c->channel = open_channel(c->verbs, &a->address, a->error);
	if (!c->channel)
		return PERSEAS_ERDMA;
	if (ps_verbs_nonblocking(c->channel->fd) ||
	    c->verbs->create_id(c->channel, &c->id, NULL, RDMA_PS_TCP))
		return ps_attempt_fail(a, "the RDMA connection manager makes no connection (%s)",
		                       strerror(errno));
	/* Ignore failure: without this option a dead peer is noticed later. */
	(void)c->verbs->set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
	                           sizeof(timeout));
	return 0;
}

/* Requests the device that leads to the current address. */
static int request_device(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	int code = open_id(a);

	assert(a->at > 0);
	a->step = PS_STEP_DEVICE;
	if (code || !c->verbs->resolve_addr(c->id, NULL, (struct sockaddr *)&a->list.to[a->at - 1],
	                                    time_left_ms(a)))
		return code;
	return ps_attempt_fail(a,
	                       "no RDMA device of this host leads there (%s); give the "
	                       "address that the mirror has on the RDMA network",
	                       strerror(errno));
}

/* Refuses RoCE v1. It is not IP: it ends at the first router, and firewalls for UDP do not see
 * it. */
static int refuse_roce_v1(struct ps_attempt *a)
{
	const struct rdma_cm_id *id = a->c->id;
	const union ibv_gid *own = &id->route.addr.addr.ibaddr.sgid;
	struct ibv_gid_entry *entries;
	bool v1 = false, other = false;
	ssize_t count;

	if (ps_device_is_iwarp(id->verbs))
		return 0;
	entries = calloc(GIDS, sizeof(*entries));
	if (!entries)
		return ps_error_set(a->error, PERSEAS_ENOMEM, "this process is out of memory");
	/* A device that does not list its addresses is accepted. */
	count = a->c->verbs->query_gid_table(id->verbs, entries, GIDS, 0);
	for (ssize_t i = 0; i < count; i++) {
		if (entries[i].port_num != id->port_num ||
		    memcmp(&entries[i].gid, own, sizeof(*own)) != 0)
			continue;
		if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V1)
			v1 = true;
		else
			other = true;
	}
	free(entries);
	if (!v1 || other)
		return 0;
	return ps_attempt_fail(
		a,
		"device %s has its address for RoCE v1 only, and RoCE v2 is needed; "
		"give its network interface an IP address, and see that the device is "
		"one for RoCE v2 (`rdma link`, /sys/class/infiniband/%s/ports/%u/"
		"gid_attrs/types)",
		ps_verbs_device_name(id->verbs), ps_verbs_device_name(id->verbs), id->port_num);
}

static void destroy_id_and_channel(struct ps_connection *c)
{
	if (c->id)
		c->verbs->destroy_id(c->id);
	if (c->channel)
		c->verbs->destroy_event_channel(c->channel);
	c->id = NULL;
	c->channel = NULL;
}

/* Makes the device, whose anchor the current id becomes. Registering the ring may take long on a
 * slow or emulated device. It happens once, on this host, and cannot be cut short: so the attempt's
 * deadline moves by the time it took, and the mirror still gets its full time to answer. */
static int make_device(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	uint64_t start = ps_monotonic();
	int code = ps_device_create(a->env, c->id, c->channel, a->error);

	a->until_ns += ps_monotonic() - start;
	if (code)
		return code;
	c->id = NULL;
	c->channel = NULL;
	return 0;
}

/* Handles a resolved address. If the device that leads there exists, requests the route. Otherwise
 * creates the device and resolves the address again, because the device takes over the id. */
static int handle_resolved_address(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	int code = refuse_roce_v1(a);

	if (code)
		return code;
	c->device = ps_device_acquire(a->env, c->id);
	if (!c->device) {
		code = make_device(a);
		if (code)
			return ps_error_prefix(a->error, "%s", a->address.text);
		if (++a->tries == ROUTES_MAX)
			return ps_attempt_fail(
				a, "the route there goes over another device each time");
		return request_device(a);
	}
	a->step = PS_STEP_ROUTE;
	return c->verbs->resolve_route(c->id, time_left_ms(a))
	               ? ps_attempt_fail(a, "no RDMA route leads there (%s)", strerror(errno))
	               : 0;
}

/* --- connecting --- */

/* Handles a resolved route: makes the queue pair, and connects. */
static int handle_resolved_route(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	struct ps_hello hello = { .magic = PS_DATA_MAGIC, .version = PS_DATA_VERSION };
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.responder_resources = 1,
		.initiator_depth = (uint8_t)ps_apply_limit(READS,
		                                           c->device->attr.max_qp_init_rd_atom),
		.retry_count = RETRIES,
		.rnr_retry_count = RNR_RETRIES,
	};
	int code = ps_connection_create_objects(a);

	if (code)
		return code;
	memcpy(hello.token, a->token, PS_ID_SIZE);
	a->step = PS_STEP_GREETING;
	return c->verbs->connect(c->id, &param)
	               ? ps_attempt_fail(a, "the RDMA connection could not be begun (%s)",
	                                 strerror(errno))
	               : 0;
}

/* Handles the mirror's answer. Returns 1 if the connection is up, or a code. */
static int handle_answer(struct ps_attempt *a, const struct ps_verbs_event *event)
{
	int code;

	a->c->established = true;
	code = ps_attempt_answer_code(a, event);
	return code ? code : 1;
}

static const struct {
	enum rdma_cm_event_type wanted;
	const char *text;
} steps[] = {
	[PS_STEP_DEVICE] = { RDMA_CM_EVENT_ADDR_RESOLVED, "finding a route over an RDMA device" },
	[PS_STEP_ROUTE] = { RDMA_CM_EVENT_ROUTE_RESOLVED, "finding the RDMA route" },
	[PS_STEP_GREETING] = { RDMA_CM_EVENT_ESTABLISHED, "connecting" },
};

/* Handles an event. Ignores events that mean nothing to the current step. */
static int handle_event(struct ps_attempt *a, const struct ps_verbs_event *event)
{
	if (event->type != steps[a->step].wanted || event->status)
		return ps_attempt_event_code(a, event);
	switch (a->step) {
	case PS_STEP_DEVICE:
		return handle_resolved_address(a);
	case PS_STEP_ROUTE:
		return handle_resolved_route(a);
	case PS_STEP_GREETING:
		break;
	}
	return handle_answer(a, event);
}

/* Handles all available events. Returns 1 if the connection is up, 0 if not yet, or a code. */
static int handle_events(struct ps_attempt *a)
{
	struct ps_verbs_event event;
	int code = 0, got;

	while (!code && (got = next_event(a->c, &event)) > 0)
		code = handle_event(a, &event);
	if (code)
		return code;
	if (got < 0)
		return ps_attempt_fail(a, "the connection manager's events cannot be read (%s)",
		                       strerror(errno));
	if (ps_monotonic() < a->until_ns)
		return 0;
	return ps_attempt_fail(
		a,
		"%s took too long; is the mirror's host up, and does the network between "
		"pass RDMA (RoCE v2 is UDP port 4791)?",
		steps[a->step].text);
}

/* Tries the next of the host's addresses. Each gets an equal share of the remaining time. */
static int try_address(struct ps_attempt *a, uint64_t until_ns)
{
	const uint64_t now = ps_monotonic();
	const unsigned left = a->list.count - a->at;
	int code;

	assert(left > 0);
	a->at++;
	a->until_ns = until_ns > now ? now + (until_ns - now) / left : now;
	a->tries = 0;
	code = request_device(a);
	return code ? code : handle_events(a);
}

int ps_attempt_step(struct ps_attempt *a, uint64_t until_ns, struct ps_error *error)
{
	int code;

	a->error = error;
	if (until_ns < a->until_ns)
		a->until_ns = until_ns;
	code = a->at ? handle_events(a) : try_address(a, until_ns);
	/* Only PERSEAS_ERDMA tries the next address: any other code is the mirror's own answer. */
	while (code == PERSEAS_ERDMA && a->at < a->list.count) {
		ps_connection_close(a->c);
		code = try_address(a, until_ns);
	}
	if (code < 0 || (code > 0 && a->only_asks))
		ps_connection_close(a->c);
	if (!a->only_asks || code == 0)
		return code;
	if (a->taken)
		return 1;
	return code < 0 ? code : ps_attempt_fail(a, "the session's data path was not known to it");
}

/* Fills in the addresses of the host to which the control connection goes. Returns 0 or a code. */
static int find_addresses(struct ps_attempt *a, struct ps_error *error)
{
	const int code = ps_resolver_known_addresses(&a->address, &a->list, error);

	for (unsigned i = 0; i < a->list.count; i++)
		ps_addresses_set_port(&a->list.to[i], (uint16_t)a->port);
	return code;
}

static void init_connection(struct ps_connection *c, const struct ps_verbs *verbs)
{
	memset(c, 0, sizeof(*c));
	c->verbs = verbs;
	c->wake = -1;
}

struct ps_attempt *ps_attempt_new(struct ps_connection *c, struct ps_env *env,
                                  const struct ps_address *address, const Perseas__Grant *grant,
                                  bool asks, struct ps_error *error)
{
	struct ps_attempt *a = calloc(1, sizeof(*a));

	init_connection(c, env->verbs);
	if (!a) {
		ps_error_set(error, PERSEAS_ENOMEM, "no memory for a connection to %s",
		             address->text);
		return NULL;
	}
	a->c = c;
	a->env = env;
	a->address = *address;
	a->port = grant->rdma_port;
	memcpy(a->token, grant->token.data, PS_ID_SIZE);
	a->only_asks = asks;
	if (find_addresses(a, error)) {
		free(a);
		return NULL;
	}
	return a;
}

void ps_attempt_free(struct ps_attempt *a)
{
	free(a);
}

/* --- life --- */

static bool handle_cm_events(struct ps_connection *c)
{
	struct ps_verbs_event event;
	bool lives = true;
	int got;

	while ((got = next_event(c, &event)) > 0) {
		if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			atomic_store(&c->device->gone, true);
		/* Ignore other events, which concern addresses or an earlier connection. */
		if (event.type == RDMA_CM_EVENT_DISCONNECTED ||
		    event.type == RDMA_CM_EVENT_DEVICE_REMOVAL ||
		    event.type == RDMA_CM_EVENT_CONNECT_ERROR)
			lives = false;
	}
	return lives && got == 0;
}

bool ps_connection_handle_event(struct ps_connection *c)
{
	struct ibv_cq *cq;
	void *context;

	/* Usually the only event is a completion. If there are more, `wake` stays readable and is
	 * handled again. */
	if (c->verbs->get_cq_event(c->completions, &cq, &context))
		return (errno == EAGAIN || errno == EINTR) && handle_cm_events(c);
	if (++c->unacked >= ACK_BATCH) {
		c->verbs->ack_cq_events(c->cq, c->unacked);
		c->unacked = 0;
	}
	return true;
}

/* Returns true if the device is gone, and its queue pairs with it. */
static bool is_unplugged(const struct ps_connection *c, int error)
{
	struct ibv_device_attr attr;

	if (error != EIO && error != ENODEV)
		return false;
	return atomic_load(&c->device->gone) ||
	       c->verbs->query_device(c->device->context, &attr) != 0;
}

/* Destroys the queue pair. Afterwards the device neither reads nor writes memory for it. A queue
 * pair that stayed could send whatever its memory is used for next, under keys that are still
 * valid: rather than that, the process aborts. */
static void destroy_queue_pair(struct ps_connection *c)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	if (!c->qp)
		return;
	assert(c->device);
	(void)c->verbs->modify_qp(c->qp, &error, IBV_QP_STATE);
	for (unsigned tries = 0; tries < DESTROY_TRIES; tries++) {
		int failed = c->verbs->destroy_qp(c->qp);

		if (!failed || is_unplugged(c, failed)) {
			c->qp = NULL;
			c->id->qp = NULL;
			return;
		}
		nanosleep(&pause, NULL);
	}
	abort();
}

void ps_connection_disconnect(struct ps_connection *c)
{
	/* The events tell whether the device is gone, which makes its registrations useless. */
	if (c->device && c->channel)
		(void)handle_cm_events(c);
	/* Tell the mirror now; if that fails, it notices later. */
	if (c->established)
		(void)c->verbs->disconnect(c->id);
	c->established = false;
	destroy_queue_pair(c);
}

void ps_connection_close(struct ps_connection *c)
{
	const struct ps_verbs *verbs = c->verbs;

	ps_connection_disconnect(c);
	if (c->unacked)
		verbs->ack_cq_events(c->cq, c->unacked);
	if (c->cq)
		verbs->destroy_cq(c->cq);
	if (c->completions)
		verbs->destroy_comp_channel(c->completions);
	if (c->pad_mr)
		verbs->dereg_mr(c->pad_mr);
	ps_pages_free(c->pad, PS_PAD);
	destroy_id_and_channel(c);
	if (c->wake >= 0)
		close(c->wake);
	if (c->device)
		ps_device_release(c->device);
	init_connection(c, verbs);
}
