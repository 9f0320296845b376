/*
 * fabric_verbs.c - the data path over RDMA: a chain becomes linked work requests behind one
 * doorbell, which write into the mirror's registered memory; the mirror's processor takes no part.
 *
 * A reliable connection delivers writes in the order in which they were posted. So undo record,
 * data and slot go out together, and the slot's completion stands for all of them. In two cases it
 * does not; both use barriers in the send queue:
 *
 * - phased: the mirror says that its fabric may reorder writes. Data is posted once the undo
 *   record is complete, the slot once the data is complete, and the next chain's undo record
 *   once the slot is.
 * - flush: a write counts only once a later read has returned. Operators can ask for this
 *   (perseasd --rdma-flush on), because a completion may mean that the bytes are still in a
 *   buffer of the mirror's device. iWARP always needs it: there a completion means that the
 *   bytes have been handed to TCP. The read pushes earlier writes to memory. As I1 to I3 hold
 *   for writes that count, each phase ends with a read. (Devices that support FLUSH could do
 *   without the reads, but rdma-core 44 has no call for it.)
 *
 * After a completion with an error, the fate of the writes is unknown. A fence looks the same: a
 * fenced owner learns of it when it claims the session again.
 */
#include "verbs_link.h"

#include "../core/address.h"
#include "../host/socket.h"
#include "verbs_refuse.h"
#include "../../proto/base/standard_streams.h"
#include "../core/cancel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	/* longest message in bytes: soft-RoCE takes 8 MiB, other devices take more */
	MESSAGE_MAX = 8 << 20,
	PIECE = 64 << 10, /* bytes of one RDMA read; a large read is split into pieces */
	STEP = 1024,      /* bytes copied by one memcpy */
	SPINS = 64,       /* times that read() polls for a completion before it sleeps */
	SMALL_READ = 8,   /* bytes of a read that serves as a heartbeat or a flush */
};

static_assert(PS_LANDING % PIECE == 0, "a piece does not wrap");

struct region {
	uint64_t address; /* address at the mirror */
	uint64_t length;  /* 0 if the mirror gave no such region */
	uint32_t key;
};

struct ps_link {
	struct ps_connection c;
	struct ps_attempt *attempt; /* NULL once the link is up */
	struct ps_queue queue;
	uintptr_t staging; /* the registered ring, which chains are sent from */
	size_t staging_size;
	bool phased; /* each group of a chain waits for the previous one; see the top of the file */
	bool flush;  /* each group ends with a read that flushes the writes; implies phased */
	bool armed;  /* rdma_waits() requested an event for the next completion */
	int ready;   /* an always readable eventfd, for rdma_waits() if nothing is awaited */
	int broken;  /* PS_LINK_OK, or the permanent failure */
	struct region regions[PS_REGIONS_MAX];
};

/* --- posting --- */

/* Sets the request's remote address and key to those of a range of a region. Returns false if the
 * range is not inside the region: that is a bug of the caller, and the mirror would refuse the
 * range and everything after it. */
static bool set_remote(const struct ps_link *link, uint32_t region, uint64_t offset,
                       uint64_t length, struct ps_request *request)
{
	const struct region *r;

	if (region >= PS_REGIONS_MAX || length == 0)
		return false;
	r = &link->regions[region];
	if (length > r->length || offset > r->length - length)
		return false;
	request->remote = r->address + offset;
	request->rkey = r->key;
	return true;
}

/* Sets the request's local address and key: in the ring if the write's source lies there, else of a
 * copy in the pad. Returns false if the pad has no space. */
static bool set_local(struct ps_link *link, const struct ps_write *write,
                      struct ps_request *request)
{
	uintptr_t at = (uintptr_t)write->src - link->staging;
	uint8_t *copy;

	request->pad_bytes = 0;
	if (at < link->staging_size && write->length <= link->staging_size - at) {
		request->local = (uintptr_t)write->src;
		request->lkey = link->c.device->staging->lkey;
		return true;
	}
	copy = ps_queue_reserve_pad(&link->queue, write->length, &request->pad_bytes);
	if (!copy)
		return false;
	memcpy(copy, write->src, write->length);
	request->local = (uintptr_t)copy;
	request->lkey = link->c.pad_mr->lkey;
	return true;
}

