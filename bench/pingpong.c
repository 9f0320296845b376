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

static uint64_t bytes = 256;
static uint64_t spin_us = 50;
static uint64_t far_spin_us = UINT64_MAX;
static uint64_t rounds = 5;
static uint64_t cpu;
static double seconds = 1;
static bool json, unix_sockets;

static const char about[] =
	"Sends messages back and forth over TCP on the loopback, or over Unix sockets. The two\n"
	"ends are processes, pinned to different processors; both spin before they sleep, as\n"
	"Perseas does.\n";

static const struct option_row rows[] = {
	{ "bytes", OPTION_NUMBER, &bytes, "N  of a message (256)" },
	{ "spin-us", OPTION_NUMBER, &spin_us, "N  microseconds to spin before sleeping (50)" },
	{ "far-spin-us", OPTION_NUMBER, &far_spin_us, "N  the same at the far end (as --spin-us)" },
	{ "unix", OPTION_FLAG, &unix_sockets, "sockets instead of TCP" },
	{ "cpu", OPTION_NUMBER, &cpu, "N  processor of the near end (0)" },
	ROUND_OPTION_ROWS(seconds, rounds),
	{ "json", OPTION_FLAG, &json, "one JSON object on standard output" },
	{ NULL, OPTION_FLAG, NULL, NULL },
};

int main(int argc, char **argv)
{
	struct measured *m;
	struct pinger *(*connect_far)(unsigned, uint64_t, uint64_t, int), *pinger;

	options_parse(argc, argv, about, rows);
	if (!bytes || bytes > 1 << 20 || !rounds || rounds > MEASURE_ROUNDS_MAX || cpu > 1023) {
		fprintf(stderr, "pingpong: --bytes is 1 to 1M, --rounds 1 to %d, --cpu to 1023\n",
		        MEASURE_ROUNDS_MAX);
		return 2;
	}
	connect_far = unix_sockets ? pinger_new_unix : pinger_new;
	if (far_spin_us == UINT64_MAX)
		far_spin_us = spin_us;
	pinger = connect_far((unsigned)bytes, spin_us, far_spin_us, other_cpu((int)cpu));
	m = measured_new("pingpong", pinger_step, pinger);
	if (!pinger || !m || pin_to_cpu((int)cpu)) {
		fprintf(stderr, "pingpong: %s\n", strerror(errno));
		return 2;
	}
	if (measure_in_turn(&m, 1, rounds, seconds, 0)) {
		fprintf(stderr, "pingpong: the far end is gone\n");
		return 2;
	}
	pinger_free(pinger);
	if (json) {
		printf("{\"bytes\": %u, \"spin_us\": %u, ", (unsigned)bytes, (unsigned)spin_us);
		measured_json(stdout, m);
		printf("}\n");
	} else {
		measured_print(stdout, &m, 1);
	}
	measured_free(m);
	return 0;
}
