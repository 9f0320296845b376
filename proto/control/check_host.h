/*
 * check_host.h - what is wrong with what a daemon tells of its host, for the table of messages
 * (check.c). No I/O.
 */
#ifndef PERSEAS_PROTO_CHECK_HOST_H
#define PERSEAS_PROTO_CHECK_HOST_H

#include "control.pb-c.h"

/* NULL: nothing is; the texts are to be made printable before they are shown. */
const char *ps_host_reply_fault(const Perseas__HostReply *host);

#endif
