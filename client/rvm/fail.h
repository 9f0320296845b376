/*
 * fail.h - errors of this library: a code of RVM's for programs, and a sentence for people, which
 * rvm_message returns. It never prints.
 */
#ifndef PERSEAS_RVM_FAIL_H
#define PERSEAS_RVM_FAIL_H

#include "rvm.h"

#include "../perseas.h"

/* Keeps the sentence for the calling thread. Returns the code. */
__attribute__((format(printf, 2, 3))) rvm_return_t ps_rvm_fail(rvm_return_t code,
                                                               const char *format, ...);

/* The same for RVM_EIO, with this errno. */
__attribute__((format(printf, 2, 3))) rvm_return_t ps_rvm_fail_errno(int number, const char *format,
                                                                     ...);

/* What an error of the store is for RVM, with errno where that is RVM_EIO; the sentence is that of
 * the handle, after what was being done. */
rvm_return_t ps_rvm_fail_store(const perseas_t *store, int rc, const char *doing);

#endif
