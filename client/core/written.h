/*
 * written.h - how a process learns which pages of its memory were written. The checked modes ask
 * for it (shadow.h), so that they need not compare all memory. The kernel's means are in
 * client/host/written_pages.c, and the simulator has its own.
 *
 * What it says is an upper bound: a page that it does not name has not been written. It may name
 * others, too.
 */
#ifndef PERSEAS_CLIENT_WRITTEN_H
#define PERSEAS_CLIENT_WRITTEN_H

#include "error.h"

#include <stdint.h>

enum { PS_WRITTEN_WORD = 64 }; /* pages to a word of a set, the first in the lowest bit */

struct ps_env;
struct ps_written;

struct ps_written_ops {
	/* NULL, with *error set: this process cannot do it. */
	struct ps_written *(*begin)(struct ps_env *env, struct ps_error *error);
	/* Nothing that it watches is mapped any more. */
	void (*end)(struct ps_written *written);

	/* From when this returns, stores to the range are noted, whoever makes them: any thread, or
	 * the kernel for a system call. The range is a mapping that has just been made, or was
	 * watched before. Who unmaps it need not say so. 0, or -1: that cannot be had. Memory that
	 * is fetched on demand is watched by the pager instead (demand.h, `cover`). */
	int (*watch)(struct ps_written *written, const uint8_t *base, uint64_t size);

	/*
	 * Adds to a set, which has a bit for each page of PS_PAGE bytes from base on, the pages of
	 * [base + offset, base + offset + length) that were written since the call before, or since
	 * they are watched. That begins and ends where pages do, or the watched range. A store that
	 * is made meanwhile is in this set or in the next. A page whose contents were discarded
	 * (madvise) counts as written; so would one that is missing (demand.h), and could not be
	 * refused then: nobody asks about those. 0; or -1: any page may have been written, now and
	 * from now on. One thread at a time calls it for a range.
	 */
	int (*take)(struct ps_written *written, const uint8_t *base, uint64_t offset,
	            uint64_t length, uint64_t *set);
};

/* The kernel's: userfaultfd(2) and PAGEMAP_SCAN, from Linux 6.7 on. */
extern const struct ps_written_ops ps_written_pages;

/* Could this process do it? 0, or PERSEAS_ESYSTEM or ENOMEM, with *error set. */
int ps_written_probe(struct ps_env *env, struct ps_error *error);

#endif
