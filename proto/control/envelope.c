/*
 * envelope.c - packs and unpacks control messages and header files.
 */
#include "envelope.h"

#include "check.h"
#include "message_fields.h"
#include "../image/crc32c.h"
#include "../base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t header_magic[8] = "PERSEAS";

/* Limits the memory of an unpacked message: an empty element of a repeated field has two bytes on
 * the wire and over a hundred in memory. Every valid message needs less than this. */
enum {
	EXPANSION_MAX = 8,    /* unpacked size, as a multiple of PS_MESSAGE_MAX */
	ALLOCATION_COST = 16, /* what malloc() adds to each allocation, in bytes */
};

/* Memory that the unpacking of a message may still allocate. */
struct budget {
	size_t left; /* bytes */
};

static void *budget_alloc(void *data, size_t size)
{
	struct budget *budget = data;

	if (budget->left < ALLOCATION_COST || size > budget->left - ALLOCATION_COST)
		return NULL;
	budget->left -= size + ALLOCATION_COST;
	return malloc(size);
}

static void budget_free(void *data, void *pointer)
{
	(void)data;
	free(pointer);
}

/* Returns the text of a string field, or NULL if the field is no string. No message has a repeated
 * string or a string in a oneof. */
static char *text_of_field(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	if (field->type != PROTOBUF_C_TYPE_STRING)
		return NULL;
	assert(field->label == PROTOBUF_C_LABEL_NONE &&
	       !(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF));
	return *(char *const *)((const uint8_t *)message + field->offset);
}

/* Returns true if this version knows all fields of the message and of the messages in it. An
 * unknown field may change the meaning of the others, so it must not be ignored. */
static bool all_fields_known(const ProtobufCMessage *message)
{
	const ProtobufCMessage *next;

	if (message->n_unknown_fields > 0)
		return false;
	for (unsigned f = 0; f < message->descriptor->n_fields; f++)
		for (size_t i = 0;
		     (next = ps_field_message(message, &message->descriptor->fields[f], i)); i++)
			if (!all_fields_known(next))
				return false;
	return true;
}

static const char unknown_field[] = "the message has a field that this version does not know";

/* Unpacks a message without checking its values. Returns NULL with *why set on failure. The memory
 * is from malloc(), so that it can be freed without the allocator. */
static void *unpack_message(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                            size_t len, const char **why)
{
	struct budget budget = { (size_t)PS_MESSAGE_MAX * EXPANSION_MAX };
	ProtobufCAllocator allocator = { budget_alloc, budget_free, &budget };
	ProtobufCMessage *message = NULL;

	*why = NULL;
	if (len > PS_MESSAGE_MAX)
		*why = "a message must be 1 MiB or less";
	else if (!(message = protobuf_c_message_unpack(type, &allocator, len, bytes)))
		*why = "the bytes are not a message of the expected kind, or memory is out";
	else if (!all_fields_known(message))
		*why = unknown_field;
	if (*why && message) {
		protobuf_c_message_free_unpacked(message, NULL);
		message = NULL;
	}
	return message;
}

/* Packs a message after `room` bytes, which the caller fills in. Returns 0 or -1. */
static int pack_message(const ProtobufCMessage *message, size_t room, uint8_t **bytes, size_t *len)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *packed;

	if (size > PS_MESSAGE_MAX)
		return -1;
	packed = malloc(room + size);
	if (!packed)
		return -1;
	protobuf_c_message_pack(message, packed + room);
	*bytes = packed;
	*len = room + size;
	return 0;
}

static int pack_with_length(const ProtobufCMessage *message, uint8_t **bytes, size_t *len)
{
	uint32_t length;

	if (pack_message(message, sizeof length, bytes, len) != 0)
		return -1;
	length = (uint32_t)(*len - sizeof length);
	memcpy(*bytes, &length, sizeof length);
	return 0;
}

int ps_request_pack(const Perseas__Request *request, uint8_t **bytes, size_t *len)
{
	return pack_with_length(&request->base, bytes, len);
}

int ps_reply_pack(const Perseas__Reply *reply, uint8_t **bytes, size_t *len)
{
	return pack_with_length(&reply->base, bytes, len);
}

static uint8_t *put_varint(uint8_t *at, size_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	return at;
}

size_t ps_read_reply_head(uint32_t length, uint8_t head[PS_READ_REPLY_HEAD])
{
	enum { LENGTH_DELIMITED = 2, BYTES = 1 /* the field of ReadReply */ };
	uint8_t inner[PS_READ_REPLY_HEAD];
	uint8_t *end = put_varint(inner, BYTES << 3 | LENGTH_DELIMITED);
	const size_t inner_length = (size_t)(put_varint(end, length) - inner);

	end = put_varint(head, PERSEAS__REPLY__BODY_READ << 3 | LENGTH_DELIMITED);
	end = put_varint(end, inner_length + length);
	memcpy(end, inner, inner_length);
	return (size_t)(end - head) + inner_length;
}

