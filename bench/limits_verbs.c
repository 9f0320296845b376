/*
 * limits - what the bare RDMA fabric does: the time of a write, and of the writes that a commit
 * makes; the bandwidth of reads.
 */
#include "measure.h"
#include "options.h"
#include "pinger.h"
#include "raw_verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIST_MAX = 8, SHAPES_MAX = LIST_MAX * LIST_MAX, TIMED = 3 };

static struct options {
	const char *serve, *to, *from, *what, *sizes, *depths;
	uint32_t round_ms;
	uint64_t bytes, acks, segment, inline_bytes, spin_us, rounds, cpu;
	bool json;
} options = {
	.cpu = UINT64_MAX,
};

static const char about[] =
	"Measures RDMA between addresses of RDMA devices, without Perseas.\n\n"
	"  write   one signalled write, posted and completed\n"
	"  chain   the writes of a commit: undo record, data, slot; linked, one doorbell,\n"
	"          the last signalled\n"
	"  chains  a chain to each target; done when --acks of them have completed\n"
	"  read    a segment read whole, for several sizes of reads, several at a time\n\n"
	"A target HOST is served by a process of this program's own, which must be on the host\n"
	"with that address; one HOST:PORT by `limits --serve HOST:PORT` there.\n";

static const struct ps_option rows[] = {
	{ "to", PS_OPTION_TEXT, AT(to), "LIST", .help = "Targets, HOST or HOST:PORT." },
	{ "serve", PS_OPTION_TEXT, AT(serve), "HOST:PORT",
	  .help = "Is only the far end of others." },
	{ "from", PS_OPTION_TEXT, AT(from), "ADDRESS",
	  .help = "Address to come from. Default: what the system chooses." },
	{ "measure", PS_OPTION_TEXT, AT(what), "LIST", "write,chain,chains,read",
	  .help = "What to measure." },
	{ "bytes", PS_OPTION_SIZE, AT(bytes), "N", "64", 1, RAW_BYTES_MAX / 2,
	  .help = "Bytes of data in a write or a chain." },
	{ "acks", PS_OPTION_NUMBER, AT(acks), "W",
	  .help = "Chains that are waited for. Default: a majority." },
	{ "segment", PS_OPTION_SIZE, AT(segment), "BYTES", "128M", 1 << 20, (uint64_t)1 << 32,
	  .help = "Bytes of the segment at targets that are served here." },
	{ "read-sizes", PS_OPTION_TEXT, AT(sizes), "LIST", "64K,256K,1M",
	  .help = "Bytes of a read." },
	{ "read-depths", PS_OPTION_TEXT, AT(depths), "LIST", "4,16", .help = "Reads at a time." },
	{ "inline", PS_OPTION_SIZE, AT(inline_bytes), "N", "256", .high = RAW_BYTES_MAX,
	  .help = "Inline bytes to ask for." },
	{ "spin-us", PS_OPTION_NUMBER, AT(spin_us), "N", "50",
	  .help = "Microseconds to poll before sleeping." },
	ROUND_OPTION_ROWS,
	CPU_OPTION_ROW,
	JSON_OPTION_ROW,
};

struct target {
	char host[64];
	unsigned port; /* 0: served here */
	pid_t child;   /* 0: none */
};

/* Reads of one size, so many at a time. */
struct shape {
	unsigned size, depth;
	struct raw_link *link;
	struct measured *m;
};

static struct {
	struct target targets[RAW_TARGETS_MAX];
	struct raw_link *links[RAW_TARGETS_MAX];
	unsigned count;
	struct measured *timed[TIMED];
	unsigned timed_count;
	struct shape shapes[SHAPES_MAX];
	unsigned shape_count;
} limits;

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "limits: %s: %s\n", what, why);
	return 2;
}

/* --- the command line --- */

/* "host", "host:port", "[v6]:port" or "[v6]". */
static int read_target(const char *text, size_t len, struct target *target)
{
	const char *host = text, *end = text + len, *host_end = memchr(text, ':', len);
	char *after;

	if (*text == '[') {
		host++;
		host_end = memchr(text, ']', len);
		if (!host_end)
			return -1;
	} else if (!host_end) {
		host_end = end;
	}
	if (host == host_end || (size_t)(host_end - host) >= sizeof(target->host))
		return -1;
	memcpy(target->host, host, (size_t)(host_end - host));
	host_end += *text == '[';
	if (host_end == end)
		return 0;
	target->port = (unsigned)strtoul(host_end + 1, &after, 10);
	return *host_end == ':' && after == end && target->port && target->port < 65536 ? 0 : -1;
}

