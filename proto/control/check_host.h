/*
 * check_host.h - checks what a daemon reports about its host, for the table of messages (check.c).
 * No I/O.
 */
#ifndef PERSEAS_PROTO_CHECK_HOST_H
#define PERSEAS_PROTO_CHECK_HOST_H

#include "control.pb-c.h"

/* Returns NULL if the boot id is valid or empty, or a sentence that says what is wrong. */
const char *ps_boot_fault(const ProtobufCBinaryData *boot);

/* Returns NULL if the labels of a daemon are valid or empty, or a sentence that says what is
 * wrong. */
const char *ps_labels_fault(const char *host, const char *rack, const char *zone);

/* Returns NULL if the location is valid or NULL, or a sentence that says what is wrong. */
const char *ps_location_fault(const Perseas__Location *location);

/* Returns NULL, or a sentence that says what is wrong. Does not check whether the texts are
 * printable. */
const char *ps_host_reply_fault(const Perseas__HostReply *host);

#endif
