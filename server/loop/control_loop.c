/*
 * control_loop.c - control connections over libevent. A connection reads one message at a time, and
 * no request before the last reply is sent, so neither buffer exceeds one message. A slow peer
 * costs only a timer.
 */
#include "connection.h"

#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"
#include "../../proto/base/tls.h"
#include "../store/status.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	INPUT_KEEP = 64 << 10, /* bytes of input buffer that an owner keeps between messages */
	TURN_MS = 2,           /* time after which other connections have their turn */
};

static struct connection *connection_of_session(struct session *session)
{
	return (struct connection *)session;
}

static void session_cut(struct session *session)
{
	daemon_cut_data_paths(connection_of_session(session)->daemon, session);
}

static bool session_process_may_write(struct session *session)
{
	return session->shared && shm_process_is_alive(connection_of_session(session)->pidfd);
}

static struct holder *session_get_holder(struct session *session)
{
	return shm_holder_new(connection_of_session(session)->pidfd);
}

/* Returns for how long the peer has sent nothing. Unread bytes in the socket count as received,
 * unless a reply waits for the peer to take it. */
static uint64_t session_silent_ms(struct session *session)
{
	struct connection *connection = connection_of_session(session);
	char byte;

	if (session->local && !shm_process_is_alive(connection->pidfd))
		return UINT64_MAX;
	if (connection->due == DUE_RESUME || connection->is_parked || connection->runs_as_job)
		return 0;
	if (connection->output.len == 0 &&
	    (ps_stream_pending(&connection->stream) ||
	     recv(connection->stream.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0))
		return 0;
	return connection_now_ms() - connection->admitted.last_heard_ms;
}

static uint64_t session_clock_ns(struct session *session)
{
	struct timespec now;

	(void)session;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void session_fill_load(struct session *session, Perseas__HostReply *reply)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	double load;

	(void)session;
	reply->processors = processors > 0 ? (uint32_t)processors : 0;
	if (getloadavg(&load, 1) == 1 && load >= 0 && load < 1000000)
		reply->load = (uint32_t)(load * 1000);
}

static void session_fill_grant(struct session *session, Perseas__Grant *grant)
{
	daemon_fill_grant(connection_of_session(session)->daemon, session, grant);
}

static bool session_offers_rdma(struct session *session, char *why, size_t size)
{
	return daemon_offers_rdma(connection_of_session(session)->daemon, session, why, size);
}

static bool session_has_room_for_owner(const struct session *session)
{
	return admission_owner_fits(&((const struct connection *)session)->daemon->admission);
}

const char *connection_get_origin(const struct session *session)
{
	return ((const struct connection *)session)->admitted.origin->name;
}

bool connection_get_address(const struct session *session, struct sockaddr_storage *address)
{
	socklen_t len = sizeof(*address);

	return !session->local && getsockname(((const struct connection *)session)->stream.fd,
	                                      (struct sockaddr *)address, &len) == 0;
}

const struct session_ops connection_session = {
	.cut = session_cut,
	.may_write = session_process_may_write,
	.get_holder = session_get_holder,
	.silent_ms = session_silent_ms,
	.clock_ns = session_clock_ns,
	.expiries = connection_get_tls_expiries,
	.load = session_fill_load,
	.grant = session_fill_grant,
	.offers_rdma = session_offers_rdma,
	.has_room_for_owner = session_has_room_for_owner,
};

static void free_event(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

/* Frees the connection, except its stream. */
static void free_connection(struct connection *connection)
{
	assert(daemon_has_lock(connection->daemon));
	connection_return_token(connection);
	connection_leave_parked(connection);
	connection_leave_watchers(connection);
	store_session_ended(&connection->session);
	if (connection->next)
		connection->next->link = connection->link;
	*connection->link = connection->next;
	admission_remove(&connection->admitted);
	connection->input_capacity = 0;
	connection_free_output(connection);
	free_event(&connection->readable);
	free_event(&connection->writable);
	free_event(&connection->due_timer);
	free_event(&connection->hangup_event);
	if (connection->pidfd >= 0)
		close(connection->pidfd);
	free(connection->input);
	free(connection);
}

void connection_close(struct connection *connection)
{
	struct ps_stream stream = connection->stream;
	struct connection *kept = connection_of_ended_lifeline(connection);

	if (connection->runs_as_job) {
		connection->close_after_job = true;
		job_cancel(&connection->job);
		return;
	}
	/* A failed handshake has been logged before. */
	if (connection->stage != STAGE_TLS && ps_stream_fault(&stream))
		log_limited(&connection->admitted.origin->log_limit, LOG_LEVEL_WARNING,
		            "tls-broken", &(struct log_fields){ .peer = connection->session.peer },
		            "the connection from %s is over: %s", connection->session.peer,
		            ps_stream_fault_text(&stream));
	free_connection(connection);
	ps_stream_close(&stream);
	if (kept)
		connection_close(kept);
}

static int send_hello(struct connection *connection, uint32_t answer)
{
	const struct ps_control_hello hello = { PS_CONTROL_MAGIC, answer };

	connection->output.bytes = malloc(sizeof(hello));
	if (!connection->output.bytes)
		return -1;
	memcpy(connection->output.bytes, &hello, sizeof(hello));
	connection->output.len = sizeof(hello);
	return connection_send_output(connection);
}

/* Answers the hello even if there is no common version, so that the peer can say what is wrong. */
static int receive_hello(struct connection *connection)
{
	struct ps_control_hello hello;
	char theirs[PS_VERSION_TEXT], ours[PS_VERSION_TEXT];

	assert(connection->stage == STAGE_HELLO && connection->input_length == sizeof(hello));
	memcpy(&hello, connection->input, sizeof(hello));
	connection->input_length = 0;
	connection_set_stage(connection, STAGE_OPEN);
	connection->session.version = ps_version_common(hello.version);
	if (!connection->session.version) {
		log_limited(daemon_count_refusal(connection->daemon, REFUSED_HELLO),
		            LOG_LEVEL_WARNING, "other-version",
		            &(struct log_fields){ .peer = connection->session.peer },
		            "%s speaks %s of the protocol, this daemon %s: upgrade the older of "
		            "the two",
		            connection->session.peer, ps_version_text(theirs, hello.version),
		            ps_version_text(ours, ps_version_greeting()));
		connection_set_stage(connection, STAGE_FLUSHING);
	}
	connection_stop_timer(connection, DUE_HELLO);
	return send_hello(connection, ps_version_answer(hello.version));
}

static uint32_t message_length(const struct connection *connection)
{
	uint32_t length;

	assert(connection->input_length >= sizeof(length));
	memcpy(&length, connection->input, sizeof(length));
	return length;
}

static void count_reply(struct connection *connection, const struct control_reply *reply,
                        uint64_t took_ns)
{
	const char *peer = connection->session.peer;
	const struct log_fields fields = { .store = reply->store,
		                           .epoch = reply->epoch,
		                           .peer = peer };

	counters_add_request(&connection->daemon->counters, reply->request, reply->status, took_ns);
	if (reply->status != STATUS(OK))
		log_limited(&connection->admitted.origin->log_limit,
		            control_refusal_level(reply->request), "refused", &fields,
		            "%s is refused \"%s\": %s", peer, control_request_name(reply->request),
		            reply->refusal);
	if (reply->ends)
		log_event(LOG_LEVEL_INFO, "spilled", &fields,
		          "perseasd ends, as %s asked, now that every image is written", peer);
}

/* Completes a request that was handled. Returns 0, or -1 if the connection must be closed. */
static int finish_request(struct connection *connection)
{
	assert(!connection->runs_as_job && !connection->is_parked);
	if (connection->handle_result < 0)
		return -1;
	if (connection->output.fd_count > 0) {
		connection->session.fabric = target_shm.name;
		daemon_start_excess_checks(connection->daemon);
	}
	count_reply(connection, &connection->output, daemon_now_ns() - connection->began_ns);
	/* Nothing was read while the request waited or ran, so the silence begins now. */
	connection->admitted.last_heard_ms = connection_now_ms();
	connection_set_priority(connection);
	connection->input_length = 0;
	connection->progress_last = 0;
	if (connection->input_capacity > (connection->session.store ? INPUT_KEEP : INPUT_FIRST)) {
		free(connection->input);
		connection->input = NULL;
		connection->input_capacity = 0;
	}
	connection_update_large_bytes(connection);
	return connection_send_output(connection);
}

/* Returns how many bytes of input the next step needs. */
static size_t wanted_input_length(const struct connection *connection)
{
	const size_t head = sizeof(uint32_t);

	if (connection->stage == STAGE_HELLO)
		return sizeof(struct ps_control_hello);
	if (connection->stage == STAGE_SNIFF || connection->input_length < head ||
	    message_length(connection) > PS_MESSAGE_MAX)
		return head;
	return head + message_length(connection);
}

enum step_result { STEP_DONE, STEP_WAITS, STEP_CLOSE, STEP_STREAM_MOVED };

/* Refuses a peer that speaks another protocol, or TLS, which this daemon was started without. */
static void refuse_protocol(const struct connection *connection)
{
	const struct log_fields fields = { .peer = connection->session.peer };
	const uint8_t *bytes = connection->input;

	if (bytes[0] != PS_TLS_HANDSHAKE || bytes[1] != PS_TLS_MAJOR) {
		log_limited(daemon_count_refusal(connection->daemon, REFUSED_HELLO), LOG_LEVEL_INFO,
		            "not-perseas", &fields, "connection from %s is not of this protocol",
		            fields.peer);
		return;
	}
	log_limited(daemon_count_refusal(connection->daemon, REFUSED_TLS), LOG_LEVEL_WARNING,
	            "wants-tls", &fields,
	            "%s wants TLS, and this daemon was started without: give it --tls-cert, "
	            "--tls-key and --tls-ca",
	            fields.peer);
	ps_stream_send_alert(&connection->stream);
}

static enum step_result detect_protocol(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	uint32_t magic = message_length(connection);
	struct ps_stream stream = connection->stream;
	struct session session = connection->session;
	char origin[ORIGIN_MAX];

	if (magic == PS_CONTROL_MAGIC) {
		connection_set_stage(connection, STAGE_HELLO);
		return STEP_DONE;
	}
	if (magic != PS_DATA_MAGIC) {
		refuse_protocol(connection);
		return STEP_CLOSE;
	}
	snprintf(origin, sizeof(origin), "%s", connection->admitted.origin->name);
	free_connection(connection);
	data_accept(daemon, &stream, session.peer, session.identity.name, origin);
	return STEP_STREAM_MOVED;
}

_Static_assert(PS_TLS_NAME_MAX + sizeof("cert:") <= IDENTITY_MAX + 1, "each name is an identity");

/* Advances the TLS handshake. On success the name in the certificate becomes the identity. */
static enum step_result advance_handshake(struct connection *connection)
{
	struct ps_stream *stream = &connection->stream;
	const char *peer = connection->session.peer;
	char name[PS_TLS_NAME_MAX + 1];
	int ret = ps_stream_handshake(stream);

	connection->passed_rate_limit = false;
	if (ret == 0) {
		if (ps_stream_events(stream, false) == POLLOUT)
			event_add(connection->writable, NULL);
		return STEP_WAITS;
	}
	if (ret < 0 || ps_stream_peer_name(stream, name) < 0) {
		const bool fault = ps_stream_fault(stream);

		/* Port scanners connect and hang up, which needs no attention. */
		log_limited(daemon_count_refusal(connection->daemon, REFUSED_TLS),
		            fault ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "tls-refused",
		            &(struct log_fields){ .peer = peer },
		            "the TLS connection from %s is refused: %s", peer,
		            fault ? ps_stream_fault_text(stream) : "it ended in the handshake");
		return STEP_CLOSE;
	}
	if (connection_set_identity(connection, name) < 0)
		return STEP_CLOSE;
	log_event(LOG_LEVEL_DEBUG, "identified", &(struct log_fields){ .peer = peer },
	          "the connection from %s belongs to %s", peer, connection->session.identity.name);
	connection_set_stage(connection, STAGE_SNIFF);
	return STEP_DONE;
}

/* Handles a heartbeat: answers an owner with one. The rate limit counts it like a request. */
static enum step_result receive_heartbeat(struct connection *connection)
{
	connection->input_length = 0;
	connection->passed_rate_limit = false;
	connection_set_priority(connection);
	if (!connection->session.store)
		return STEP_DONE;
	connection->peer_expects_heartbeats = true;
	return connection_send_heartbeat(connection) ? STEP_DONE : STEP_CLOSE;
}

/* Handles a request that is complete, or whose length exceeds the maximum. */
static enum step_result handle_received_request(struct connection *connection)
{
	connection_stop_timer(connection, DUE_REQUEST);
	if (message_length(connection) == 0)
		return receive_heartbeat(connection);
	if (message_length(connection) > PS_MESSAGE_MAX)
		connection_set_stage(connection, STAGE_FLUSHING);
	if (!connection_handle_or_defer_request(connection))
		return STEP_WAITS;
	return finish_request(connection) < 0 ? STEP_CLOSE : STEP_DONE;
}

/* Handles the input, which is complete for the present stage of the connection. */
static enum step_result handle_received_input(struct connection *connection)
{
	if (connection->stage == STAGE_SNIFF)
		return detect_protocol(connection);
	if (connection->stage == STAGE_HELLO)
		return receive_hello(connection) < 0 ? STEP_CLOSE : STEP_DONE;
	return handle_received_request(connection);
}

/* Grows the input buffer with what has arrived, not to the announced length. */
static bool grow_input(struct connection *connection)
{
	size_t room = connection->input_capacity ? 2 * connection->input_capacity : INPUT_FIRST;
	uint8_t *input;

	if (connection->input_length < connection->input_capacity)
		return true;
	if (room > INPUT_FIRST && connection_exceeds_large_bytes(connection)) {
		log_limited(&connection->admitted.origin->log_limit, LOG_LEVEL_WARNING, "too-much",
		            &(struct log_fields){ .peer = connection->session.peer },
		            "connection from %s is closed: no memory is left for a large request",
		            connection->session.peer);
		return false;
	}
	input = realloc(connection->input, room);
	if (!input)
		return false;
	connection->input = input;
	connection->input_capacity = room;
	connection_update_large_bytes(connection);
	return true;
}

/* Reads the stage's input. Returns 1 if it is complete, 0 if not, or -1 to close the connection. */
static int receive_input(struct connection *connection)
{
	while (connection->input_length < wanted_input_length(connection)) {
		size_t want = wanted_input_length(connection), part;
		ssize_t n;

		if (!grow_input(connection))
			return -1;
		part = (want < connection->input_capacity ? want : connection->input_capacity) -
		       connection->input_length;
		n = ps_stream_recv(&connection->stream,
		                   connection->input + connection->input_length, part);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n <= 0) {
			connection->has_hung_up = n == 0 || errno == ECONNRESET;
			return -1;
		}
		connection->input_length += (size_t)n;
		connection_note_received(connection);
	}
	return 1;
}

/* Starts the timer for the rest of a request. */
static void expect_more(struct connection *connection)
{
	if (connection->stage == STAGE_OPEN && connection->input_length > 0)
		connection_start_timer(connection, DUE_REQUEST, connection->daemon->message_ns);
}

static enum step_result advance_stage(struct connection *connection)
{
	int ret;

	if (connection->stage == STAGE_TLS)
		return connection_pause_if_limited(connection) ? STEP_WAITS
		                                               : advance_handshake(connection);
	ret = receive_input(connection);
	if (ret == 0)
		expect_more(connection);
	if (ret == 0 || (ret > 0 && connection_pause_if_limited(connection)))
		return STEP_WAITS;
	return ret < 0 ? STEP_CLOSE : handle_received_input(connection);
}

/* Has the connection read again if it has decrypted bytes, which poll() does not report. */
static void rearm_if_pending(struct connection *connection)
{
	if (ps_stream_pending(&connection->stream))
		daemon_rerun_event(connection->daemon, connection->readable);
}

void connection_read(struct connection *connection)
{
	const uint64_t began = connection_now_ms();

	assert(daemon_has_lock(connection->daemon));
	for (unsigned round = 0; round < connection_message_budget(connection); round++) {
		enum step_result step_result;

		if (connection->output.len > 0)
			return;
		step_result = advance_stage(connection);
		if (step_result == STEP_CLOSE)
			connection_close(connection);
		if (step_result != STEP_DONE)
			return;
		if (connection_now_ms() - began >= TURN_MS)
			break;
	}
	if (connection->output.len == 0)
		rearm_if_pending(connection);
}

void connection_reply_after_job(struct connection *connection)
{
	event_add(connection->readable, NULL);
	if (finish_request(connection) < 0)
		connection_close(connection);
	else
		connection_read(connection);
}

void connection_write(struct connection *connection)
{
	if (connection->stage == STAGE_TLS) {
		event_del(connection->writable);
		connection_read(connection);
	} else if (connection_send_output(connection) < 0) {
		connection_close(connection);
	} else if (connection->output.len == 0) {
		event_del(connection->writable);
		event_add(connection->readable, NULL);
		rearm_if_pending(connection);
	}
}

void connections_close(struct daemon *daemon)
{
	jobs_drain(daemon->jobs);
	while (daemon->connections)
		connection_close(daemon->connections);
}
