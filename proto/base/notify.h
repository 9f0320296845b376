/*
 * notify.h - reports the state of a program to the service manager (the protocol of sd_notify).
 */
#ifndef PERSEAS_PROTO_NOTIFY_H
#define PERSEAS_PROTO_NOTIFY_H

/* Sends a state such as "READY=1" to $NOTIFY_SOCKET. Does nothing if the variable is not set. */
void ps_notify_service_manager(const char *state);

#endif
