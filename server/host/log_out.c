/*
 * log_out.c - standard error without waiting. The descriptor may be shared with other processes, so
 * it must not be set to non-blocking: a socket is sent to with a flag, and anything else is asked
 * first, and given no more than a pipe that has any room takes.
 */
#include "log_out.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char kept[LOG_OUT_MAX];
static size_t kept_len;
static uint64_t dropped;

/* As write(), but it does not wait: -1 with EAGAIN. */
static ssize_t write_some(const char *bytes, size_t len)
{
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t n = send(STDERR_FILENO, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0 || errno != ENOTSOCK)
		return n;
	if (poll(&room, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(STDERR_FILENO, bytes, len < PIPE_BUF ? len : PIPE_BUF);
}

/* How much of the bytes is gone; where nobody will ever read them, all. */
static size_t write_most(const char *bytes, size_t len)
{
	size_t gone = 0;

	while (gone < len) {
		ssize_t n = write_some(bytes + gone, len - gone);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? gone : len;
		gone += (size_t)n;
	}
	return gone;
}

bool log_out_flush(void)
{
	size_t gone = 0;

	/* A line at a time, so that lines of several processes do not mix. */
	while (gone < kept_len) {
		const char *line = kept + gone;
		const char *end = memchr(line, '\n', kept_len - gone);
		size_t len = end ? (size_t)(end + 1 - line) : kept_len - gone;
		size_t part = write_most(line, len);

		gone += part;
		if (part < len)
			break;
	}
	kept_len -= gone;
	if (gone > 0)
		memmove(kept, kept + gone, kept_len);
	return kept_len == 0;
}

void log_out_line(const char *line, size_t len)
{
	size_t gone = log_out_flush() ? write_most(line, len) : 0;

	if (gone == len)
		return;
	/* What was begun is kept to its end. */
	if (len - gone > sizeof(kept) - kept_len) {
		dropped++;
		return;
	}
	memcpy(kept + kept_len, line + gone, len - gone);
	kept_len += len - gone;
}

uint64_t log_out_dropped(void)
{
	uint64_t count = dropped;

	dropped = 0;
	return count;
}
