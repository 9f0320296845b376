#include "verbs_connect.h"

#include "address.h"
#include "socket.h"
#include "verbs_refuse.h"
#include "../proto/frame.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
	/*
	 * A peer that is gone is noticed when a request has been sent 1 + RETRIES times, each
	 * time with 4.096 us * 2^ACK_TIMEOUT (134 ms) for its acknowledgement: after about a
	 * second (a device may take up to four times as long). That is short beside the seconds
	 * after which a commit is in doubt, and long for a network that merely drops packets now
	 * and then, or for soft-RoCE on hosts that are busy. Not 7 retries: some devices take
	 * that for ever.
	 */
	ACK_TIMEOUT = 15,
	RETRIES = 6,
	/* Nothing is sent that consumes a receive. */
	RECEIVES = 1,
	RNR_RETRIES = 3,
	/* Requests under way at most: a window of small transactions, several times. */
	CAPACITY = 1024,
	/* Reads that the mirror is asked to serve at once, if the devices can. */
	READS = 8,
	ACK_BATCH = 64,      /* completion events that are acknowledged together */
	ROUTES_MOST = 3,     /* times that a route is asked for until its device is known */
	GIDS = 1024,         /* entries of a device's table of addresses */
	DESTROY_TRIES = 100, /* a millisecond apart */
};

/* --- events of the connection manager --- */

static void note(const struct rdma_cm_event *event, struct ps_cm_event *copy)
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

/* Copies the next event and acknowledges it at once: an id cannot be destroyed before. 1; 0: there
 * is none; -1: the channel is of no more use. */
static int next_event(struct ps_connection *c, struct ps_cm_event *copy)
{
	struct rdma_cm_event *event;

	if (c->verbs->get_cm_event(c->channel, &event))
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	note(event, copy);
	c->verbs->ack_cm_event(event);
	return 1;
}

/* Waits for the event of a step. Those that say nothing of it are passed over. */
static int await(struct ps_attempt *a, enum rdma_cm_event_type wanted, const char *step,
                 struct ps_cm_event *event)
{
	struct pollfd fd = { .fd = a->c->channel->fd, .events = POLLIN };
	int code;

	for (;;) {
		int got = next_event(a->c, event);

		if (got > 0 && event->type == wanted && event->status == 0)
			return 0;
		if (got > 0 && (code = ps_refuse_event(a, event)))
			return code;
		if (got < 0)
			return ps_refuse(a, "the connection manager's events cannot be read (%s)",
			                 strerror(errno));
		if (got > 0)
			continue;
		if (ps_monotonic() >= a->until_ns)
			return ps_refuse(a,
			                 "%s took too long; is the mirror's host up, and does "
			                 "the network between pass RDMA (RoCE v2 is UDP port "
			                 "4791)?",
			                 step);
		ps_poll(&fd, 1, a->until_ns);
	}
}

/* Milliseconds that are left, for the connection manager's own timers. */
static int left_ms(const struct ps_attempt *a)
{
	uint64_t now = ps_monotonic();
	uint64_t left = a->until_ns > now ? (a->until_ns - now) / 1000000 : 0;

	return left < 1 ? 1 : left > 60000 ? 60000 : (int)left;
}

/* --- the route --- */

static int begin(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	uint8_t timeout = ACK_TIMEOUT;

	c->channel = c->verbs->create_event_channel();
	if (!c->channel && errno == ENODEV)
		return ps_refuse(a,
		                 "this host has no RDMA device (`rdma link` lists them); give "
		                 "tcp://%s:%s to go without",
		                 a->address->host, a->address->port);
	if (!c->channel)
		return ps_refuse(a,
		                 "the RDMA connection manager cannot be opened (%s); is the "
		                 "module rdma_ucm loaded, and may this user open "
		                 "/dev/infiniband/rdma_cm?",
		                 strerror(errno));
	if (ps_verbs_nonblocking(c->channel->fd) ||
	    c->verbs->create_id(c->channel, &c->id, NULL, RDMA_PS_TCP))
		return ps_refuse(a, "the RDMA connection manager makes no connection (%s)",
		                 strerror(errno));
	/* Some devices and kernels have no such option; then a peer that is gone is noticed
	 * later. */
	(void)c->verbs->set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
	                           sizeof(timeout));
	return 0;
}

