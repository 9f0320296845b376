/*
 * envelope.h - the framing of control messages on a stream and of headers in a file. Unpacking
 * applies the checks that every field must pass before it is used.
 */
#ifndef PERSEAS_PROTO_ENVELOPE_H
#define PERSEAS_PROTO_ENVELOPE_H

#include "control.pb-c.h"
#include "../image/layout.h"

#include <stdbool.h>

#define PS_MESSAGE_MAX ((uint32_t)1 << 20) /* maximum bytes of one control message */
#define PS_OWNER_TIMEOUT_MIN_MS 100        /* shortest owner timeout of a mirror, except 0 (none) */
#define PS_MIRROR_TIMEOUT_MIN_MS 100       /* shortest mirror timeout of an owner */
#define PS_OWNER_TIMEOUT_LONG_MS 2000 /* from this timeout on, two heartbeats a second are enough */
#define PS_READ_REQUEST_MAX ((uint32_t)512 << 10) /* most bytes that a ReadRequest may ask for */

/* A DigestRequest with a key asks for digests of at most PS_DIGESTS_MAX granules. */
enum {
	PS_GRANULE_SHIFT = 16,
	PS_GRANULE = 1 << PS_GRANULE_SHIFT,
	PS_DIGESTS_MAX = 64,
};

/* The first bytes that each end of a control connection sends. */
struct ps_control_hello {
	uint32_t magic;   /* PS_CONTROL_MAGIC */
	uint32_t version; /* one version, or a range: version.h */
};
static_assert(sizeof(struct ps_control_hello) == 8, "control hello layout");

/* The first bytes of a header file. The packed Header follows. */
struct ps_header_file {
	uint8_t magic[8]; /* "PERSEAS" and a zero */
	uint32_t format;  /* PS_HEADER_FORMAT */
	uint32_t length;  /* bytes of the packed Header */
	uint32_t crc;     /* CRC-32C of the packed Header */
	uint32_t zero;
};
static_assert(sizeof(struct ps_header_file) == 24, "header file layout");

enum {
	PS_HEADER_FORMAT = 1,
	PS_LEVEL_MAX = 1, /* the highest level of a roster (key.h) that this version reads */
};

/* Makes a request with this body: PS_REQUEST(status, STATUS, &body). */
#define PS_REQUEST(field, FIELD, message)                                       \
	((Perseas__Request){                                                    \
		.base = PROTOBUF_C_MESSAGE_INIT(&perseas__request__descriptor), \
		.body_case = PERSEAS__REQUEST__BODY_##FIELD,                    \
		.field = (message),                                             \
	})

/* Pack a message after its 4-byte length. The caller frees *bytes with free(). Return 0, or -1 if
 * memory is out or the message exceeds PS_MESSAGE_MAX. */
int ps_request_pack(const Perseas__Request *request, uint8_t **bytes, size_t *len);
int ps_reply_pack(const Perseas__Reply *reply, uint8_t **bytes, size_t *len);

/* Unpack and check one message, without its length. Return NULL if the bytes are no message or a
 * field is out of range; *why then has a sentence. Free the result with
 * perseas__*__free_unpacked(). A reply with status OK has a body. */
Perseas__Request *ps_request_unpack(const uint8_t *bytes, size_t len, const char **why);
Perseas__Reply *ps_reply_unpack(const uint8_t *bytes, size_t len, const char **why);
/* Unpacks a reply with the caller's allocator, for code that must not call malloc(). The memory is
 * never given back. Texts are unmodified and must not be shown. If the body of a ReadReply was
 * received apart from the message, the caller passes it as `read`; otherwise NULL. */
Perseas__Reply *ps_reply_unpack_in(ProtobufCAllocator *memory, const uint8_t *bytes, size_t len,
                                   Perseas__ReadReply *read, const char **why);

/* A packed Reply that grants a Read is a head, the bytes that were read, and the other fields. So
 * the bytes need not be copied into the message. */
