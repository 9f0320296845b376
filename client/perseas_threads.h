/*
 * perseas_threads.h - what programs with threads need beside transactions. perseas.h includes it;
 * what that says of return values holds here, too.
 */
#ifndef PERSEAS_THREADS_H
#define PERSEAS_THREADS_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Copies the sentence of the last error on this handle in the calling thread, which perseas_message
 * returns, to buffer, and its code to *code: "" and 0 if there was none. What does not fit loses
 * words at its end. buffer may be NULL if size is 0, and code may be NULL. The copy is the
 * caller's: unlike the text of perseas_message it stays as it is.
 *
 * What failed last is kept for each thread of the operating system. So a green thread must call
 * this before it lets another one run, and before it is moved to another thread. Where a runtime
 * may move it between any two calls, as Go does, it must be tied to its thread for the two. If
 * *code is not what the failed call returned, it was moved.
 *
 * Errors: EINVAL, which is not kept as the last error.
 */
int perseas_error(const perseas_t *p, char *buffer, size_t size, int *code);

#ifdef __cplusplus
}
#endif

#endif
