/*
 * outbox.c - a queue of bytes before a stream. control_socket.c sends by it. It never blocks, and
 * forgets bytes only when the stream has taken them.
 */
#include "outbox.h"

#include "socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool ps_outbox_add(struct ps_outbox *outbox, const void *bytes, size_t len)
{
	size_t used = outbox->end - outbox->start;

	if (outbox->start > 0) {
		memmove(outbox->bytes, outbox->bytes + outbox->start, used);
		outbox->start = 0;
		outbox->end = used;
	}
	if (len > outbox->size - used) {
		uint8_t *more = realloc(outbox->bytes, used + len);

		if (!more)
			return false;
		outbox->bytes = more;
		outbox->size = used + len;
	}
	memcpy(outbox->bytes + used, bytes, len);
	outbox->end += len;
	return true;
}

void ps_outbox_send(struct ps_outbox *outbox, struct ps_stream *stream)
{
	while (!ps_outbox_empty(outbox)) {
		struct iovec rest = { outbox->bytes + outbox->start, outbox->end - outbox->start };
		ssize_t n = ps_stream_send(stream, &rest, 1);

		if (n > 0)
			outbox->start += (size_t)n;
		else if (errno == EINTR)
			continue;
		else if (ps_would_block(errno))
			return;
		else
			outbox->start = outbox->end;
	}
}

void ps_outbox_free(struct ps_outbox *outbox)
{
	free(outbox->bytes);
	*outbox = (struct ps_outbox){ 0 };
}
