/*
 * envelope.h - what surrounds control messages (on a stream) and headers (in a file),
 * and the checks that every field of them must pass before it is used.
 */
#ifndef PERSEAS_PROTO_ENVELOPE_H
#define PERSEAS_PROTO_ENVELOPE_H

#include "control.pb-c.h"
#include "../image/layout.h"

#include <stdbool.h>

#define PS_MESSAGE_MAX ((uint32_t)1 << 20)        /* bytes of one control message */
#define PS_OWNER_TIMEOUT_MIN_MS 100               /* the shortest that a mirror may have, but 0 */
#define PS_MIRROR_TIMEOUT_MIN_MS 100              /* the shortest that an owner may have */
#define PS_OWNER_TIMEOUT_LONG_MS 2000             /* from here on two signs of life a second do */
#define PS_READ_REQUEST_MAX ((uint32_t)512 << 10) /* bytes that one ReadRequest asks for */

/* The first bytes of a control connection, from both ends. */
struct ps_control_hello {
	uint32_t magic;   /* PS_CONTROL_MAGIC */
	uint32_t version; /* one, or several: version.h */
};
static_assert(sizeof(struct ps_control_hello) == 8, "control hello layout");

/* The first bytes of a header file; the packed Header follows. */
struct ps_header_file {
	uint8_t magic[8]; /* "PERSEAS" and a zero */
	uint32_t format;  /* PS_HEADER_FORMAT */
	uint32_t length;  /* bytes of the packed Header */
	uint32_t crc;     /* crc32c of the packed Header */
	uint32_t zero;
};
static_assert(sizeof(struct ps_header_file) == 24, "header file layout");

enum {
	PS_HEADER_FORMAT = 1,
	PS_LEVEL_MAX = 1, /* the highest level of a roster that this version reads */
};

/* A request with this body: PS_REQUEST(status, STATUS, &body). */
#define PS_REQUEST(field, FIELD, message)                                       \
	((Perseas__Request){                                                    \
		.base = PROTOBUF_C_MESSAGE_INIT(&perseas__request__descriptor), \
		.body_case = PERSEAS__REQUEST__BODY_##FIELD,                    \
		.field = (message),                                             \
	})

/* Packs a message behind its 4-byte length. The caller frees *bytes with free().
 * Returns 0, or -1: out of memory, or longer than PS_MESSAGE_MAX. */
int ps_request_pack(const Perseas__Request *request, uint8_t **bytes, size_t *len);
int ps_reply_pack(const Perseas__Reply *reply, uint8_t **bytes, size_t *len);

/* Unpack and check one message without its length. NULL: not a message, or a field
 * is out of its range; *why (never NULL then) says which. Free with the
 * perseas__…__free_unpacked functions. A reply with status OK has a body. */
Perseas__Request *ps_request_unpack(const uint8_t *bytes, size_t len, const char **why);
Perseas__Reply *ps_reply_unpack(const uint8_t *bytes, size_t len, const char **why);
/* The same with memory of the caller's, for who may not call malloc: it is never given back. Texts
 * are as they came, and not to be shown. */
Perseas__Reply *ps_reply_unpack_in(ProtobufCAllocator *memory, const uint8_t *bytes, size_t len,
                                   const char **why);

/* The fault of what a later version wrote. It is known by its address. */
extern const char ps_later[];
/* Is this sentence, which a function of this header or ps_archive_open() gave, that a later version
 * of Perseas wrote what is refused? Then nothing is damaged, and it must be left as it is. */
bool ps_is_later(const char *why);

/* The id of a request that ps_request_unpack refused, for the reply that says so; 0: it shows
 * none. */
uint64_t ps_request_id(const uint8_t *bytes, size_t len);

/* What a reply gives access to, or NULL. */
const Perseas__Grant *ps_grant_of(const Perseas__Reply *reply);

/* The field of this name in the body of a request or reply whose body case this is; NULL: it has
 * none. The caller knows its type. */
const void *ps_body_field(const ProtobufCMessage *message, unsigned body_case, const char *name);

/* A header as the bytes of its file. The caller frees *bytes. 0 or -1. */
int ps_header_pack(const Perseas__Header *header, uint8_t **bytes, size_t *len);
Perseas__Header *ps_header_unpack(const uint8_t *bytes, size_t len, const char **why);

/* A deep copy; NULL when out of memory. Free with perseas__header__free_unpacked. */
Perseas__Header *ps_header_copy(const Perseas__Header *header);
Perseas__Roster *ps_roster_copy(const Perseas__Roster *roster);
Perseas__Segment *ps_segment_copy(const Perseas__Segment *segment);

/* 1 to PS_NAME_MAX of A-Z a-z 0-9 . _ -, not beginning with a dot. */
bool ps_name_valid(const char *name);

/* Is it the valid header of an image, with the key at level 1? Headers that are told to others have
 * none. *why: what is wrong, or NULL. */
bool ps_header_valid(const Perseas__Header *header, const char **why);
bool ps_id_valid(ProtobufCBinaryData id); /* PS_ID_SIZE bytes, not all zero */
bool ps_id_equal(ProtobufCBinaryData id, const uint8_t *bytes);
/* Notes which daemon the reply is from. `daemon` is PS_ID_SIZE bytes, all zero if that is not told,
 * as by a daemon of version 8. */
void ps_daemon_note(uint8_t *daemon, const Perseas__Reply *reply);
/* Returns the identity if one was noted, or NULL. */
const uint8_t *ps_daemon_told(const uint8_t *daemon);
enum { PS_WATCH_MS = 30000 };  /* within which a Watch is answered */
enum { PS_STANDBYS_MAX = 64 }; /* that a mirror tells of a store */
enum { PS_ORDER_MAX = 100 };   /* of a standby that mirrors tell of */

/* Bytes with which an owner's id begins if the process that started the owner's process gave it a
 * mark, to tell its owners from others. */
enum { PS_OWNER_MARK = 4 };
/* Is what a status tells of an owner's id, its first PS_OWNER_TOLD bytes, of this one? */
bool ps_owner_is(ProtobufCBinaryData told, const uint8_t owner[PS_ID_SIZE]);

/* Bytes of the log region, and of an image with this header (slots, ring, segments). */
uint64_t ps_log_region_size(const Perseas__Header *header);
uint64_t ps_header_bytes(const Perseas__Header *header);

#endif
