/*
 * fabric_tcp.c - the data path over a TCP connection (proto/data/frame.h).
 *
 * Outgoing data is a queue of pieces: each frame's head, then the ranges of memory that are its
 * payload. post() sends the queue at once, usually all of it by one system call; under a cork,
 * cork(false) does that for all chains posted in the meantime. What the socket does not take stays
 * queued, by address, until poll() sends it.
 */
#include "answers.h"
#include "../core/env.h"
#include "../core/fabric.h"
#include "greeting.h"
#include "../host/socket.h"
#include "../../proto/data/frame.h"
#include "../core/cancel.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	PIECES_PER_CALL = 64,    /* most pieces that one system call sends */
	ANSWERS_PER_CALL = 256,  /* most answers that one system call receives */
	READS_IN_FLIGHT_MAX = 4, /* reads in flight at the same time */
};

#define BYTES_PER_CALL ((size_t)1 << 20) /* most bytes that one system call sends */
#define SEND_BUDGET \
	((size_t)8 << 20) /* most bytes that one post or poll sends: others wait for the lock */

/* A byte queue in a growing buffer, which starts over when it is empty. */
struct queue {
	uint8_t *base;
	size_t start, end; /* offsets of the first byte in the queue and of the end of the last */
	size_t size;       /* allocated bytes */
};

struct piece {
	const uint8_t *payload; /* memory to send; NULL for the next bytes of `heads` */
	size_t length;
};

struct ps_link {
	struct ps_greeting *greeting; /* NULL once the link is up */
	struct ps_stream stream;      /* its fd is -1 while the greeting dials */
	int broken;                   /* PS_LINK_OK, or the permanent failure */
	/* The kernel gave up retransmitting: the mirror's host acknowledged nothing in time. */
	bool lost;
	/* Longest time that sent bytes may stay unacknowledged, from struct ps_env. */
	uint32_t unarrived_ms;
	bool corked;         /* posted chains stay queued */
	uint64_t cookie;     /* cookie of the last frame that the mirror will answer */
	struct queue heads;  /* heads of frames, with their extents */
	struct queue pieces; /* elements of struct piece */
	struct ps_answers answers;
	uint64_t lengths[PS_REGIONS_MAX]; /* length of each region; 0 if the mirror gave none */
	uint8_t buffer[ANSWERS_PER_CALL * sizeof(struct ps_answer)];
};

/* --- the queue --- */

/* Reserves `len` bytes behind the queue's end. Returns where they begin, or NULL if out of
 * memory. */
static void *reserve_bytes(struct queue *queue, size_t len)
{
	size_t used = queue->end - queue->start;
	size_t size = queue->size ? queue->size : PS_PAGE;
	uint8_t *base;

	if (len <= queue->size - queue->end)
		return queue->base + queue->end;
	if (used + len <= queue->size / 2) {
		memmove(queue->base, queue->base + queue->start, used);
		queue->start = 0;
		queue->end = used;
		return queue->base + used;
	}
	while (size < queue->end + len)
		size *= 2;
	base = realloc(queue->base, size);
	if (!base)
		return NULL;
	queue->base = base;
	queue->size = size;
	return base + queue->end;
}

static void consume_bytes(struct queue *queue, size_t len)
{
	assert(len <= queue->end - queue->start);
	queue->start += len;
	if (queue->start == queue->end)
		queue->start = queue->end = 0;
}

static bool is_unsent(const struct ps_link *link)
{
	return link->pieces.start < link->pieces.end;
}

/* Returns the chain's i-th write; the slot comes last. */
static const struct ps_write *get_write(const struct ps_chain *chain, unsigned i)
{
	return i < chain->write_count ? &chain->writes[i] : &chain->slot;
}

/* Returns true if the range lies inside its region. Otherwise the caller has a bug; the mirror
 * would refuse the range and everything after it. */
static bool is_in_region(const struct ps_link *link, uint32_t region, uint64_t offset,
                         uint64_t length)
{
	return region < PS_REGIONS_MAX && length > 0 && length <= link->lengths[region] &&
	       offset <= link->lengths[region] - length;
}

/* Queues a frame of `count` writes, beginning with write number `first`. Returns false if out of
 * memory or if a write does not fit its region. */
