/*
 * memory.h - where images lie: the seam between the store logic and files. memory_file.c is
 * the real one (a directory on tmpfs); tests bring one of their
 * own.
 *
 * A store is a folder of named pieces: "header", and for generation g "log.g", "promise.g" and
 * "segment-<id>.g". All functions return 0 or a negative Perseas__Status; of make() and replace()
 * errno says more of -STATUS_IO, where it is not 0.
 */
#ifndef PERSEAS_SERVER_MEMORY_H
#define PERSEAS_SERVER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory;
struct ps_guard;

struct piece {
	uint8_t *base; /* mapped, shared */
	uint64_t size;
	int fd;          /* read and write; -1 where there are no files */
	int fd_readonly; /* of the promise page, else -1 */
	/* Tells whether the file was truncated (sigbus_guard.h). NULL: nobody can truncate it. */
	struct ps_guard *guard;
};

/* Who can still write to a piece that other processes were given? */
enum memory_whose {
	MEMORY_UNKNOWN, /* that cannot be told here */
	MEMORY_HELD,    /* somebody has a descriptor, or has it mapped */
	MEMORY_ALONE,   /* nobody but this process: what was given has all been closed */
	MEMORY_CUT,     /* nobody; but some of its memory is gone */
};

/* What became of the name of a piece? */
enum memory_name {
	MEMORY_NAMED,   /* a daemon that starts now finds the piece under it */
	MEMORY_MOVED,   /* the piece, its folder or the directory has another name now */
	MEMORY_REMOVED, /* the piece has none, and goes when the last process closes it */
};

