/*
 * fail.h - errors of this library: one of RVM's codes for programs, and a sentence for people,
 * which rvm_message returns. The library never prints.
 */
#ifndef PERSEAS_RVM_FAIL_H
#define PERSEAS_RVM_FAIL_H

#include "rvm.h"

#include "../perseas.h"

/* Sets the calling thread's message. Returns `code`. */
__attribute__((format(printf, 2, 3))) rvm_return_t ps_rvm_fail(rvm_return_t code,
                                                               const char *format, ...);

/* Sets the calling thread's message and errno. Returns RVM_EIO. */
__attribute__((format(printf, 2, 3))) rvm_return_t ps_rvm_fail_errno(int number, const char *format,
                                                                     ...);

/* Returns RVM's code for an error of the store; sets errno if that is RVM_EIO. The message is
 * `doing`, followed by the store's message. */
rvm_return_t ps_rvm_fail_store(const perseas_t *store, int rc, const char *doing);

#endif
