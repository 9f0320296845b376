/*
 * verbs_fake.c - the world of the fake devices: its lock, its memory, its chance, and the count
 * of what was left or done wrong. The other verbs_fake_*.c call it. Nothing of it may need a
 * device or root.
 */
#include "verbs_fake_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct fake_world fake;
struct verbs_fake_mode verbs_fake_mode;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fake_lock(void)
{
	pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
	if (verbs_fake_mode.automatic)
		fake_run(UINT32_MAX);
	pthread_mutex_unlock(&lock);
}

void fake_wrong(const char *format, ...)
{
	size_t have = strlen(fake.trouble), room = sizeof(fake.trouble) - have;
	va_list args;

	fake.wrong++;
	va_start(args, format);
	vsnprintf(fake.trouble + have, room, format, args);
	va_end(args);
	have = strlen(fake.trouble);
	if (have + 1 < sizeof(fake.trouble))
		memcpy(fake.trouble + have, "\n", 2);
}

void *fake_alloc(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		abort();
	return memory;
}

uint64_t fake_draw(uint64_t below)
{
	fake.random ^= fake.random << 13;
	fake.random ^= fake.random >> 7;
	fake.random ^= fake.random << 17;
	return below ? fake.random % below : 0;
}

/* --- descriptors --- */

