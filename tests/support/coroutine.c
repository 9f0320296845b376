/*
 * coroutine.c - switches stacks by ucontext, and tells the sanitizers of each switch. It must be
 * called in one thread, and never resumes a coroutine from inside another one.
 */
#include "coroutine.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef ADDRESS_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_SIZE = 1 << 20 };

struct coroutine {
	struct coroutine *next; /* in the list of free ones */
	ucontext_t inside, outside;
	void *stack;
	void (*fn)(void *arg);
	void *arg;
	bool ended;
	void *fake_inside, *fake_outside; /* the sanitizer's stacks */
	const void *outside_bottom;
	size_t outside_size;
};

static struct coroutine *kept;

static void entering(struct coroutine *coroutine)
{
#ifdef ADDRESS_SANITIZED
	__sanitizer_start_switch_fiber(&coroutine->fake_outside, coroutine->stack, STACK_SIZE);
#else
	(void)coroutine;
#endif
}

static void entered(struct coroutine *coroutine)
{
#ifdef ADDRESS_SANITIZED
	__sanitizer_finish_switch_fiber(coroutine->fake_inside, &coroutine->outside_bottom,
	                                &coroutine->outside_size);
#else
	(void)coroutine;
#endif
}

static void leaving(struct coroutine *coroutine, bool for_good)
{
#ifdef ADDRESS_SANITIZED
	__sanitizer_start_switch_fiber(for_good ? NULL : &coroutine->fake_inside,
	                               coroutine->outside_bottom, coroutine->outside_size);
#else
	(void)coroutine;
	(void)for_good;
#endif
}

static void left(struct coroutine *coroutine)
{
#ifdef ADDRESS_SANITIZED
	__sanitizer_finish_switch_fiber(coroutine->fake_outside, NULL, NULL);
#else
	(void)coroutine;
#endif
}

/* makecontext passes ints only: the pointer comes in two halves. */
static void begin(unsigned high, unsigned low)
{
	struct coroutine *coroutine = (struct coroutine *)((uintptr_t)high << 32 | (uintptr_t)low);

	entered(coroutine);
	coroutine->fn(coroutine->arg);
	coroutine->ended = true;
	leaving(coroutine, true);
	setcontext(&coroutine->outside);
}

static struct coroutine *make(void)
{
	struct coroutine *coroutine = calloc(1, sizeof(*coroutine));

	if (coroutine)
		coroutine->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
		                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!coroutine || coroutine->stack == MAP_FAILED) {
		fputs("no memory for the stack of a coroutine\n", stderr);
		exit(3);
	}
	return coroutine;
}

static void prepare(struct coroutine *coroutine)
{
	getcontext(&coroutine->inside);
	coroutine->inside.uc_stack.ss_sp = coroutine->stack;
	coroutine->inside.uc_stack.ss_size = STACK_SIZE;
	coroutine->inside.uc_link = NULL;
	makecontext(&coroutine->inside, (void (*)(void))begin, 2,
	            (unsigned)((uintptr_t)coroutine >> 32), (unsigned)(uintptr_t)coroutine);
}

struct coroutine *coroutine_new(void (*fn)(void *arg), void *arg)
{
	struct coroutine *coroutine = kept;

	if (coroutine)
		kept = coroutine->next;
	else
		coroutine = make();
	coroutine->fn = fn;
	coroutine->arg = arg;
	coroutine->ended = false;
	coroutine->fake_inside = NULL;
	prepare(coroutine);
	return coroutine;
}

void coroutine_resume(struct coroutine *coroutine)
{
	entering(coroutine);
	swapcontext(&coroutine->outside, &coroutine->inside);
	left(coroutine);
}

void coroutine_yield(struct coroutine *coroutine)
{
	leaving(coroutine, false);
	swapcontext(&coroutine->inside, &coroutine->outside);
	entered(coroutine);
}

bool coroutine_ended(const struct coroutine *coroutine)
{
	return coroutine->ended;
}

void coroutine_free(struct coroutine *coroutine)
{
	if (!coroutine)
		return;
	coroutine->next = kept;
	kept = coroutine;
}

void coroutines_free(void)
{
	while (kept) {
		struct coroutine *next = kept->next;

		munmap(kept->stack, STACK_SIZE);
		free(kept);
		kept = next;
	}
}
