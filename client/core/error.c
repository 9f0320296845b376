/*
 * error.c - codes, their names and texts, and the sentence that goes with one.
 */
#include "error.h"
#include "../../proto/base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int ps_error_set(struct ps_error *error, int code, const char *format, ...)
{
	va_list args;

	if (!error)
		return code;
	error->code = code;
	va_start(args, format);
	ps_text_vformat(error->text, sizeof(error->text), format, args);
	va_end(args);
	return code;
}

int ps_error_prefix(struct ps_error *error, const char *format, ...)
{
	char text[PS_ERROR_TEXT], prefix[PS_ERROR_TEXT];
	va_list args;

	assert(error);
	memcpy(text, error->text, sizeof(text));
	va_start(args, format);
	ps_text_vformat(prefix, sizeof(prefix), format, args);
	va_end(args);
	ps_text_format(error->text, sizeof(error->text), "%s: %s", prefix, text);
	return error->code;
}

const char *perseas_version(void)
{
	return PERSEAS_VERSION;
}

/* The switches below have no default, so that the compiler reports a code without a text. */

const char *perseas_strerror(int code)
{
	switch ((enum perseas_error)code) {
#define ERROR_TEXT(name, number, text) \
	case name:                     \
		return text;
		PERSEAS_ERRORS(ERROR_TEXT)
#undef ERROR_TEXT
	case PERSEAS_OK:
		return "success";
	}
	return "not a code of this library";
}

const char *perseas_error_name(int code)
{
	switch ((enum perseas_error)code) {
#define ERROR_NAME(name, number, text) \
	case name:                     \
		return #name;
		PERSEAS_ERRORS(ERROR_NAME)
#undef ERROR_NAME
	case PERSEAS_OK:
		return "PERSEAS_OK";
	}
	return "PERSEAS_E?";
}

const char *perseas_mirror_state_name(enum perseas_mirror_state state)
{
	switch (state) {
	case PERSEAS_MIRROR_DOWN:
		return "down";
	case PERSEAS_MIRROR_REPLAYING:
		return "replaying";
	case PERSEAS_MIRROR_LIVE:
		return "live";
	case PERSEAS_MIRROR_STALE:
		return "stale";
	case PERSEAS_MIRROR_FENCED:
		return "fenced";
	case PERSEAS_MIRROR_LOST:
		return "lost";
	case PERSEAS_MIRROR_RESYNCING:
		return "resyncing";
	case PERSEAS_MIRROR_REMOVED:
		return "removed";
	}
	return "unknown";
}