int fake_eventfd(void)
{
	int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

void fake_ring(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

void fake_unring(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	uint64_t one;

	if (poll(&ready, 1, 0) != 1 || read(fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

int fake_take(int fd)
{
	uint64_t one;

	return read(fd, &one, sizeof(one)) == sizeof(one) ? 0 : -1;
}

/* --- the world --- */

static void free_world(void)
{
	while (fake.devices) {
		struct verbs_fake_device *device = fake.devices;

		fake.devices = device->next;
		close(device->context.async_fd);
		free(device);
	}
	while (fake.cqs) {
		struct fake_cq *cq = fake.cqs;

		fake.cqs = cq->next;
		free(cq->entries);
		free(cq);
	}
	while (fake.zombies) {
		struct fake_id *id = fake.zombies;

		fake.zombies = id->next;
		free(id);
	}
	while (fake.asyncs) {
		struct fake_async *async = fake.asyncs;

		fake.asyncs = async->next;
		free(async);
	}
}

void verbs_fake_begin(void)
{
	pthread_mutex_lock(&lock);
	memset(&fake, 0, sizeof(fake));
	verbs_fake_mode = (struct verbs_fake_mode){ .packet = 4096, .seed = 1 };
	fake.begun = true;
	fake.numbers = 0x11;
	fake.port = 20000;
	fake.random = 88172645463325252u;
	fake.ack_timeout = -1;
	fake_fault_reset();
	pthread_mutex_unlock(&lock);
}

static void note_left(const char *what, unsigned count)
{
	if (count > 0)
		fake_wrong("%u %s left", count, what);
}

unsigned verbs_fake_end(void)
{
	unsigned wrong;

	pthread_mutex_lock(&lock);
	note_left("event channels", fake.alive.channels);
	note_left("ids", fake.alive.ids);
	note_left("protection domains", fake.alive.pds);
	note_left("memory regions", fake.alive.mrs);
	note_left("completion channels", fake.alive.comp_channels);
	note_left("completion queues", fake.alive.cqs);
	note_left("queue pairs", fake.alive.qps);
	free_world();
	for (unsigned i = 0; i < fake.write_count; i++)
		free((void *)(uintptr_t)fake.writes[i].bytes);
	free(fake.writes);
	fake.writes = NULL;
	fake.write_count = 0;
	fake.begun = false;
	wrong = fake.wrong;
	pthread_mutex_unlock(&lock);
	return wrong;
}

unsigned verbs_fake_wrong(void)
{
	return fake.wrong;
}

const char *verbs_fake_trouble(void)
{
	return fake.trouble;
}

/* --- devices --- */

struct verbs_fake_device *fake_device_at(uint32_t address)
{
	for (struct verbs_fake_device *device = fake.devices; device; device = device->next)
		for (unsigned i = 0; i < device->address_count; i++)
			if (device->addresses[i] == address)
				return device;
	return NULL;
}

void verbs_fake_address(struct verbs_fake_device *device, const char *address)
{
	struct in_addr number;

	if (device->address_count == VERBS_FAKE_ADDRESSES || !inet_aton(address, &number))
		abort();
	device->addresses[device->address_count++] = number.s_addr;
}

struct verbs_fake_device *verbs_fake_device(const char *name, const char *address)
{
	struct verbs_fake_device *device = fake_alloc(sizeof(*device));

	if (!fake.begun)
		abort();
	snprintf(device->device.name, sizeof(device->device.name), "%s", name);
	device->device.node_type = IBV_NODE_CA;
	device->device.transport_type = IBV_TRANSPORT_IB;
	device->context.device = &device->device;
	device->context.async_fd = fake_eventfd();
	device->context.cmd_fd = -1;
	device->context.num_comp_vectors = 1;
	device->attr = (struct ibv_device_attr){
		.max_mr_size = (uint64_t)1 << 40,
		.max_qp = 1000,
		.max_qp_wr = 16384,
		.max_sge = 32,
		.max_sge_rd = 32,
		.max_cq = 1000,
		.max_cqe = 32767,
		.max_mr = 100000,
		.max_pd = 1000,
		.max_qp_rd_atom = 128,
		.max_res_rd_atom = 1000,
		.max_qp_init_rd_atom = 128,
		.phys_port_cnt = 1,
	};
	device->max_inline = 400;
	device->gid_type = IBV_GID_TYPE_ROCE_V2;
	verbs_fake_address(device, address);
	fake_lock();
	device->next = fake.devices;
	fake.devices = device;
	fake_unlock();
	return device;
}

int fake_destroyed(const struct ibv_context *context)
{
	return ((const struct verbs_fake_device *)context)->lost ? EIO : 0;
}

void verbs_fake_source(struct verbs_fake_device *device)
{
	fake.source = device;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_query_device);
	if (!error)
		error = fake_destroyed(context);
	if (!error)
		*attr = ((struct verbs_fake_device *)context)->attr;
	fake_unlock();
	return error;
}

static void gid_entry(struct ibv_gid_entry *entry, uint32_t index, uint32_t address, uint32_t type)
{
	memset(entry, 0, sizeof(*entry));
	entry->gid.raw[10] = entry->gid.raw[11] = 0xff;
	memcpy(entry->gid.raw + 12, &address, sizeof(address));
	entry->gid_index = index;
	entry->port_num = 1;
	entry->gid_type = type;
}

static ssize_t query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                               size_t max, uint32_t flags)
{
	const struct verbs_fake_device *device = (const void *)context;
	bool both = device->gid_v1_too && device->gid_type != IBV_GID_TYPE_ROCE_V1;
	uint32_t count = 0;
	int error;

	(void)flags;
	fake_lock();
	error = fake_fault(VERBS_FAKE_query_gid_table);
	if (!error && device->address_count * (both ? 2 : 1) > max)
		error = EINVAL;
	for (unsigned i = 0; !error && i < device->address_count; i++) {
		if (both) {
			gid_entry(&entries[count], count, device->addresses[i],
			          IBV_GID_TYPE_ROCE_V1);
			count++;
		}
		gid_entry(&entries[count], count, device->addresses[i], device->gid_type);
		count++;
	}
	fake_unlock();
	return error ? -error : (ssize_t)count;
}

/* --- asynchronous events --- */

void fake_async_raise(struct ibv_context *context, enum ibv_event_type type, struct fake_qp *qp)
{
	struct fake_async *async = fake_alloc(sizeof(*async)), **last = &fake.asyncs;

	async->event.event_type = type;
	if (qp)
		async->event.element.qp = &qp->qp;
	else
		async->event.element.port_num = 1;
	async->context = context;
	while (*last)
		last = &(*last)->next;
	*last = async;
	fake_ring(context->async_fd);
}

static bool is_of_qp(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	       type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_COMM_EST ||
	       type == IBV_EVENT_SQ_DRAINED || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

void fake_async_drop(struct fake_qp *qp)
{
	struct fake_async **at = &fake.asyncs;

	while (*at) {
		struct fake_async *async = *at;

		if (!is_of_qp(async->event.event_type) || async->event.element.qp != &qp->qp) {
			at = &async->next;
			continue;
		}
		*at = async->next;
		fake_unring(async->context->async_fd);
		free(async);
	}
}

void verbs_fake_async(struct verbs_fake_device *device, enum ibv_event_type type, struct ibv_qp *qp)
{
	fake_lock();
	fake_async_raise(&device->context, type, (struct fake_qp *)qp);
	fake_unlock();
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct fake_async **at = &fake.asyncs, *async;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_get_async_event);
	fake_unlock();
	if (error) {
		errno = error;
		return -1;
	}
	if (fake_take(context->async_fd) < 0)
		return -1;
	fake_lock();
	while (*at && (*at)->context != context)
		at = &(*at)->next;
	async = *at;
	if (async) {
		*at = async->next;
		*event = async->event;
		if (is_of_qp(event->event_type))
			((struct fake_qp *)event->element.qp)->async_unacked++;
		free(async);
	}
	fake_unlock();
	errno = EIO;
	return async ? 0 : -1;
}

static void ack_async_event(struct ibv_async_event *event)
{
	struct fake_qp *qp = NULL;

	fake_lock();
	if (is_of_qp(event->event_type)) {
		qp = fake_qp_of(event->element.qp);
		if (!qp || qp->async_unacked == 0)
			fake_wrong("an asynchronous event of no queue pair is acknowledged");
		else
			qp->async_unacked--;
	}
	fake_unlock();
}

void verbs_fake_remove(struct verbs_fake_device *device)
{
	fake_lock();
	device->dead = true;
	device->address_count = 0;
	for (struct fake_qp *qp = fake.qps; qp; qp = qp->next)
		if (qp->qp.context == &device->context)
			fake_qp_error(qp);
	for (struct fake_id *id = fake.ids; id; id = id->next)
		if (id->device == device && id->given)
			fake_push(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	fake_async_raise(&device->context, IBV_EVENT_DEVICE_FATAL, NULL);
	fake_unlock();
}

/* --- what was done --- */

void verbs_fake_on_request(void (*call)(void *arg), void *arg)
{
	fake.on_request = call;
	fake.on_request_arg = arg;
}

struct verbs_fake_counts verbs_fake_counts(void)
{
	struct verbs_fake_counts counts;

	fake_lock();
	counts = fake.counts;
	memset(&fake.counts, 0, sizeof(fake.counts));
	fake_unlock();
	return counts;
}

struct verbs_fake_alive verbs_fake_alive(void)
{
	struct verbs_fake_alive alive;

	fake_lock();
	alive = fake.alive;
	fake_unlock();
	return alive;
}

struct rdma_conn_param verbs_fake_connected(int *ack_timeout)
{
	*ack_timeout = fake.ack_timeout;
	return fake.connected;
}

void verbs_fake_journal(bool on)
{
	fake_lock();
	for (unsigned i = 0; i < fake.write_count; i++)
		free((void *)(uintptr_t)fake.writes[i].bytes);
	fake.write_count = 0;
	fake.journal = on;
	fake_unlock();
}

const struct verbs_fake_write *verbs_fake_writes(unsigned *count)
{
	*count = fake.write_count;
	return fake.writes;
}

const struct ps_verbs verbs_fake_table = {
	.create_event_channel = fake_create_event_channel,
	.destroy_event_channel = fake_destroy_event_channel,
	.get_cm_event = fake_get_cm_event,
	.ack_cm_event = fake_ack_cm_event,
	.create_id = fake_create_id,
	.destroy_id = fake_destroy_id,
	.set_option = fake_set_option,
	.bind_addr = fake_bind_addr,
	.listen = fake_listen,
	.resolve_addr = fake_resolve_addr,
	.resolve_route = fake_resolve_route,
	.create_qp = fake_create_qp,
	.connect = fake_connect,
	.accept = fake_accept,
	.reject = fake_reject,
	.disconnect = fake_disconnect,
	.fork_init = fake_fork_init,
	.query_device = query_device,
	.query_gid_table = query_gid_table,
	.alloc_pd = fake_alloc_pd,
	.dealloc_pd = fake_dealloc_pd,
	.reg_mr = fake_reg_mr,
	.dereg_mr = fake_dereg_mr,
	.get_async_event = get_async_event,
	.ack_async_event = ack_async_event,
	.create_comp_channel = fake_create_comp_channel,
	.destroy_comp_channel = fake_destroy_comp_channel,
	.create_cq = fake_create_cq,
	.destroy_cq = fake_destroy_cq,
	.req_notify_cq = fake_req_notify_cq,
	.get_cq_event = fake_get_cq_event,
	.ack_cq_events = fake_ack_cq_events,
	.poll_cq = fake_poll_cq,
	.modify_qp = fake_modify_qp,
	.destroy_qp = fake_destroy_qp,
	.post_send = fake_post_send,
	.post_recv = fake_post_recv,
};
