/*
 * answers_tcp.c - the answers to frames of a data connection: a queue that is sent as the socket
 * takes it. The answer to a read has the bytes of the image at the time of sending. Called by the
 * thread that serves the connection (lanes.h); it must never close the connection.
 */
#include "target_tcp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

enum {
	/* A read is the shortest frame that is answered, so one feed of the decoder gives at most
	 * this many answers. */
	ANSWERS_MAX = DATA_BUFFER_SIZE / (sizeof(struct ps_frame) + sizeof(struct ps_extent)) + 2,
	ANSWERS_FIRST = 64,
	PARTS_MAX = 64, /* buffers of one sendmsg() */
};

static uint8_t *data_memory(void *ctx, const struct ps_extent *extent, bool write)
{
	struct data_link *link = ctx;

	link->asked = *extent;
	return session_memory(link->session, extent->region, extent->offset, extent->length, write);
}

static struct pending *add_pending(struct data_link *link)
{
	unsigned room = link->room ? 2 * link->room : ANSWERS_FIRST;
	struct pending *queue;

	if (link->first + link->count < link->room)
		return &link->queue[link->first + link->count++];
	assert(link->first == 0 && link->count <= ANSWERS_MAX);
	queue = realloc(link->queue, room * sizeof(*queue));
	if (!queue)
		return NULL;
	link->queue = queue;
	link->room = room;
	return &queue[link->count++];
}

void data_queue_answer(void *ctx, const struct ps_answer *answer, const uint8_t *bytes)
{
	struct data_link *link = ctx;
	struct pending *pending = add_pending(link);

	if (!pending) {
		link->failed = true;
		return;
	}
	pending->answer = *answer;
	link->lane->traffic.acknowledged_chains += answer->op == PS_OP_WRITE &&
	                                           answer->status == PS_ANSWER_OK;
	if (bytes)
		pending->extent = link->asked;
}

const struct ps_decoder_ops data_ops = {
	.where = data_memory,
	.answer = data_queue_answer,
};

static uint64_t pending_size(const struct pending *pending)
{
	return sizeof(pending->answer) + pending->answer.length;
}

/* Adds the unsent bytes of an answer to the parts of a sendmsg(). Returns false if the image no
 * longer has the memory that a read asked for. */
static bool add_parts(struct data_link *link, struct pending *pending, uint64_t sent,
                      struct iovec *parts, int *count)
{
	const uint64_t head = sizeof(pending->answer);
	const struct ps_extent *extent = &pending->extent;
	uint8_t *bytes;
	uint64_t skip;

	if (sent < head) {
		parts[*count].iov_base = (uint8_t *)&pending->answer + sent;
		parts[(*count)++].iov_len = head - sent;
	}
	if (pending->answer.length == 0)
		return true;
	bytes = session_memory(link->session, extent->region, extent->offset, extent->length,
	                       false);
	if (!bytes)
		return false;
	skip = sent > head ? sent - head : 0;
	parts[*count].iov_base = bytes + skip;
	parts[(*count)++].iov_len = pending->answer.length - skip;
	return true;
}

static void dequeue_sent(struct data_link *link, uint64_t sent)
{
	assert(link->count > 0);
	link->sent += sent;
	while (link->count > 0 && link->sent >= pending_size(&link->queue[link->first])) {
		link->sent -= pending_size(&link->queue[link->first]);
		link->first++;
		link->count--;
	}
	if (link->count == 0)
		link->first = 0;
}

int data_flush(struct data_link *link)
{
	while (link->count > 0) {
		struct iovec parts[PARTS_MAX];
		uint64_t skip = link->sent;
		int count = 0;
		ssize_t n;

		for (unsigned i = 0; i < link->count && count < PARTS_MAX - 1; i++, skip = 0)
			if (!add_parts(link, &link->queue[link->first + i], skip, parts, &count))
				return -1;
		n = ps_stream_send(&link->stream, parts, (size_t)count);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
		dequeue_sent(link, (uint64_t)n);
	}
	return 0;
}
