/*
 * memory.h - where images are stored: the contract between the store logic and files. memory_file.c
 * is the real implementation (a directory on tmpfs); tests bring their own.
 *
 * A store is a folder of named pieces: "header", and for generation g "log.g", "promise.g" and
 * "segment-<id>.g". All functions return 0 or a negative Perseas__Status. If make() or replace()
 * returns -STATUS_IO and errno is not 0, errno has the cause.
 */
#ifndef PERSEAS_SERVER_MEMORY_H
#define PERSEAS_SERVER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory;
struct ps_guard;

struct piece {
	uint8_t *base; /* address of the shared mapping */
	uint64_t size;
	int fd;          /* descriptor for reading and writing; -1: the piece is no file */
	int fd_readonly; /* read-only descriptor of a promise page; -1 for other pieces */
	/* Tells whether the file was truncated (sigbus_guard.h). NULL: no process can truncate the
	 * piece. */
	struct ps_guard *guard;
};

/* Whether other processes can still write to a piece that was shared with them. */
enum memory_sharing {
	MEMORY_SHARING_UNKNOWN,
	MEMORY_SHARED, /* another process has a descriptor or a mapping of the piece */
	/* Only this process has the piece: every descriptor and mapping that was given away is
	 * closed. */
	MEMORY_UNSHARED,
	MEMORY_TRUNCATED, /* only this process has the piece, but the file was truncated */
};

/* What became of the name of a piece. */
enum memory_name_state {
	MEMORY_NAMED,   /* a daemon that starts now finds the piece under its name */
	MEMORY_MOVED,   /* the piece, its folder or the directory was renamed */
	MEMORY_REMOVED, /* the piece has no name, and is freed when the last process closes it */
};

