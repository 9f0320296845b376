/*
 * stepping.h - runs code an instruction at a time: before each, a function of the test's is called
 * with its address, in a signal handler. For x86 processors, which trap for it.
 */
#ifndef PERSEAS_TESTS_STEPPING_H
#define PERSEAS_TESTS_STEPPING_H

#if defined(__x86_64__)

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

typedef void (*step_fn)(const uint8_t *instruction);

static struct {
	step_fn step;
	volatile bool on;
} stepping;

static inline void step_trapped(int number, siginfo_t *info, void *context)
{
	const greg_t trap_flag = 1 << 8;
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	if (info->si_code == TRAP_TRACE && stepping.on)
		stepping.step((const uint8_t *)registers[REG_RIP]);
	if (stepping.on)
		registers[REG_EFL] |= trap_flag;
	else
		registers[REG_EFL] &= ~trap_flag;
}

/* Calls `step` before each instruction of the calling thread, until step_end(). */
static inline void step_begin(step_fn step)
{
	struct sigaction action = { .sa_sigaction = step_trapped, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
	stepping.step = step;
	stepping.on = true;
	__asm__ volatile("int3" ::: "memory");
}

/* The empty asm keeps the compiler from moving the store; `step` needs it, too. */
static inline void step_end(void)
{
	stepping.on = false;
	__asm__ volatile("" ::: "memory");
}

#endif

#endif
