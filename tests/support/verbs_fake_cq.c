/*
 * verbs_fake_cq.c - completion queues and their channels. Code under test calls it through struct
 * ps_verbs, and verbs_fake_qp.c adds completions. A queue that overruns is counted as a mistake
 * of its user.
 */
#include "verbs_fake_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- completion channels --- */

struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *context)
{
	struct fake_comp_channel *channel = NULL;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_create_comp_channel);
	if (!error) {
		channel = fake_alloc(sizeof(*channel));
		channel->channel.context = context;
		channel->channel.fd = fake_eventfd();
		fake.alive.comp_channels++;
	}
	fake_unlock();
	errno = error;
	return channel ? &channel->channel : NULL;
}

int fake_destroy_comp_channel(struct ibv_comp_channel *given)
{
	struct fake_comp_channel *channel = (struct fake_comp_channel *)given;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_destroy_comp_channel);
	if (!error && channel->channel.refcnt > 0)
		error = EBUSY;
	if (!error) {
		error = fake_destroyed(channel->channel.context);
		close(channel->channel.fd);
		free(channel->queue);
		free(channel);
		fake.alive.comp_channels--;
	}
	fake_unlock();
	return error;
}

static void queue_event(struct fake_comp_channel *channel, struct fake_cq *cq)
{
	if (channel->count == channel->room) {
		channel->room = channel->room ? 2 * channel->room : 8;
		channel->queue = realloc(channel->queue, channel->room * sizeof(*channel->queue));
		if (!channel->queue)
			abort();
	}
	channel->queue[channel->count++] = cq;
	fake_ring(channel->channel.fd);
}

static void drop_events(struct fake_comp_channel *channel, const struct fake_cq *cq)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < channel->count; i++) {
		if (channel->queue[i] == cq)
			fake_unring(channel->channel.fd);
		else
			channel->queue[kept++] = channel->queue[i];
	}
	channel->count = kept;
}

int fake_get_cq_event(struct ibv_comp_channel *given, struct ibv_cq **out, void **context)
{
	struct fake_comp_channel *channel = (struct fake_comp_channel *)given;
	struct fake_cq *cq = NULL;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_get_cq_event);
	fake_unlock();
	if (error) {
		errno = error;
		return -1;
	}
	if (fake_take(given->fd) < 0)
		return -1;
	fake_lock();
	if (channel->count > 0) {
		cq = channel->queue[0];
		channel->count--;
		memmove(channel->queue, channel->queue + 1,
		        channel->count * sizeof(*channel->queue));
		cq->unacked++;
		fake.counts.gets++;
		*out = &cq->cq;
		*context = cq->cq.cq_context;
	}
	fake_unlock();
	errno = EIO;
	return cq ? 0 : -1;
}

/* --- completion queues --- */

struct ibv_cq *fake_create_cq(struct ibv_context *context, int entries, void *cq_context,
                              struct ibv_comp_channel *channel, int vector)
{
	const struct verbs_fake_device *device = (const void *)context;
	struct fake_cq *cq = NULL;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_create_cq);
	if (!error &&
	    (entries < 1 || entries > device->attr.max_cqe || vector >= context->num_comp_vectors))
		error = EINVAL;
	if (!error) {
		cq = fake_alloc(sizeof(*cq));
		cq->cq.context = context;
		cq->cq.channel = channel;
		cq->cq.cq_context = cq_context;
		cq->cq.cqe = entries;
		cq->entries = fake_alloc((size_t)entries * sizeof(*cq->entries));
		cq->next = fake.cqs;
		fake.cqs = cq;
		fake.alive.cqs++;
		if (channel)
			channel->refcnt++;
	}
	fake_unlock();
	errno = error;
	return cq ? &cq->cq : NULL;
}

static void free_cq(struct fake_cq *cq)
{
	struct fake_cq **at = &fake.cqs;

	while (*at != cq)
		at = &(*at)->next;
	*at = cq->next;
	if (cq->cq.channel) {
		drop_events((struct fake_comp_channel *)cq->cq.channel, cq);
		cq->cq.channel->refcnt--;
	}
	free(cq->entries);
	free(cq);
	fake.alive.cqs--;
}

int fake_destroy_cq(struct ibv_cq *given)
{
	struct fake_cq *cq = (struct fake_cq *)given;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_destroy_cq);
	if (!error && cq->users > 0)
		error = EBUSY;
	if (!error) {
		if (cq->unacked > 0)
			fake_wrong("destroy_cq would block: %u events are not acknowledged",
			           cq->unacked);
		error = fake_destroyed(cq->cq.context);
		free_cq(cq);
	}
	fake_unlock();
	return error;
}

int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int error;

	(void)solicited_only;
	fake_lock();
	error = fake_fault(VERBS_FAKE_req_notify_cq);
	fake.counts.notifies++;
	if (!error && !cq->channel)
		error = EINVAL;
	if (!error)
		((struct fake_cq *)cq)->armed = true;
	fake_unlock();
	return error;
}

void fake_ack_cq_events(struct ibv_cq *given, unsigned count)
{
	struct fake_cq *cq = (struct fake_cq *)given;

	fake_lock();
	if (count > cq->unacked)
		fake_wrong("%u completion events are acknowledged, %u were given", count,
		           cq->unacked);
	else
		cq->unacked -= count;
	fake_unlock();
}

void fake_cq_add(struct fake_cq *cq, const struct fake_cqe *cqe)
{
	unsigned size = (unsigned)cq->cq.cqe;

	if (cq->count == size) {
		fake_wrong("a completion queue of %u entries overran", size);
		return;
	}
	cq->entries[(cq->first + cq->count++) % size] = *cqe;
	if (cq->armed) {
		cq->armed = false;
		queue_event((struct fake_comp_channel *)cq->cq.channel, cq);
	}
}

void fake_cq_forget(struct fake_qp *qp)
{
	for (struct fake_cq *cq = fake.cqs; cq; cq = cq->next)
		for (unsigned i = 0; i < cq->count; i++) {
			struct fake_cqe *cqe = &cq->entries[(cq->first + i) % (unsigned)cq->cq.cqe];

			if (cqe->qp == qp)
				cqe->qp = NULL;
		}
}

int fake_poll_cq(struct ibv_cq *given, int entries, struct ibv_wc *completions)
{
	struct fake_cq *cq = (struct fake_cq *)given;
	int error, count = 0;

	fake_lock();
	error = fake_fault(VERBS_FAKE_poll_cq);
	fake.counts.polls++;
	for (; !error && count < entries && cq->count > 0; count++) {
		struct fake_cqe *cqe = &cq->entries[cq->first];

		completions[count] = cqe->wc;
		if (cqe->qp && cqe->receive)
			cqe->qp->receive_used--;
		else if (cqe->qp)
			cqe->qp->send_used -= cqe->retires;
		cq->first = (cq->first + 1) % (unsigned)cq->cq.cqe;
		cq->count--;
	}
	fake_unlock();
	return error ? -error : count;
}