/* Queues one write, split into messages of MESSAGE_MAX bytes. The last of them gets `flags`. */
static bool queue_write(struct ps_link *link, const struct ps_write *write, uint16_t flags)
{
	struct ps_request request;
	uint32_t left = write->length;
	uint16_t pad;

	if (write->region == PS_REGION_PROMISE ||
	    !set_remote(link, write->region, write->offset, write->length, &request) ||
	    !set_local(link, write, &request))
		return false;
	pad = request.pad_bytes;
	while (left > 0) {
		request.length = left < MESSAGE_MAX ? left : MESSAGE_MAX;
		left -= request.length;
		request.flags = left ? 0 : flags;
		request.pad_bytes = left ? 0 : pad;
		if (!ps_queue_push(&link->queue, &request))
			return false;
		request.local += request.length;
		request.remote += request.length;
	}
	return true;
}

/* Queues a read of a few bytes, whose answer comes after all earlier writes. */
static bool queue_small_read(struct ps_link *link, uint16_t flags)
{
	struct ps_request request = {
		.local = (uintptr_t)link->c.pad,
		.length = SMALL_READ,
		.lkey = link->c.pad_mr->lkey,
		.flags = (uint16_t)(PS_REQUEST_READ | PS_REQUEST_SIGNALLED | flags),
	};

	return set_remote(link, PS_REGION_LOG, 0, SMALL_READ, &request) &&
	       ps_queue_push(&link->queue, &request);
}

/* Queues a group of a chain: the writes of its undo record, of its data, or of its slot. `last`: no
 * other group follows. */
static bool queue_chain_group(struct ps_link *link, const struct ps_write *writes, unsigned count,
                              bool last)
{
	uint16_t end = 0;

	if (last)
		end |= PS_REQUEST_SIGNALLED | PS_REQUEST_CHAIN;
	if (link->phased)
		end |= PS_REQUEST_SIGNALLED | PS_REQUEST_BARRIER;
	for (unsigned i = 0; i < count; i++)
		if (!queue_write(link, &writes[i], i + 1 < count || link->flush ? 0 : end))
			return false;
	return !link->flush || queue_small_read(link, end);
}

static int rdma_post(struct ps_link *link, const struct ps_chain *chain)
{
	PS_UNCANCELLED;
	bool slot = chain->slot.length > 0, data = chain->write_count > chain->undo_write_count;
	bool good = slot || chain->write_count > 0;

	if (link->broken)
		return link->broken;
	if (chain->undo_write_count > 0)
		good = good && queue_chain_group(link, chain->writes, chain->undo_write_count,
		                                 !data && !slot);
	if (data)
		good = good &&
		       queue_chain_group(link, chain->writes + chain->undo_write_count,
		                         chain->write_count - chain->undo_write_count, !slot);
	if (slot)
		good = good && queue_chain_group(link, &chain->slot, 1, true);
	if (!good)
		return link->broken = PS_LINK_BROKEN;
	ps_queue_post(&link->queue);
	/* poll() reports a failure, after it has handled the requests that completed before it. */
	return PS_LINK_OK;
}

/* --- completions --- */

static void collect_completions(struct ps_link *link)
{
	ps_queue_collect(&link->queue);
	if (link->queue.broken)
		link->broken = PS_LINK_BROKEN;
}

/* Handles events of the channels, then completions. In this order a completion whose event was
 * taken is handled too, and a later one has an event of its own. */
static void handle_events(struct ps_link *link)
{
	bool lives = ps_connection_handle_event(&link->c);

	link->armed = false;
	collect_completions(link);
	if (!lives)
		link->broken = PS_LINK_BROKEN;
}

/* Handles completions and events that have arrived. Makes a system call only if rdma_waits() has
 * requested events. */
static void make_progress(struct ps_link *link)
{
	if (link->broken)
		return;
	if (link->armed)
		handle_events(link);
	else
		collect_completions(link);
}

static int rdma_poll(struct ps_link *link)
{
	PS_UNCANCELLED;
	unsigned chains;

	make_progress(link);
	chains = link->queue.chains;
	link->queue.chains = 0;
	return chains > 0 ? (int)chains : link->broken;
}