struct memory_ops {
	/* Makes a zeroed piece and reserves its memory, so that no later write to it can fail.
	 * Returns -STATUS_NO_MEMORY if the limit is exceeded or the file system is full. On failure
	 * no file is left. */
	int (*make)(struct memory *memory, const char *store, const char *name, uint64_t size,
	            struct piece *piece);
	/* Returns what the operator must raise or remove after make() or replace() failed for lack
	 * of memory, or NULL if that is the limit or the size of the file system. NULL: as a
	 * function that returns NULL. */
	const char *(*advice)(struct memory *memory);
	/* Opens an existing piece and stores its size. Returns -STATUS_NO_STORE if it does not
	 * exist, or -STATUS_NO_MEMORY if descriptors or memory lack, which says nothing about the
	 * piece; advice() tells what must be raised. So does load(). */
	int (*open)(struct memory *memory, const char *store, const char *name,
	            struct piece *piece);
	/* Unmaps and closes the piece, which continues to exist. */
	void (*close)(struct memory *memory, struct piece *piece);
	/* Opens a descriptor of the piece to give to another process: for reading and writing, or
	 * only for reading if the piece is a promise page. The caller closes it. Returns -1 if
	 * pieces are no files. */
	int (*open_shared)(struct memory *memory, const char *store, const char *name,
	                   const struct piece *piece, int *fd);
	/* Asks the kernel whether other processes have the piece. A process cannot get a new
	 * descriptor by itself, so MEMORY_UNSHARED stays true until the piece is given away again.
	 * If another process has made the piece longer, restores its size. NULL:
	 * MEMORY_SHARING_UNKNOWN. */
	enum memory_sharing (*sharing)(struct memory *memory, const struct piece *piece);
	/* Writes the piece back to the disk under its file system. NULL: nothing to do. */
	int (*flush)(struct memory *memory, const struct piece *piece);
	/* Removes the piece by its name; other processes may still have it mapped. Returns 0 if no
	 * piece has the name. Returns -STATUS_IO with errno set if the piece may still exist. */
	int (*remove)(struct memory *memory, const char *store, const char *name);
	/* Looks the name up, like a daemon that starts, and returns what became of it. `piece` is
	 * the piece that was made or opened under that name; NULL accepts any piece, in a folder
	 * that a daemon would load. Changes nothing. NULL: names never change. */
	enum memory_name_state (*look_up)(struct memory *memory, const char *store,
	                                  const char *name, const struct piece *piece);
	/* Marks the folder of this piece as one that a daemon loads (directory.h). The piece still
	 * has its name in that folder. NULL: folders have no marks. */
	void (*mark_folder)(struct memory *memory, const char *store, const char *name,
	                    const struct piece *piece);
	/* Restores the memory directory if it was removed or has lost its mark. Returns false if
	 * that failed, with the reason in `why`, having written nothing. If nothing is missing,
	 * which is normal, it takes a few system calls. NULL means true. */
	bool (*restore_directory)(struct memory *memory, char *why, size_t size);
	/* watch_names() returns a descriptor that becomes readable when names may have changed, or
	 * -1. read_changes() reads its events, and returns false if the kernel does not report all
	 * changes. NULL: changes are not reported. */
	int (*watch_names)(struct memory *memory);
	bool (*read_changes)(struct memory *memory);
	/* Recomputes what used() returns. Call it while every open piece has its name. NULL: used()
	 * is always exact. */
	void (*recount)(struct memory *memory);
	/* Replaces the contents of the small piece `name` atomically. Returns -STATUS_NO_MEMORY
	 * only if the piece does not exist yet: the first call reserves memory for later ones, so
	 * that a header can be written, and a claim granted, when memory and descriptors are
	 * exhausted. */
	int (*replace)(struct memory *memory, const char *store, const char *name,
	               const void *bytes, size_t len);
	/* Reads a small piece, possibly followed by zeros. The caller frees *bytes. Returns
	 * -STATUS_NO_STORE if it does not exist. */
	int (*load)(struct memory *memory, const char *store, const char *name, uint8_t **bytes,
	            size_t *len);
	/* Call found() for each store, or for each piece of a store. list_stores() also finds
	 * stores that cannot be read. It returns -STATUS_IO with errno set if it may have missed a
	 * store. */
	int (*list_stores)(struct memory *memory, void (*found)(void *arg, const char *store),
	                   void *arg);
	void (*list_pieces)(struct memory *memory, const char *store,
	                    void (*found)(void *arg, const char *name), void *arg);
	/* Removes the store's folder if it is empty. */
	void (*remove_folder)(struct memory *memory, const char *store);
	/* Renames the store's folder to a name that no daemon loads, and stores that name in
	 * `where`. */
	int (*set_aside)(struct memory *memory, const char *store, char *where, size_t size);
	/* Returns the id of this host's current boot, PS_ID_SIZE bytes. NULL: unknown. */
	const uint8_t *(*boot)(struct memory *memory);
	/* Returns true if data written in that boot of the host (NULL: in an unknown boot) is
	 * unchanged. On a disk, data of an earlier boot may be older than what was acknowledged. */
	bool (*data_survives)(struct memory *memory, const uint8_t *boot);
	/* Stores the daemon's identity, PS_ID_SIZE bytes. It stays the same while this memory
	 * exists, and every copy of the memory gets another. */
	void (*identity)(struct memory *memory, uint8_t *id);
	/* Records which files make up the store's image with this id and generation. Called after
	 * the header was written and before the image is served. NULL: pieces are no files. */
	void (*note_files)(struct memory *memory, const char *store, const uint8_t *image_id,
	                   uint64_t generation);
	/* Returns true if the image's files are not those that note_files() recorded: somebody
	 * copied the image, and it may be older than what it acknowledged. NULL means false. */
	bool (*was_image_copied)(struct memory *memory, const char *store, const uint8_t *image_id,
	                         uint64_t generation);
	/* Calls found() for each image that was set aside and still exists, with the name that
	 * set_aside() returned. NULL: no image is ever set aside. */
	void (*list_set_aside)(struct memory *memory, void (*found)(void *arg, const char *name),
	                       void *arg);
	/* Returns the bytes of all pieces, including what they occupy beyond their reservation, and
	 * of removed pieces that other processes still have. */
	uint64_t (*used)(struct memory *memory);
	/* Returns the bytes that an open piece occupies beyond its reservation: an owner that has
	 * the file can make it longer, or allocate blocks beyond its end. NULL means 0. */
	uint64_t (*piece_excess)(struct memory *memory, const struct piece *piece);
	/* Returns the sum of piece_excess() over all pieces, and of the bytes that removed pieces
	 * occupy beyond their sizes while other processes have them. NULL means 0. */
	uint64_t (*total_excess)(struct memory *memory);
	/* Truncates pieces to their sizes. A process that has a file can extend it again at once.
	 * May give up the turn (jobs.h). NULL: nothing to do. */
	void (*trim)(struct memory *memory);
	/* Returns the bytes of removed pieces of the store (NULL: of all stores) that other
	 * processes still have. NULL means 0. */
	uint64_t (*removed_bytes)(struct memory *memory, const char *store);
	uint64_t (*limit)(struct memory *memory); /* 0: no limit */
	/* Returns how many bytes make() can still allocate under the limit, and on the file system,
	 * the host and in its control groups: the least of these. UINT64_MAX, or NULL: unknown. */
	uint64_t (*room)(struct memory *memory);
	/* Returns true if pieces can be made and changed. Otherwise `why` says why not. NULL means
	 * true. */
	bool (*usable)(struct memory *memory, char *why, size_t size);
	/* Executes a full fence after a write to the promise page, which also orders that write
	 * against the reads and writes of owners on this host. After it returns, an owner that has
	 * not seen the new promise has made its last slot visible (I5). */
	void (*fence)(struct memory *memory);
	/* Returns true if fence() also executes a barrier on every processor that runs an owner, so
	 * that owners that registered for it (membarrier(2)) need none of their own. NULL means
	 * false. */
	bool (*fence_reaches_owners)(struct memory *memory);
	void (*random)(struct memory *memory, void *bytes, size_t len);
};

struct memory {
	const struct memory_ops *ops;
};

/* Stores images as files under `directory`, which is created if it is missing and locked against a
 * second daemon. `limit` is in bytes; 0: no limit. The directory must be in memory, unless on_disk
 * allows a disk, for experiments. Returns NULL on failure, with the reason in *why, valid until the
 * next call. */
struct memory *memory_file_new(const char *directory, uint64_t limit, bool on_disk,
                               const char **why);
/* Sets the id of the host's boot, if the kernel does not expose it. */
void memory_file_set_boot_id(struct memory *memory, const uint8_t *boot);
/* Logs how many bytes of images the limits of this daemon's control groups do not count, if any. */
void memory_file_log_charged_to_other_cgroups(struct memory *memory);
/* Sets how many of the process's file descriptors new pieces must leave to connections, at most
 * half of all. make() returns -STATUS_NO_MEMORY when only these are left. */
void memory_file_leave_descriptors_to_others(struct memory *memory, unsigned count);
void memory_file_free(struct memory *memory);

#endif
