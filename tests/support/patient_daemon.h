/*
 * patient_daemon.h - a daemon's loop for tests. A machine that stands still for some seconds must
 * not end a connection there: tests that want a short limit set it themselves.
 */
#ifndef PERSEAS_TESTS_PATIENT_DAEMON_H
#define PERSEAS_TESTS_PATIENT_DAEMON_H

#include "../../server/loop/daemon.h"

#define PATIENCE_NS 600000000000ULL

/* Returns daemon_new(stores, 0) with time limits that no test reaches, or NULL like it. */
static inline struct daemon *patient_daemon_new(struct stores *stores)
{
	struct daemon *daemon = daemon_new(stores, 0);

	if (daemon)
		daemon->handshake_ns = daemon->message_ns = PATIENCE_NS;
	return daemon;
}

#endif