int ps_read_reply_pack(const Perseas__Reply *reply, uint8_t **bytes, size_t *len, size_t *at)
{
	const uint32_t read = (uint32_t)reply->read->bytes.len;
	Perseas__Reply rest = *reply;
	uint8_t head[PS_READ_REPLY_HEAD];
	const size_t head_length = ps_read_reply_head(read, head);
	uint32_t length;

	assert(reply->read->bytes.len <= PS_READ_REQUEST_MAX);
	rest.body_case = PERSEAS__REPLY__BODY__NOT_SET;
	*at = sizeof length + head_length;
	if (pack_message(&rest.base, *at + read, bytes, len) != 0)
		return -1;
	length = (uint32_t)(*len - sizeof length);
	memcpy(*bytes, &length, sizeof length);
	memcpy(*bytes + sizeof length, head, head_length);
	return 0;
}

/* Returns the message if it has no fault. Otherwise frees it, sets *why to the fault, and returns
 * NULL. */
static void *message_if_faultless(void *message, const char *fault, const char **why)
{
	if (!fault)
		return message;
	protobuf_c_message_free_unpacked(message, NULL);
	*why = fault;
	return NULL;
}

Perseas__Request *ps_request_unpack(const uint8_t *bytes, size_t len, const char **why)
{
	Perseas__Request *request = unpack_message(&perseas__request__descriptor, bytes, len, why);

	return request ? message_if_faultless(request, ps_request_fault(request), why) : NULL;
}

uint64_t ps_request_id(const uint8_t *bytes, size_t len)
{
	struct budget budget = { (size_t)PS_MESSAGE_MAX * EXPANSION_MAX };
	ProtobufCAllocator allocator = { budget_alloc, budget_free, &budget };
	Perseas__Request *request = NULL;
	uint64_t id = 0;

	if (len <= PS_MESSAGE_MAX)
		request = perseas__request__unpack(&allocator, len, bytes);
	if (request) {
		id = request->id;
		perseas__request__free_unpacked(request, NULL);
	}
	return id;
}

/* Replaces characters that are not printable in every text of a mirror, before it reaches an error
 * message or a terminal. Names and addresses in rosters have been checked by then (check.c), so
 * this alters only texts for people. Texts of a mirror's own peers are made printable where they
 * are written: in the mirror's log (server/host/log.c), in JSON and in labels of metrics. */
static void make_printable(ProtobufCMessage *message)
{
	for (unsigned f = 0; f < message->descriptor->n_fields; f++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[f];
		char *text = text_of_field(message, field);
		const ProtobufCMessage *next;

		if (text && *text)
			ps_make_printable(text);
		for (size_t i = 0; (next = ps_field_message(message, field, i)); i++)
			make_printable((ProtobufCMessage *)(uintptr_t)next);
	}
}

Perseas__Reply *ps_reply_unpack(const uint8_t *bytes, size_t len, const char **why)
{
	Perseas__Reply *reply = unpack_message(&perseas__reply__descriptor, bytes, len, why);

	if (reply)
		reply = message_if_faultless(reply, ps_reply_fault(reply), why);
	if (reply)
		make_printable(&reply->base);
	return reply;
}

Perseas__Reply *ps_reply_unpack_in(ProtobufCAllocator *memory, const uint8_t *bytes, size_t len,
                                   Perseas__ReadReply *read, const char **why)
{
	Perseas__Reply *reply = NULL;

	*why = "the bytes are not a reply, or there is no memory";
	if (len <= PS_MESSAGE_MAX)
		reply = perseas__reply__unpack(memory, len, bytes);
	if (!reply || (read && reply->body_case != PERSEAS__REPLY__BODY__NOT_SET))
		return NULL;
	if (read) {
		reply->body_case = PERSEAS__REPLY__BODY_READ;
		reply->read = read;
	}
	*why = all_fields_known(&reply->base) ? ps_reply_fault(reply) : "it has an unknown field";
	return *why ? NULL : reply;
}

void ps_copy_daemon_id(uint8_t *daemon, const Perseas__Reply *reply)
{
	memset(daemon, 0, PS_ID_SIZE);
	if (reply->daemon.len == PS_ID_SIZE)
		memcpy(daemon, reply->daemon.data, PS_ID_SIZE);
}

const uint8_t *ps_known_daemon_id(const uint8_t *daemon)
{
	static const uint8_t none[PS_ID_SIZE];

	return memcmp(daemon, none, PS_ID_SIZE) ? daemon : NULL;
}

const void *ps_body_field(const ProtobufCMessage *message, unsigned body_case, const char *name)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field(message->descriptor, body_case);
	const uint8_t *body;

	if (!field)
		return NULL;
	body = *(uint8_t *const *)((const uint8_t *)message + field->offset);
	field = protobuf_c_message_descriptor_get_field_by_name(field->descriptor, name);
	return field ? body + field->offset : NULL;
}

const Perseas__Grant *ps_reply_grant(const Perseas__Reply *reply)
{
	Perseas__Grant *const *grant = ps_body_field(&reply->base, reply->body_case, "grant");

	return grant ? *grant : NULL;
}

