/*
 * message_fields.h - reads fields of a protobuf message by their descriptors. envelope.c and
 * version.c walk whole messages with it, without a list of their fields. It changes nothing.
 */
#ifndef PERSEAS_PROTO_MESSAGE_FIELDS_H
#define PERSEAS_PROTO_MESSAGE_FIELDS_H

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>
#include <stddef.h>

/* Returns the message in a field, or in element `i` of a repeated field, or NULL if there is
 * none. */
const ProtobufCMessage *ps_field_message(const ProtobufCMessage *message,
                                         const ProtobufCFieldDescriptor *field, size_t i);

/* Returns true if packing the message would write this field. */
bool ps_field_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

#endif
