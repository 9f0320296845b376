/*
 * fuzz_http.c - any bytes as a connection for HTTP: what is answered is one whole answer of HTTP,
 * or none, and the daemon keeps nothing of the connection.
 *
 * Input: how many bytes are sent at once (0: all), then what is sent.
 */
#include "../support/memory_heap.h"

#include "../../server/loop/daemon.h"
#include "../../server/watch/watch.h"
#include "target.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20, IDLE = 8, TURNS_MAX = 10000 };

static struct daemon *node;
static struct sockaddr_in at;
static char answer[ANSWER_MAX + 1];
static size_t answered;

static void begin(void)
{
	struct http_options options = { .endpoint = { .host = "127.0.0.1", .port = "0" } };
	char folder[] = "/tmp/perseas-fuzz-XXXXXX", why[512];
	unsigned port = 0;
	FILE *file;

	log_init(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	node = daemon_new(stores_new(memory_heap_new(0, 1)), 0);
	require(node && mkdtemp(folder));
	snprintf(options.port_file, sizeof(options.port_file), "%s/port", folder);
	require(http_open(node, &options, why, sizeof(why)) == 0);
	file = fopen(options.port_file, "r");
	require(file && fscanf(file, "%u", &port) == 1);
	fclose(file);
	unlink(options.port_file);
	rmdir(folder);
	at.sin_family = AF_INET;
	at.sin_port = htons((uint16_t)port);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

/* Runs the daemon's loop once. Returns true if bytes arrived. */
static bool turn(int fd)
{
	ssize_t n;

	event_base_loop(node->base, EVLOOP_NONBLOCK);
	n = recv(fd, answer + answered, ANSWER_MAX - answered, MSG_DONTWAIT);
	if (n > 0)
		answered += (size_t)n;
	require(answered < ANSWER_MAX);
	return n > 0;
}

static void settle(int fd)
{
	for (int idle = 0; idle < IDLE; idle++)
		if (turn(fd))
			idle = 0;
}

/* A HEAD is answered with the length that a body would have. */
static void check_answer(void)
{
	const char *body, *length;
	int major, minor;
	unsigned code;

	answer[answered] = '\0';
	if (answered == 0)
		return;
	/* The version is the request's, whatever that is: libevent refuses what is above 1, but of
	 * a number that is too large for an int it keeps, and says, what a char holds. */
	require(sscanf(answer, "HTTP/%d.%d %3u ", &major, &minor, &code) == 3);
	require(code >= 200 && code <= 599);
	body = strstr(answer, "\r\n\r\n");
	length = strstr(answer, "\r\nContent-Length: ");
	require(body != NULL);
	body += 4;
	if (length && length < body) {
		size_t rest = answered - (size_t)(body - answer);

		require(rest == 0 || rest == strtoul(length + 18, NULL, 10));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct linger reset = { 1, 0 };
	size_t cut;
	int fd, turns = 0;

	if (size < 1)
		return 0;
	if (!node)
		begin();
	cut = data[0] ? data[0] : size;
	answered = 0;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	for (data++, size--; size > 0; data += cut, size -= cut) {
		cut = cut < size ? cut : size;
		if (send(fd, data, cut, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)cut)
			break; /* it is not read any more */
		settle(fd);
	}
	shutdown(fd, SHUT_WR);
	settle(fd);
	check_answer();
	/* Leaves no port in TIME_WAIT behind. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	while (http_connections(node->http) > 0 && turns++ < TURNS_MAX)
		event_base_loop(node->base, EVLOOP_NONBLOCK);
	require(http_connections(node->http) == 0);
	return 0;
}