static int route(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	struct ps_cm_event event;

	if (c->verbs->resolve_addr(c->id, NULL, a->to, left_ms(a)))
		return ps_refuse(a,
		                 "no RDMA device of this host leads there (%s); give the "
		                 "address that the mirror has on the RDMA network",
		                 strerror(errno));
	return await(a, RDMA_CM_EVENT_ADDR_RESOLVED, "finding a route over an RDMA device", &event);
}

/* RoCE v1 is not IP: it ends at the first router, and what guards UDP does not see it. */
static int check_roce(struct ps_attempt *a)
{
	const struct rdma_cm_id *id = a->c->id;
	const union ibv_gid *own = &id->route.addr.addr.ibaddr.sgid;
	struct ibv_gid_entry *entries;
	bool v1 = false, other = false;
	ssize_t count;

	if (ps_device_iwarp(id->verbs))
		return 0;
	entries = calloc(GIDS, sizeof(*entries));
	if (!entries)
		return ps_error_set(a->error, PERSEAS_ENOMEM, "this process is out of memory");
	/* A device that does not tell is taken as it is. */
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
	return ps_refuse(a,
	                 "device %s has its address for RoCE v1 only, and RoCE v2 is needed; "
	                 "give its network interface an IP address, and see that the device is "
	                 "one for RoCE v2 (`rdma link`, /sys/class/infiniband/%s/ports/%u/"
	                 "gid_attrs/types)",
	                 ps_verbs_device_name(id->verbs), ps_verbs_device_name(id->verbs),
	                 id->port_num);
}

static void end_id(struct ps_connection *c)
{
	if (c->id)
		c->verbs->destroy_id(c->id);
	if (c->channel)
		c->verbs->destroy_event_channel(c->channel);
	c->id = NULL;
	c->channel = NULL;
}

/* The first id on a device becomes its anchor. To register the ring may take long where a device
 * or its emulation is slow. It is done once, by this host alone, and cannot be cut short: so the
 * mirror gets the time to answer that it was to have. */
static int make_device(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	uint64_t start = ps_monotonic();
	int code = ps_device_make(a->env, c->id, c->channel, a->error);

	a->until_ns += ps_monotonic() - start;
	if (code)
		return code;
	c->id = NULL;
	c->channel = NULL;
	return 0;
}

/* Finds the device that leads there, or makes it. */
static int find_device(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	int code;

	for (unsigned tries = 0; tries < ROUTES_MOST; tries++) {
		code = begin(a);
		if (!code)
			code = route(a);
		if (!code)
			code = check_roce(a);
		if (code)
			return code;
		c->device = ps_device_find(a->env, c->id);
		if (c->device)
			return 0;
		code = make_device(a);
		if (code)
			return ps_error_prefix(a->error, "%s", a->address->text);
	}
	return ps_refuse(a, "the route there goes over another device each time");
}

/* --- the queue pair --- */

static uint32_t lesser(uint32_t a, int b)
{
	return b > 0 && (uint32_t)b < a ? (uint32_t)b : a;
}

static int make_queues(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	const struct ibv_device_attr *attr = &c->device->attr;
	const char *name = ps_verbs_device_name(c->id->verbs);

	c->capacity = lesser(lesser(CAPACITY, attr->max_qp_wr), attr->max_cqe - RECEIVES);
	c->completions = c->verbs->create_comp_channel(c->id->verbs);
	if (!c->completions || ps_verbs_nonblocking(c->completions->fd))
		return ps_refuse(a,
		                 "device %s gives no completion channel (%s); raise the limit "
		                 "on open files, if that is it",
		                 name, strerror(errno));
	/* An error completes every request, and not only those that were signalled. */
	c->cq = c->verbs->create_cq(c->id->verbs, (int)(c->capacity + RECEIVES), NULL,
	                            c->completions, 0);
	if (!c->cq)
		return ps_refuse(a,
		                 "device %s makes no completion queue of %u entries (max_cqe "
		                 "%d): %s",
		                 name, c->capacity + RECEIVES, attr->max_cqe, strerror(errno));
	return 0;
}

