/*
 * fields.h - what stands in a field of a message, by its descriptor: for envelope.c and version.c,
 * which walk through whole messages without a list of their fields. It changes nothing.
 */
#ifndef PERSEAS_PROTO_FIELDS_H
#define PERSEAS_PROTO_FIELDS_H

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>
#include <stddef.h>

/* The message in a field, or in element `i` of a repeated one; NULL: there is none. */
const ProtobufCMessage *ps_field_message(const ProtobufCMessage *message,
                                         const ProtobufCFieldDescriptor *field, size_t i);

/* Is there anything in the field that would be sent? */
bool ps_field_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

#endif
