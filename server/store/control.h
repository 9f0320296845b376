/*
 * control.h - turns the bytes of a request into the bytes of its reply: unpacks, checks, calls the
 * store logic, and packs. No I/O.
 */
#ifndef PERSEAS_SERVER_CONTROL_H
#define PERSEAS_SERVER_CONTROL_H

#include "../host/log.h"
#include "store.h"

/* A packed reply with its 4-byte length, and the descriptors to send with it, which the caller must
 * close. */
struct control_reply {
	uint8_t *bytes; /* the caller frees them */
	size_t len;
	/* Bytes of the image that a Read asked for, which `bytes` still lacks at `read_at`. The
	 * caller must send or copy them (control_copy_read) before another request is handled.
	 * Length 0: none. */
	ProtobufCBinaryData read;
	size_t read_at;
	int fds[PS_REGIONS_MAX]; /* descriptors of shared memory */
	unsigned fd_count;
	bool ends; /* the daemon must exit after the reply is sent */
	/* The following members are for logs and counters. */
	unsigned request; /* PERSEAS__REQUEST__BODY_*; 0: it could not be decoded */
	unsigned status;  /* Perseas__Status of the reply */
	/* The store that the request was about; "": none. */
	char store[PS_NAME_MAX + 1];
	uint64_t epoch;                                /* the epoch in the request; 0: none */
	char refusal[sizeof(((struct why *)0)->text)]; /* a sentence if status is not OK */
};

/* How a request is ordered with requests that run as jobs (jobs.h). */
enum control_course {
	CONTROL_AT_ONCE, /* only reads, and never waits */
	CONTROL_WATCHES, /* only reads, and may wait until something changes */
	CONTROL_IN_TURN, /* waits for the jobs of its store */
	CONTROL_LONG,    /* waits for the jobs of its store, and may run long */
	CONTROL_HASHES,  /* like CONTROL_LONG, one at a time, and others do not wait behind it */
	/* Like CONTROL_LONG, and may allocate memory, for which there are quotas. */
	CONTROL_GROWS,
	CONTROL_ALONE, /* waits for all jobs, and all other requests wait for it */
};

/* What a request is about, before it is handled. */
struct control_subject {
	enum control_course course;  /* whether the request runs at once, in turn or as a job */
	uint64_t id;                 /* id of the request, which its reply repeats */
	char store[PS_NAME_MAX + 1]; /* name of the store; "": none */
	uint32_t within_ms;          /* longest wait that a Watch asks for; 0: the default time */
};

/* Unpacks the message and fills in what it is about. A message that cannot be unpacked has no store
 * and runs at once. */
void control_find_subject(const struct session *session, const uint8_t *bytes, size_t len,
                          struct control_subject *subject);

/* Returns true if this is a Watch whose sender knows the present state already, so that it should
 * wait. Call this again after *ms at the latest. A client with a claim never waits, because its
 * heartbeats would wait behind the Watch. In either case, records what the Watch says about its
 * sender as a standby. */
bool control_must_wait(struct stores *stores, struct session *session, const uint8_t *bytes,
                       size_t len, uint64_t *ms);

/* Packs a sign of progress for the request with this id, with its length. Returns 0, or -1 if
 * memory is out. The caller frees *bytes. */
int control_pack_progress(uint64_t id, uint64_t done, uint8_t **bytes, size_t *len);

/* Handles one message (without its length). Fills in a reply, which may be a refusal. Returns 0, or
 * -1 if memory or descriptors are out. `version` is that of the daemon. */
int control_handle(struct stores *stores, struct session *session, const char *version,
                   const uint8_t *bytes, size_t len, struct control_reply *reply);

/* Copies the bytes that a Read asked for into the reply, except those that belong to the first
 * `sent` bytes of the reply. Returns 0, or -1 if the image is torn: the copied bytes may be zeros,
 * so the caller must not send them. */
int control_copy_read(struct stores *stores, struct control_reply *reply, size_t sent);

/* One more than the highest number of a request in control.proto: the size of an array indexed by
 * requests, with 0 for those that could not be decoded. */
union control_numbers {
#define MESSAGE(field, FIELD, ...) char field[PERSEAS__REQUEST__BODY_##FIELD + 1];
#include "../../proto/control/messages.h"
};
enum { CONTROL_REQUESTS = sizeof(union control_numbers) };

/* Returns the level at which refusals of this request are logged. `request` is below
 * CONTROL_REQUESTS. */
enum log_level control_refusal_level(unsigned request);

/* Returns the name as in control.proto, such as "claim", or "unknown". */
const char *control_request_name(unsigned request);

#endif
