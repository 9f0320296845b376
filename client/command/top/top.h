/*
 * top.h - compares running stores between looks: each look is judged as perseas status --all judges
 * it, and compared with the look before. cmd_top.c asks the mirrors, top_show.c prints. It must
 * never claim a store.
 */
#ifndef PERSEAS_COMMAND_TOP_H
#define PERSEAS_COMMAND_TOP_H

#include "../fleet/fleet.h"
#include "../../../proto/base/latency.h"

/* Figures of a store for the interval since the previous look. */
struct ps_top_change {
	double rate; /* transactions a second; negative: not known */
	/* Latencies of commits. Owners report them twice a second, so shorter intervals repeat the
	 * last report. */
	bool has_latency;
	uint64_t p50_ns, p99_ns, p999_ns;
};

struct ps_top_past;

/* The last look. Points into the replies that it was made of. Initialize to zero. */
struct ps_top {
	struct ps_fleet fleet;         /* the stores, those with problems first */
	struct ps_top_change *changes; /* changes[i] is of fleet.stores[i] */
	struct ps_top_past *past;      /* figures of earlier looks */
	unsigned past_count;
};

/* Replaces the last look by the peers' answers to a List request that was sent at `asked_ns`. If
 * memory runs out, ends the process with PS_EXIT_FAILURE. */
void ps_top_take_look(struct ps_top *top, struct ps_peers *peers, uint64_t asked_ns);
void ps_top_free(struct ps_top *top);

/* Print the last look as text or as JSON. (top_show.c) */
void ps_top_print(const struct ps_top *top, const struct ps_peers *peers, FILE *out);
void ps_top_json(const struct ps_top *top, const struct ps_peers *peers, uint64_t clock_ns,
                 FILE *out);

#endif
