/*
 * coroutine.h - runs functions on stacks of their own in one thread: each runs until it yields. The
 * simulator runs the threads of its owners so (sim/process.c), and unit tests the thread that
 * fetches memory on demand (pager_direct.c).
 */
#ifndef PERSEAS_TESTS_COROUTINE_H
#define PERSEAS_TESTS_COROUTINE_H

#include <stdbool.h>

#ifdef __SANITIZE_ADDRESS__
#define ADDRESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZED 1
#endif
#endif

struct coroutine;

/* Begins with the first resume. Stacks are kept and used again. */
struct coroutine *coroutine_new(void (*fn)(void *arg), void *arg);

/* Runs it until it yields or ends. Not from inside of it. */
void coroutine_resume(struct coroutine *coroutine);

/* Returns control to the caller of coroutine_resume. Only the coroutine itself calls it. */
void coroutine_yield(struct coroutine *coroutine);

bool coroutine_ended(const struct coroutine *coroutine);

/* Frees a coroutine that has ended, or never began. NULL is allowed. */
void coroutine_free(struct coroutine *coroutine);

/* Gives the stacks that are kept back. */
void coroutines_free(void);

#endif
