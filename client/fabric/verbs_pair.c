/*
 * verbs_pair.c - see verbs_pair.h. What a device refuses is told with the limit of it that may
 * stand in the way.
 */
#include "verbs_pair.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	/* Nothing is sent that consumes a receive. */
	RECEIVES = 1,
	/* Requests under way at most: a window of small transactions, several times. */
	CAPACITY = 1024,
};

static int make_queues(struct ps_attempt *a)
{
	struct ps_connection *c = a->c;
	const struct ibv_device_attr *attr = &c->device->attr;
	const char *name = ps_verbs_device_name(c->id->verbs);

	c->capacity = ps_lesser(ps_lesser(CAPACITY, attr->max_qp_wr), attr->max_cqe - RECEIVES);
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

	c->wake = ps_above_standard(epoll_create1(EPOLL_CLOEXEC));
	if (c->wake >= 0 && watch(c, c->channel->fd) && watch(c, c->completions->fd))
		return 0;
	return ps_error_set(a->error, PERSEAS_ESYSTEM,
	                    "%s: no epoll descriptor (%s); raise the "
	                    "limit on open files",
	                    a->address.text, strerror(errno));
}

int ps_pair_make(struct ps_attempt *a)
{
	int code = make_queues(a);

	if (!code)
		code = make_queue_pair(a);
	if (!code)
		code = make_pad(a);
	return code ? code : make_wake(a);
}
