/*
 * two_lanes.c - what a page fault on missing memory costs by itself, while the rest of the memory
 * arrives at full speed: two bare lanes, without a store. One thread brings what somebody waits
 * for, another one the rest in order, and neither waits for the other. bench/faults.py compares
 * recovery on demand with it.
 */
#include "clock.h"
#include "options.h"
#include "work.h"
#include "../proto/base/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LANES = 2, PAGE = 4096, FAULTS_MAX = 1 << 20, TICK_MS = 20 };

static struct options {
	uint64_t size, bulk, fault;
	bool tcp;
} options;

static const char about[] =
	"Maps memory that is missing, and fills it by two lanes: a thread brings what is touched,\n"
	"--fault bytes at a time, and another one all of it in order, --bulk bytes at a time.\n"
	"Meanwhile pages are touched at random. Prints a line of JSON: when all memory was here,\n"
	"and how long touches of missing memory took.\n";

static const struct ps_option rows[] = {
	{ "size", PS_OPTION_SIZE, AT(size), "BYTES", "256M", 1 << 20, .help = "Of the memory." },
	{ "bulk", PS_OPTION_SIZE, AT(bulk), "BYTES", "512K", PAGE, .help = "At a time." },
	{ "fault", PS_OPTION_SIZE, AT(fault), "BYTES", "64K", PAGE, .help = "For a page fault." },
	{ "tcp", PS_OPTION_FLAG, AT(tcp),
	  .help = "Over TCP, a connection for each lane; else from memory of this process." },
};

struct request {
	uint64_t offset, length;
};

/* One of the two ways for bytes to come. */
struct lane {
	int link; /* a connection; -1: memory of this process */
	uint8_t *buffer;
};

static struct lane lanes[LANES];
static uint8_t *source, *memory;
static int uffd;
static _Atomic uint8_t *asked; /* one for each --fault bytes */
static _Atomic uint64_t done_at;

static void must(bool holds, const char *what)
{
	if (!holds)
		exit(program_fail(what, strerror(errno)));
}

/* --- where bytes come from --- */

static void send_all(int link, const void *bytes, size_t length)
{
	ssize_t n;

	for (size_t at = 0; at < length; at += (size_t)n) {
		n = send(link, (const char *)bytes + at, length - at, MSG_NOSIGNAL);
		must(n > 0, "send");
	}
}

static void *serve(void *arg)
{
	const int link = *(const int *)arg;
	struct request request;

	while (recv(link, &request, sizeof(request), MSG_WAITALL) == sizeof(request))
		send_all(link, source + request.offset, request.length);
	return NULL;
}