/* How much goes inline differs, and some devices refuse what they have not: fall back. */
static int make_queue_pair(struct ps_attempt *a)
{
	static const uint32_t sizes[] = { PS_INLINE_MOST, 128, 64, 0 };
	struct ps_connection *c = a->c;
	const struct ibv_device_attr *attr = &c->device->attr;
	struct ibv_qp_init_attr init;
	int failed = -1;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes) && failed; i++) {
		init = (struct ibv_qp_init_attr){
			.send_cq = c->cq,
			.recv_cq = c->cq,
			.cap = { .max_send_wr = c->capacity,
			         .max_recv_wr = RECEIVES,
			         .max_send_sge = 1,
			         .max_recv_sge = 1,
			         .max_inline_data = sizes[i] },
			.qp_type = IBV_QPT_RC,
		};
		failed = c->verbs->create_qp(c->id, c->device->pd, &init);
	}
	if (failed)
		return ps_refuse(a,
		                 "device %s makes no queue pair of %u requests (%s); its limits "
		                 "are max_qp %d, max_qp_wr %d, max_sge %d",
		                 ps_verbs_device_name(c->id->verbs), c->capacity, strerror(errno),
		                 attr->max_qp, attr->max_qp_wr, attr->max_sge);
	c->qp = c->id->qp;
	if (init.cap.max_send_wr < c->capacity)
		c->capacity = init.cap.max_send_wr;
	c->inline_most = init.cap.max_inline_data < PS_INLINE_MOST ? init.cap.max_inline_data
	                                                           : PS_INLINE_MOST;
	if (c->capacity == 0)
		return ps_refuse(a, "device %s gave a queue pair that takes no requests",
		                 ps_verbs_device_name(c->id->verbs));
	return 0;
}

static int make_pad(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	char why[400];

	c->pad = ps_pages_new(PS_PAD);
	if (!c->pad)
		return ps_error_set(a->error, PERSEAS_ENOMEM, "this process is out of memory");
	c->pad_mr = ps_verbs_register(c->verbs, c->device->pd, c->pad, PS_PAD,
	                              ps_device_landing_access(c->device->context), why,
	                              sizeof(why));
	return c->pad_mr ? 0 : ps_refuse(a, "%s", why);
}

static bool watch(const struct ps_connection *c, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(c->wake, EPOLL_CTL_ADD, fd, &event) == 0;
}

static int make_wake(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;

	c->wake = epoll_create1(EPOLL_CLOEXEC);
	if (c->wake >= 0 && watch(c, c->channel->fd) && watch(c, c->completions->fd))
		return 0;
	return ps_error_set(a->error, PERSEAS_ESYSTEM,
	                    "%s: no epoll descriptor (%s); raise the "
	                    "limit on open files",
	                    a->address->text, strerror(errno));
}

/* --- connecting --- */

static int greet(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	struct ps_hello hello = { .magic = PS_DATA_MAGIC, .version = PS_PROTOCOL_VERSION };
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.responder_resources = 1,
		.initiator_depth = (uint8_t)lesser(READS, c->device->attr.max_qp_init_rd_atom),
		.retry_count = RETRIES,
		.rnr_retry_count = RNR_RETRIES,
	};
	struct ps_cm_event event;
	int code;

	memcpy(hello.token, a->grant->token.data, PS_ID_SIZE);
	if (c->verbs->connect(c->id, &param))
		return ps_refuse(a, "the RDMA connection could not be begun (%s)", strerror(errno));
	code = await(a, RDMA_CM_EVENT_ESTABLISHED, "connecting", &event);
	if (code)
		return code;
	c->established = true;
	return ps_refuse_answer(a, &event);
}

static int attempt(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	struct ps_cm_event event;
	int code = find_device(a);

	if (code)
		return code;
	if (c->verbs->resolve_route(c->id, left_ms(a)))
		return ps_refuse(a, "no RDMA route leads there (%s)", strerror(errno));
	code = await(a, RDMA_CM_EVENT_ROUTE_RESOLVED, "finding the RDMA route", &event);
	if (!code)
		code = make_queues(a);
	if (!code)
		code = make_queue_pair(a);
	if (!code)
		code = make_pad(a);
	if (!code)
		code = make_wake(a);
	if (!code)
		code = greet(a);
	return code;
}

