/*
 * output_loop.c - sends the replies and heartbeats of a control connection.
 */
#include "connection.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void connection_free_output(struct connection *connection)
{
	if (connection->output.ends) {
		/* The end of this connection tells the client that the daemon has exited, so keep
		 * the socket open until then. */
		connection->daemon->spill_requester_fd = fcntl(connection->stream.fd,
		                                               F_DUPFD_CLOEXEC, 0);
		daemon_stop(connection->daemon);
	}
	for (unsigned i = 0; i < connection->output.fd_count; i++)
		close(connection->output.fds[i]);
	free(connection->output.bytes);
	memset(&connection->output, 0, sizeof(connection->output));
	connection->sent = 0;
	connection_stop_timer(connection, DUE_REPLY);
	connection_update_large_bytes(connection);
}

/* Waits until the socket takes the rest of the output. */
static int wait_writable(struct connection *connection)
{
	event_del(connection->readable);
	event_add(connection->writable, NULL);
	connection_start_timer(connection, DUE_REPLY, connection->daemon->message_ns);
	return 0;
}

/* Calls sendmsg() once for the rest of the output, with descriptors before the first byte. */
static ssize_t send_rest_of_output(struct connection *connection)
{
	struct control_reply *output = &connection->output;
	struct iovec rest = { output->bytes + connection->sent, output->len - connection->sent };

	if (connection->sent == 0 && output->fd_count > 0)
		return shm_send(connection->stream.fd, rest.iov_base, rest.iov_len, output->fds,
		                output->fd_count);
	return ps_stream_send(&connection->stream, &rest, 1);
}

/* Sends what the socket takes of a reply to a Read straight from the image, and copies the rest, so
 * that nothing refers to the image afterward. Any error shows at the next send. TLS would read the
 * image in this process, where a torn image reads as zeros, so all of it is copied first. Returns
 * 0, or -1 if the image is torn. */
static int send_from_image(struct connection *connection)
{
	struct control_reply *output = &connection->output;
	const size_t end = output->read_at + output->read.len;
	const struct iovec parts[] = { { output->bytes, output->read_at },
		                       { output->read.data, output->read.len },
		                       { output->bytes + end, output->len - end } };
	const ssize_t sent = connection->stream.tls ? 0
	                                            : ps_stream_send(&connection->stream, parts, 3);

	assert(connection->sent == 0 && output->fd_count == 0);
	connection->sent = sent > 0 ? (size_t)sent : 0;
	return control_copy_read(connection->daemon->stores, output, connection->sent);
}

int connection_send_output(struct connection *connection)
{
	struct control_reply *output = &connection->output;

	if (output->read.len > 0 && send_from_image(connection) < 0)
		return -1;
	while (connection->sent < output->len) {
		ssize_t n = send_rest_of_output(connection);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return wait_writable(connection);
		if (n < 0)
			return -1;
		connection->sent += (size_t)n;
	}
	connection_free_output(connection);
	return connection->stage == STAGE_FLUSHING ? -1 : 0;
}

bool connection_send_heartbeat(struct connection *connection)
{
	static uint32_t nothing;
	const struct iovec part = { &nothing, sizeof(nothing) };
	ssize_t sent;

	assert(connection->output.len == 0);
	sent = ps_stream_send(&connection->stream, &part, 1);
	/* If the socket is full, it still has earlier heartbeats, which suffice. But TLS must
	 * complete a record that it began. */
	return sent == (ssize_t)sizeof(nothing) ||
	       (sent < 0 && !connection->stream.tls &&
	        (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}
