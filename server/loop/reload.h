/*
 * reload.h - the access rules and the TLS files, which the daemon reads at its start, and again on
 * SIGHUP. Files that cannot be read leave those from before in force.
 */
#ifndef PERSEAS_SERVER_RELOAD_H
#define PERSEAS_SERVER_RELOAD_H

#include "../../proto/base/tls.h"
#include "../host/jobs.h"
#include "config.h"

#include <event2/util.h>

struct access;
struct daemon;
struct event;
struct stores;

/* The access rules in force, and the file that they come from. */
struct rules {
	const char *path;
	struct access *access;
	struct stores *stores; /* NULL: not created yet */
};

/* Reads access rules. Logs why they cannot be read, and returns NULL. */
struct access *reload_read_access(const char *path);
/* Reads the rules at the start, and puts them in force. Returns 0 or -1. */
int reload_read_rules(struct rules *rules);
struct ps_tls_files reload_name_tls_files(const struct config *config);
/* Reads the TLS files at the start. Returns 0 or -1. */
int reload_read_tls(struct daemon *daemon, const struct config *config);

/* The job of a reload. The struct must live until the daemon's sessions have ended, because the job
 * may run until then. */
struct reload {
	struct job job; /* must be first */
	struct daemon *daemon;
	const struct config *config;
	struct rules *rules;
	struct event *event;   /* the event of the signal, which the caller sets */
	struct access *access; /* new rules, about to come into force */
};

void reload_init(struct reload *reload, struct daemon *daemon, const struct config *config,
                 struct rules *rules);
/* Handles SIGHUP. `arg` is a struct reload. */
void reload_on_hangup(evutil_socket_t number, short what, void *arg);

#endif
