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
	uint8_t *bytes;            /* freed by the caller */
	size_t len;
	int fds[PS_REGIONS_MAX];
	unsigned fd_count;
	bool ends;                 /* the daemon is to end once it is sent */
};

/*
 * Handles one message (without its length). Always gives a reply, be it one that refuses;
 * -1 only when out of memory. version is the daemon's.
 */
int control_handle(struct stores *stores, struct session *session, const char *version,
                   const uint8_t *bytes, size_t len, struct control_reply *reply);

#endif
