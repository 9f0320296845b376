/*
 * verbs_fake_cm.c - the connection manager of the fake devices: channels, ids, addresses and
 * events. Code under test calls it through struct ps_verbs. An event is told only to the channel
 * of its id.
 */
#include "verbs_fake_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns as the members of librdmacm do. */
static int result(int error)
{
	errno = error;
	return error ? -1 : 0;
}

/* --- channels and events --- */

struct rdma_event_channel *fake_create_event_channel(void)
{
	struct fake_channel *channel = NULL;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_create_event_channel);
	if (!error) {
		channel = fake_alloc(sizeof(*channel));
		channel->channel.fd = fake_eventfd();
		fake.alive.channels++;
	}
	fake_unlock();
	errno = error;
	return channel ? &channel->channel : NULL;
}

void fake_destroy_event_channel(struct rdma_event_channel *given)
{
	struct fake_channel *channel = (struct fake_channel *)given;

	fake_lock();
	if (channel->ids > 0)
		fake_wrong("an event channel is destroyed with %u ids", channel->ids);
	while (channel->first) {
		struct fake_event *event = channel->first;

		channel->first = event->next;
		free(event);
	}
	close(channel->channel.fd);
	free(channel);
	fake.alive.channels--;
	fake_unlock();
}

static void queue_event(struct fake_channel *channel, struct fake_event *event)
{
	struct fake_event **last = &channel->first;

	while (*last)
		last = &(*last)->next;
	*last = event;
	fake_ring(channel->channel.fd);
}

static void push_one(const struct fake_push *push, enum rdma_cm_event_type type, int status,
                     bool response)
{
	struct fake_event *event = fake_alloc(sizeof(*event));
	struct rdma_conn_param *param = &event->event.param.conn;

	event->of = push->listener ? push->listener : push->id;
	event->event.id = &push->id->id;
	event->event.listen_id = push->listener ? &push->listener->id : NULL;
	event->event.event = type;
	event->event.status = status;
	event->response = response;
	*param = push->param;
	if (push->param.private_data)
		memcpy(event->bytes, push->param.private_data, push->param.private_data_len);
	if (push->pad > param->private_data_len)
		param->private_data_len = (uint8_t)push->pad;
	param->private_data = param->private_data_len ? event->bytes : NULL;
	queue_event((struct fake_channel *)event->of->id.channel, event);
}

bool fake_push_full(const struct fake_push *push)
{
	struct fake_fault_event fault = fake_fault_event(push->type);
	struct fake_push other = { .id = push->listener ? push->listener : push->id };

	if (fault.lost)
		return false;
	if (fault.preceded)
		push_one(&other, fault.before, 0, false);
	if (fault.replaced) {
		push_one(&other, fault.type, fault.status, false);
		return false;
	}
	push_one(push, push->type, push->status, push->response);
	return true;
}

void fake_push(struct fake_id *id, enum rdma_cm_event_type type, int status)
{
	fake_push_full(&(struct fake_push){ .id = id, .type = type, .status = status });
}

void verbs_fake_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	fake_lock();
	push_one(&(struct fake_push){ .id = (struct fake_id *)id }, type, status, false);
	fake_unlock();
}

/* Does what librdmacm does with an event before its caller sees it. */
static void take_event(struct fake_event *event)
{
	struct fake_id *id = (struct fake_id *)event->event.id;

	event->of->unacked++;
	fake.counts.gets++;
	if (event->event.event == RDMA_CM_EVENT_ADDR_RESOLVED)
		id->id.verbs = &id->device->context;
	if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST && !id->given) {
		id->given = true;
		fake.alive.ids++;
	}
	if (event->response)
		fake_established(id);
}

int fake_get_cm_event(struct rdma_event_channel *given, struct rdma_cm_event **out)
{
	struct fake_channel *channel = (struct fake_channel *)given;
	struct fake_event *event;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_get_cm_event);
	fake_unlock();
	if (error)
		return result(error);
	if (fake_take(given->fd) < 0)
		return -1;
	fake_lock();
	event = channel->first;
	if (event) {
		channel->first = event->next;
		event->next = NULL;
		take_event(event);
		*out = &event->event;
	}
	fake_unlock();
	return result(event ? 0 : EIO);
}

