/*
 * check_host.h - what is wrong with what a daemon tells of its host, for the table of messages
 * (check.c). No I/O.
 */
#ifndef PERSEAS_PROTO_CHECK_HOST_H
#define PERSEAS_PROTO_CHECK_HOST_H

#include "control.pb-c.h"

/* Returns NULL, or what is wrong with the id of a host's boot, which may be left out. */
const char *ps_boot_fault(const ProtobufCBinaryData *boot);

/* Returns NULL, or what is wrong with the labels of a daemon. */
const char *ps_labels_fault(const char *host, const char *rack, const char *zone);

/* NULL: nothing is; the texts are to be made printable before they are shown. */
const char *ps_host_reply_fault(const Perseas__HostReply *host);

#endif
