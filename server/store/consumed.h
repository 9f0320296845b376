/*
 * consumed.h - remembers which spills are used up, that is, were loaded or removed, so that a spill
 * that somebody puts back is not loaded again. It is the seam between the store logic and the state
 * directory: consumed_file.c is the real implementation, and tests bring their own.
 *
 * A key is a line of text that is unique among the spills of a store.
 */
#ifndef PERSEAS_SERVER_CONSUMED_H
#define PERSEAS_SERVER_CONSUMED_H

enum { CONSUMED_KEY = 120 };

struct consumed;

struct consumed_ops {
	/* Returns 1 if the spill with that key is used up, 0 if not, or -1 if that cannot be
	 * determined, with the reason in `trouble`. */
	int (*has)(struct consumed *consumed, const char *store, const char *key);
	/* Records durably that the spill is used up. Returns 0, or -1 with the reason in
	 * `trouble`. */
	int (*add)(struct consumed *consumed, const char *store, const char *key);
};

struct consumed {
	const struct consumed_ops *ops;
	char trouble[256];
};

/* Keeps the records in `directory`, which is created and locked like that of memory_file_new()
 * (memory.h). Returns NULL on failure, with the reason in *why, valid until the next call. */
struct consumed *consumed_file_new(const char *directory, const char **why);
void consumed_file_free(struct consumed *consumed);

#endif