/* Another process answers, as a mirror would. */
static void run_server(int listener)
{
	static int links[LANES];
	pthread_t thread;
	const int one = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < LANES; i++) {
		links[i] = accept(listener, NULL, NULL);
		setsockopt(links[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		must(!pthread_create(&thread, NULL, serve, &links[i]), "thread");
	}
	for (;;)
		pause();
}

static void connect_lanes(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	socklen_t length = sizeof(to);

	must(!bind(listener, (struct sockaddr *)&to, sizeof(to)) && !listen(listener, LANES) &&
	             !getsockname(listener, (struct sockaddr *)&to, &length),
	     "listen");
	if (!fork())
		run_server(listener);
	for (unsigned i = 0; i < LANES; i++) {
		lanes[i].link = socket(AF_INET, SOCK_STREAM, 0);
		must(!connect(lanes[i].link, (struct sockaddr *)&to, sizeof(to)), "connect");
		setsockopt(lanes[i].link, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
}

/* --- the lanes --- */

static void fill(uint64_t at, const uint8_t *bytes, uint64_t length)
{
	while (length) {
		struct uffdio_copy copy = { .dst = (uintptr_t)memory + at,
			                    .src = (uintptr_t)bytes,
			                    .len = length };
		const bool all = !ioctl(uffd, UFFDIO_COPY, &copy);
		const uint64_t came = copy.copy > 0 ? (uint64_t)copy.copy : 0;

		must(all || came || copy.copy == -EAGAIN, "UFFDIO_COPY");
		at += came;
		bytes += came;
		length -= came;
	}
}

static void fetch(struct lane *lane, uint64_t at, uint64_t length)
{
	const struct request request = { at, length };

	if (lane->link >= 0) {
		send_all(lane->link, &request, sizeof(request));
		must(recv(lane->link, lane->buffer, length, MSG_WAITALL) == (ssize_t)length,
		     "recv");
	}
	fill(at, lane->link < 0 ? source + at : lane->buffer, length);
}

/* Each granule is brought by one lane. */
static bool ask_once(uint64_t at)
{
	return !atomic_exchange(&asked[at / options.fault], 1);
}

static void *bring_bulk(void *arg)
{
	struct lane *lane = arg;
	uint64_t length;

	for (uint64_t at = 0; at < options.size; at += length ? length : options.fault) {
		length = 0;
		while (length < options.bulk && at + length < options.size && ask_once(at + length))
			length += options.fault;
		if (length)
			fetch(lane, at, length);
	}
	done_at = clock_ns();
	return NULL;
}

static void *bring_faults(void *arg)
{
	struct pollfd ready = { .fd = uffd, .events = POLLIN };
	struct lane *lane = arg;
	struct uffd_msg message;
	uint64_t at;

	while (!done_at) {
		poll(&ready, 1, TICK_MS);
		while (read(uffd, &message, sizeof(message)) == sizeof(message)) {
			at = message.arg.pagefault.address - (uintptr_t)memory;
			at -= at % options.fault;
			if (ask_once(at))
				fetch(lane, at, options.fault);
		}
	}
	return NULL;
}

/* --- what is measured --- */

static void map_missing(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	memory = mmap(NULL, options.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	              0);
	must(memory != MAP_FAILED, "mmap");
	madvise(memory, options.size, MADV_NOHUGEPAGE);
	uffd = (int)syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	all.range.start = (uintptr_t)memory;
	all.range.len = options.size;
	must(uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api) && !ioctl(uffd, UFFDIO_REGISTER, &all),
	     "userfaultfd");
}

/* Touches pages at random until all are here. How many touches of missing memory it took. */
static size_t touch_all(uint64_t *took)
{
	uint64_t state = WORK_SEED;
	size_t count = 0;

	while (!done_at && count < FAULTS_MAX) {
		const uint64_t at = work_random(&state) % (options.size / PAGE) * PAGE;
		const bool missing = !asked[at / options.fault];
		const uint64_t began = clock_ns();

		(void)*(volatile uint8_t *)(memory + at);
		if (missing)
			took[count++] = clock_ns() - began;
	}
	return count;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void tell(uint64_t *took, size_t count, uint64_t all_ns)
{
	struct ps_json json = { .out = stdout, .one_line = true };

	qsort(took, count, sizeof(took[0]), by_value);
	ps_json_begin(&json, NULL, '{');
	ps_json_number(&json, "all_ns", all_ns);
	ps_json_number(&json, "count", count);
	ps_json_number(&json, "p50_ns", count ? took[count / 2] : 0);
	ps_json_number(&json, "p99_ns", count ? took[count * 99 / 100] : 0);
	ps_json_end(&json, '}');
}

int main(int argc, char **argv)
{
	static uint64_t took[FAULTS_MAX];
	static void *(*const bring[LANES])(void *) = { bring_faults, bring_bulk };
	pthread_t threads[LANES];
	uint64_t began;
	size_t count;

	OPTIONS_PARSE(argc, argv);
	must(options.size % options.fault == 0, "--size is no multiple of --fault");
	source = mmap(NULL, options.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	must(source != MAP_FAILED, "mmap");
	memset(source, 1, options.size);
	for (unsigned i = 0; i < LANES; i++) {
		lanes[i] = (struct lane){ -1, malloc(options.bulk + options.fault) };
		must(lanes[i].buffer, "malloc");
		memset(lanes[i].buffer, 1, options.bulk + options.fault);
	}
	asked = calloc(options.size / options.fault, 1);
	must(asked, "calloc");
	if (options.tcp)
		connect_lanes();
	map_missing();
	began = clock_ns();
	for (unsigned i = 0; i < LANES; i++)
		must(!pthread_create(&threads[i], NULL, bring[i], &lanes[i]), "thread");
	count = touch_all(took);
	for (unsigned i = 0; i < LANES; i++)
		pthread_join(threads[i], NULL);
	tell(took, count, done_at - began);
	return 0;
}