static bool queue_frame(struct ps_link *link, const struct ps_chain *chain, unsigned first,
                        unsigned count, uint8_t flags)
{
	size_t head = sizeof(struct ps_frame) + count * sizeof(struct ps_extent);
	uint8_t *bytes = reserve_bytes(&link->heads, head);
	struct piece *piece = reserve_bytes(&link->pieces, (count + 1) * sizeof(*piece));
	struct ps_frame frame = {
		.op = PS_OP_WRITE,
		.flags = flags,
		.count = (uint16_t)count,
		.cookie = link->cookie,
	};
	unsigned i;

	if (!bytes || !piece)
		return false;
	memcpy(bytes, &frame, sizeof(frame));
	bytes += sizeof(frame);
	piece->payload = NULL;
	piece->length = head;
	for (i = 0; i < count; i++) {
		const struct ps_write *write = get_write(chain, first + i);
		struct ps_extent extent = { write->region, write->length, write->offset };

		if (extent.region == PS_REGION_PROMISE ||
		    !is_in_region(link, extent.region, extent.offset, extent.length))
			return false;
		memcpy(bytes, &extent, sizeof(extent));
		bytes += sizeof(extent);
		if (piece->payload && piece->payload + piece->length == write->src) {
			piece->length += write->length;
		} else {
			piece++;
			piece->payload = write->src;
			piece->length = write->length;
		}
	}
	link->heads.end += head;
	link->pieces.end = (size_t)((uint8_t *)(piece + 1) - link->pieces.base);
	return true;
}

static bool queue_read(struct ps_link *link, uint32_t region, uint64_t offset, uint32_t length)
{
	struct {
		struct ps_frame frame;
		struct ps_extent extent;
	} head = {
		.frame = { .op = PS_OP_READ, .count = 1, .cookie = link->cookie + 1 },
		.extent = { .region = region, .length = length, .offset = offset },
	};
	struct piece piece = { .payload = NULL, .length = sizeof(head) };
	void *bytes = reserve_bytes(&link->heads, sizeof(head));
	void *at = reserve_bytes(&link->pieces, sizeof(piece));

	if (!bytes || !at)
		return false;
	memcpy(bytes, &head, sizeof(head));
	memcpy(at, &piece, sizeof(piece));
	link->heads.end += sizeof(head);
	link->pieces.end += sizeof(piece);
	link->cookie++;
	link->answers.reads++;
	return true;
}

/* --- sending --- */

/* Fills in `parts` with the front of the queue. Returns their length in bytes. */
static size_t fill_iovecs(const struct ps_link *link, struct iovec *parts, size_t *count)
{
	const struct piece *piece = (const struct piece *)(link->pieces.base + link->pieces.start);
	const struct piece *end = (const struct piece *)(link->pieces.base + link->pieces.end);
	const uint8_t *head = link->heads.base + link->heads.start;
	size_t total = 0, n;

	for (*count = 0; piece < end && *count < PIECES_PER_CALL && total < BYTES_PER_CALL;
	     piece++) {
		n = piece->length < BYTES_PER_CALL - total ? piece->length : BYTES_PER_CALL - total;
		/* sendmsg() only reads the memory of an iovec. */
		parts[*count].iov_base = (void *)(piece->payload ? piece->payload : head);
		parts[*count].iov_len = n;
		if (!piece->payload)
			head += n;
		total += n;
		++*count;
	}
	return total;
}

/* Removes `n` bytes, which were sent, from the front of the queue. */
static void consume_sent(struct ps_link *link, size_t n)
{
	while (n > 0) {
		struct piece *piece = (struct piece *)(link->pieces.base + link->pieces.start);
		size_t part = n < piece->length ? n : piece->length;

		if (piece->payload)
			piece->payload += part;
		else
			consume_bytes(&link->heads, part);
		piece->length -= part;
		n -= part;
		if (piece->length == 0)
			consume_bytes(&link->pieces, sizeof(*piece));
	}
}

/* Returns the link's failure for an error of the socket. The kernel reports each error only once,
 * and post() ignores it, so `lost` remembers it. */
static int link_fault(struct ps_link *link, int error)
{
	link->lost = link->lost || error == ETIMEDOUT;
	return link->lost ? PS_LINK_LOST : PS_LINK_BROKEN;
}

