/*
 * limits - measures the bare RDMA fabric: the time of a write and of the writes of a commit, and
 * the bandwidth of reads.
 */
#include "measure.h"
#include "options.h"
#include "raw_verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIST_MAX = 8, SHAPES_MAX = LIST_MAX * LIST_MAX, TIMED = 4, FLYING = 32 };

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
	"  flying  the same, 32 chains under way all the time\n"
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
	{ "measure", PS_OPTION_TEXT, AT(what), "LIST", "write,chain,flying,chains,read",
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
	unsigned port; /* 0: served by a child of this process */
	pid_t child;   /* 0: no child */
};

/* A series of reads of one size with `depth` in flight. */
struct shape {
	unsigned size, depth;
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

/* --- the command line --- */

/* Parses "host", "host:port", "[v6]:port" or "[v6]". Returns 0 or -1. */
static int read_target(const char *text, struct target *target)
{
	const char *host = text + (*text == '[');
	size_t len = strcspn(host, *text == '[' ? "]" : ":");
	const char *after = host + len;
	char *end;

	if (!len || len >= sizeof(target->host) || (*text == '[' && *after++ != ']'))
		return -1;
	memcpy(target->host, host, len);
	if (!*after)
		return 0;
	target->port = (unsigned)strtoul(after + 1, &end, 10);
	return *after == ':' && !*end && target->port && target->port < 65536 ? 0 : -1;
}

static int read_targets(void)
{
	const char *list = options.to;
	char word[LIST_WORD];

	while (list_next(&list, word))
		if (limits.count == RAW_TARGETS_MAX ||
		    read_target(word, &limits.targets[limits.count++]))
			return program_fail("--to", "takes up to 16 of HOST or HOST:PORT");
	if (!limits.count)
		return program_fail("--to", "is missing; it lists the targets (see --help)");
	if (!options.acks)
		options.acks = limits.count / 2 + 1;
	if (options.acks > limits.count)
		return program_fail("--acks", "is more than there are targets");
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

static int step_flying(void *ctx)
{
	struct raw_link *link = ctx;

	return raw_leave(link, FLYING - 1) || raw_post_chain(link, (unsigned)options.bytes);
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

	return raw_read(limits.links[0], shape->size, shape->depth);
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
			return program_fail(target->host, why);
	}
	if (program_pin(options.cpu))
		return 2;
	for (unsigned i = 0; i < limits.count; i++) {
		const struct target *target = &limits.targets[i];

		limits.links[i] = raw_connect(target->host, target->port, &how, why);
		if (!limits.links[i])
			return program_fail(target->host, why);
	}
	if (list_has(options.what, "read") && raw_prepare_reads(limits.links[0], why))
		return program_fail(limits.targets[0].host, why);
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

static void add_timed(const char *name, int (*step)(void *ctx))
{
	if (list_has(options.what, name))
		limits.timed[limits.timed_count++] = measured_new(name, step, limits.links[0]);
}

static int add_shapes(void)
{
	uint64_t sizes[LIST_MAX], depths[LIST_MAX];
	unsigned size_count = list_numbers(options.sizes, 1 << 30, LIST_MAX, sizes);
	unsigned depth_count = list_numbers(options.depths, RAW_DEPTH_MAX, LIST_MAX, depths);

	if (!size_count || !depth_count)
		return program_fail("--read-sizes, --read-depths",
		                    "take lists of 1 to 8 numbers, as "
		                    "64K,1M and 4,16");
	for (unsigned i = 0; list_has(options.what, "read") && i < size_count * depth_count; i++) {
		struct shape *shape = &limits.shapes[limits.shape_count++];

		*shape = (struct shape){ (unsigned)sizes[i / depth_count],
			                 (unsigned)depths[i % depth_count], NULL };
		shape->m = measured_new("read", step_read, shape);
	}
	return 0;
}

/* Returns the reason why the first broken link broke. */
static const char *first_trouble(void)
{
	for (unsigned i = 0; i < limits.count; i++)
		if (limits.links[i]->trouble)
			return limits.links[i]->trouble;
	return "it cannot be posted to, or waited for";
}

static int run_round(void)
{
	for (unsigned i = 0; i < limits.timed_count; i++)
		if (measure_round(limits.timed[i], options.round_ms / 1000.0, 0) ||
		    raw_wait(limits.links, limits.count, limits.count))
			return program_fail(limits.timed[i]->name, first_trouble());
	/* A step reads the whole segment once. */
	for (unsigned i = 0; i < limits.shape_count; i++)
		if (measure_round(limits.shapes[i].m, 0, 1))
			return program_fail("read", first_trouble());
	return 0;
}

static int run_all(void)
{
	int status = connect_all();

	if (status)
		return status;
	add_timed("write", step_write);
	add_timed("chain", step_chain);
	add_timed("flying", step_flying);
	add_timed("chains", step_chains);
	status = add_shapes();
	for (uint64_t i = 0; i < options.rounds && !status; i++)
		status = run_round();
	return status;
}

/* --- results --- */

/* Returns bytes per second. A step reads the whole segment. */
static struct measured_ratio shape_bandwidth(const struct shape *shape)
{
	struct measured_ratio rate = measured_rates(shape->m);
	double bytes = (double)limits.links[0]->far.segment;

	return (struct measured_ratio){ rate.median * bytes, rate.least * bytes,
		                        rate.most * bytes };
}

static const struct shape *best_shape(void)
{
	const struct shape *best = limits.shapes;

	for (unsigned i = 1; i < limits.shape_count; i++)
		if (shape_bandwidth(&limits.shapes[i]).median > shape_bandwidth(best).median)
			best = &limits.shapes[i];
	return best;
}

static void shape_json(struct ps_json *json, const char *key, const struct shape *shape)
{
	ps_json_begin(json, key, '{');
	ps_json_number(json, "size", shape->size);
	ps_json_number(json, "depth", shape->depth);
	measured_ratio_json(json, "bytes_s", shape_bandwidth(shape));
	ps_json_end(json, '}');
}

static void print_json(void)
{
	const struct raw_link *link = limits.links[0];
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "device", ibv_get_device_name(link->id->verbs->device));
	ps_json_number(&json, "mtu", raw_mtu(link));
	ps_json_number(&json, "inline", link->inline_bytes);
	ps_json_number(&json, "bytes", options.bytes);
	ps_json_number(&json, "targets", limits.count);
	ps_json_number(&json, "acks", options.acks);
	measured_json_all(&json, limits.timed, limits.timed_count);
	if (limits.shape_count) {
		shape_json(&json, "read", best_shape());
		ps_json_begin(&json, "reads", '[');
		for (unsigned i = 0; i < limits.shape_count; i++)
			shape_json(&json, NULL, &limits.shapes[i]);
		ps_json_end(&json, ']');
	}
	ps_json_end(&json, '}');
}

static void print_text(void)
{
	const struct raw_link *link = limits.links[0];

	printf("device %s, MTU %u, %u bytes inline; %u bytes of data; chains to %u targets, %u "
	       "waited for\n",
	       ibv_get_device_name(link->id->verbs->device), raw_mtu(link), link->inline_bytes,
	       (unsigned)options.bytes, limits.count, (unsigned)options.acks);
	if (limits.timed_count)
		measured_print(stdout, limits.timed, limits.timed_count);
	for (unsigned i = 0; i < limits.shape_count; i++) {
		const struct shape *shape = &limits.shapes[i];
		struct measured_ratio rate = shape_bandwidth(shape);

		printf("reads of %7u bytes, %2u at a time: %8.1f MB/s (%.1f - %.1f)%s\n",
		       shape->size, shape->depth, rate.median / 1e6, rate.least / 1e6,
		       rate.most / 1e6, shape == best_shape() ? ", the best" : "");
	}
}

static int serve_far_end(void)
{
	struct target target = { .port = 0 };
	char why[RAW_WHY];

	if (read_target(options.serve, &target) || !target.port)
		return program_fail("--serve", "takes HOST:PORT");
	raw_serve(target.host, target.port, options.segment, -1, why);
	return program_fail(options.serve, why);
}

int main(int argc, char **argv)
{
	int status;

	OPTIONS_PARSE(argc, argv);
	if (options.serve)
		return serve_far_end();
	if (read_targets())
		return 2;
	status = run_all();
	if (!status && options.json)
		print_json();
	else if (!status)
		print_text();
	disconnect_all();
	measured_free_all(limits.timed, limits.timed_count);
	for (unsigned i = 0; i < limits.shape_count; i++)
		measured_free_all(&limits.shapes[i].m, 1);
	return status;
}
