/*
 * sigbus_guard.h - survives SIGBUS in mappings of files that another process can truncate. Touching
 * a page beyond the end of the file raises SIGBUS, which would end the process. In a guarded
 * mapping, the page and everything after it are replaced by zeroed private memory, and the mapping
 * becomes torn: reads may return zeros, and writes go nowhere. Code that touches a guarded mapping
 * must check whether it is torn before it relies on the result.
 *
 * The daemon guards its images, and the library guards memory that it maps from a mirror on its
 * host. The
 * SIGBUS handler is installed with the first guard. Faults outside of guarded mappings go to the
 * previous handler. An application that installs its own handler later must pass other faults on.
 * When the last guard is freed, the previous action is restored, unless another handler was
 * installed in the meantime; then this one stays and passes everything on. A thread that blocks
 * SIGBUS is not protected: the kernel ends the process.
 *
 * All functions may be called in any thread, also after fork(): a child owns only the guards that
 * it made itself.
 */
#ifndef PERSEAS_PROTO_SIGBUS_GUARD_H
#define PERSEAS_PROTO_SIGBUS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct ps_guard;

/* Installs the handler again if another one has replaced it, and passes other faults to that one.
 * For programs that know that the other handler does not pass faults on. */
void ps_guard_reinstall_handler(void);

/* Guards a mapping that begins at a page boundary. Returns NULL if memory is out. */
struct ps_guard *ps_guard_new(void *base, size_t size);

/* Frees a guard. Must be called before the memory is unmapped, and when no thread touches it any
 * more. Accepts NULL. */
void ps_guard_free(struct ps_guard *guard);

/* Returns true if the mapping is torn: a thread touched it beyond the end of its file, and zeroed
 * memory has replaced it from there on. Returns false for NULL. */
bool ps_guard_is_torn(const struct ps_guard *guard);

/* Returns the number of mappings torn since the process began. While it does not change, no mapping
 * was torn. */
extern _Atomic unsigned ps_guards_torn_count;

static inline unsigned ps_guards_torn(void)
{
	return __atomic_load_n((unsigned *)&ps_guards_torn_count, __ATOMIC_RELAXED);
}

#endif
