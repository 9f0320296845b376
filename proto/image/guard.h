/*
 * guard.h - mappings of files that somebody else can truncate. A touch of a page that the file no
 * longer has is a SIGBUS, which would end the process; for memory that is guarded the page and all
 * behind it in the mapping are replaced by zeroed memory of this process instead, and the guard
 * says from then on that the mapping is torn: what was read may be zeros, what is written goes
 * nowhere. Whoever touched it asks before he counts on what he did.
 *
 * The daemon guards its images, the library what it maps of a mirror on its host. The handler of
 * SIGBUS is installed with the first guard. Other faults go to the handler that was there before;
 * an application that installs its own later must pass on what is not its own. When the last guard
 * is freed, the action before is restored, unless another handler was installed since: this one
 * stays then, and passes everything on. A thread that blocks SIGBUS is not saved: the kernel ends
 * the process then.
 *
 * All functions may be called in any thread, after fork too: a child's guards are those that it
 * made itself.
 */
#ifndef PERSEAS_PROTO_GUARD_H
#define PERSEAS_PROTO_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct ps_guard;

/* Puts the handler back where another was installed since, to which foreign faults go from then on.
 * For programs that know that this other one does not pass them on to this one. */
void ps_guard_install(void);

/* Guards a mapping that begins at a page. NULL: out of memory. */
struct ps_guard *ps_guard_new(void *base, size_t size);

/* Due before the memory is unmapped, when nobody touches it any more. NULL: nothing. */
void ps_guard_free(struct ps_guard *guard);

/* Is the mapping torn? NULL: no. */
bool ps_guard_torn(const struct ps_guard *guard);

/* How many mappings were torn since the process began: while it stays the same, none has been. */
extern _Atomic unsigned ps_guard_count;

static inline unsigned ps_guard_tears(void)
{
	return __atomic_load_n((unsigned *)&ps_guard_count, __ATOMIC_RELAXED);
}

#endif
