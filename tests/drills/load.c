/*
 * load.c - serves many connections in one event loop, without the library, so that some of them can
 * misbehave. teller.c's main calls it. It only counts; the drill asserts.
 */
#include "load.h"

#include "../../proto/control/envelope.h"
#include "../../proto/data/frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_MS = 200, TICK_MS = 5, EVENTS = 64, PART = 64 << 10, BUFFER = 256 << 10 };

enum kind { IDLE, GOOD, SLOW, HUGE, TORN, VERSION, STRANGER, KINDS };

static const char *const kinds[KINDS] = {
	"idle", "good", "slow", "huge", "torn", "version", "stranger",
};

struct visitor {
	enum kind kind;
	int fd;            /* -1: not connected */
	uint64_t due_ms;   /* time of its next action */
	uint64_t asked_us; /* when it sent the request that is not answered; 0: none */
	size_t sent;       /* bytes sent of a slow or huge request */
	uint32_t have;     /* bytes received: of the hello, then of the reply with its length */
	uint32_t length;   /* of the reply that is arriving */
	uint32_t status;   /* of the reply, as far as it has arrived */
	unsigned round;
};

struct load {
	struct sockaddr_in to;
	int epoll;
	struct visitor *visitors;
	unsigned count;
	uint8_t *claim, *list; /* packed requests */
	size_t claim_len, list_len;
	uint8_t *zeros;
	uint64_t done[KINDS]; /* replies, or connections that ended as expected */
	uint64_t lost[KINDS]; /* replies that did not arrive, or connections that ended
	                         unexpectedly */
	uint64_t denied, slowest_us;
};

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000;
}

static void hang_up(struct visitor *visitor)
{
	close(visitor->fd);
	visitor->fd = -1;
	visitor->asked_us = 0;
	visitor->sent = visitor->have = 0;
}

