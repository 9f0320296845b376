/*
 * verbs_pair.c - makes a connection's objects on its device (verbs_pair.h). If a device refuses
 * one, the message names the device's limit that may be the reason.
 */
#include "verbs_pair.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	/* The mirror sends nothing that consumes a receive. */
	RECEIVES = 1,
	/* Most requests in flight: several windows of small transactions. */
	CAPACITY = 1024,
};

static int make_queues(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	const struct ibv_device_attr *attr = &c->device->attr;
	const char *name = ps_verbs_device_name(c->id->verbs);

	c->capacity = ps_apply_limit(ps_apply_limit(CAPACITY, attr->max_qp_wr),
	                             attr->max_cqe - RECEIVES);
	c->completions = c->verbs->create_comp_channel(c->id->verbs);
	if (!c->completions || ps_verbs_nonblocking(c->completions->fd))
		return ps_attempt_fail(
			a,
			"device %s gives no completion channel (%s); raise the limit "
			"on open files, if that is it",
			name, strerror(errno));
	/* After an error every request completes, not only the signaled ones. */
	c->cq = c->verbs->create_cq(c->id->verbs, (int)(c->capacity + RECEIVES), NULL,
	                            c->completions, 0);
	if (!c->cq)
		return ps_attempt_fail(a,
		                       "device %s makes no completion queue of %u entries (max_cqe "
		                       "%d): %s",
		                       name, c->capacity + RECEIVES, attr->max_cqe,
		                       strerror(errno));
	return 0;
}

/* Creates the queue pair. Devices differ in how many bytes they take inline, and some fail if asked
 * for more, so it tries with less each time. */
static int make_queue_pair(struct ps_attempt *a)
{
	static const uint32_t sizes[] = { PS_INLINE_MAX, 128, 64, 0 };
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
		return ps_attempt_fail(
			a,
			"device %s makes no queue pair of %u requests (%s); its limits "
			"are max_qp %d, max_qp_wr %d, max_sge %d",
			ps_verbs_device_name(c->id->verbs), c->capacity, strerror(errno),
			attr->max_qp, attr->max_qp_wr, attr->max_sge);
	c->qp = c->id->qp;
	if (init.cap.max_send_wr < c->capacity)
		c->capacity = init.cap.max_send_wr;
	c->inline_max = init.cap.max_inline_data < PS_INLINE_MAX ? init.cap.max_inline_data
	                                                         : PS_INLINE_MAX;
	if (c->capacity == 0)
		return ps_attempt_fail(a, "device %s gave a queue pair that takes no requests",
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
	return c->pad_mr ? 0 : ps_attempt_fail(a, "%s", why);
}

static bool add_to_epoll(const struct ps_connection *c, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(c->wake, EPOLL_CTL_ADD, fd, &event) == 0;
}

static int make_event_epoll(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;

	c->wake = ps_above_standard(epoll_create1(EPOLL_CLOEXEC));
	if (c->wake >= 0 && add_to_epoll(c, c->channel->fd) && add_to_epoll(c, c->completions->fd))
		return 0;
	return ps_error_set(a->error, PERSEAS_ESYSTEM,
	                    "%s: no epoll descriptor (%s); raise the "
	                    "limit on open files",
	                    a->address.text, strerror(errno));
}

int ps_connection_create_objects(struct ps_attempt *a)
{
	int code = make_queues(a);

	if (!code)
		code = make_queue_pair(a);
	if (!code)
		code = make_pad(a);
	return code ? code : make_event_epoll(a);
}
