/*
 * liveness.c - see liveness.h. It looks at a socket without waiting, and takes nothing from it but
 * heartbeats (messages of length 0): all other bytes are left to the thread that waits for a reply.
 */
#include "liveness.h"

#include <sys/ioctl.h>

static bool has_bytes_waiting(const struct ps_stream *stream)
{
	int waiting = 0;

	return ps_stream_pending(stream) ||
	       (ioctl(stream->fd, FIONREAD, &waiting) == 0 && waiting > 0);
}

void ps_liveness_begin(struct ps_liveness *liveness, uint64_t limit_ns, uint64_t now_ns)
{
	*liveness = (struct ps_liveness){ .limit_ns = limit_ns, .heard = true };
	liveness->look_at = now_ns + limit_ns / PS_LIVENESS_LOOKS;
}

bool ps_liveness_look(struct ps_liveness *liveness, const struct ps_stream *stream, uint64_t now_ns)
{
	if (!liveness->limit_ns || now_ns < liveness->look_at)
		return false;
	if (liveness->heard || has_bytes_waiting(stream))
		liveness->unheard = 0;
	else
		liveness->unheard++;
	liveness->heard = false;
	liveness->look_at = now_ns + liveness->limit_ns / PS_LIVENESS_LOOKS;
	return liveness->unheard >= PS_LIVENESS_LOOKS;
}

bool ps_liveness_take_heartbeats(const struct ps_stream *stream)
{
	uint32_t length;
	bool taken = false;

	/* The thread that receives must decrypt the bytes. */
	while (!stream->tls &&
	       recv(stream->fd, &length, sizeof(length), MSG_PEEK | MSG_DONTWAIT) ==
	               (ssize_t)sizeof(length) &&
	       length == 0) {
		(void)!recv(stream->fd, &length, sizeof(length), MSG_DONTWAIT);
		taken = true;
	}
	return taken;
}
