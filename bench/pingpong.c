/*
 * pingpong - the round trip of bare sockets between two processes of this host.
 */
#include "measure.h"
#include "options.h"
#include "pinger.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct options {
	uint64_t bytes, spin_us, far_spin_us, rounds, cpu;
	uint32_t round_ms;
	bool json, unix_sockets;
} options = {
	.far_spin_us = UINT64_MAX,
};

static const char about[] =
	"Sends messages back and forth over TCP on the loopback, or over Unix sockets. The two\n"
	"ends are processes, pinned to different processors; both spin before they sleep, as\n"
	"Perseas does.\n";

static const struct ps_option rows[] = {
	{ "bytes", PS_OPTION_SIZE, AT(bytes), "N", "256", 1, 1 << 20,
	  .help = "Bytes of a message." },
	{ "spin-us", PS_OPTION_NUMBER, AT(spin_us), "N", "50",
	  .help = "Microseconds to spin before sleeping." },
	{ "far-spin-us", PS_OPTION_NUMBER, AT(far_spin_us), "N",
	  .help = "The same at the far end. Default: as --spin-us." },
	{ "unix", PS_OPTION_FLAG, AT(unix_sockets), .help = "Unix sockets instead of TCP." },
	{ "cpu", PS_OPTION_NUMBER, AT(cpu), "N", "0", .high = 1023,
	  .help = "Processor of the near end." },
	ROUND_OPTION_ROWS,
	JSON_OPTION_ROW,
};

int main(int argc, char **argv)
{
	struct measured *m;
	struct pinger *(*connect_far)(unsigned, uint64_t, uint64_t, int), *pinger;

	OPTIONS_PARSE(argc, argv);
	connect_far = options.unix_sockets ? pinger_new_unix : pinger_new;
	if (options.far_spin_us == UINT64_MAX)
		options.far_spin_us = options.spin_us;
	pinger = connect_far((unsigned)options.bytes, options.spin_us, options.far_spin_us,
	                     other_cpu((int)options.cpu));
	m = measured_new("pingpong", pinger_step, pinger);
	if (!pinger || !m || pin_to_cpu((int)options.cpu)) {
		fprintf(stderr, "pingpong: %s\n", strerror(errno));
		return 2;
	}
	if (measure_in_turn(&m, 1, options.rounds, options.round_ms / 1000.0, 0)) {
		fprintf(stderr, "pingpong: the far end is gone\n");
		return 2;
	}
	pinger_free(pinger);
	if (options.json) {
		printf("{\"bytes\": %u, \"spin_us\": %u, ", (unsigned)options.bytes,
		       (unsigned)options.spin_us);
		measured_json(stdout, m);
		printf("}\n");
	} else {
		measured_print(stdout, &m, 1);
	}
	measured_free(m);
	return 0;
}
