/*
 * spill.h - where images are written when the daemon ends on purpose: the seam between the store
 * logic and the disk. spill_file.c is the real one, a directory; tests bring one of their own.
 *
 * A store's spill is one archive (archive.h). Functions return 0, or -1 with what went
 * wrong in `trouble`; what they say is done is durable.
 */
#ifndef PERSEAS_SERVER_SPILL_H
#define PERSEAS_SERVER_SPILL_H

#include "../../proto/control/archive.h"

struct spill;

struct spill_ops {
	/* How many bytes new spills may take. */
	int (*room)(struct spill *spill, uint64_t *bytes);
	/* Begins a spill beside the one that may be there; `sink` leads to it then. */
	int (*begin)(struct spill *spill, const char *store);
	/* What was begun is whole: it gets its name. On failure it is abandoned. */
	int (*commit)(struct spill *spill);
	/* Removes what was begun. */
	void (*abandon)(struct spill *spill);
	/* Calls found() for each store that has a spill. -1: there may be others. */
	int (*stores)(struct spill *spill, void (*found)(void *arg, const char *store), void *arg);
	/* `source` leads to the store's spill until close(), which is due also after a failure. */
	int (*open)(struct spill *spill, const char *store);
	void (*close)(struct spill *spill);
	/* It will never be found again. Without one: 0. */
	int (*remove)(struct spill *spill, const char *store);
	/* It was loaded, and will never be found again. It may be kept for people, under a name
	 * that is never looked at, until the store's next spill begins. */
	int (*retire)(struct spill *spill, const char *store);
	/* It is kept under a name that is never looked at again. Without one: 0. */
	int (*set_aside)(struct spill *spill, const char *store);
};

struct spill {
	const struct spill_ops *ops;
	const char *directory; /* for people */
	struct ps_archive_sink sink;
	struct ps_archive_source source;
	char trouble[256];
	/* Called as bytes are written and read; NULL: nobody wants to know. */
	void (*progress)(void *arg);
	void *progress_arg;
};

/* Spills in `directory`, as memory_file_new() in memory.h. */
struct spill *spill_file_new(const char *directory, const char **why);
void spill_file_free(struct spill *spill);

#endif
