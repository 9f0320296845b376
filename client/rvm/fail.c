/*
 * fail.c - errors of this library (fail.h), and the mapping of the store's error codes to RVM's.
 */
#include "fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[768];

const char *rvm_message(void)
{
	return message;
}

rvm_return_t ps_rvm_fail(rvm_return_t code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	return code;
}

rvm_return_t ps_rvm_fail_errno(int number, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	errno = number;
	return RVM_EIO;
}

/* Returns the errno for an error of the store that RVM has no code for. */
static int errno_of_store_error(int rc)
{
	switch (rc) {
	case PERSEAS_EINDOUBT:
	case PERSEAS_ETIMEOUT:
		return ETIMEDOUT;
	case PERSEAS_EBLOCKED:
	case PERSEAS_EAGAIN:
		return EAGAIN;
	case PERSEAS_EUNREACHABLE:
	case PERSEAS_EQUORUM:
	case PERSEAS_ERDMA:
		return EHOSTUNREACH;
	case PERSEAS_EDENIED:
	case PERSEAS_ETLS:
		return EACCES;
	case PERSEAS_EEXIST:
		return EEXIST;
	case PERSEAS_EMIRRORMEM:
		return ENOSPC;
	default:
		return EIO;
	}
}

static rvm_return_t rvm_code_of_store_error(int rc)
{
	switch (rc) {
	case PERSEAS_ENOMEM:
		return RVM_ENO_MEMORY;
	case PERSEAS_ETOOBIG:
	case PERSEAS_ELIMIT:
		return RVM_ETOO_BIG;
	case PERSEAS_ERANGE:
	case PERSEAS_EUNPUBLISHED:
		return RVM_ENOT_MAPPED;
	case PERSEAS_EADDRESS:
		return RVM_ERANGE;
	case PERSEAS_ECONFLICT:
		return RVM_EUNCOMMIT;
	case PERSEAS_EFENCED:
		return RVM_ETERMINATED;
	case PERSEAS_EVERSION:
		return RVM_ELOG_VERSION_SKEW;
	case PERSEAS_EENDED:
		return RVM_ETID;
	case PERSEAS_EINVAL:
		return RVM_EINTERNAL;
	default:
		return RVM_EIO;
	}
}

rvm_return_t ps_rvm_fail_store(const perseas_t *store, int rc, const char *doing)
{
	ps_rvm_fail(0, "%s: %s: %s", doing, perseas_error_name(rc), perseas_message(store));
	errno = errno_of_store_error(rc);
	return rvm_code_of_store_error(rc);
}
