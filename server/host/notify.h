/*
 * notify.h - telling a service manager how the daemon is (sd_notify's protocol).
 */
#ifndef PERSEAS_SERVER_NOTIFY_H
#define PERSEAS_SERVER_NOTIFY_H

/* Sends a state such as "READY=1" to NOTIFY_SOCKET; does nothing without one. */
void notify(const char *state);

#endif