static bool give(struct visitor *visitor, const void *bytes, size_t len)
{
	return send(visitor->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

static void come(struct load *load, struct visitor *visitor)
{
	const struct ps_control_hello hello = {
		PS_CONTROL_MAGIC,
		PS_PROTOCOL_VERSION + (visitor->kind == VERSION),
	};
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = visitor };
	const int on = 1;

	visitor->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (visitor->fd < 0 ||
	    connect(visitor->fd, (struct sockaddr *)&load->to, sizeof(load->to)) < 0) {
		perror("load: connect");
		exit(1);
	}
	setsockopt(visitor->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	epoll_ctl(load->epoll, EPOLL_CTL_ADD, visitor->fd, &event);
	give(visitor, &hello, sizeof(hello));
	visitor->round++;
}

/* Does what a hostile visitor does once in each period. */
static void harm(struct load *load, struct visitor *visitor)
{
	const uint32_t most = PS_MESSAGE_MAX, more = UINT32_MAX;
	size_t part;

	switch (visitor->kind) {
	case SLOW:
		give(visitor,
		     visitor->sent < sizeof(most) ? (const char *)&most + visitor->sent : "x", 1);
		visitor->sent++;
		break;
	case HUGE:
		if (visitor->sent == 0)
			give(visitor, visitor->round % 2 ? &most : &more, sizeof(most));
		part = most - visitor->sent < PART ? most - visitor->sent : PART;
		if (give(visitor, load->zeros, part))
			visitor->sent = (visitor->sent + part) % most;
		break;
	case TORN:
		give(visitor, load->claim, load->claim_len / 2);
		hang_up(visitor);
		load->done[TORN]++;
		break;
	default:
		break;
	}
}

static void act(struct load *load, struct visitor *visitor)
{
	const bool stranger = visitor->kind == STRANGER;

	if (visitor->fd < 0)
		come(load, visitor);
	if (visitor->kind != GOOD && !stranger) {
		harm(load, visitor);
	} else if (!visitor->asked_us) {
		visitor->asked_us = now_us();
		give(visitor, stranger ? load->claim : load->list,
		     stranger ? load->claim_len : load->list_len);
	}
}

/* Counts a complete reply. */
static void note_reply(struct load *load, struct visitor *visitor)
{
	uint64_t took = now_us() - visitor->asked_us;

	load->done[visitor->kind]++;
	if (visitor->kind == STRANGER && visitor->status == PERSEAS__STATUS__STATUS_DENIED)
		load->denied++;
	if (visitor->kind == GOOD && took > load->slowest_us)
		load->slowest_us = took;
	visitor->asked_us = 0;
	visitor->have = sizeof(struct ps_control_hello);
}

/* Parses received bytes: a hello, then replies, each a length, a status (the first field) and other
 * fields. */
static void take(struct load *load, struct visitor *visitor, const uint8_t *bytes, size_t len)
{
	const uint32_t hello = sizeof(struct ps_control_hello);

	for (size_t i = 0; i < len; i++) {
		uint32_t at = visitor->have++;

		if (at < hello)
			continue;
		at -= hello;
		if (at == 0)
			visitor->length = visitor->status = 0;
		if (at < 4)
			visitor->length |= (uint32_t)bytes[i] << 8 * at;
		if (at == 5 && visitor->length > 0)
			visitor->status = bytes[i];
		if (at >= 4 && at == visitor->length + 3)
			note_reply(load, visitor);
	}
}

/* Receives from the daemon, or notices that it closed the connection. */
static void hear(struct load *load, struct visitor *visitor)
{
	static uint8_t buffer[BUFFER];
	ssize_t n = visitor->fd < 0 ? -1 : recv(visitor->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

	if (n > 0) {
		take(load, visitor, buffer, (size_t)n);
	} else if (visitor->fd >= 0 && (n == 0 || errno != EAGAIN)) {
		if (visitor->kind == SLOW || visitor->kind == HUGE || visitor->kind == VERSION)
			load->done[visitor->kind]++;
		else
			load->lost[visitor->kind]++;
		hang_up(visitor);
	}
}

static void pack_requests(struct load *load)
{
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	uint8_t owner[PS_ID_SIZE] = "a stranger";

	request.body_case = PERSEAS__REQUEST__BODY_LIST;
	request.list = &list;
	if (ps_request_pack(&request, &load->list, &load->list_len) < 0)
		exit(1);
	claim.store = (char *)(uintptr_t) "prey";
	claim.epoch = (uint64_t)1 << 40;
	claim.owner = (ProtobufCBinaryData){ PS_ID_SIZE, owner };
	claim.takeover = true;
	request.body_case = PERSEAS__REQUEST__BODY_CLAIM;
	request.claim = &claim;
	if (ps_request_pack(&request, &load->claim, &load->claim_len) < 0)
		exit(1);
}

static void prepare(struct load *load, char **argv)
{
	unsigned idle = (unsigned)atoi(argv[2]), busy = (unsigned)atoi(argv[3]);

	load->to.sin_family = AF_INET;
	load->to.sin_port = htons((uint16_t)atoi(argv[1]));
	inet_pton(AF_INET, argv[0], &load->to.sin_addr);
	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	load->count = idle + busy;
	load->visitors = calloc(load->count, sizeof(*load->visitors));
	load->zeros = calloc(1, PART);
	if (load->epoll < 0 || !load->visitors || !load->zeros)
		exit(1);
	pack_requests(load);
	for (unsigned i = 0; i < load->count; i++) {
		struct visitor *visitor = &load->visitors[i];
		unsigned hostile = i - idle;

		visitor->fd = -1;
		visitor->due_ms = now_us() / 1000 + i % PERIOD_MS;
		if (i < idle)
			continue;
		visitor->kind = hostile % 2 ? GOOD : SLOW + hostile / 2 % (KINDS - SLOW);
		/* Half of the huge ones begin with the megabyte, the others with the length. */
		visitor->round = hostile / 2 / (KINDS - SLOW);
	}
}

static bool goes_on(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&input, 1, 0) == 0;
}

/* Returns true if each hostile kind was answered, the slow one `slow` times, and the good ones have
 * had more than two replies each on average. */
static bool is_each_done(const struct load *load, uint64_t busy, uint64_t slow)
{
	/* Half of the busy ones are good. */
	if (load->done[GOOD] <= busy || load->done[SLOW] < slow)
		return false;
	for (int kind = HUGE; kind < KINDS; kind++)
		if (!load->done[kind])
			return false;
	return true;
}

static void tell(const struct load *load)
{
	for (int kind = 0; kind < KINDS; kind++)
		printf("%s=%llu %s-lost=%llu ", kinds[kind], (unsigned long long)load->done[kind],
		       kinds[kind], (unsigned long long)load->lost[kind]);
	printf("denied=%llu slowest-us=%llu\n", (unsigned long long)load->denied,
	       (unsigned long long)load->slowest_us);
}

int load_run(int argc, char **argv)
{
	struct load load = { .count = 0 };
	struct epoll_event events[EVENTS];
	uint64_t began = now_us() / 1000;
	bool each = false;

	if (argc != 5)
		return 2;
	prepare(&load, argv);
	while (goes_on()) {
		int count = epoll_wait(load.epoll, events, EVENTS, TICK_MS);
		uint64_t now = now_us() / 1000;

		for (int i = 0; i < count; i++)
			hear(&load, events[i].data.ptr);
		for (unsigned i = 0; i < load.count; i++) {
			if (load.visitors[i].due_ms > now)
				continue;
			load.visitors[i].due_ms = now + PERIOD_MS;
			act(&load, &load.visitors[i]);
		}
		if (began && now > began + 2 * PERIOD_MS) {
			puts("all");
			fflush(stdout);
			began = 0;
		}
		if (!began && !each &&
		    is_each_done(&load, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10))) {
			puts("each");
			fflush(stdout);
			each = true;
		}
	}
	tell(&load);
	return 0;
}
