/*
 * fetch_connection.c - see fetch_connection.h. pager_uffd.c calls it, on a lane's thread. A mirror
 * that sends anything but the answer that is due loses its connection, and the caller asks again
 * over a new one.
 */
#include "fetch_connection.h"

#include "tunnel.h"

#include "../host/socket.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"
#include "../../proto/base/standard_streams.h"
#include "../../proto/base/core_dump.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	IN = (1 << 20) + 8, /* a message after its length */
	MEMORY = 12 << 20,  /* three messages, unpacked */
	ROOM = 2 * PS_REACH_BLOCK,
	SILENCE_MS = 10000,
};

static_assert(PS_REACH_BULK <= PS_READ_REQUEST_MAX, "a mirror answers it");

/* Reserves memory that takes pages only when it is used. Returns NULL if that fails. */
static uint8_t *reserve_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	ps_core_dump_omit(memory, size);
	return memory;
}

bool ps_fetch_connection_init(struct ps_fetch_connection *reach)
{
	memset(reach, 0, sizeof(*reach));
	reach->fd = -1;
	reach->memory = reserve_memory(MEMORY + PS_REACH_PIECE + IN);
	reach->room = reserve_memory(ROOM);
	if (!reach->memory || !reach->room) {
		ps_fetch_connection_free(reach);
		return false;
	}
	reach->single = reach->memory + MEMORY;
	reach->in = reach->single + PS_REACH_PIECE;
	reach->block = reach->room + -(uintptr_t)reach->room % PS_REACH_BLOCK;
	/* Pages that a child process shares could not be moved. */
	madvise(reach->room, ROOM, MADV_DONTFORK);
	madvise(reach->room, ROOM, MADV_HUGEPAGE);
	return true;
}

uint8_t *ps_fetch_connection_answer_buffer(const struct ps_fetch_connection *reach, uint32_t length)
{
	return length <= PS_REACH_PIECE ? reach->single : reach->block;
}

void ps_fetch_connection_free(struct ps_fetch_connection *reach)
{
	if (reach->memory)
		munmap(reach->memory, MEMORY + PS_REACH_PIECE + IN);
	if (reach->room)
		munmap(reach->room, ROOM);
	reach->memory = reach->room = NULL;
}

static void use_next_address(struct ps_fetch_connection *reach)
{
	if (reach->way.count)
		reach->address_index = (reach->address_index + 1) % reach->way.count;
}

static void close_connection(struct ps_fetch_connection *reach)
{
	if (reach->fd >= 0)
		close(reach->fd);
	reach->fd = -1;
}

void ps_fetch_connection_cancel(struct ps_fetch_connection *reach)
{
	/* No mirror has answered at this address. */
	if (reach->fd >= 0 && !reach->is_greeted)
		use_next_address(reach);
	close_connection(reach);
	reach->is_connected = reach->is_greeted = reach->is_asking = false;
	reach->out_length = reach->out_done = 0;
	reach->in_length = reach->placed = reach->used_memory = 0;
	reach->arrived_message_count = reach->message_count = 0;
	reach->last_request_id = 0;
}

void ps_fetch_connection_set_addresses(struct ps_fetch_connection *reach,
                                       const struct ps_known_addresses *way)
{
	ps_fetch_connection_cancel(reach);
	reach->has_addresses = way != NULL;
	reach->address_index = 0;
	if (way)
		reach->way = *way;
}

/* --- connecting --- */

