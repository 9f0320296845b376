/*
 * hearing.c - looks at a socket, without taking from it what another thread waits for. It must not
 * wait, and knows nothing of what the bytes say but that a sign of life is four zeros.
 */
#include "hearing.h"

#include <sys/ioctl.h>

static bool has_some(const struct ps_stream *stream)
{
	int waiting = 0;

	return ps_stream_pending(stream) ||
	       (ioctl(stream->fd, FIONREAD, &waiting) == 0 && waiting > 0);
}

void ps_hearing_begin(struct ps_hearing *hearing, uint64_t limit_ns, uint64_t now_ns)
{
	*hearing = (struct ps_hearing){ .limit_ns = limit_ns, .heard = true };
	hearing->look_at = now_ns + limit_ns / PS_HEARING_LOOKS;
}

bool ps_hearing_look(struct ps_hearing *hearing, const struct ps_stream *stream, uint64_t now_ns)
{
	if (!hearing->limit_ns || now_ns < hearing->look_at)
		return false;
	if (hearing->heard || has_some(stream))
		hearing->unheard = 0;
	else
		hearing->unheard++;
	hearing->heard = false;
	hearing->look_at = now_ns + hearing->limit_ns / PS_HEARING_LOOKS;
	return hearing->unheard >= PS_HEARING_LOOKS;
}

bool ps_hearing_take_signs(const struct ps_stream *stream)
{
	uint32_t length;
	bool taken = false;

	/* What is encrypted is left to who reads on. */
	while (!stream->tls &&
	       recv(stream->fd, &length, sizeof(length), MSG_PEEK | MSG_DONTWAIT) ==
	               (ssize_t)sizeof(length) &&
	       length == 0) {
		(void)!recv(stream->fd, &length, sizeof(length), MSG_DONTWAIT);
		taken = true;
	}
	return taken;
}