int fake_ack_cm_event(struct rdma_cm_event *given)
{
	struct fake_event *event = (struct fake_event *)given;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_ack_cm_event);
	if (!error) {
		event->of->unacked--;
		free(event);
	}
	fake_unlock();
	return result(error);
}

/* --- ids --- */

struct fake_id *fake_id_new(struct rdma_event_channel *channel, void *context)
{
	struct fake_id *id = fake_alloc(sizeof(*id));

	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = RDMA_PS_TCP;
	id->id.qp_type = IBV_QPT_RC;
	id->ack_timeout = -1;
	id->next = fake.ids;
	fake.ids = id;
	((struct fake_channel *)channel)->ids++;
	return id;
}

/* Drops the id's events that were not fetched; requests to a listener are refused. */
static void drop_events(struct fake_id *id)
{
	struct fake_channel *channel = (struct fake_channel *)id->id.channel;
	struct fake_event **at = &channel->first;

	while (*at) {
		struct fake_event *event = *at;
		struct fake_id *of = (struct fake_id *)event->event.id;

		if (event->of != id && of != id) {
			at = &event->next;
			continue;
		}
		*at = event->next;
		fake_unring(channel->channel.fd);
		free(event);
		if (of != id && !of->given) {
			fake_hang_up(of);
			fake_id_drop(of);
			at = &channel->first;
		}
	}
}

void fake_id_drop(struct fake_id *id)
{
	struct fake_id **at = &fake.ids;

	drop_events(id);
	while (*at && *at != id)
		at = &(*at)->next;
	if (*at)
		*at = id->next;
	((struct fake_channel *)id->id.channel)->ids--;
	if (id->given)
		fake.alive.ids--;
	if (id->unacked == 0) {
		free(id);
		return;
	}
	/* Misuse: its events may still be acknowledged. */
	id->next = fake.zombies;
	fake.zombies = id;
}

int fake_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
                   enum rdma_port_space ps)
{
	struct fake_id *id;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_create_id);
	if (!error && ps != RDMA_PS_TCP)
		error = EINVAL;
	if (!error) {
		id = fake_id_new(channel, context);
		id->given = true;
		fake.alive.ids++;
		*out = &id->id;
	}
	fake_unlock();
	return result(error);
}

int fake_destroy_id(struct rdma_cm_id *given)
{
	struct fake_id *id = (struct fake_id *)given;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_destroy_id);
	if (!error) {
		if (id->unacked > 0)
			fake_wrong("destroy_id would block: %u events are not acknowledged",
			           id->unacked);
		for (struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
			if (qp->id != id)
				continue;
			fake_wrong("an id is destroyed before its queue pair");
			qp->id = NULL;
		}
		fake_hang_up(id);
		fake_id_drop(id);
	}
	fake_unlock();
	return result(error);
}

static int set_option(struct fake_id *id, int level, int name, const void *value, size_t size)
{
	if (level != RDMA_OPTION_ID)
		return ENOSYS;
	if (name != RDMA_OPTION_ID_ACK_TIMEOUT)
		return name < 0 || name > RDMA_OPTION_ID_ACK_TIMEOUT ? ENOSYS : 0;
	if (size != sizeof(uint8_t) || *(const uint8_t *)value > 31)
		return EINVAL;
	if (id->state >= FAKE_CONNECTING)
		fake_wrong("the ACK timeout is set after connecting");
	id->ack_timeout = *(const uint8_t *)value;
	return 0;
}

int fake_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t size)
{
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_set_option);
	if (!error)
		error = set_option((struct fake_id *)id, level, name, value, size);
	fake_unlock();
	return result(error);
}

/* --- addresses --- */

static bool is_port_taken(const struct fake_id *own, uint32_t address, uint16_t port)
{
	for (struct fake_id *id = fake.ids; id; id = id->next) {
		uint32_t other = id->id.route.addr.src_sin.sin_addr.s_addr;

		if (id != own && (id->state == FAKE_BOUND || id->state == FAKE_LISTENING) &&
		    id->id.route.addr.src_sin.sin_port == port &&
		    (other == address || other == INADDR_ANY || address == INADDR_ANY))
			return true;
	}
	return false;
}

