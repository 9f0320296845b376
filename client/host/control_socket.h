/*
 * control_socket.h - control connections over TCP and Unix sockets: the functions behind the
 * members of struct ps_env_ops with the same names, where their contract is.
 *
 * A wait for an answer on one connection also connects and sends on the other connections of the
 * env. So requests to several mirrors are in flight at once, and a dead mirror does not use up the
 * time of the others.
 */
#ifndef PERSEAS_CLIENT_CONTROL_SOCKET_H
#define PERSEAS_CLIENT_CONTROL_SOCKET_H

#include "../core/env.h"
#include "heartbeat_thread.h"
#include "vault.h"

#include <stdbool.h>

/* All connections of an env. */
struct ps_controls {
	pthread_mutex_t lock; /* guards the list and the connections in it */
	struct ps_control *first;
	struct ps_heartbeats heartbeats;
	/* Keeps the connections that were entrusted to it (ps_control_entrust). */
	struct ps_vault vault;
};

void ps_controls_init(struct ps_controls *all);
/* All connections must be disconnected before. */
void ps_controls_close(struct ps_controls *all);

struct ps_control *ps_control_connect(struct ps_controls *all, struct ps_tls *tls,
                                      const struct ps_address *address, struct ps_error *error);
int ps_control_send(struct ps_control *control, const Perseas__Request *request,
                    struct ps_error *error);
int ps_control_receive(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
                       int *fds, unsigned *count, struct ps_error *error);
bool ps_control_answered(struct ps_control *control);
bool ps_control_ended(struct ps_control *control);
int ps_control_fd(struct ps_control *control);
uint64_t ps_control_worked_at(struct ps_control *control);
unsigned ps_control_version(struct ps_control *control);
bool ps_control_waits(struct ps_control *control, struct pollfd *fd);
void ps_control_beat(struct ps_control *control, uint64_t every_ns);
void ps_control_hear(struct ps_control *control, uint64_t limit_ns);
bool ps_control_silent(struct ps_control *control);
void ps_control_shown_expiries(struct ps_control *control, struct ps_expiries *expiries);
bool ps_control_entrust(struct ps_control *control);
void ps_control_disconnect(struct ps_control *control);

#endif
