/*
 * verbs.c - the table of the real rdma-core calls, and registration of memory with an explanation
 * of failures. Both ends reach an RDMA device only through this table.
 */
#include "verbs.h"

#include "standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Wrappers of calls that are inline functions or macros. */

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *base, size_t length, int access)
{
	return ibv_reg_mr(pd, base, length, access);
}

static ssize_t query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                               size_t max, uint32_t flags)
{
	return ibv_query_gid_table(context, entries, max, flags);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return ibv_req_notify_cq(cq, solicited_only);
}

static int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *completions)
{
	return ibv_poll_cq(cq, entries, completions);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad)
{
	return ibv_post_send(qp, list, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *list, struct ibv_recv_wr **bad)
{
	return ibv_post_recv(qp, list, bad);
}

/* Wrappers of calls that open descriptors inside rdma-core: event channels, and devices, which
 * librdmacm opens when it first meets them. */

static struct rdma_event_channel *create_event_channel(void)
{
	struct rdma_event_channel *channel;

	ps_standard_fds_reserve();
	channel = rdma_create_event_channel();
	ps_standard_fds_release();
	return channel;
}

static int get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int rc;

	ps_standard_fds_reserve();
	rc = rdma_get_cm_event(channel, event);
	ps_standard_fds_release();
	return rc;
}

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                     enum rdma_port_space ps)
{
	int rc;

	ps_standard_fds_reserve();
	rc = rdma_create_id(channel, id, context, ps);
	ps_standard_fds_release();
	return rc;
}

static int bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	int rc;

	ps_standard_fds_reserve();
	rc = rdma_bind_addr(id, address);
	ps_standard_fds_release();
	return rc;
}

static int resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
                        int timeout_ms)
{
	int rc;

	ps_standard_fds_reserve();
	rc = rdma_resolve_addr(id, from, to, timeout_ms);
	ps_standard_fds_release();
	return rc;
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel;

	ps_standard_fds_reserve();
	channel = ibv_create_comp_channel(context);
	ps_standard_fds_release();
	return channel;
}

const struct ps_verbs ps_verbs_system = {
	.create_event_channel = create_event_channel,
	.destroy_event_channel = rdma_destroy_event_channel,
	.get_cm_event = get_cm_event,
	.ack_cm_event = rdma_ack_cm_event,
	.create_id = create_id,
	.destroy_id = rdma_destroy_id,
	.set_option = rdma_set_option,
	.bind_addr = bind_addr,
	.listen = rdma_listen,
	.resolve_addr = resolve_addr,
	.resolve_route = rdma_resolve_route,
	.create_qp = rdma_create_qp,
	.connect = rdma_connect,
	.accept = rdma_accept,
	.reject = rdma_reject,
	.disconnect = rdma_disconnect,
	.fork_init = ibv_fork_init,
	.query_device = ibv_query_device,
	.query_gid_table = query_gid_table,
	.alloc_pd = ibv_alloc_pd,
	.dealloc_pd = ibv_dealloc_pd,
	.reg_mr = reg_mr,
	.dereg_mr = ibv_dereg_mr,
	.get_async_event = ibv_get_async_event,
	.ack_async_event = ibv_ack_async_event,
	.create_comp_channel = create_comp_channel,
	.destroy_comp_channel = ibv_destroy_comp_channel,
	.create_cq = ibv_create_cq,
	.destroy_cq = ibv_destroy_cq,
	.req_notify_cq = req_notify_cq,
	.get_cq_event = ibv_get_cq_event,
	.ack_cq_events = ibv_ack_cq_events,
	.poll_cq = poll_cq,
	.modify_qp = ibv_modify_qp,
	.destroy_qp = ibv_destroy_qp,
	.post_send = post_send,
	.post_recv = post_recv,
};

const char *ps_verbs_device_name(const struct ibv_context *context)
{
	return context && context->device ? context->device->name : "?";
}

int ps_verbs_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* Explains why registration failed with errno `error`. */
static void explain_failure(const struct ps_verbs *verbs, const struct ibv_pd *pd, size_t length,
                            int error, char *why, size_t size)
{
	struct ibv_device_attr attr = { .max_mr_size = 0 };
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	const char *device = ps_verbs_device_name(pd->context);

	(void)verbs->query_device(pd->context, &attr);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (attr.max_mr_size && length > attr.max_mr_size)
		snprintf(why, size,
		         "device %s registers at most %llu bytes at once (max_mr_size), not %zu; "
		         "make the segment or the ring smaller",
		         device, (unsigned long long)attr.max_mr_size, length);
	else if (error == ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		snprintf(why, size,
		         "%zu bytes cannot be pinned for device %s: RLIMIT_MEMLOCK is %llu bytes "
		         "for all pinned memory together; raise it (ulimit -l, or "
		         "LimitMEMLOCK=infinity in the systemd unit)",
		         length, device, (unsigned long long)limit.rlim_cur);
	else
		snprintf(why, size, "%zu bytes cannot be registered with device %s: %s", length,
		         device, strerror(error));
}

struct ibv_mr *ps_verbs_register(const struct ps_verbs *verbs, struct ibv_pd *pd, void *base,
                                 size_t length, int access, char *why, size_t size)
{
	struct ibv_mr *mr = verbs->reg_mr(pd, base, length, access);

	if (!mr)
		explain_failure(verbs, pd, length, errno, why, size);
	return mr;
}
