/*
 * args.h - what the command line said. args.c fills it in for main.c; verbs, and what they call,
 * read it. It must never be changed once it is parsed.
 */
#ifndef PERSEAS_COMMAND_ARGS_H
#define PERSEAS_COMMAND_ARGS_H

#include "ui.h"
#include "../../core/address.h"

struct ps_verb;
struct ps_roster_action;

enum { PS_WORDS_MAX = 6, PS_SIZES_MAX = 16, PS_HOSTS_MAX = 4 };

/* The command line. Text points into argv; NULL and 0: not given. */
struct ps_args {
	const struct ps_verb *verb;
	const char *store;
	const char *mirrors;
	bool unnamed;                    /* `mirrors` came from the environment or is the default */
	const char *words[PS_WORDS_MAX]; /* behind the verb, as they stand */
	const char *topic;               /* help: of what; completion: for which shell */
	uint32_t sizes[PS_SIZES_MAX];    /* bench: bytes of a transaction */
	unsigned size_count;             /* never 0 once it is parsed */
	uint32_t threads;                /* the same */
	uint32_t run_ms;                 /* the same: each size takes so long */
	const char *memory_dir;          /* never NULL once it is parsed */
	unsigned word_count;
	const char *file;                      /* a snapshot */
	const char *heap;                      /* its name */
	const char *from;                      /* one mirror */
	const char *check;                     /* a snapshot */
	const struct ps_roster_action *action; /* roster: NULL: shows it */
	struct ps_address members[2];          /* roster: that come or go; drain: the mirror */
	unsigned member_count;
	char *const *command; /* run: the words after `--`, up to a NULL; NULL: none */
	uint32_t order, restarts, stop_ms, patience_ms; /* run */
	const char *name;                               /* run: as a standby; NULL: the host's */
	const char *hosts[PS_HOSTS_MAX];                /* move: names of standbys */
	unsigned host_count;
	uint32_t within_ms;  /* move */
	uint32_t copies;     /* place: images of the store; never 0 once it is parsed */
	uint64_t image_size; /* place: bytes of each; 0: not given */
	const char *apart;   /* place: host, rack or zone; NULL: not given */
	const char *segment;
	uint64_t offset, length; /* within the segment; length 0: not given */
	uint64_t last;           /* 0: not given */
	uint64_t seq;            /* the same */
	const char *to;          /* directory or file */
	const char *onto;        /* list of mirrors */
	const char *as;
	struct perseas_options options; /* options for the library */
	uint32_t wait_ms;               /* never 0 once it is parsed */
	uint32_t repeat_ms;             /* 0: once */
	uint32_t interval_ms;           /* never 0 once it is parsed */
	bool warm;
	bool once;
	bool json;
	bool quiet; /* prints nothing on stdout, since another verb asked for it */
	bool dry_run;
	bool all; /* status: of a fleet, and no store is named */
	bool bytes;
	bool yes;
	bool gone;
	bool takeover;
	bool help;
	bool version;
};

#endif
