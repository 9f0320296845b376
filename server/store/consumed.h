/*
 * consumed.h - which spills were used up: loaded, or removed since memory had their image. The seam
 * between the store logic and the state directory. consumed_file.c is the real one; tests bring one
 * of their own. A spill that somebody puts back is known by it, and is not loaded again.
 *
 * A key is a line of text that no two spills of a store have in common.
 */
#ifndef PERSEAS_SERVER_CONSUMED_H
#define PERSEAS_SERVER_CONSUMED_H

enum { CONSUMED_KEY = 120 };

struct consumed;

struct consumed_ops {
	/* 1: a spill with that key was used up, 0: none was, -1: that cannot be known, `trouble`
	 * says why. */
	int (*has)(struct consumed *consumed, const char *store, const char *key);
	/* Notes it durably. 0, or -1: `trouble` says why. */
	int (*add)(struct consumed *consumed, const char *store, const char *key);
};

struct consumed {
	const struct consumed_ops *ops;
	char trouble[256];
};

/* Notes in `directory`, which is made and locked as memory_file_new() in memory.h does. NULL: *why
 * (until the next call) says. */
struct consumed *consumed_file_new(const char *directory, const char **why);
void consumed_file_free(struct consumed *consumed);

#endif
