/*
 * spill.h - where images are written when the daemon stops: the contract between the store logic
 * and the disk. spill_file.c is the real implementation, a directory; tests bring their own.
 *
 * A spill is one archive (archive.h) for each store. Functions return 0, or -1 with the reason in
 * `trouble`. When they return 0, their effect is durable.
 */
#ifndef PERSEAS_SERVER_SPILL_H
#define PERSEAS_SERVER_SPILL_H

#include "../../proto/control/archive.h"

struct spill;

struct spill_ops {
	/* Restores the spill directory if it was removed. Fails if the path of the directory leads
	 * elsewhere, so that the next daemon would not find new spills. NULL: no path can lead
	 * elsewhere. */
	int (*restore_directory)(struct spill *spill);
	/* Called after restore_directory() has failed: makes new spills go where the path leads
	 * now. Fails if that is no proper spill directory: then they go to the old one, and
	 * `directory` becomes the path of its present place. */
	int (*follow_path)(struct spill *spill);
	/* Returns how many bytes new spills may occupy. */
	int (*room)(struct spill *spill, uint64_t *bytes);
	/* Begins a new spill of the store, next to an existing one. `sink` writes to the new
	 * spill. */
	int (*begin)(struct spill *spill, const char *store);
	/* Completes the new spill and gives it the store's name. On failure the new spill is
	 * removed. */
	int (*commit)(struct spill *spill);
	/* Removes the new spill. */
	void (*abandon)(struct spill *spill);
	/* Calls found() for each store that has a spill. Returns -1 if it may have missed one. */
	int (*list_stores)(struct spill *spill, void (*found)(void *arg, const char *store),
	                   void *arg);
	/* Opens the store's spill for reading through `source`. Call close() even after a
	 * failure. */
	int (*open)(struct spill *spill, const char *store);
	void (*close)(struct spill *spill);
	/* Removes the store's spill durably. Returns 0 if the store has no spill. */
	int (*remove)(struct spill *spill, const char *store);
	/* Renames the spill after it was loaded, so that it is never loaded again. People can use
	 * it until the store's next spill begins. */
	int (*retire)(struct spill *spill, const char *store);
	/* Renames a spill that must not be loaded to a name that is never loaded. Returns 0 if the
	 * store has no spill. */
	int (*set_aside)(struct spill *spill, const char *store);
};

struct spill {
	const struct spill_ops *ops;
	const char *directory; /* path of the directory, for messages */
	struct ps_archive_sink sink;
	struct ps_archive_source source;
	char trouble[256]; /* reason of the last failure */
	/* Called repeatedly while a spill is written or read. May be NULL. */
	void (*progress)(void *arg);
	void *progress_arg;
};

/* Stores spills in `directory`, which is created and locked like that of memory_file_new()
 * (memory.h). */
struct spill *spill_file_new(const char *directory, const char **why);
void spill_file_free(struct spill *spill);

#endif