static bool has_progress(const struct ps_link *link, unsigned pieces)
{
	return link->broken || link->queue.chains || link->queue.pieces != pieces;
}

static bool rdma_waits(struct ps_link *link, struct pollfd *fd)
{
	PS_UNCANCELLED;
	unsigned pieces = link->queue.pieces;

	*fd = (struct pollfd){ .fd = link->ready, .events = POLLIN };
	if (link->attempt) {
		if (link->c.channel)
			fd->fd = link->c.channel->fd;
		return true;
	}
	if (has_progress(link, pieces))
		return true;
	if (ps_queue_is_idle(&link->queue))
		return false;
	/* A completion that came before this request makes no event, so collect completions after
	 * it. An event left over from an earlier request only ends one sleep too early. */
	if (link->c.verbs->req_notify_cq(link->c.cq, 0))
		link->broken = PS_LINK_BROKEN;
	else
		collect_completions(link);
	link->armed = true;
	if (!has_progress(link, pieces))
		fd->fd = link->c.wake;
	return true;
}

static void rdma_send_heartbeat(struct ps_link *link)
{
	PS_UNCANCELLED;
	if (link->broken || !ps_queue_is_idle(&link->queue))
		return;
	/* The heartbeat is a read, because a completed read proves that the mirror's device
	 * answered, which a completed write over iWARP does not. */
	if (!queue_small_read(link, PS_REQUEST_HEARTBEAT))
		link->broken = PS_LINK_BROKEN;
	ps_queue_post(&link->queue);
}

struct ps_link_counts ps_verbs_counts(const struct ps_link *link)
{
	return link->queue.counts;
}

/* --- reading --- */

/* Waits until a request has completed, with little use of the processor. */
static void wait_for_completion(struct ps_link *link, uint64_t until_ns)
{
	const unsigned pieces = link->queue.pieces;
	struct pollfd fd;

	for (unsigned i = 0; i < SPINS; i++) {
		make_progress(link);
		if (link->broken || link->queue.pieces != pieces || ps_queue_is_idle(&link->queue))
			return;
	}
	if (ps_monotonic() >= until_ns)
		link->broken = PS_LINK_BROKEN;
	else if (rdma_waits(link, &fd))
		ps_poll(&fd, 1, until_ns);
}

/* A read in progress. Its pieces land in the device's buffer in turn, which holds a whole number of
 * them. It requests more pieces than the mirror serves at once; the device makes the others
 * wait. */
struct reading {
	uint32_t region;
	uint64_t offset, length;
	uint8_t *to;          /* the caller's memory */
	uint64_t asked, done; /* bytes that were requested, and that were copied to the caller */
};

static uint32_t piece_length(const struct reading *r, uint64_t at)
{
	return r->length - at < PIECE ? (uint32_t)(r->length - at) : PIECE;
}

static uint8_t *landing_place(const struct ps_link *link, uint64_t at)
{
	return link->c.device->buffer + at % PS_LANDING;
}

static bool request_pieces(struct ps_link *link, struct reading *r)
{
	while (r->asked < r->length && r->asked - r->done < PS_LANDING) {
		struct ps_request request = {
			.local = (uintptr_t)landing_place(link, r->asked),
			.length = piece_length(r, r->asked),
			.lkey = link->c.device->landing->lkey,
			.flags = PS_REQUEST_READ | PS_REQUEST_SIGNALLED | PS_REQUEST_PIECE,
		};

		if (!set_remote(link, r->region, r->offset + r->asked, request.length, &request) ||
		    !ps_queue_push(&link->queue, &request))
			return false;
		r->asked += request.length;
	}
	ps_queue_post(&link->queue);
	return true;
}

/* Copies a piece that has landed to the caller, while other pieces are in flight. It copies in
 * small steps: for a large copy memcpy uses one instruction, which emulators execute byte by
 * byte. */
static void copy_piece(struct ps_link *link, struct reading *r)
{
	const uint8_t *from = landing_place(link, r->done);
	uint32_t length = piece_length(r, r->done);

	for (uint32_t at = 0; at < length; at += STEP)
		memcpy(r->to + r->done + at, from + at, length - at < STEP ? length - at : STEP);
	r->done += length;
	link->queue.pieces--;
}