static int read_targets(void)
{
	for (const char *at = options.to; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (limits.count == RAW_TARGETS_MAX ||
		    read_target(at, strcspn(at, ","), &limits.targets[limits.count++]))
			return complain("--to", "takes up to 16 of HOST or HOST:PORT");
	}
	return 0;
}

/* A list of numbers from 1 to `most`. How many; 0: it is not one. */
static unsigned read_list(const char *list, uint64_t most, unsigned *numbers)
{
	for (unsigned count = 0; count < LIST_MAX; list++) {
		char *end;
		unsigned long long n = strtoull(list, &end, 10);
		unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;

		end += shift != 0;
		if (end == list || !n || n > most >> shift || (*end && *end != ','))
			return 0;
		numbers[count++] = (unsigned)n << shift;
		if (!*end)
			return count;
		list = end;
	}
	return 0;
}

static bool asked_for(const char *what)
{
	size_t len = strlen(what);

	for (const char *at = options.what; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strcspn(at, ",") == len && !memcmp(at, what, len))
			return true;
	}
	return false;
}

static int check_options(void)
{
	if (!limits.count)
		return complain("--to", "is missing; it lists the targets (see --help)");
	if (!options.acks)
		options.acks = limits.count / 2 + 1;
	if (options.acks > limits.count)
		return complain("--acks", "is more than there are targets");
	return 0;
}

/* --- steps --- */

static int step_write(void *ctx)
{
	struct raw_link *link = ctx;

	return raw_post_write(link, (unsigned)options.bytes) || raw_wait(&link, 1, 1);
}

static int step_chain(void *ctx)
{
	struct raw_link *link = ctx;

	return raw_post_chain(link, (unsigned)options.bytes) || raw_wait(&link, 1, 1);
}

static int step_chains(void *ctx)
{
	(void)ctx;
	for (unsigned i = 0; i < limits.count; i++)
		if (raw_post_chain(limits.links[i], (unsigned)options.bytes))
			return -1;
	return raw_wait(limits.links, limits.count, (unsigned)options.acks);
}

static int step_read(void *ctx)
{
	const struct shape *shape = ctx;

	return raw_read(shape->link, shape->size, shape->depth);
}

/* --- a run --- */

static int connect_all(void)
{
	const struct raw_options how = {
		.from = options.from,
		.inline_bytes = options.inline_bytes,
		.spin_ns = options.spin_us * 1000,
	};
	char why[RAW_WHY];

	for (unsigned i = 0; i < limits.count; i++) {
		struct target *target = &limits.targets[i];

		if (target->port)
			continue;
		target->child = raw_fork(target->host, options.segment, &target->port, why);
		if (target->child < 0)
			return complain(target->host, why);
	}
	if (options.cpu != UINT64_MAX && pin_to_cpu((int)options.cpu))
		return complain("--cpu", strerror(errno));
	for (unsigned i = 0; i < limits.count; i++) {
		const struct target *target = &limits.targets[i];

		limits.links[i] = raw_connect(target->host, target->port, &how, why);
		if (!limits.links[i])
			return complain(target->host, why);
	}
	if (asked_for("read") && raw_prepare_reads(limits.links[0], why))
		return complain(limits.targets[0].host, why);
	return 0;
}

static void disconnect_all(void)
{
	for (unsigned i = 0; i < limits.count; i++)
		raw_disconnect(limits.links[i]);
	for (unsigned i = 0; i < limits.count; i++) {
		if (limits.targets[i].child <= 0)
			continue;
		kill(limits.targets[i].child, SIGKILL);
		waitpid(limits.targets[i].child, NULL, 0);
	}
}

static int add_timed(const char *name, int (*step)(void *ctx))
{
	if (!asked_for(name))
		return 0;
	limits.timed[limits.timed_count] = measured_new(name, step, limits.links[0]);
	return limits.timed[limits.timed_count++] ? 0 : complain("memory", strerror(errno));
}

static int add_shapes(void)
{
	unsigned sizes[LIST_MAX], depths[LIST_MAX];
	unsigned size_count = read_list(options.sizes, 1 << 30, sizes);
	unsigned depth_count = read_list(options.depths, RAW_DEPTH_MAX, depths);

	if (!size_count || !depth_count)
		return complain("--read-sizes, --read-depths", "take lists of 1 to 8 numbers, as "
		                                               "64K,1M and 4,16");
	for (unsigned i = 0; asked_for("read") && i < size_count * depth_count; i++) {
		struct shape *shape = &limits.shapes[limits.shape_count++];

		*shape = (struct shape){ sizes[i / depth_count], depths[i % depth_count],
			                 limits.links[0], NULL };
		shape->m = measured_new("read", step_read, shape);
		if (!shape->m)
			return complain("memory", strerror(errno));
	}
	return 0;
}

