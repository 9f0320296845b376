/*
 * log_out.c - writes to standard error without blocking. The descriptor may be shared with other
 * processes, so it must not be made non-blocking: a socket is written with MSG_DONTWAIT, and
 * anything else is polled first and given at most PIPE_BUF bytes.
 */
#include "log_out.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char kept_lines[LOG_OUT_MAX];
static size_t kept_len;
static uint64_t dropped_count;

/* Writes like write(), but returns -1 with EAGAIN instead of blocking. */
static ssize_t write_without_blocking(const char *bytes, size_t len)
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

/* Writes as much as possible. Returns how many bytes need not be written again: all of them if
 * standard error has failed. */
static size_t write_most(const char *bytes, size_t len)
{
	size_t gone = 0;

	while (gone < len) {
		ssize_t n = write_without_blocking(bytes + gone, len - gone);

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

	/* Writes line by line, so that lines of several processes do not mix. */
	while (gone < kept_len) {
		const char *line = kept_lines + gone;
		const char *end = memchr(line, '\n', kept_len - gone);
		size_t len = end ? (size_t)(end + 1 - line) : kept_len - gone;
		size_t part = write_most(line, len);

		gone += part;
		if (part < len)
			break;
	}
	assert(gone <= kept_len);
	kept_len -= gone;
	if (gone > 0)
		memmove(kept_lines, kept_lines + gone, kept_len);
	return kept_len == 0;
}

void log_out_line(const char *line, size_t len)
{
	size_t gone = log_out_flush() ? write_most(line, len) : 0;

	if (gone == len)
		return;
	/* If the line was written in part, all earlier lines were written, so its rest fits. */
	if (len - gone > sizeof(kept_lines) - kept_len) {
		dropped_count++;
		return;
	}
	memcpy(kept_lines + kept_len, line + gone, len - gone);
	kept_len += len - gone;
}

uint64_t log_out_dropped(void)
{
	uint64_t count = dropped_count;

	dropped_count = 0;
	return count;
}
