/*
 * fuzz_fetch.c - any bytes as what a mirror sends to a lane that fetches missing memory: they never
 * reach beyond what was asked for, and how they are cut makes no difference.
 *
 * Input: bytes asked for (3), length of the cuts, then the stream.
 */
#include "../../client/demand/fetch_connection.h"
#include "target.h"

#include <sys/socket.h>
#include <unistd.h>

enum { HEAD = 4 };

/* The outcome of a stream: the last poll, and the connection with the answer. */
struct outcome {
	int code; /* of the last poll */
	uint64_t received;
	struct ps_fetch_connection connection;
};

static void ask(struct outcome *outcome, const uint8_t *head, int end)
{
	struct ps_fetch_connection *connection = &outcome->connection;
	const uint32_t asked = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
	const struct ps_fetch_request request = { .store = "bank",
		                                  .length = 1 + asked % PS_REACH_BLOCK };

	require(ps_fetch_connection_init(connection));
	connection->has_addresses = true;
	connection->way.count = 1;
	connection->fd = end;
	require(ps_fetch_connection_ask(connection, &request));
}

/* Sends the stream in cuts. The answer lies in the outcome's connection, which the caller frees. */
static void feed(struct outcome *outcome, const uint8_t *head, const uint8_t *stream, size_t size,
                 size_t cut)
{
	struct ps_fetch_connection *connection = &outcome->connection;
	struct ps_fetch_answer fetched;
	int ends[2];

	require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	ask(outcome, head, ends[0]);
	outcome->code = ps_fetch_connection_poll(connection, &fetched);
	while (size > 0 && outcome->code == 0) {
		const ssize_t n = send(ends[1], stream, size < cut ? size : cut, MSG_DONTWAIT);

		require(n > 0);
		stream += n;
		size -= (size_t)n;
		outcome->code = ps_fetch_connection_poll(connection, &fetched);
	}
	outcome->received = ps_fetch_connection_received_bytes(connection);
	require(connection->arrived_bytes + connection->placed <= connection->requested_bytes);
	for (size_t at = connection->requested_bytes; at < PS_REACH_PIECE; at++)
		require(connection->answer_buffer[at] == 0);
	if (outcome->code > 0)
		require(fetched.bytes.len == connection->requested_bytes && fetched.before &&
		        fetched.after);
	close(ends[1]);
}

static void end(struct outcome *outcome)
{
	ps_fetch_connection_cancel(&outcome->connection);
	ps_fetch_connection_free(&outcome->connection);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct outcome whole, cut;

	if (size < HEAD)
		return 0;
	memset(&whole, 0, sizeof(whole));
	memset(&cut, 0, sizeof(cut));
	feed(&whole, data, data + HEAD, size - HEAD, size);
	feed(&cut, data, data + HEAD, size - HEAD, data[3] + 1u);
	require(whole.code == cut.code);
	if (whole.code >= 0)
		require(whole.received == cut.received &&
		        memcmp(whole.connection.answer_buffer, cut.connection.answer_buffer,
		               whole.connection.arrived_bytes + whole.connection.placed) == 0);
	end(&whole);
	end(&cut);
	return 0;
}