/* What the first link that broke says. */
static const char *broken(void)
{
	for (unsigned i = 0; i < limits.count; i++)
		if (raw_trouble(limits.links[i]))
			return raw_trouble(limits.links[i]);
	return "it cannot be posted to, or waited for";
}

static int run_round(void)
{
	for (unsigned i = 0; i < limits.timed_count; i++)
		if (measure_round(limits.timed[i], options.round_ms / 1000.0, 0) ||
		    raw_wait(limits.links, limits.count, limits.count))
			return complain(limits.timed[i]->name, broken());
	/* One pass over the segment is a step. */
	for (unsigned i = 0; i < limits.shape_count; i++)
		if (measure_round(limits.shapes[i].m, 0, 1))
			return complain("read", broken());
	return 0;
}

static int run(void)
{
	int status = connect_all();

	if (!status && (add_timed("write", step_write) || add_timed("chain", step_chain) ||
	                add_timed("chains", step_chains) || add_shapes()))
		status = 2;
	for (uint64_t i = 0; i < options.rounds && !status; i++)
		status = run_round();
	return status;
}

/* --- what came out --- */

/* Bytes a second: a step was the whole segment. */
static struct measured_ratio bandwidth(const struct shape *shape)
{
	struct measured_ratio rate = measured_rates(shape->m);
	double bytes = (double)raw_segment(shape->link);

	return (struct measured_ratio){ rate.median * bytes, rate.least * bytes,
		                        rate.most * bytes };
}

static const struct shape *best_shape(void)
{
	const struct shape *best = limits.shapes;

	for (unsigned i = 1; i < limits.shape_count; i++)
		if (bandwidth(&limits.shapes[i]).median > bandwidth(best).median)
			best = &limits.shapes[i];
	return best;
}

static void shape_json(const struct shape *shape)
{
	struct measured_ratio rate = bandwidth(shape);

	printf("{\"size\": %u, \"depth\": %u, \"bytes_s\": ", shape->size, shape->depth);
	measured_ratio_json(stdout, &rate);
	printf("}");
}

static void print_json(void)
{
	const struct raw_link *link = limits.links[0];

	printf("{\"device\": \"%s\", \"mtu\": %u, \"inline\": %u, \"bytes\": %u, \"targets\": %u, "
	       "\"acks\": %u",
	       raw_device(link), raw_mtu(link), raw_inline(link), (unsigned)options.bytes,
	       limits.count, (unsigned)options.acks);
	printf("%s", limits.timed_count ? ", " : "");
	measured_json_all(stdout, limits.timed, limits.timed_count);
	if (limits.shape_count) {
		printf(", \"read\": ");
		shape_json(best_shape());
		printf(", \"reads\": [");
		for (unsigned i = 0; i < limits.shape_count; i++) {
			printf("%s", i ? ", " : "");
			shape_json(&limits.shapes[i]);
		}
		printf("]");
	}
	printf("}\n");
}

static void print_text(void)
{
	const struct raw_link *link = limits.links[0];

	printf("device %s, MTU %u, %u bytes inline; %u bytes of data; chains to %u targets, %u "
	       "waited for\n",
	       raw_device(link), raw_mtu(link), raw_inline(link), (unsigned)options.bytes,
	       limits.count, (unsigned)options.acks);
	if (limits.timed_count)
		measured_print(stdout, limits.timed, limits.timed_count);
	for (unsigned i = 0; i < limits.shape_count; i++) {
		const struct shape *shape = &limits.shapes[i];
		struct measured_ratio rate = bandwidth(shape);

		printf("reads of %7u bytes, %2u at a time: %8.1f MB/s (%.1f - %.1f)%s\n",
		       shape->size, shape->depth, rate.median / 1e6, rate.least / 1e6,
		       rate.most / 1e6, shape == best_shape() ? ", the best" : "");
	}
}

static int serve(void)
{
	struct target target = { .port = 0 };
	char why[RAW_WHY];

	if (read_target(options.serve, strlen(options.serve), &target) || !target.port)
		return complain("--serve", "takes HOST:PORT");
	raw_serve(target.host, target.port, options.segment, -1, why);
	return complain(options.serve, why);
}

int main(int argc, char **argv)
{
	int status;

	OPTIONS_PARSE(argc, argv);
	if (options.serve)
		return serve();
	if (read_targets() || check_options())
		return 2;
	status = run();
	if (!status && options.json)
		print_json();
	else if (!status)
		print_text();
	disconnect_all();
	measured_free_all(limits.timed, limits.timed_count);
	for (unsigned i = 0; i < limits.shape_count; i++)
		measured_free(limits.shapes[i].m);
	return status;
}
