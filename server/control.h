/*
 * control.h - from the bytes of a request to the bytes of its reply: decode, check,
 * hand to the store logic, encode. No I/O.
 */
#ifndef PERSEAS_SERVER_CONTROL_H
#define PERSEAS_SERVER_CONTROL_H

#include "store.h"

/* A reply on its way: its bytes (with the length before them) and the descriptors that go
 * with it, which stay the store's. */
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

/*
 * Handles one message (without its length). Always gives a reply, be it one that refuses;
 * -1 only when out of memory. version is the daemon's.
 */
int control_handle(struct stores *stores, struct session *session, const char *version,
                   const uint8_t *bytes, size_t len, struct control_reply *reply);

enum { CONTROL_REQUESTS = PERSEAS__REQUEST__BODY_SPILL + 1 };

/* As control.proto has it: "claim"; of 0 and what is none: "unknown". */
const char *control_request_name(unsigned request);

#endif
