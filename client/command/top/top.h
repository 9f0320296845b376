/*
 * top.h - stores that run, as several mirrors tell of them in turn: merged by their ids, with what
 * changed since the look before. Plain logic: cmd_top.c asks, top_show.c prints.
 */
#ifndef PERSEAS_COMMAND_TOP_H
#define PERSEAS_COMMAND_TOP_H

#include "../ask/ask.h"
#include "../../../proto/base/latency.h"

struct ps_top_mirror {
	const char *address;
	const char *state;  /* as its owner sees it; else as it calls its image itself */
	const char *fabric; /* "": not known, or no owner */
	const char *trouble;
	bool reported; /* the owner speaks of it: state and seq are as it sees them */
	bool has_seq;
	uint64_t seq, lag;    /* with has_seq; lag: transactions behind the newest */
	uint64_t done, total; /* bytes of a resync; total 0: none goes on */
};

/* The members of two rosters, and images that none lists. */
enum { PS_TOP_MIRRORS_MAX = 3 * PS_MIRRORS_MAX };

struct ps_top_store {
	const Perseas__Header *header;
	const Perseas__StoreStatus *owner;    /* from the mirror that heard last of the live owner
	                                         of the highest epoch; NULL: none is seen */
	const Perseas__OwnerFigures *figures; /* of that owner, the newest; NULL: none */
	bool has_slot;
	uint64_t epoch, seq; /* with has_slot: the newest */
	double rate;         /* transactions a second since the look before; negative: not
	                        known */
	/* Of commits since the look before. Owners tell of them twice a second, so that shorter
	 * intervals repeat what was told last. */
	bool has_latency;
	uint64_t p50_ns, p99_ns, p999_ns;
	unsigned mirror_count;
	struct ps_top_mirror mirrors[PS_TOP_MIRRORS_MAX];
};

struct ps_top_past;

/* Points into the replies that it was made of. Zero to begin. */
struct ps_top {
	uint64_t asked_ns; /* when the mirrors were asked for this look */
	unsigned count;
	struct ps_top_store *stores; /* by name, then by id */
	struct ps_top_past *past;    /* what is kept of looks before */
	unsigned past_count;
};

/* Replaces the look before by what the panel's mirrors answered to a List, asked at `asked_ns`. Out
 * of memory ends the process, with PS_EXIT_FAILURE. */
void ps_top_take(struct ps_top *top, const struct ps_panel *panel, uint64_t asked_ns);
void ps_top_free(struct ps_top *top);

/* top_show.c */
void ps_top_print(const struct ps_top *top, const struct ps_panel *panel, FILE *out);
void ps_top_json(const struct ps_top *top, const struct ps_panel *panel, uint64_t clock_ns,
                 FILE *out);

#endif
