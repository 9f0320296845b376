/*
 * snapshot.h - a copy of a store in a file (proto/control/archive.h).
 */
#ifndef PERSEAS_COMMAND_SNAPSHOT_H
#define PERSEAS_COMMAND_SNAPSHOT_H

#include "live_copy.h"
#include "../../../proto/control/archive.h"

/* Writes the copy to a new file. Sets *length to the file's size. */
enum ps_exit ps_snapshot_write(const struct ps_copy *copy, const char *path, uint64_t *length);

/* A snapshot file that is open for reading. */
struct ps_snapshot {
	const char *path;
	int fd;
	struct ps_archive_file file;
	struct ps_archive_reader reader; /* its header and slot are good once it is open */
	/* Where the file's contents go: the log is mapped here; the caller may map memory for
	 * segments. */
	struct ps_image image;
	uint64_t bytes; /* of all pieces that were read */
	uint64_t time;  /* of the slot's transaction, ns; 0: not told */
};

/* Opens it, and checks its head, which must be that of a whole image with a slot, and have no part
 * of a segment that is gone. After an error, which is complained about, there is nothing to
 * close. */
enum ps_exit ps_snapshot_open(struct ps_snapshot *snapshot, const char *path);

/* Reads all of it into snapshot->image; what has no memory there is checked and left out. */
enum ps_exit ps_snapshot_read(struct ps_snapshot *snapshot);

/* Returns true if the segment exists in the state that the file holds. */
bool ps_snapshot_has(const struct ps_snapshot *snapshot, const Perseas__Segment *segment);

void ps_snapshot_close(struct ps_snapshot *snapshot);

#endif
