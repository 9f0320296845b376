/*
 * coroutine.h - stacks to run owners on, in one thread, switched only where an owner waits.
 */
#ifndef PERSEAS_SIM_COROUTINE_H
#define PERSEAS_SIM_COROUTINE_H

#include <stdbool.h>

#ifdef __SANITIZE_ADDRESS__
#define SIM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_SANITIZED 1
#endif
#endif

struct sim_coroutine;

/* Begins with the first resume. Stacks are kept and used again. */
struct sim_coroutine *sim_coroutine_new(void (*fn)(void *arg), void *arg);

/* Runs it until it yields or ends. Not from inside of it. */
void sim_coroutine_resume(struct sim_coroutine *coroutine);

/* Back to whoever resumed it. Only from inside of it. */
void sim_coroutine_yield(struct sim_coroutine *coroutine);

bool sim_coroutine_ended(const struct sim_coroutine *coroutine);

/* It has ended, or never began. NULL is allowed. */
void sim_coroutine_free(struct sim_coroutine *coroutine);

/* Gives the stacks that are kept back. */
void sim_coroutines_free(void);

#endif