static int rdma_read(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                     uint64_t length, uint64_t patience_ns)
{
	uint64_t until_ns = ps_monotonic() + patience_ns, mark = 0;
	struct reading r = { .region = region, .offset = offset, .length = length, .to = bytes };
	struct ps_request whole;

	if (length == 0 || link->broken)
		return link->broken;
	if (!set_remote(link, region, offset, length, &whole))
		return link->broken = PS_LINK_BROKEN;
	while (r.done < length && !link->broken) {
		if (!request_pieces(link, &r))
			link->broken = PS_LINK_BROKEN;
		if (link->queue.pieces == 0 && !link->broken)
			wait_for_completion(link, until_ns);
		if (link->queue.pieces > 0)
			copy_piece(link, &r);
		if (r.done - mark >= PS_READ_STRIDE) {
			mark = r.done;
			until_ns = ps_monotonic() + patience_ns;
		}
	}
	if (r.done == length)
		return PS_LINK_OK;
	/* Disconnect, because pieces in flight would otherwise land in the buffer during the next
	 * read, which may be a read over another link. */
	ps_connection_disconnect(&link->c);
	return link->broken;
}

/* --- life --- */

static int fail_bad_region(const Perseas__Region *region, struct ps_error *error)
{
	return ps_error_set(error, PERSEAS_EPROTOCOL,
	                    "the mirror named region %u of %llu bytes at 0x%llx, which cannot be; "
	                    "is it a perseasd of this version?",
	                    region->id, (unsigned long long)region->length,
	                    (unsigned long long)region->address);
}

/* Sets the regions' addresses, lengths and keys from the grant. */
static int set_regions(struct ps_link *link, const Perseas__Grant *grant, struct ps_error *error)
{
	struct region regions[PS_REGIONS_MAX] = { { 0 } };

	for (size_t i = 0; i < grant->n_regions; i++) {
		const Perseas__Region *from = grant->regions[i];
		struct region *to = from->id < PS_REGIONS_MAX ? &regions[from->id] : NULL;

		if (!to || from->length == 0 || to->length ||
		    from->address + from->length < from->address)
			return fail_bad_region(from, error);
		if (from->address == 0 && from->key == 0)
			return ps_error_set(error, PERSEAS_ERDMA,
			                    "the mirror gave no key to region %u: %s", from->id,
			                    *grant->rdma_trouble ? grant->rdma_trouble
			                                         : "see its log");
		*to = (struct region){ from->address, from->length, from->key };
	}
	if (regions[PS_REGION_LOG].length <= PS_RING_OFFSET)
		return ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "the mirror gave no log; is it a "
		                    "perseasd of this version?");
	memcpy(link->regions, regions, sizeof(regions));
	return 0;
}

static int check_grant(const struct ps_address *address, const Perseas__Grant *grant,
                       struct ps_error *error)
{
	if (!grant->rdma_port)
		return ps_error_set(error, PERSEAS_ERDMA,
		                    "%s offers no RDMA: %s. Without RDMA it is tcp://%s:%s",
		                    address->text,
		                    *grant->rdma_trouble ? grant->rdma_trouble
		                                         : "its perseasd was not told to",
		                    address->host, address->port);
	if (grant->rdma_port > UINT16_MAX || grant->token.len != PS_ID_SIZE)
		return ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "%s gave no port, or no token, for the RDMA connection; is it "
		                    "a perseasd of this version?",
		                    address->text);
	return 0;
}

static void rdma_detach(struct ps_link *link)
{
	if (!link)
		return;
	if (link->c.verbs)
		ps_connection_close(&link->c);
	ps_attempt_free(link->attempt);
	ps_queue_free(&link->queue);
	if (link->ready >= 0)
		close(link->ready);
	free(link);
}

static int fail_no_memory(const struct ps_address *address, struct ps_error *error)
{
	return ps_error_set(error, PERSEAS_ENOMEM, "no memory for a connection to %s",
	                    address->text);
}

