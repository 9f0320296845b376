/*
 * notify.h - telling a service manager how a program is (sd_notify's protocol).
 */
#ifndef PERSEAS_PROTO_NOTIFY_H
#define PERSEAS_PROTO_NOTIFY_H

/* Sends a state such as "READY=1" to NOTIFY_SOCKET; does nothing without one. */
void ps_notify(const char *state);

#endif
