#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static enum log_level limit = LOG_LEVEL_INFO;
static bool systemd;

void log_init(enum log_level level)
{
	limit = level;
	systemd = getenv("JOURNAL_STREAM") != NULL || getenv("INVOCATION_ID") != NULL;
}

static void log_line(enum log_level level, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* One write a line, so that lines of several processes do not mix. */
static void log_line(enum log_level level, const char *format, va_list args)
{
	static const char *const words[] = { "error: ", "warning: ", "", "debug: " };
	static const int priorities[] = { 3, 4, 6, 7 };
	char line[1024];
	int len, more;

	if (level > limit)
		return;
	if (systemd)
		len = snprintf(line, sizeof(line), "<%d>", priorities[level]);
	else
		len = snprintf(line, sizeof(line), "perseasd: %s", words[level]);
	more = vsnprintf(line + len, sizeof(line) - (size_t)len - 1, format, args);
	if (more < 0)
		return;
	len += more;
	if ((size_t)len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		return; /* there is nowhere to say so */
}

#define LOG_FUNCTION(name, level)                                                              \
	void name(const char *format, ...)                                                     \
	{                                                                                      \
		va_list args;                                                                  \
		va_start(args, format);                                                        \
		log_line(level, format, args);                                                 \
		va_end(args);                                                                  \
	}

LOG_FUNCTION(log_error, LOG_LEVEL_ERROR)
LOG_FUNCTION(log_warning, LOG_LEVEL_WARNING)
LOG_FUNCTION(log_info, LOG_LEVEL_INFO)
LOG_FUNCTION(log_debug, LOG_LEVEL_DEBUG)