static int look_up(const struct ps_address *address, uint32_t number, struct addrinfo **list,
                   struct ps_error *error)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	};
	char port[16];
	int refused;

	snprintf(port, sizeof(port), "%u", number);
	refused = getaddrinfo(address->host, port, &hints, list);
	if (refused == EAI_NONAME) {
		hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
		refused = getaddrinfo(address->host, port, &hints, list);
	}
	if (!refused)
		return 0;
	return ps_error_set(error, PERSEAS_EUNREACHABLE,
	                    "%s: the host is not known (%s); check its name in the list of mirrors",
	                    address->text, gai_strerror(refused));
}

static void clear(struct ps_connection *c, const struct ps_verbs *verbs)
{
	memset(c, 0, sizeof(*c));
	c->verbs = verbs;
	c->wake = -1;
}

int ps_connection_open(struct ps_connection *c, struct ps_env *env,
                       const struct ps_address *address, const Perseas__Grant *grant,
                       uint64_t until_ns, struct ps_error *error)
{
	struct ps_attempt a = {
		.c = c, .env = env, .address = address, .grant = grant, .error = error
	};
	struct addrinfo *list = NULL, *at;
	unsigned left = 0;
	int code;

	clear(c, env->verbs);
	code = look_up(address, grant->rdma_port, &list, error);
	if (code)
		return code;
	for (at = list; at; at = at->ai_next)
		left++;
	/* The host's addresses share the time; what a mirror answers is the answer. */
	for (at = list, code = PERSEAS_ERDMA; at && code == PERSEAS_ERDMA; at = at->ai_next) {
		uint64_t now = ps_monotonic();

		a.to = at->ai_addr;
		a.until_ns = until_ns > now ? now + (until_ns - now) / left : now;
		left--;
		code = attempt(&a);
		if (code)
			ps_connection_close(c);
	}
	freeaddrinfo(list);
	return code;
}

/* --- life --- */

static bool take_cm_events(struct ps_connection *c)
{
	struct ps_cm_event event;
	bool lives = true;
	int got;

	while ((got = next_event(c, &event)) > 0) {
		if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			atomic_store(&c->device->gone, true);
		/* What else may come concerns addresses, or a connection of before. */
		if (event.type == RDMA_CM_EVENT_DISCONNECTED ||
		    event.type == RDMA_CM_EVENT_DEVICE_REMOVAL ||
		    event.type == RDMA_CM_EVENT_CONNECT_ERROR)
			lives = false;
	}
	return lives && got == 0;
}

bool ps_connection_look(struct ps_connection *c)
{
	struct ibv_cq *cq;
	void *context;

	/* Mostly it is a completion, and there is no more than one event. Where there is more,
	 * `wake` stays readable, and is looked at again. */
	if (c->verbs->get_cq_event(c->completions, &cq, &context))
		return (errno == EAGAIN || errno == EINTR) && take_cm_events(c);
	if (++c->unacked >= ACK_BATCH) {
		c->verbs->ack_cq_events(c->cq, c->unacked);
		c->unacked = 0;
	}
	return true;
}

/* A device that is gone has taken its queue pairs along. */
static bool is_unplugged(const struct ps_connection *c, int error)
{
	struct ibv_device_attr attr;

	if (error != EIO && error != ENODEV)
		return false;
	return atomic_load(&c->device->gone) ||
	       c->verbs->query_device(c->device->context, &attr) != 0;
}

/* When it returns, the device neither reads nor writes memory for the queue pair any more. One that
 * lived on could send what its memory is used for next, under keys that are still good: rather
 * than that, the process ends. */
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

void ps_connection_close(struct ps_connection *c)
{
	const struct ps_verbs *verbs = c->verbs;

	/* Has the device gone? Then what is registered with it is of no more use. */
	if (c->device && c->channel)
		(void)take_cm_events(c);
	/* So that the mirror hears of it now; if it fails, it hears of it later. */
	if (c->established)
		(void)verbs->disconnect(c->id);
	destroy_queue_pair(c);
	if (c->unacked)
		verbs->ack_cq_events(c->cq, c->unacked);
	if (c->cq)
		verbs->destroy_cq(c->cq);
	if (c->completions)
		verbs->destroy_comp_channel(c->completions);
	if (c->pad_mr)
		verbs->dereg_mr(c->pad_mr);
	ps_pages_free(c->pad, PS_PAD);
	end_id(c);
	if (c->wake >= 0)
		close(c->wake);
	if (c->device)
		ps_device_drop(c->device);
	clear(c, verbs);
}