struct memory_ops {
	/* Makes a zeroed piece, its memory reserved now, so that no later store can fail.
	 * -STATUS_NO_MEMORY: over the limit, or the file system is full. Nothing is left then. */
	int (*make)(struct memory *memory, const char *store, const char *name, uint64_t size,
	            struct piece *piece);
	/* Returns what to raise or remove after the last make() or replace() that failed; NULL: the
	 * limit, or the size of the file system. NULL stands for a function that returns NULL. */
	const char *(*advice)(struct memory *memory);
	/* Opens one that is there. -STATUS_NO_STORE: it is not. Its size comes with it. */
	int (*open)(struct memory *memory, const char *store, const char *name,
	            struct piece *piece);
	/* Unmaps and closes; the piece stays. */
	void (*close)(struct memory *memory, struct piece *piece);
	/* A descriptor of the piece for another process, the caller's to close: one to write with,
	 * or, of a promise page, one that only reads. -1 where there are no files. */
	int (*give)(struct memory *memory, const char *store, const char *name,
	            const struct piece *piece, int *fd);
	/* Asks the kernel. Nobody can get at a piece anew that nobody else has: MEMORY_ALONE stays
	 * true until it is given again. A piece that was made longer meanwhile has its own size
	 * again then. NULL: as MEMORY_UNKNOWN. */
	enum memory_whose (*whose)(struct memory *memory, const struct piece *piece);
	/* Writes the piece back to what its file lies on. NULL: nothing to do. */
	int (*flush)(struct memory *memory, const struct piece *piece);
	/* Removes it by name; other processes may still have it mapped. Without one: 0. -STATUS_IO,
	 * and errno says more: it may still be there. */
	int (*remove)(struct memory *memory, const char *store, const char *name);
	/* Looks a piece up by its name, as a daemon that starts would. piece: as it was made or
	 * opened; NULL: any piece of that name will do, in a folder that a daemon would look at.
	 * Changes nothing. NULL: names stay what they are. */
	enum memory_name (*look_up)(struct memory *memory, const char *store, const char *name,
	                            const struct piece *piece);
	/* Makes the folder of this piece, which has its name there, one that a daemon looks at
	 * again. NULL: it is. */
	void (*adopt)(struct memory *memory, const char *store, const char *name,
	              const struct piece *piece);
	/* Makes the directory this daemon's again where it was removed, or lost what shows that.
	 * Returns false if that cannot be: `why` says why, and nothing was written. Where nothing
	 * is missing, as usual, this costs a few system calls. NULL: true. */
	bool (*settle)(struct memory *memory, char *why, size_t size);
	/* Returns a descriptor that is readable when names may have gone; -1, or NULL: nothing
	 * tells. seen() reads what it tells of, and returns false if it does not tell of all. */
	int (*watch)(struct memory *memory);
	bool (*seen)(struct memory *memory);
	/* Counts used() anew. Every open piece has its name. NULL: it counts itself. */
	void (*recount)(struct memory *memory);
	/* Replaces the small piece `name` by these bytes, whole or not at all. -STATUS_NO_MEMORY
	 * only where there is none yet: with the first, room is kept for all that follow, so that
	 * a header is written, and a claim granted, also when there is no memory left, and no
	 * descriptor. */
	int (*replace)(struct memory *memory, const char *store, const char *name,
	               const void *bytes, size_t len);
	/* Reads a small piece, and maybe zeros behind it; the caller frees *bytes.
	 * -STATUS_NO_STORE: not there. */
	int (*load)(struct memory *memory, const char *store, const char *name, uint8_t **bytes,
	            size_t *len);
	/* Calls found() for each store, or for each piece of a store. A store that cannot be looked
	 * at is found, too. -STATUS_IO, and errno says more: there may be other stores. */
	int (*stores)(struct memory *memory, void (*found)(void *arg, const char *store),
	              void *arg);
	void (*pieces)(struct memory *memory, const char *store,
	               void (*found)(void *arg, const char *name), void *arg);
	/* Removes the folder, when it is empty. */
	void (*forget)(struct memory *memory, const char *store);
	/* What is there of the store is kept under a name that is never looked at again, which
	 * `where` tells. */
	int (*set_aside)(struct memory *memory, const char *store, char *where, size_t size);
	/* The id of the boot of this host, PS_ID_SIZE bytes. NULL: not known. */
	const uint8_t *(*boot)(struct memory *memory);
	/* Is what was written in that boot (NULL: it is not known in which) as it was then? Not
	 * where it may have been written back to a disk and come back old. */
	bool (*lasts)(struct memory *memory, const uint8_t *boot);
	/* Fills in the daemon's identity, PS_ID_SIZE bytes: the same as long as this memory lasts,
	 * and another one on any copy of it. */
	void (*identity)(struct memory *memory, uint8_t *id);
	/* Notes of which files the store's image consists, by its id and generation: its header was
	 * written just now, or it is about to be served. NULL: there are no files. */
	void (*note_files)(struct memory *memory, const char *store, const uint8_t *image_id,
	                   uint64_t generation);
	/* Does the store's image consist of other files than were noted of it? Then somebody copied
	 * it, and it may be older than what it acknowledged. NULL: it cannot. */
	bool (*is_copy)(struct memory *memory, const char *store, const uint8_t *image_id,
	                uint64_t generation);
	/* Calls found() with the name, as set_aside() told it, of each image that was set aside and
	 * is still there. NULL: there is none. */
	void (*asides)(struct memory *memory, void (*found)(void *arg, const char *name),
	               void *arg);
	/* Bytes of all pieces that are there, with what they take beyond what was reserved for
	 * them, and of those that were removed and others have. */
	uint64_t (*used)(struct memory *memory);
	/* Bytes that an open piece takes beyond what was reserved for it: an owner that has its
	 * file can have made it longer, or have blocks beyond its end. NULL: nobody can. */
	uint64_t (*beyond)(struct memory *memory, const struct piece *piece);
	/* The sum of these, and of what removed pieces that others have take beyond their sizes.
	 * NULL: 0. */
	uint64_t (*excess)(struct memory *memory);
	/* Gives the excess back. A process that has a file may take it again at once. The turn may
	 * be given up meanwhile. NULL: there is nothing to give back. */
	void (*trim)(struct memory *memory);
	/* Bytes of pieces of the store (NULL: of all stores) that were removed, but that another
	 * process still has. NULL: nobody can. */
	uint64_t (*kept)(struct memory *memory, const char *store);
	uint64_t (*limit)(struct memory *memory); /* 0: none */
	/* Bytes that make() can still take: of the limit, and of what the file system, the host and
	 * its control group leave. UINT64_MAX, or NULL: none of them says. */
	uint64_t (*room)(struct memory *memory);
	/* Can more be made, and what is there be changed? False: `why` says why not. NULL: it is
	 * always taken to be so. */
	bool (*usable)(struct memory *memory, char *why, size_t size);
	/* A store to the promise page, and a full fence that also orders it against what
	 * owners on this host do: after it returns, an owner that has not seen the new promise
	 * has made its last slot visible (I5). */
	void (*fence)(struct memory *memory);
	/* Does fence() also execute a barrier on every processor on which an owner runs, so that
	 * owners that registered for it need none of their own? NULL: no. */
	bool (*reaches_owners)(struct memory *memory);
	void (*random)(struct memory *memory, void *bytes, size_t len);
};

struct memory {
	const struct memory_ops *ops;
};

/* Images as files below `directory`, which is made when missing and locked against a second
 * daemon. limit in bytes, 0: none. It must lie in memory; on_disk: a disk will do, for
 * experiments. NULL on failure; *why (static or until the next call) says. */
struct memory *memory_file_new(const char *directory, uint64_t limit, bool on_disk,
                               const char **why);
/* In which boot of the host this is, where the kernel does not tell it. */
void memory_file_set_boot(struct memory *memory, const uint8_t *boot);
/* Logs how much of the images no limit of this daemon's control groups counts, if there is such. */
void memory_file_tell_uncounted(struct memory *memory);
/* New pieces leave so many of the descriptors that the process may have to others, or half of them:
 * make() has no memory then. */
void memory_file_leave_files(struct memory *memory, unsigned count);
void memory_file_free(struct memory *memory);

#endif