static void set_tcp_option(int fd, int option, int value)
{
	(void)setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

int ps_fetch_connect(const void *address, uint32_t length)
{
	const struct sockaddr *to = address;
	const int fd = ps_above_standard(
		socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	if (fd < 0)
		return -1;
	if (to->sa_family != AF_UNIX) {
		set_tcp_option(fd, TCP_NODELAY, 1);
		set_tcp_option(fd, TCP_USER_TIMEOUT, SILENCE_MS);
	}
	if (!connect(fd, to, length) || errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

/* Begins a connection. If that fails at once, the next call tries the next address. */
static bool begin_connection(struct ps_fetch_connection *reach)
{
	const struct ps_known_addresses *way = &reach->way;
	const bool tunnels = reach->tunnel && reach->way.address.scheme == PS_SCHEME_TCP;

	reach->fd = tunnels ? ps_tunnel_dial(reach->tunnel, way, reach->address_index)
	                    : ps_fetch_connect(way->to[reach->address_index],
	                                       way->lengths[reach->address_index]);
	if (reach->fd < 0)
		use_next_address(reach);
	return reach->fd >= 0;
}

/* Returns 1, 0 if the connection is not up yet, or -1 if it failed. */
static int finish_connecting(struct ps_fetch_connection *reach)
{
	int error, rc = reach->is_connected ? 1 : ps_connect_result(reach->fd, &error);

	reach->is_connected = rc > 0;
	return rc;
}

/* --- asking --- */

static bool append_bytes(struct ps_fetch_connection *reach, const void *bytes, size_t length)
{
	if (length > PS_REACH_OUT - reach->out_length)
		return false;
	memcpy(reach->out + reach->out_length, bytes, length);
	reach->out_length += length;
	return true;
}

static bool add_request(struct ps_fetch_connection *reach, Perseas__Request *request)
{
	uint32_t length;

	request->id = ++reach->last_request_id;
	length = (uint32_t)perseas__request__get_packed_size(request);
	if (!append_bytes(reach, &length, sizeof(length)) ||
	    length > PS_REACH_OUT - reach->out_length)
		return false;
	perseas__request__pack(request, reach->out + reach->out_length);
	reach->out_length += length;
	return true;
}

static bool add_status(struct ps_fetch_connection *reach, const struct ps_fetch_request *fetch)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	status.store = (char *)(uintptr_t)fetch->store;
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &status;
	return add_request(reach, &request);
}

static uint32_t piece_at(const struct ps_fetch_connection *reach, uint32_t done)
{
	const uint32_t most = reach->requested_bytes > PS_REACH_PIECE ? PS_REACH_BULK
	                                                              : PS_REACH_PIECE;

	return reach->requested_bytes - done < most ? reach->requested_bytes - done : most;
}

static bool add_read(struct ps_fetch_connection *reach, const struct ps_fetch_request *fetch,
                     uint32_t done)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	read.store = (char *)(uintptr_t)fetch->store;
	read.region = fetch->region;
	read.offset = fetch->offset + done;
	read.length = piece_at(reach, done);
	request.body_case = PERSEAS__REQUEST__BODY_READ;
	request.read = &read;
	return add_request(reach, &request);
}

/* Sends as much of the requests as the socket takes. Returns false if the connection is over. */
static bool send_requests(struct ps_fetch_connection *reach)
{
	while (reach->out_done < reach->out_length) {
		const ssize_t n = send(reach->fd, reach->out + reach->out_done,
		                       reach->out_length - reach->out_done,
		                       MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return ps_would_block(errno);
		reach->out_done += (size_t)n;
	}
	return true;
}

bool ps_fetch_connection_ask(struct ps_fetch_connection *reach,
                             const struct ps_fetch_request *fetch)
{
	struct ps_control_hello hello = { PS_CONTROL_MAGIC, ps_version_greeting() };

	if (!reach->has_addresses || fetch->length > PS_REACH_BLOCK)
		return false;
	reach->out_length = reach->out_done = 0;
	reach->used_memory = 0;
	reach->arrived_message_count = reach->message_count = 0;
	reach->requested_bytes = fetch->length;
	reach->answer_buffer = ps_fetch_connection_answer_buffer(reach, fetch->length);
	reach->arrived_bytes = 0;
	if (reach->fd < 0 &&
	    (!begin_connection(reach) || !append_bytes(reach, &hello, sizeof(hello))))
		return false;
	/* The mirror answers in the order of these requests. */
	reach->is_asking = true;
	if (!add_status(reach, fetch))
		return false;
	for (uint32_t done = 0; done < fetch->length;
	     done += piece_at(reach, done), reach->message_count++)
		if (!add_read(reach, fetch, done))
			return false;
	reach->message_count += 2;
	return add_status(reach, fetch);
}

/* --- answers --- */

/* Receives until `to` has `want` bytes; *have are there already. Returns 1, 0 if they are not
 * there yet, or -1 if the connection is over. */
static int receive_to(const struct ps_fetch_connection *reach, uint8_t *to, size_t *have,
                      size_t want)
{
	while (*have < want) {
		const ssize_t n = recv(reach->fd, to + *have, want - *have, MSG_DONTWAIT);

		if (n < 0 && ps_would_block(errno))
			return 0;
		if (n <= 0)
			return -1;
		*have += (size_t)n;
	}
	return 1;
}

static int receive_bytes(struct ps_fetch_connection *reach, size_t want)
{
	return receive_to(reach, reach->in, &reach->in_length, want);
}

static int take_hello(struct ps_fetch_connection *reach)
{
	const struct ps_control_hello *hello = (const void *)reach->in;
	const int got = receive_bytes(reach, sizeof(*hello));

	if (got <= 0)
		return got;
	reach->in_length = 0;
	if (hello->magic != PS_CONTROL_MAGIC)
		return -1;
	reach->is_greeted = ps_version_agreed(ps_version_greeting(), hello->version) > 0;
	return reach->is_greeted ? 1 : -1;
}

static void *allocate_memory(void *data, size_t size)
{
	struct ps_fetch_connection *reach = data;
	void *at = reach->memory + reach->used_memory;

	size = (size + 15) & ~(size_t)15;
	if (size > MEMORY - reach->used_memory)
		return NULL;
	reach->used_memory += size;
	return at;
}

static void free_no_memory(void *data, void *memory)
{
	(void)data;
	(void)memory;
}

/* Returns true if the next message has a piece: it is neither the first status nor the last. */
static bool is_piece_due(const struct ps_fetch_connection *reach)
{
	return reach->arrived_message_count > 0 &&
	       reach->arrived_message_count + 1 < reach->message_count;
}

/* Puts the bytes of a piece into their place. Returns 1, or -1 if their length is wrong. */
static int take_piece(struct ps_fetch_connection *reach, const ProtobufCBinaryData *bytes)
{
	const uint32_t piece = piece_at(reach, reach->arrived_bytes);

	if (bytes->len != piece)
		return -1;
	if (bytes->data != reach->answer_buffer + reach->arrived_bytes)
		memcpy(reach->answer_buffer + reach->arrived_bytes, bytes->data, piece);
	reach->arrived_bytes += piece;
	return 1;
}

/* Takes the reply that is due. Returns 1, 0 if it is a sign of progress, or -1 for any other
 * reply. */
static int take_reply(struct ps_fetch_connection *reach, Perseas__Reply *reply)
{
	const uint64_t due = reach->last_request_id - (reach->message_count - 1) +
	                     reach->arrived_message_count;
	const bool is_piece = is_piece_due(reach);

	if (reply->id != due || reply->status != PERSEAS__STATUS__STATUS_OK)
		return -1;
	if (reply->body_case == PERSEAS__REPLY__BODY_WORKING)
		return 0;
	if (reply->body_case != (is_piece ? PERSEAS__REPLY__BODY_READ : PERSEAS__REPLY__BODY_STORE))
		return -1;
	if (is_piece)
		return take_piece(reach, &reply->read->bytes);
	*(reach->arrived_message_count == 0 ? &reach->before : &reach->after) = reply;
	return 1;
}

/* Receives the bytes of the piece that is due straight into their place if the message begins as
 * mirrors pack it. Moves *at, the offset of the fields to unpack, behind that head. Leaves *bytes
 * empty if the message is any other one. Returns like receive_to(). */
static int receive_piece(struct ps_fetch_connection *reach, uint32_t length, size_t *at,
                         ProtobufCBinaryData *bytes)
{
	const uint32_t piece = piece_at(reach, reach->arrived_bytes);
	uint8_t head[PS_READ_REPLY_HEAD];
	const size_t head_length = ps_read_reply_head(piece, head);
	int rc;

	if (!is_piece_due(reach) || length < head_length + piece)
		return 1;
	rc = receive_bytes(reach, *at + head_length);
	if (rc <= 0 || memcmp(reach->in + *at, head, head_length) != 0)
		return rc;
	*at += head_length;
	*bytes = (ProtobufCBinaryData){ piece, reach->answer_buffer + reach->arrived_bytes };
	return receive_to(reach, bytes->data, &reach->placed, piece);
}

static int take_message(struct ps_fetch_connection *reach)
{
	ProtobufCAllocator memory = { allocate_memory, free_no_memory, reach };
	Perseas__ReadReply read = PERSEAS__READ_REPLY__INIT;
	const size_t used = reach->used_memory;
	const bool is_piece = is_piece_due(reach);
	Perseas__Reply *reply;
	uint32_t length;
	size_t at = sizeof(length), end;
	const char *why;
	int rc = receive_bytes(reach, sizeof(length));

	if (rc <= 0)
		return rc;
	memcpy(&length, reach->in, sizeof(length));
	if (!length || length > PS_MESSAGE_MAX)
		return -1;
	rc = receive_piece(reach, length, &at, &read.bytes);
	end = sizeof(length) + length - read.bytes.len;
	if (rc > 0)
		rc = receive_bytes(reach, end);
	if (rc <= 0)
		return rc;
	reach->in_length = reach->placed = 0;
	reply = ps_reply_unpack_in(&memory, reach->in + at, end - at, read.bytes.len ? &read : NULL,
	                           &why);
	rc = reply ? take_reply(reach, reply) : -1;
	/* Only the two statuses are used later. */
	if (rc == 0 || is_piece)
		reach->used_memory = used;
	reach->arrived_message_count += rc > 0;
	return rc < 0 ? rc : 1;
}

int ps_fetch_connection_poll(struct ps_fetch_connection *reach, struct ps_fetch_answer *fetched)
{
	int rc = reach->fd >= 0 ? finish_connecting(reach) : -1;

	if (rc > 0 && !send_requests(reach))
		rc = -1;
	if (rc > 0 && !reach->is_greeted)
		rc = take_hello(reach);
	while (rc > 0 && reach->arrived_message_count < reach->message_count)
		rc = take_message(reach);
	if (rc <= 0)
		return rc;
	reach->is_asking = false;
	fetched->seen = NULL;
	fetched->before = reach->before->store->status;
	fetched->bytes = (ProtobufCBinaryData){ reach->requested_bytes, reach->answer_buffer };
	fetched->after = reach->after->store->status;
	return 1;
}

uint64_t ps_fetch_connection_received_bytes(const struct ps_fetch_connection *reach)
{
	return (uint64_t)reach->arrived_bytes + reach->placed + reach->in_length;
}

bool ps_fetch_connection_fill_pollfd(const struct ps_fetch_connection *reach, struct pollfd *fd)
{
	const bool sends = !reach->is_connected || reach->out_done < reach->out_length;

	*fd = (struct pollfd){ reach->fd, (short)(sends ? POLLIN | POLLOUT : POLLIN), 0 };
	/* The end of an idle connection shows at the next request. */
	return reach->is_asking && reach->fd >= 0;
}
