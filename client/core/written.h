/*
 * written.h - tracks which pages of this process's memory were written, so that the checked modes
 * (shadow.h) need not compare all memory. client/host/written_pages.c asks the kernel; the
 * simulator has its own implementation.
 *
 * The result is an upper bound: a page that is not reported was not written, but a reported page
 * may not have been written either.
 */
#ifndef PERSEAS_CLIENT_WRITTEN_H
#define PERSEAS_CLIENT_WRITTEN_H

#include "error.h"

#include <stdint.h>

enum { PS_WRITTEN_WORD = 64 }; /* pages in a word of a set; the first page is the lowest bit */

struct ps_env;
struct ps_written;

struct ps_written_ops {
	/* Returns NULL, with *error set, if this process cannot track writes. */
	struct ps_written *(*begin)(struct ps_env *env, struct ps_error *error);
	/* Called after all watched memory was unmapped. */
	void (*end)(struct ps_written *written);

	/* Tracks stores to the range from now on, by any thread and by the kernel in system calls.
	 * The range is a new mapping or was watched before. It may be unmapped without a call.
	 * Returns 0, or -1 if tracking is not possible. Memory that is fetched on demand is watched
	 * by the pager instead (demand.h, `cover`). */
	int (*watch)(struct ps_written *written, const uint8_t *base, uint64_t size);

	/*
	 * Adds to `set`, which has a bit for each page of PS_PAGE bytes from `base` on, the pages
	 * of [base + offset, base + offset + length) that were written since the last call, or
	 * since they are watched. The bounds are those of pages, or of the watched range. A store
	 * during the call is reported by this call or the next one.
	 *
	 * A page whose contents were discarded (madvise) counts as written. Never ask about missing
	 * pages (demand.h): they would count as written, too, and could not be refused any more.
	 * Returns 0; or -1 if any page may have been written, now and in the future. One thread at
	 * a time calls it for a range.
	 */
	int (*take)(struct ps_written *written, const uint8_t *base, uint64_t offset,
	            uint64_t length, uint64_t *set);
};

/* The kernel's way, by userfaultfd(2) and PAGEMAP_SCAN, since Linux 6.7. */
extern const struct ps_written_ops ps_written_pages;

/* Tests whether this process can track writes. Returns 0; or PERSEAS_ESYSTEM or PERSEAS_ENOMEM,
 * with *error set. */
int ps_written_probe(struct ps_env *env, struct ps_error *error);

#endif
