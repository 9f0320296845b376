/*
 * log_name.h - what the name of a log means: a store, and the mirrors that have it.
 */
#ifndef PERSEAS_RVM_LOG_NAME_H
#define PERSEAS_RVM_LOG_NAME_H

#include "rvm.h"

struct ps_rvm_place {
	char store[64];
	char mirrors[4096];
};

/* Takes rvm_options_t.log_dev apart: "perseas:STORE@LIST", or the path of a file with such a line.
 * RVM_SUCCESS, RVM_ENAME_TOO_LONG or RVM_ELOG. */
rvm_return_t ps_rvm_log_name(const char *log_dev, struct ps_rvm_place *place);

#endif
