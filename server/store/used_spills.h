/*
 * used_spills.h - remembers which spills are used up, that is, were loaded or removed, so that a
 * spill that somebody puts back is not loaded again. It is the contract between the store logic and
 * the state directory: used_spills_file.c is the real implementation, and tests bring their own.
 *
 * A key is a line of text that is unique among the spills of a store.
 */
#ifndef PERSEAS_SERVER_CONSUMED_H
#define PERSEAS_SERVER_CONSUMED_H

enum { USED_SPILL_KEY = 120 };

struct used_spills;

struct used_spills_ops {
	/* Returns 1 if the store's spill with that key is used up, 0 if not, or -1 if that cannot
	 * be determined, with the reason in `trouble`. */
	int (*has)(struct used_spills *used_spills, const char *store, const char *key);
	/* Records durably that the spill is used up. Returns 0, or -1 with the reason in
	 * `trouble`. */
	int (*add)(struct used_spills *used_spills, const char *store, const char *key);
};

struct used_spills {
	const struct used_spills_ops *ops;
	char trouble[256]; /* reason of the last failure */
};

/* Keeps the records in `directory`, which is created and locked like that of memory_file_new()
 * (memory.h). Returns NULL on failure, with the reason in *why, valid until the next call. */
struct used_spills *used_spills_file_new(const char *directory, const char **why);
void used_spills_file_free(struct used_spills *used_spills);

#endif
