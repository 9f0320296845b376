/*
 * failure.c - what a handle tells people: the last error of the calling thread, and the report of
 * the open. Every file of the library calls it, and it calls none of them.
 */
#include "handle.h"

#include "../../proto/base/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct {
	const struct perseas *p;
	int code;
	bool is_deadlock;
	char text[PS_ERROR_TEXT];
} last_message;

int ps_fail(const struct perseas *p, int code, const char *format, ...)
{
	va_list args;

	last_message.p = p;
	last_message.code = code;
	last_message.is_deadlock = false;
	va_start(args, format);
	ps_text_vformat(last_message.text, sizeof(last_message.text), format, args);
	va_end(args);
	return code;
}

int ps_fail_deadlock(const struct perseas *p)
{
	const int rc = ps_fail(p, PERSEAS_ECONFLICT,
	                       "waiting in store '%s' would deadlock: threads that have what is "
	                       "waited for wait for this thread in other stores; abort its "
	                       "transactions in all stores, and begin them again",
	                       p->store);

	last_message.is_deadlock = true;
	return rc;
}

bool ps_failed_by_deadlock(const struct perseas *p)
{
	return last_message.p == p && last_message.is_deadlock;
}

int ps_fail_error(const struct perseas *p, const struct ps_error *error)
{
	return ps_fail(p, error->code, "%s", error->text);
}

const char *perseas_message(const perseas_t *p)
{
	return last_message.p == p ? last_message.text : "";
}

int perseas_error(const perseas_t *p, char *buffer, size_t size, int *code)
{
	if (!buffer && size)
		return PERSEAS_EINVAL;
	if (size)
		ps_text_format(buffer, size, "%s", perseas_message(p));
	/* Before the first error, last_message.p and its code are 0. */
	if (code)
		*code = last_message.p == p ? last_message.code : 0;
	return 0;
}

void ps_report_add_line(struct perseas *p, const char *format, ...)
{
	/* Room for an error's text, and for what it concerns. */
	char line[PS_ERROR_TEXT + 256];
	va_list args;
	char *grown;
	size_t len;

	va_start(args, format);
	len = ps_text_vformat(line, sizeof(line), format, args);
	va_end(args);
	grown = realloc(p->report.text, p->report.length + len + 2);
	if (!grown)
		return;
	p->report.text = grown;
	memcpy(p->report.text + p->report.length, line, len);
	p->report.length += len;
	p->report.text[p->report.length++] = '\n';
	p->report.text[p->report.length] = 0;
}

const char *perseas_report(const perseas_t *p)
{
	return p && p->report.text ? p->report.text : "";
}