static void set_device(struct fake_id *id, struct verbs_fake_device *device)
{
	id->device = device;
	id->id.verbs = device ? &device->context : NULL;
	id->id.port_num = device ? 1 : 0;
}

static int bind_addr(struct fake_id *id, const struct sockaddr *address)
{
	struct sockaddr_in *at = &id->id.route.addr.src_sin;
	struct verbs_fake_device *device;

	if (id->state != FAKE_IDLE)
		return EINVAL;
	if (address->sa_family != AF_INET)
		return EAFNOSUPPORT;
	memcpy(at, address, sizeof(*at));
	device = fake_device_at(at->sin_addr.s_addr);
	if (!device && at->sin_addr.s_addr != INADDR_ANY)
		return ENODEV;
	if (at->sin_port == 0)
		at->sin_port = htons(fake.port++);
	if (is_port_taken(id, at->sin_addr.s_addr, at->sin_port))
		return EADDRINUSE;
	set_device(id, device);
	id->state = FAKE_BOUND;
	return 0;
}

int fake_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_bind_addr);
	if (!error)
		error = bind_addr((struct fake_id *)id, address);
	fake_unlock();
	return result(error);
}

int fake_listen(struct rdma_cm_id *given, int backlog)
{
	struct fake_id *id = (struct fake_id *)given;
	int error;

	(void)backlog;
	fake_lock();
	error = fake_fault(VERBS_FAKE_listen);
	if (!error && id->state != FAKE_BOUND)
		error = EINVAL;
	if (!error)
		id->state = FAKE_LISTENING;
	fake_unlock();
	return result(error);
}

/* The id's source address, as its port's GID table has it. */
static void set_route(struct fake_id *id, uint32_t source, const struct sockaddr_in *to)
{
	struct rdma_addr *addr = &id->id.route.addr;
	uint8_t *gid = addr->addr.ibaddr.sgid.raw;

	addr->dst_sin = *to;
	addr->src_sin.sin_family = AF_INET;
	addr->src_sin.sin_addr.s_addr = source;
	if (addr->src_sin.sin_port == 0)
		addr->src_sin.sin_port = htons(fake.port++);
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &source, sizeof(source));
	id->id.port_num = 1;
}

static int resolve_addr(struct fake_id *id, const struct sockaddr *from,
                        const struct sockaddr *address)
{
	const struct sockaddr_in *to = (const void *)address;
	struct verbs_fake_device *target = fake_device_at(to->sin_addr.s_addr);
	uint32_t source = 0;

	if (id->state != FAKE_IDLE && id->state != FAKE_BOUND)
		return EINVAL;
	if (address->sa_family != AF_INET)
		return EAFNOSUPPORT;
	if (!id->device)
		id->device = from ? fake_device_at(((const struct sockaddr_in *)(const void *)from)
		                                           ->sin_addr.s_addr)
		             : fake.source ? fake.source
		                           : target;
	id->state = FAKE_RESOLVING;
	if (!id->device || !target) {
		fake_push(id, RDMA_CM_EVENT_ADDR_ERROR, id->device ? -EHOSTUNREACH : -ENODEV);
		id->state = FAKE_IDLE;
		return 0;
	}
	source = id->device == target ? to->sin_addr.s_addr : id->device->addresses[0];
	set_route(id, source, to);
	if (!target->dead && !id->device->dead) {
		id->state = FAKE_ADDRESSED;
		fake_push(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	return 0;
}

int fake_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
                      int timeout_ms)
{
	int error;

	(void)timeout_ms;
	fake_lock();
	error = fake_fault(VERBS_FAKE_resolve_addr);
	if (!error)
		error = resolve_addr((struct fake_id *)id, from, to);
	fake_unlock();
	return result(error);
}

int fake_resolve_route(struct rdma_cm_id *given, int timeout_ms)
{
	struct fake_id *id = (struct fake_id *)given;
	int error;

	(void)timeout_ms;
	fake_lock();
	error = fake_fault(VERBS_FAKE_resolve_route);
	if (!error && id->state != FAKE_ADDRESSED)
		error = EINVAL;
	if (!error) {
		id->state = FAKE_ROUTED;
		fake_push(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	}
	fake_unlock();
	return result(error);
}
