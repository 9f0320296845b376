/*
 * section.h - short sections of code that one thread enters often, without a fence, and that other
 * threads close rarely (an asymmetric form of Dekker's algorithm). set_range is one, closed while
 * another thread reads open transactions (tx.c). A biased lock taken by its favorite thread is
 * another (biased.h).
 *
 * A section is a flag that says whether its thread is inside, and a word of the caller's that says
 * whether it is closed:
 *
 *     the thread of the section                    a thread that closes it
 *     ps_section_enter: inside = true              closed = true
 *     (order of the compiler only)                 ps_section_fence: a fence in every thread
 *     closed? then ps_section_leave, and go        while ps_section_is_entered: wait
 *     another way
 *
 * Either the thread sees `closed` or the closer sees `inside`, so they are never inside together.
 * The fence is membarrier(2), which costs the closer some microseconds and the other thread
 * nothing.
 *
 * A thread must not wait for anything while it is inside.
 */
#ifndef PERSEAS_CLIENT_SECTION_H
#define PERSEAS_CLIENT_SECTION_H

#include <stdatomic.h>
#include <stdbool.h>

struct ps_env;

/* The flag of a section. Each thread has its own, or each object that one thread at a time uses. */
struct ps_section {
	atomic_bool inside; /* the thread is inside the section */
};

/* Enters the section. The caller then reads the word that closes the section, and leaves at once if
 * it is closed. */
static inline void ps_section_enter(struct ps_section *section)
{
	atomic_store_explicit(&section->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

/* Leaves the section. A thread that then finds it empty sees every store made inside. */
static inline void ps_section_leave(struct ps_section *section)
{
	atomic_store_explicit(&section->inside, false, memory_order_release);
}

static inline bool ps_section_is_entered(const struct ps_section *section)
{
	return atomic_load_explicit(&section->inside, memory_order_acquire);
}

/* Orders the caller's store that closed sections before its first ps_section_is_entered. May sleep:
 * it tries again while the kernel has no memory for the barrier. The env's barrier must have worked
 * when the handle was made. */
void ps_section_fence(struct ps_env *env);

/* Sleeps for about as long as a running thread may be inside. */
void ps_section_closer_sleep_briefly(struct ps_env *env);

#endif