/* Sends as much of the queue as the socket takes, up to SEND_BUDGET. */
static int flush_queue(struct ps_link *link)
{
	size_t budget = SEND_BUDGET;
	struct iovec parts[PIECES_PER_CALL];
	size_t count;

	while (is_unsent(link) && budget > 0) {
		PS_UNCANCELLED;
		size_t total = fill_iovecs(link, parts, &count);
		ssize_t n = ps_stream_send(&link->stream, parts, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ps_would_block(errno) ? PS_LINK_OK : link_fault(link, errno);
		consume_sent(link, (size_t)n);
		if ((size_t)n < total)
			return PS_LINK_OK;
		budget -= (size_t)n < budget ? (size_t)n : budget;
	}
	return PS_LINK_OK;
}

static int tcp_post(struct ps_link *link, const struct ps_chain *chain)
{
	unsigned total = chain->write_count + (chain->slot.length > 0);
	unsigned first, count;

	if (link->broken)
		return link->broken;
	link->cookie++;
	link->answers.writes++;
	for (first = 0; first < total; first += count) {
		count = total - first;
		if (count > PS_FRAME_EXTENTS_MAX)
			count = PS_FRAME_EXTENTS_MAX;
		if (!queue_frame(link, chain, first, count,
		                 first + count == total ? PS_FRAME_SIGNALLED : 0))
			return link->broken = PS_LINK_BROKEN;
	}
	if (total == 0)
		return link->broken = PS_LINK_BROKEN;
	/* poll() reports a failure, after it has handled the answers that arrived before it. */
	if (!link->corked)
		(void)flush_queue(link);
	return PS_LINK_OK;
}

static void tcp_cork(struct ps_link *link, bool corked)
{
	link->corked = corked;
	if (!corked && !link->broken)
		(void)flush_queue(link);
}

/* --- receiving --- */

/* Receives available bytes by one system call (with TLS, by one per record). Sets *more if there
 * may be more. */
static int receive_some(struct ps_link *link, bool *more)
{
	struct ps_answers *answers = &link->answers;
	bool direct = answers->payload > 0;
	size_t room = direct ? answers->payload : sizeof(link->buffer);
	PS_UNCANCELLED;
	ssize_t n;

	do {
		n = ps_stream_recv(&link->stream, direct ? answers->into : link->buffer, room);
	} while (n < 0 && errno == EINTR);
	*more = n == (ssize_t)room || ps_stream_pending(&link->stream);
	if (n < 0)
		return ps_would_block(errno) ? PS_LINK_OK : link_fault(link, errno);
	if (n == 0)
		return link_fault(link, 0);
	if (!direct)
		return ps_answers_feed(answers, link->buffer, (size_t)n);
	ps_answers_advance(answers, (size_t)n);
	return PS_LINK_OK;
}

static int receive_all(struct ps_link *link)
{
	bool more = true;
	int code = PS_LINK_OK;

	while (more && code == PS_LINK_OK)
		code = receive_some(link, &more);
	return code;
}

static int tcp_poll(struct ps_link *link)
{
	uint64_t completed;
	int unsent, code;

	if (!link->broken) {
		unsent = is_unsent(link) ? flush_queue(link) : PS_LINK_OK;
		/* Receive even if sending failed, because answers that arrived before the failure
		 * count. */
		code = receive_all(link);
		link->broken = code ? code : unsent;
	}
	completed = link->answers.completed;
	link->answers.completed = 0;
	return completed > 0 ? (int)completed : link->broken;
}

static bool tcp_waits(struct ps_link *link, struct pollfd *fd)
{
	if (link->greeting)
		return ps_greeting_get_pollfd(link->greeting, &link->stream, fd);
	fd->fd = link->stream.fd;
	fd->revents = 0;
	/* A broken link must be readable at once, so that poll() reports it: also if an answer
	 * broke it while its connection is fine. */
	if (link->broken) {
		(void)shutdown(link->stream.fd, SHUT_RD);
		fd->events = POLLIN;
		return true;
	}
	/* Bytes that TLS has already decrypted do not make the socket readable, so do not sleep. */
	fd->events = ps_stream_events(&link->stream,
	                              is_unsent(link) || ps_stream_pending(&link->stream));
	return link->answers.writes > 0;
}

/* --- reading --- */

/* Takes one step of a read: sends and receives as many bytes as it can, and waits if it could do
 * neither. */
static int read_step(struct ps_link *link, uint64_t until_ns)
{
	struct pollfd fd = { .fd = link->stream.fd };
	uint64_t left = link->answers.left;
	uint64_t writes = link->answers.writes;
	bool more = false;
	int code = flush_queue(link);

	if (code == PS_LINK_OK)
		code = receive_some(link, &more);
	if (code || more || left != link->answers.left || writes != link->answers.writes)
		return code;
	/* Break the link, because answers in flight would otherwise still be written to the
	 * caller's memory. */
	if (ps_monotonic() >= until_ns)
		return PS_LINK_BROKEN;
	fd.events = ps_stream_events(&link->stream, is_unsent(link));
	ps_poll(&fd, 1, until_ns);
	return PS_LINK_OK;
}

static int tcp_read(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                    uint64_t length, uint64_t patience_ns)
{
	struct ps_answers *answers = &link->answers;
	uint64_t until_ns = ps_monotonic() + patience_ns;
	uint64_t asked = 0, mark = length;
	uint32_t piece;

	if (length == 0 || link->broken)
		return link->broken;
	if (!is_in_region(link, region, offset, length))
		return link->broken = PS_LINK_BROKEN;
	answers->into = bytes;
	answers->left = length;
	while (answers->left > 0 && !link->broken) {
		while (asked < length && answers->reads < READS_IN_FLIGHT_MAX && !link->broken) {
			piece = length - asked < PS_READ_MAX ? (uint32_t)(length - asked)
			                                     : PS_READ_MAX;
			if (!queue_read(link, region, offset + asked, piece))
				link->broken = PS_LINK_BROKEN;
			asked += piece;
		}
		if (!link->broken)
			link->broken = read_step(link, until_ns);
		if (mark - answers->left >= PS_READ_STRIDE) {
			mark = answers->left;
			until_ns = ps_monotonic() + patience_ns;
		}
	}
	answers->into = NULL;
	return link->broken;
}

/* --- life --- */

/* Sets the lengths of the regions from the grant. */
static int set_regions(struct ps_link *link, const Perseas__Grant *grant, struct ps_error *error)
{
	uint64_t lengths[PS_REGIONS_MAX] = { 0 };
	size_t i;

	for (i = 0; i < grant->n_regions; i++) {
		const Perseas__Region *region = grant->regions[i];

		if (region->id >= PS_REGIONS_MAX || region->length == 0 || lengths[region->id])
			return ps_error_set(error, PERSEAS_EPROTOCOL,
			                    "the mirror named region %u of %llu bytes, which "
			                    "cannot be; is it a perseasd of this version?",
			                    region->id, (unsigned long long)region->length);
		lengths[region->id] = region->length;
	}
	memcpy(link->lengths, lengths, sizeof(lengths));
	return 0;
}

static int tcp_attach_step(struct ps_link *link, uint64_t until_ns, struct ps_error *error)
{
	int code = link->greeting ? ps_greeting_step(link->greeting, &link->stream, until_ns, error)
	                          : 1;

	if (code > 0 && link->greeting) {
		ps_greeting_free(link->greeting);
		link->greeting = NULL;
		if (link->unarrived_ms)
			(void)setsockopt(link->stream.fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
			                 &link->unarrived_ms, sizeof(link->unarrived_ms));
	}
	return code;
}

static struct ps_link *tcp_attach_begin(struct ps_env *env, const struct ps_address *address,
                                        const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                        struct ps_error *error)
{
	struct ps_link *link = calloc(1, sizeof(*link));

	(void)epoch;
	ps_close_all(fds, grant->descriptors);
	if (!link) {
		ps_error_set(error, PERSEAS_ENOMEM, "no memory for a connection to %s",
		             address->text);
		return NULL;
	}
	link->stream.fd = -1;
	link->unarrived_ms = env ? env->unacknowledged_limit_ms : 0;
	if (set_regions(link, grant, error))
		ps_error_prefix(error, "%s", address->text);
	else
		link->greeting = ps_greeting_new(env ? env->tls : NULL, address, grant, error);
	if (link->greeting)
		return link;
	free(link);
	return NULL;
}

static void tcp_detach(struct ps_link *link);

static struct ps_link *tcp_attach(struct ps_env *env, const struct ps_address *address,
                                  const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                  uint64_t until_ns, struct ps_error *error)
{
	struct ps_link *link = tcp_attach_begin(env, address, grant, fds, epoch, error);
	int code;

	if (!link)
		return NULL;
	while ((code = tcp_attach_step(link, until_ns, error)) == 0)
		ps_greeting_await(link->greeting, &link->stream, until_ns);
	if (code > 0)
		return link;
	tcp_detach(link);
	return NULL;
}

static int tcp_update(struct ps_link *link, const Perseas__Grant *grant, const int *fds,
                      struct ps_error *error)
{
	ps_close_all(fds, grant->descriptors);
	return set_regions(link, grant, error);
}

static void tcp_detach(struct ps_link *link)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (!link)
		return;
	ps_greeting_free(link->greeting);
	/* If anything is in flight, discard what the kernel has not sent yet. */
	if (link->broken || link->answers.writes > 0)
		(void)setsockopt(link->stream.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	ps_stream_close(&link->stream);
	free(link->heads.base);
	free(link->pieces.base);
	free(link);
}

/* Returns true if the mirror can be reached over tcp. A Unix socket also suits, if the mirror does
 * not share its memory. */
static bool tcp_suits(const struct ps_env *env, const struct ps_address *address,
                      const Perseas__Grant *grant)
{
	(void)env;
	if (address->scheme == PS_SCHEME_UNIX)
		return grant->descriptors == 0;
	return address->route == PS_ROUTE_ANY || address->route == PS_ROUTE_TCP;
}

const struct ps_fabric ps_fabric_tcp = {
	.name = "tcp",
	.staged = true,
	.is_usable_for = tcp_suits,
	.attach = tcp_attach,
	.attach_begin = tcp_attach_begin,
	.attach_step = tcp_attach_step,
	.update = tcp_update,
	.post = tcp_post,
	.cork = tcp_cork,
	.poll = tcp_poll,
	.read = tcp_read,
	.waits = tcp_waits,
	.detach = tcp_detach,
};
