/*
 * config.h - what the daemon is told on its command line and in its configuration file, and what
 * its service manager has opened for it.
 */
#ifndef PERSEAS_SERVER_CONFIG_H
#define PERSEAS_SERVER_CONFIG_H

#include "../host/activation.h"
#include "../host/log.h"
#include "../../proto/base/boot.h"
#include "../store/store.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	ENDPOINTS_MAX = 16,
	THREADS_MAX = 64,
	THREADS_USUAL = 8, /* as many as processors, but no more than this */
};

struct endpoint {
	bool local; /* a Unix socket, at the path `host` */
	char host[256];
	char port[8]; /* decimal; 0: any that is free */
};

struct rdma_options {
	bool on;
	unsigned port; /* 0: any that is free */
	bool phased;   /* the network may reorder writes */
	bool flush;    /* RDMA writes count only after a read that follows them */
};

enum { HTTP_NAMES_MAX = 8, HTTP_NAME_MAX = 255 };

struct http_options {
	bool on;
	struct endpoint endpoint;
	char names[HTTP_NAMES_MAX][HTTP_NAME_MAX + 1]; /* that requests may call this host */
	unsigned name_count;
	bool anywhere;            /* the address may be one that other hosts reach */
	char port_file[PATH_MAX]; /* "": none */
};

enum { JOURNAL_PATH = 108 }; /* bytes of a socket's path, with its end */

struct config {
	struct endpoint endpoints[ENDPOINTS_MAX];
	unsigned endpoint_count;
	bool endpoint_default; /* nothing was said, and so the one is the usual one */
	struct activated activated[ACTIVATED_MAX];
	int activated_count;
	char memory_dir[PATH_MAX];
	char spill_dir[PATH_MAX];   /* "": none */
	char state_dir[PATH_MAX];   /* the same */
	char port_file[PATH_MAX];   /* "": none */
	char access_file[PATH_MAX]; /* "": none, and everybody may do everything */
	char file[PATH_MAX];        /* the configuration file, "": none */
	char tls_cert[PATH_MAX];    /* "", as the next two: no TLS */
	char tls_key[PATH_MAX];
	char tls_ca[PATH_MAX];
	char tls_crl[PATH_MAX]; /* "": none */
	bool exposed;           /* plain text may leave this host */
	bool boot_given;        /* boot is the host's */
	uint8_t boot[PS_BOOT_ID_SIZE];
	bool memory_on_disk; /* memory_dir may lie on one */
	uint64_t max_memory; /* bytes, 0: no limit */
	uint32_t spin_us;
	unsigned threads; /* for data; 1: the loop's alone */
	uint32_t max_connections;
	unsigned unix_mode;        /* of the files of Unix sockets */
	uint32_t owner_timeout_ms; /* 0: none */
	struct labels labels;
	unsigned protocol; /* the highest version that is spoken */
	struct rdma_options rdma;
	struct http_options http;
	enum log_level log_level;
	enum log_format log_format;
	char journal[JOURNAL_PATH]; /* where the journal listens */
	bool help;
	bool version;
	bool metrics_help;
	bool check;
};

/*
 * Reads the command line and the file that it names. The command line wins where both set the
 * same; listeners of both are used. 0, or -1 with a sentence in `why`.
 */
int config_parse(struct config *config, int argc, char *const *argv, char *why, size_t size);

/* What --help prints, which the manual pages are made of. */
void config_help(FILE *out);

#endif