enum { PS_READ_REPLY_HEAD = 16 }; /* maximum bytes of a head */
/* Writes the head of a reply with `length` bytes. Returns its length. */
size_t ps_read_reply_head(uint32_t length, uint8_t head[PS_READ_REPLY_HEAD]);
/* Packs like ps_reply_pack(), but leaves out the bytes that were read: the caller puts them
 * at *at. */
int ps_read_reply_pack(const Perseas__Reply *reply, uint8_t **bytes, size_t *len, size_t *at);

/* The sentence for data that a later version wrote. It is recognized by its address. */
extern const char ps_later_version_text[];
/* Returns true if `why`, a sentence from this header or from ps_archive_open(), says that a later
 * version of Perseas wrote the data. The data is then not damaged and must be left unchanged. */
bool ps_is_later_version(const char *why);

/* Returns the id of a request that ps_request_unpack() refused, for the error reply, or 0 if it has
 * none. */
uint64_t ps_request_id(const uint8_t *bytes, size_t len);

/* Returns the grant in a reply, or NULL if it has none. */
const Perseas__Grant *ps_reply_grant(const Perseas__Reply *reply);

/* Returns the field with this name in the body of a request or reply, or NULL if the body has no
 * such field. `body_case` is the body_case of the message; the caller knows the field's type. */
const void *ps_body_field(const ProtobufCMessage *message, unsigned body_case, const char *name);

/* Packs a header as the contents of its file. The caller frees *bytes. Returns 0 or -1. */
int ps_header_pack(const Perseas__Header *header, uint8_t **bytes, size_t *len);
Perseas__Header *ps_header_unpack(const uint8_t *bytes, size_t len, const char **why);

/* Return a deep copy, or NULL if memory is out. Free it with perseas__*__free_unpacked(). */
Perseas__Header *ps_header_copy(const Perseas__Header *header);
Perseas__Roster *ps_roster_copy(const Perseas__Roster *roster);
Perseas__Segment *ps_segment_copy(const Perseas__Segment *segment);

/* Returns true for 1 to PS_NAME_MAX characters of A-Z a-z 0-9 . _ - that do not begin with a
 * dot. */
bool ps_name_valid(const char *name);

/* Returns true if ps_image_fault() finds the header valid. Sets *why to NULL or a sentence. */
bool ps_header_valid(const Perseas__Header *header, const char **why);
bool ps_id_valid(ProtobufCBinaryData id); /* PS_ID_SIZE bytes, not all zero */
bool ps_id_equal(ProtobufCBinaryData id, const uint8_t *bytes);
/* Copies the daemon's identity from a reply to `daemon`, PS_ID_SIZE bytes. Stores zeros if the
 * reply has no identity: daemons of version 8 send none. */
void ps_copy_daemon_id(uint8_t *daemon, const Perseas__Reply *reply);
/* Returns `daemon`, or NULL if it is all zero (unknown). */
const uint8_t *ps_known_daemon_id(const uint8_t *daemon);
enum { PS_WATCH_MS = 30000 };  /* the longest time within which a Watch is answered */
enum { PS_STANDBYS_MAX = 64 }; /* standbys of a store that a mirror reports */
enum { PS_ORDER_MAX = 100 };   /* highest order of a standby */

/* Bytes of a mark with which an owner's id may begin. The process that starts owners (perseas run)
 * gives them a mark, to recognize its own owners by their ids. */
enum { PS_OWNER_MARK = 4 };
/* Returns true if `told`, an owner's id in a status, is the id of `owner`. A status shows only the
 * first PS_OWNER_SHOWN_SIZE bytes of an id. */
bool ps_is_same_owner(ProtobufCBinaryData told, const uint8_t owner[PS_ID_SIZE]);

/* Return the size in bytes of the log region, and of a whole image (slots, ring and segments). */
uint64_t ps_log_region_size(const Perseas__Header *header);
uint64_t ps_image_size(const Perseas__Header *header);

#endif
