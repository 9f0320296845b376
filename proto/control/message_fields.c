/*
 * message_fields.c - see message_fields.h.
 */
#include "message_fields.h"

#include <assert.h>
#include <stdint.h>

/* Returns false if the field is part of a oneof that has another member set. */
static bool may_be_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const uint8_t *quantifier = (const uint8_t *)message + field->quantifier_offset;

	return !(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
	       *(const uint32_t *)quantifier == field->id;
}

const ProtobufCMessage *ps_field_message(const ProtobufCMessage *message,
                                         const ProtobufCFieldDescriptor *field, size_t i)
{
	const uint8_t *at = (const uint8_t *)message + field->offset;
	const uint8_t *quantifier = (const uint8_t *)message + field->quantifier_offset;

	if (field->type != PROTOBUF_C_TYPE_MESSAGE)
		return NULL;
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return i < *(const size_t *)quantifier ? (*(ProtobufCMessage *const *const *)at)[i]
		                                       : NULL;
	if (i > 0 || !may_be_set(message, field))
		return NULL;
	return *(ProtobufCMessage *const *)at;
}

bool ps_field_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const uint8_t *at = (const uint8_t *)message + field->offset;

	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)((const uint8_t *)message + field->quantifier_offset) > 0;
	assert(field->label == PROTOBUF_C_LABEL_NONE);
	if (!may_be_set(message, field))
		return false;
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		return *(ProtobufCMessage *const *)at != NULL;
	case PROTOBUF_C_TYPE_STRING:
		return *(const char *const *)at && **(const char *const *)at;
	case PROTOBUF_C_TYPE_BYTES:
		return ((const ProtobufCBinaryData *)at)->len > 0;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return *(const uint64_t *)at != 0;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_BOOL:
	case PROTOBUF_C_TYPE_ENUM:
		break;
	}
	return *(const uint32_t *)at != 0;
}
