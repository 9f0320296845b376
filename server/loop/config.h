/*
 * config.h - the daemon's options, from the command line and the configuration file, and the
 * sockets that its service manager has opened.
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
	/* Default of --threads: the number of processors, but at most this. */
	THREADS_DEFAULT_MAX = 8,
};

struct endpoint {
	bool local; /* a Unix socket with the path `host` */
	char host[256];
	char port[8]; /* decimal; 0: any free port */
};

struct rdma_options {
	bool enabled;
	unsigned port;      /* 0: any free port */
	bool phased;        /* the network may reorder writes, so owners send them in phases */
	bool flush_by_read; /* owners count an RDMA write only after a later read has completed */
};

enum { HTTP_NAMES_MAX = 8, HTTP_NAME_MAX = 255 };

struct http_options {
	bool enabled;
	struct endpoint endpoint;
	/* Additional names of this host in HTTP requests. */
	char names[HTTP_NAMES_MAX][HTTP_NAME_MAX + 1];
	unsigned name_count;
	bool anywhere;            /* HTTP may be served on addresses that other hosts reach */
	char port_file[PATH_MAX]; /* "": none */
};

enum { JOURNAL_PATH = 108 }; /* size of a socket's path, with the terminating zero */

struct config {
	struct endpoint endpoints[ENDPOINTS_MAX];
	unsigned endpoint_count;
	bool is_default_endpoint; /* no address was configured, so the default is used */
	struct activated activated[ACTIVATED_MAX];
	int activated_count;
	char memory_dir[PATH_MAX];
	char spill_dir[PATH_MAX];   /* "": none */
	char state_dir[PATH_MAX];   /* "": none */
	char port_file[PATH_MAX];   /* "": none */
	char access_file[PATH_MAX]; /* "": none; everything is allowed */
	char file[PATH_MAX];        /* the configuration file; "": none */
	char tls_cert[PATH_MAX];    /* "": no TLS; likewise the next two */
	char tls_key[PATH_MAX];
	char tls_ca[PATH_MAX];
	char tls_crl[PATH_MAX];        /* "": none */
	bool allows_exposed_plaintext; /* plain TCP is allowed on addresses that other hosts
	                                  reach */
	bool has_boot_id;              /* boot_id was set by --boot-id */
	uint8_t boot_id[PS_BOOT_ID_SIZE];
	bool memory_on_disk; /* memory_dir may be on a disk */
	uint64_t max_memory; /* limit for all images in bytes; 0: no limit */
	uint32_t spin_us;    /* for how long threads poll after data arrived */
	unsigned threads;    /* threads that move data; 1: only the loop */
	uint32_t max_connections;
	unsigned unix_mode;        /* permissions of Unix sockets */
	uint32_t copies;           /* copies to images here that go on at a time; 0: any number */
	uint32_t owner_timeout_ms; /* silence after which an owner counts as dead; 0: none */
	struct labels labels;
	unsigned highest_protocol; /* highest protocol version to speak */
	struct rdma_options rdma;
	struct http_options http;
	enum log_level log_level;
	enum log_format log_format;
	char journal_socket[JOURNAL_PATH]; /* path of the journal's socket */
	/* What to do instead of serving. */
	bool help;
	bool version;
	bool metrics_help;
	bool check; /* check the configuration */
};

/* Reads the command line and the configuration file that it names. An option on the command line
 * overrides the file; listeners of both are used. Returns 0, or -1 with a sentence in `why`. */
int config_parse(struct config *config, int argc, char *const *argv, char *why, size_t size);

/* Prints the text of --help, from which the manual page is made. */
void config_help(FILE *out);

#endif
