/*
 * relay - forwards TCP connections to another address and delays every byte, to emulate a network
 * that is longer than the loopback.
 */
#include "clock.h"
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	CONNECTIONS_MAX = 64,
	ROOM = 1 << 20, /* bytes in flight in each direction */
	PIECES = 1024,  /* pieces in flight in each direction */
	READ_MOST = 64 << 10,
};

static struct options {
	uint64_t port, delay_us, room;
} options;

static const char about[] =
	"Listens on a free port of the loopback, which it prints, and passes what comes on to\n"
	"--port, and back. Every byte waits for --delay-us in each direction. It spins while\n"
	"anything is under way, as a timer's delay would add to that. It ends with its parent.\n";

static const struct ps_option rows[] = {
	{ "port", PS_OPTION_NUMBER, AT(port), "N", NULL, 1, UINT16_MAX,
	  .help = "Port of the loopback, to pass on to." },
	{ "delay-us", PS_OPTION_NUMBER, AT(delay_us), "N", "50", .high = 1000000,
	  .unit = "microseconds", .help = "Delay in each direction, in microseconds." },
	{ "room", PS_OPTION_SIZE, AT(room), "BYTES", "1M", 1, ROOM,
	  .help = "Bytes under way in a direction, at most." },
};

/* Bytes that arrived together. */
struct piece {
	uint64_t due; /* when to send it on, ns */
	size_t end;   /* position after its last byte, counted from the first byte that arrived */
};

/* One direction of a connection: a ring of bytes and a ring of pieces. */
struct way {
	int from, to;
	bool ended;           /* `from` will send nothing more */
	size_t came, gone;    /* bytes since the start */
	unsigned first, last; /* pieces since the start */
	struct piece pieces[PIECES];
	uint8_t bytes[ROOM];
};

/* Each connection has a pair of ways, there and back; NULL: unused. */
static struct way *ways[2 * CONNECTIONS_MAX];

/* Receives what has arrived. Returns false if the connection broke. */
static bool take_in(struct way *way, uint64_t now)
{
	size_t at = way->came % ROOM, room = options.room - (way->came - way->gone);
	ssize_t n;

	if (way->ended || way->last - way->first == PIECES || !room)
		return true;
	if (room > ROOM - at)
		room = ROOM - at;
	if (room > READ_MOST)
		room = READ_MOST;
	n = recv(way->from, way->bytes + at, room, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	way->ended = n == 0;
	way->came += (size_t)n;
	way->pieces[way->last++ % PIECES] = (struct piece){ .due = now + options.delay_us * 1000,
		                                            .end = way->came };
	return true;
}

/* Sends bytes that have been delayed long enough. Returns false if the connection broke. */
static bool pass_on(struct way *way, uint64_t now)
{
	while (way->first != way->last && way->pieces[way->first % PIECES].due <= now) {
		size_t end = way->pieces[way->first % PIECES].end, at = way->gone % ROOM;
		size_t len = end - way->gone;
		ssize_t n;

		if (len > ROOM - at)
			len = ROOM - at;
		n = len ? send(way->to, way->bytes + at, len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		way->gone += (size_t)n;
		if (way->gone != end)
			continue;
		way->first++;
		if (way->ended && way->first == way->last)
			shutdown(way->to, SHUT_WR);
	}
	return true;
}

/* Moves bytes in both directions, and closes the connection if it has ended or broke. Returns true
 * if bytes are in flight. */
static bool serve_connection(struct way **pair, uint64_t now)
{
	bool good = true, over = true, busy = false;

	for (unsigned k = 0; k < 2; k++) {
		good = good && take_in(pair[k], now) && pass_on(pair[k], now);
		busy = busy || pair[k]->first != pair[k]->last;
		over = over && pair[k]->ended;
	}
	if (good && (busy || !over))
		return busy;
	close(pair[0]->from);
	close(pair[0]->to);
	for (unsigned k = 0; k < 2; k++) {
		free(pair[k]);
		pair[k] = NULL;
	}
	return false;
}

static int connect_to_target(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons((uint16_t)options.port),
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct way *make_way(int from, int to)
{
	struct way *way = calloc(1, sizeof(*way));
	int on = 1;

	if (!way)
		exit(program_fail("memory", strerror(errno)));
	way->from = from;
	way->to = to;
	setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return way;
}

/* Connects `fd` to the target, or closes it if that fails. */
static void add_connection(int fd)
{
	int to = connect_to_target();
	unsigned i = 0;

	while (i < 2 * CONNECTIONS_MAX && ways[i])
		i += 2;
	if (to >= 0 && i < 2 * CONNECTIONS_MAX) {
		ways[i] = make_way(fd, to);
		ways[i + 1] = make_way(to, fd);
		return;
	}
	if (to >= 0)
		close(to);
	close(fd);
}

static void sleep_until_news(int listener)
{
	struct pollfd wait[1 + 2 * CONNECTIONS_MAX] = { { .fd = listener, .events = POLLIN } };
	nfds_t count = 1;

	for (unsigned i = 0; i < 2 * CONNECTIONS_MAX; i++)
		if (ways[i] && !ways[i]->ended)
			wait[count++] = (struct pollfd){ .fd = ways[i]->from, .events = POLLIN };
	poll(wait, count, -1);
}

static void relay_for_ever(int listener)
{
	for (uint64_t rounds = 1;; rounds++) {
		uint64_t now = clock_ns();
		bool busy = false;
		int fd;

		for (unsigned i = 0; i < 2 * CONNECTIONS_MAX; i += 2)
			if (ways[i])
				busy |= serve_connection(&ways[i], now);
		/* Accepts connections now and then even if existing ones are always busy. */
		if (busy && rounds % 256)
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			add_connection(fd);
		else if (!busy)
			sleep_until_news(listener);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	OPTIONS_PARSE(argc, argv);
	if (!options.port)
		return program_fail("--port", "is missing");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 64) || getsockname(listener, (struct sockaddr *)&at, &len))
		return program_fail("listen", strerror(errno));
	printf("%u\n", ntohs(at.sin_port));
	fflush(stdout);
	relay_for_ever(listener);
	return 0;
}
