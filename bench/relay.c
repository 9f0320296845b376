/*
 * relay - passes TCP connections on to another address, and lets everything wait for a while on
 * its way: a network that is longer than the loopback.
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
	ROOM = 1 << 20, /* bytes under way in a direction */
	PIECES = 1024,  /* of them that came at different times */
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

/* Bytes that came together. */
struct piece {
	uint64_t due; /* ns */
	size_t end;   /* in the count of all bytes that came */
};

/* One direction of a connection: a ring of bytes, a ring of pieces. */
struct way {
	int from, to;
	bool ended;           /* `from` will send no more */
	size_t came, gone;    /* bytes, ever */
	unsigned first, last; /* pieces, ever */
	struct piece pieces[PIECES];
	uint8_t bytes[ROOM];
};

struct connection {
	struct way ways[2];
};

static struct connection *connections[CONNECTIONS_MAX];

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "relay: %s: %s\n", what, why);
	return 2;
}

/* Takes in what has come. False: the connection broke. */
static bool take(struct way *way, uint64_t now)
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

/* Sends on what has waited long enough. False: the connection broke. */
static bool pass(struct way *way, uint64_t now)
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

static void drop(unsigned i)
{
	close(connections[i]->ways[0].from);
	close(connections[i]->ways[0].to);
	free(connections[i]);
	connections[i] = NULL;
}

/* Is anything under way? */
static bool serve(unsigned i, uint64_t now)
{
	struct way *ways = connections[i]->ways;
	bool good = true, over = true, busy = false;

	for (unsigned k = 0; k < 2; k++) {
		good = good && take(&ways[k], now) && pass(&ways[k], now);
		busy = busy || ways[k].first != ways[k].last;
		over = over && ways[k].ended;
	}
	if (!good || (over && !busy)) {
		drop(i);
		return false;
	}
	return busy;
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

/* Takes a connection on, or closes it when it cannot be passed on. */
static void welcome(int fd)
{
	int on = 1, to = connect_to_target();

	for (unsigned i = 0; to >= 0 && i < CONNECTIONS_MAX; i++) {
		if (connections[i] || !(connections[i] = calloc(1, sizeof(struct connection))))
			continue;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		connections[i]->ways[0].from = connections[i]->ways[1].to = fd;
		connections[i]->ways[0].to = connections[i]->ways[1].from = to;
		return;
	}
	if (to >= 0)
		close(to);
	close(fd);
}

/* Sleeps until something comes. */
static void rest(int listener)
{
	struct pollfd wait[1 + 2 * CONNECTIONS_MAX] = { { .fd = listener, .events = POLLIN } };
	nfds_t count = 1;

	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		for (unsigned k = 0; connections[i] && k < 2; k++)
			if (!connections[i]->ways[k].ended)
				wait[count++] = (struct pollfd){ .fd = connections[i]->ways[k].from,
					                         .events = POLLIN };
	poll(wait, count, -1);
}

static void relay(int listener)
{
	uint64_t rounds = 0;

	for (;;) {
		uint64_t now = clock_ns();
		bool busy = false;
		int fd;

		rounds++;

		for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
			if (connections[i])
				busy |= serve(i, now);
		/* Who wants to connect is not kept waiting for good by those who are. */
		if (busy && rounds % 256)
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			welcome(fd);
		else if (!busy)
			rest(listener);
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
		return complain("--port", "is missing");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 64) || getsockname(listener, (struct sockaddr *)&at, &len))
		return complain("listen", strerror(errno));
	printf("%u\n", ntohs(at.sin_port));
	fflush(stdout);
	relay(listener);
	return 0;
}
