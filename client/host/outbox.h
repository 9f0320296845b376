/*
 * outbox.h - bytes that wait, in order, until a stream takes them. An outbox of zeros is empty. One
 * thread at a time may use it.
 */
#ifndef PERSEAS_CLIENT_OUTBOX_H
#define PERSEAS_CLIENT_OUTBOX_H

#include "../../proto/base/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ps_outbox {
	uint8_t *bytes;
	/* Offsets of the first waiting byte, and of the end of the waiting bytes. */
	size_t start, end;
	size_t size;
};

static inline bool ps_outbox_empty(const struct ps_outbox *outbox)
{
	return outbox->start == outbox->end;
}

/* Adds a copy of the bytes. Returns false if there is no memory, and adds nothing. */
bool ps_outbox_add(struct ps_outbox *outbox, const void *bytes, size_t len);

/* Sends what the stream takes without waiting. Drops the rest if the stream has ended: the receiver
 * finds out why, and may still find the peer's last message. */
void ps_outbox_send(struct ps_outbox *outbox, struct ps_stream *stream);

void ps_outbox_free(struct ps_outbox *outbox);

#endif
