/*
 * fail.c - errors of this library (fail.h).
 */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[1024];

const char *rds_message(void)
{
	return message;
}

int ps_rds_fail(int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	return code;
}

int ps_rds_fail_rvm(rvm_return_t code, const char *doing)
{
	return ps_rds_fail(code, "%s: %s: %s", doing, rvm_return(code), rvm_message());
}