int ps_header_pack(const Perseas__Header *header, uint8_t **bytes, size_t *len)
{
	struct ps_header_file head = { .format = PS_HEADER_FORMAT };

	if (pack_message(&header->base, sizeof head, bytes, len) != 0)
		return -1;
	assert(*len >= sizeof head);
	memcpy(head.magic, header_magic, sizeof head.magic);
	head.length = (uint32_t)(*len - sizeof head);
	head.crc = ps_crc32c(0, *bytes + sizeof head, head.length);
	memcpy(*bytes, &head, sizeof head);
	return 0;
}

const char ps_later_version_text[] =
	"a later version of Perseas wrote it, and it is left as it is: use that "
	"version here, or a newer one";

bool ps_is_later_version(const char *why)
{
	return why == ps_later_version_text;
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Checks everything of a header file except its packed header. Returns NULL or a sentence. */
static const char *header_file_fault(const uint8_t *bytes, size_t len)
{
	struct ps_header_file head;

	if (len < sizeof head)
		return "the header file is too short";
	memcpy(&head, bytes, sizeof head);
	if (memcmp(head.magic, header_magic, sizeof head.magic) != 0)
		return "the file is not a header of Perseas";
	if (head.format > PS_HEADER_FORMAT)
		return ps_later_version_text;
	if (head.format != PS_HEADER_FORMAT)
		return "the header file is of another format version";
	if (head.zero != 0 || head.length > PS_MESSAGE_MAX || head.length > len - sizeof head ||
	    !is_zero(bytes + sizeof head + head.length, len - sizeof head - head.length))
		return "the header file's length is wrong";
	if (head.crc != ps_crc32c(0, bytes + sizeof head, head.length))
		return "the header file's checksum is wrong";
	return NULL;
}

static bool has_later_level(const Perseas__Roster *roster)
{
	return roster && roster->level > PS_LEVEL_MAX;
}

Perseas__Header *ps_header_unpack(const uint8_t *bytes, size_t len, const char **why)
{
	struct ps_header_file head;
	Perseas__Header *header;
	const char *fault;

	*why = header_file_fault(bytes, len);
	if (*why)
		return NULL;
	memcpy(&head, bytes, sizeof head);
	header = unpack_message(&perseas__header__descriptor, bytes + sizeof head, head.length,
	                        why);
	if (*why == unknown_field)
		*why = ps_later_version_text;
	if (!header)
		return NULL;
	/* Checked first: a later level may allow values that are out of range for this version. */
	fault = has_later_level(header->roster) || has_later_level(header->next_roster)
	                ? ps_later_version_text
	                : ps_header_fault(header);
	if (!fault && header->state == PERSEAS__STATE__STATE_NONE)
		fault = "the header file names no state of its image";
	return message_if_faultless(header, fault, why);
}

/* Copies a message by packing and unpacking it. Returns NULL if memory is out. */
static void *copy_message(const ProtobufCMessage *message)
{
	ProtobufCMessage *result;
	uint8_t *bytes;
	size_t len;

	if (pack_message(message, 0, &bytes, &len) != 0)
		return NULL;
	result = protobuf_c_message_unpack(message->descriptor, NULL, len, bytes);
	free(bytes);
	return result;
}

Perseas__Header *ps_header_copy(const Perseas__Header *header)
{
	return copy_message(&header->base);
}

Perseas__Roster *ps_roster_copy(const Perseas__Roster *roster)
{
	return copy_message(&roster->base);
}

Perseas__Segment *ps_segment_copy(const Perseas__Segment *segment)
{
	return copy_message(&segment->base);
}

bool ps_name_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t len = strnlen(name, PS_NAME_MAX + 1);

	return len >= 1 && len <= PS_NAME_MAX && name[0] != '.' && strspn(name, allowed) == len;
}

bool ps_header_valid(const Perseas__Header *header, const char **why)
{
	*why = ps_image_fault(header);
	return !*why;
}

bool ps_id_valid(ProtobufCBinaryData id)
{
	static const uint8_t zeros[PS_ID_SIZE];

	return id.len == PS_ID_SIZE && memcmp(id.data, zeros, PS_ID_SIZE) != 0;
}

bool ps_id_equal(ProtobufCBinaryData id, const uint8_t *bytes)
{
	return id.len == PS_ID_SIZE && memcmp(id.data, bytes, PS_ID_SIZE) == 0;
}

bool ps_is_same_owner(ProtobufCBinaryData told, const uint8_t owner[PS_ID_SIZE])
{
	return told.len == PS_ID_SIZE && memcmp(told.data, owner, PS_OWNER_SHOWN_SIZE) == 0;
}

uint64_t ps_log_region_size(const Perseas__Header *header)
{
	return PS_RING_OFFSET + header->log_size;
}

uint64_t ps_image_size(const Perseas__Header *header)
{
	uint64_t bytes = ps_log_region_size(header);

	for (size_t i = 0; i < header->n_segments; i++)
		bytes += header->segments[i]->size;
	return bytes;
}
