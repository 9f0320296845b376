/*
 * log_name.h - parses the name of a log: a store, and the mirrors that hold it.
 */
#ifndef PERSEAS_RVM_LOG_NAME_H
#define PERSEAS_RVM_LOG_NAME_H

#include "rvm.h"

struct ps_rvm_parsed_log {
	char store[64];
	char mirrors[4096];
};

/* Parses rvm_options_t.log_dev: "perseas:STORE@LIST", or the path of a file that contains such a
 * line. Returns RVM_SUCCESS, RVM_ENAME_TOO_LONG or RVM_ELOG. */
rvm_return_t ps_rvm_parse_log_name(const char *log_dev, struct ps_rvm_parsed_log *place);

#endif
