/*
 * args.h - what the command line said. args.c fills it in for main.c; verbs, and what they call,
 * read it. It must never be changed after parsing.
 */
#ifndef PERSEAS_COMMAND_ARGS_H
#define PERSEAS_COMMAND_ARGS_H

#include "ui.h"
#include "../../core/address.h"

struct ps_verb;
struct ps_roster_action;

enum { PS_WORDS_MAX = 6, PS_SIZES_MAX = 16, PS_HOSTS_MAX = 4 };

/* The command line. Text points into argv; NULL and 0: not given. "Never 0" and "never NULL" hold
 * after parsing. */
struct ps_args {
	const struct ps_verb *verb;
	const char *store;
	const char *mirrors;
	bool is_default_list;            /* `mirrors` came from the environment or is the default */
	const char *words[PS_WORDS_MAX]; /* the words after the verb */
	const char *topic;               /* help: a verb; completion: a shell */
	uint32_t sizes[PS_SIZES_MAX];    /* bench: bytes of a transaction */
	unsigned size_count;             /* never 0 */
	uint32_t threads;                /* bench: threads that commit; never 0 */
	uint32_t run_ms;                 /* bench: time for each size; never 0 */
	const char *memory_dir;          /* doctor: never NULL */
	unsigned word_count;
	const char *snapshot_file; /* snapshot, restore: name of a snapshot file */
	const char *heap;          /* heap: name of a heap */
	const char *from_mirror;   /* snapshot, history, heap: the mirror to read from */
	const char *check_file;    /* snapshot: file to check instead */
	/* roster: the change to make; NULL: shows the roster */
	const struct ps_roster_action *action;
	/* roster: members that leave or join; drain: the drained mirror */
	struct ps_address members[2];
	unsigned member_count;
	char *const *command; /* run: the words after `--`, up to a NULL; NULL: none */
	uint32_t order, restarts, stop_ms, patience_ms; /* run */
	const char *name;                /* run: name of the standby; NULL: the host's name */
	const char *hosts[PS_HOSTS_MAX]; /* move: names of standbys */
	unsigned host_count;
	uint32_t within_ms;             /* move: time limit */
	uint32_t copies;                /* place: images of the store; never 0 */
	uint64_t image_size;            /* place: bytes of each image; 0: not given */
	const char *apart;              /* place: host, rack or zone; NULL: not given */
	const char *segment;            /* history: name of a segment */
	uint64_t offset, length;        /* within the segment; length 0: not given */
	uint64_t last_count;            /* history: how many transactions to show; 0: not given */
	uint64_t seq;                   /* history: the only transaction to show; 0: not given */
	const char *to_path;            /* recover: directory; snapshot: file */
	const char *onto_mirrors;       /* recover: list of mirrors that get the store */
	const char *new_store_name;     /* recover: name of the new store */
	struct perseas_options options; /* options for the library */
	uint32_t wait_ms;               /* roster, spill, drain: time limit; never 0 */
	uint32_t repeat_ms;             /* verify: time between two rounds; 0: one round */
	uint32_t interval_ms;           /* top: time between two looks; never 0 */
	bool warm;                      /* run: keeps a copy of the memory */
	bool once;                      /* top: takes one look */
	bool json;
	bool quiet;            /* prints nothing on stdout: another verb called this one */
	bool dry_run;          /* only says what would be done */
	bool all_stores;       /* status: of all stores of the daemons in `mirrors` */
	bool shows_bytes;      /* history: with the bytes */
	bool is_confirmed;     /* drop: deletes, and does not only say what it would */
	bool is_gone_for_good; /* drain, roster: the mirror that leaves is gone for good */
	bool repair;           /* verify: has the owner repair mirrors that differ */
	bool takeover;         /* recover: takes the store from a live owner */
	bool help;
	bool version;
};

#endif
