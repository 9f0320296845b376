/*
 * memory.h - where images lie: the seam between the store logic and files. memory_file.c is
 * the real one (a directory on tmpfs, or on a DAX file system); tests bring one of their
 * own.
 *
 * A store is a folder of named pieces: "header", and for generation g "log.g", "promise.g" and
 * "segment-<id>.g". All functions return 0 or a negative Perseas__Status.
 */
#ifndef PERSEAS_SERVER_MEMORY_H
#define PERSEAS_SERVER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory;

struct piece {
	uint8_t *base; /* mapped, shared */
	uint64_t size;
	int fd;          /* read and write; -1 where there are no files */
	int fd_readonly; /* of the promise page, else -1 */
};

struct memory_ops {
	/* Makes a zeroed piece, its memory reserved now, so that no later store can fail.
	 * -STATUS_NO_MEMORY: over the limit, or the file system is full. Nothing is left then. */
	int (*make)(struct memory *memory, const char *store, const char *name, uint64_t size,
	            struct piece *piece);
	/* Opens one that is there. -STATUS_NO_STORE: it is not. Its size comes with it. */
	int (*open)(struct memory *memory, const char *store, const char *name,
	            struct piece *piece);
	/* Unmaps and closes; the piece stays. */
	void (*close)(struct memory *memory, struct piece *piece);
	/* What was written to it outlasts what its file outlasts: on a DAX file system, the host.
	 * NULL: nothing to do. */
	int (*flush)(struct memory *memory, const struct piece *piece);
	/* Removes it by name; other processes may still have it mapped. */
	void (*remove)(struct memory *memory, const char *store, const char *name);
	/* Replaces the small piece `name` by these bytes, whole or not at all. */
	int (*replace)(struct memory *memory, const char *store, const char *name,
	               const void *bytes, size_t len);
	/* Reads a small piece; the caller frees *bytes. -STATUS_NO_STORE: not there. */
	int (*load)(struct memory *memory, const char *store, const char *name, uint8_t **bytes,
	            size_t *len);
	/* Calls found() for each store, or for each piece of a store. */
	void (*stores)(struct memory *memory, void (*found)(void *arg, const char *store),
	               void *arg);
	void (*pieces)(struct memory *memory, const char *store,
	               void (*found)(void *arg, const char *name), void *arg);
	/* Removes the folder, when it is empty. */
	void (*forget)(struct memory *memory, const char *store);
	uint64_t (*used)(struct memory *memory);  /* bytes of all pieces that are there */
	uint64_t (*limit)(struct memory *memory); /* 0: none */
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
 * daemon. limit in bytes, 0: none. NULL on failure; *why (static or until the next call) says. */
struct memory *memory_file_new(const char *directory, uint64_t limit, const char **why);
void memory_file_free(struct memory *memory);

#endif