/* Creates a link that is not connected yet. Returns NULL on failure, with *error set. */
static struct ps_link *create_link(struct ps_env *env, const struct ps_address *address,
                                   const Perseas__Grant *grant, bool asks, struct ps_error *error)
{
	struct ps_link *link;

	if (check_grant(address, grant, error))
		return NULL;
	link = calloc(1, sizeof(*link));
	if (!link) {
		fail_no_memory(address, error);
		return NULL;
	}
	link->ready = ps_above_standard(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
	if (link->ready < 0)
		ps_error_set(error, PERSEAS_ESYSTEM,
		             "%s: no eventfd (%s); raise the limit on open files", address->text,
		             strerror(errno));
	else if (!asks && set_regions(link, grant, error))
		ps_error_prefix(error, "%s", address->text);
	else
		link->attempt = ps_attempt_new(&link->c, env, address, grant, asks, error);
	if (link->attempt)
		return link;
	rdma_detach(link);
	return NULL;
}

static struct ps_link *rdma_attach_begin(struct ps_env *env, const struct ps_address *address,
                                         const Perseas__Grant *grant, const int *fds,
                                         uint64_t epoch, struct ps_error *error)
{
	struct ps_link *link;

	(void)epoch;
	ps_close_all(fds, grant->descriptors);
	link = create_link(env, address, grant, false, error);
	if (!link)
		return NULL;
	link->staging = (uintptr_t)env->staging_memory;
	link->staging_size = env->staging_bytes;
	link->flush = grant->flush;
	link->phased = grant->phased;
	return link;
}

static struct ps_link *rdma_leads_begin(struct ps_env *env, const struct ps_address *address,
                                        const Perseas__Grant *grant, struct ps_error *error)
{
	return create_link(env, address, grant, true, error);
}

/* Completes a link whose connection is up, with everything that depends on the device. */
static int finish_attach(struct ps_link *link, struct ps_error *error)
{
	if (ps_queue_init(&link->queue, &link->c))
		return fail_no_memory(&link->attempt->address, error);
	link->flush = link->flush || ps_device_is_iwarp(link->c.device->context);
	link->phased = link->phased || link->flush;
	return 1;
}

static int rdma_attach_step(struct ps_link *link, uint64_t until_ns, struct ps_error *error)
{
	int code = link->attempt ? ps_attempt_step(link->attempt, until_ns, error) : 1;

	if (code <= 0 || !link->attempt || link->attempt->only_asks)
		return code;
	code = finish_attach(link, error);
	if (code > 0) {
		ps_attempt_free(link->attempt);
		link->attempt = NULL;
	}
	return code;
}

static struct ps_link *rdma_attach(struct ps_env *env, const struct ps_address *address,
                                   const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                   uint64_t until_ns, struct ps_error *error)
{
	struct ps_link *link = rdma_attach_begin(env, address, grant, fds, epoch, error);
	struct pollfd fd;
	int code = link ? 0 : error->code;

	while (!code) {
		uint64_t start = ps_monotonic();

		code = rdma_attach_step(link, until_ns, error);
		until_ns += ps_monotonic() - start;
		if (!code && rdma_waits(link, &fd))
			ps_poll(&fd, 1, until_ns);
	}
	if (code > 0)
		return link;
	rdma_detach(link);
	return NULL;
}

static int rdma_update(struct ps_link *link, const Perseas__Grant *grant, const int *fds,
                       struct ps_error *error)
{
	ps_close_all(fds, grant->descriptors);
	return set_regions(link, grant, error);
}

static bool rdma_suits(const struct ps_env *env, const struct ps_address *address,
                       const Perseas__Grant *grant)
{
	if (!env->verbs || address->scheme != PS_SCHEME_TCP)
		return false;
	return address->route == PS_ROUTE_RDMA ||
	       (address->route == PS_ROUTE_ANY && grant->rdma_port > 0);
}

const struct ps_fabric ps_fabric_rdma = {
	.name = "rdma",
	.staged = true,
	.poll_consumes_event = true,
	.is_usable_for = rdma_suits,
	.attach = rdma_attach,
	.attach_begin = rdma_attach_begin,
	.attach_step = rdma_attach_step,
	.begin_route_test = rdma_leads_begin,
	.update = rdma_update,
	.post = rdma_post,
	.poll = rdma_poll,
	.read = rdma_read,
	.waits = rdma_waits,
	.beat = rdma_send_heartbeat,
	.detach = rdma_detach,
};
