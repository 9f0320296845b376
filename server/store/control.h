/*
 * control.h - from the bytes of a request to the bytes of its reply: decode, check,
 * hand to the store logic, encode. No I/O.
 */
#ifndef PERSEAS_SERVER_CONTROL_H
#define PERSEAS_SERVER_CONTROL_H

#include "../host/log.h"
#include "store.h"

/* A reply on its way: its bytes (with the length before them) and the descriptors that go
 * with it, which are the caller's to close. */
struct control_reply {
	uint8_t *bytes; /* freed by the caller */
	size_t len;
	int fds[PS_REGIONS_MAX];
	unsigned fd_count;
	bool ends; /* the daemon is to end once it is sent */
	/* For who keeps the books: */
	unsigned request; /* PERSEAS__REQUEST__BODY_…; 0: it was not understood */
	unsigned status;
	char store[PS_NAME_MAX + 1];                   /* that it was about, "": none */
	uint64_t epoch;                                /* that it asked for, 0: none */
	char refusal[sizeof(((struct why *)0)->text)]; /* a sentence, when status is not OK */
};

/* How a request goes together with what is under way aside (jobs.h). */
enum control_course {
	CONTROL_AT_ONCE, /* it only looks: it never waits */
	CONTROL_WATCHES, /* it only looks, and may wait until it sees something new */
	CONTROL_IN_TURN, /* it waits for what is under way for its store */
	CONTROL_LONG,    /* in turn, and may take long itself */
	CONTROL_GROWS,   /* long, and may take memory, of which there are quotas */
	CONTROL_ALONE,   /* it waits for all that is under way, and all others for it */
};

/* What a request is about, before it is handled. */
struct control_subject {
	enum control_course course;
	uint64_t id;
	char store[PS_NAME_MAX + 1]; /* "": none */
	uint32_t within_ms;          /* of a Watch; 0: as long as others wait */
};

void control_look(const struct session *session, const uint8_t *bytes, size_t len,
                  struct control_subject *subject);

/* May this message wait, as nothing is new to its sender? Then it is to be looked at again in *ms
 * at the latest. A holder of a claim never waits: its signs of life would wait behind it. What the
 * message says of its sender as a standby is noted in either case. */
bool control_waits(struct stores *stores, struct session *session, const uint8_t *bytes, size_t len,
                   uint64_t *ms);

/* Packs a sign of progress for the request of that id, its length before it. 0, or -1: out of
 * memory. The caller frees *bytes. */
int control_sign(uint64_t id, uint64_t done, uint8_t **bytes, size_t *len);

/*
 * Handles one message (without its length). Always gives a reply, be it one that refuses;
 * -1 only when out of memory, or of descriptors. version is the daemon's.
 */
int control_handle(struct stores *stores, struct session *session, const char *version,
                   const uint8_t *bytes, size_t len, struct control_reply *reply);

/* More than the number of any request in control.proto: room for each as an index, and for 0. */
union control_numbers {
#define MESSAGE(field, FIELD, ...) char field[PERSEAS__REQUEST__BODY_##FIELD + 1];
#include "../../proto/control/messages.h"
};
enum { CONTROL_REQUESTS = sizeof(union control_numbers) };

/* How loudly a refusal of such a request is logged. Below CONTROL_REQUESTS. */
enum log_level control_refusal_level(unsigned request);

/* As control.proto has it: "claim"; of 0 and what is none: "unknown". */
const char *control_request_name(unsigned request);

#endif
