/*
 * snapshot.h - writes a copy of a store to a snapshot file, and reads such files
 * (proto/control/archive.h).
 */
#ifndef PERSEAS_COMMAND_SNAPSHOT_H
#define PERSEAS_COMMAND_SNAPSHOT_H

#include "live_copy.h"
#include "../../../proto/control/archive.h"

/* Writes the copy to a new file. Sets *length to the file's size. */
enum ps_exit ps_snapshot_write(const struct ps_live_copy *copy, const char *path, uint64_t *length);

/* A snapshot file that is open for reading. */
struct ps_snapshot {
	const char *path;
	int fd;
	struct ps_archive_file file;
	struct ps_archive_reader reader; /* its header and slot are valid once the file is open */
	/* Where the file's contents go: the log is mapped here; the caller may map memory for
	 * segments. */
	struct ps_image image;
	uint64_t bytes; /* bytes of all pieces that were read */
	uint64_t time;  /* time of the slot's transaction, ns since 1970; 0: not known */
};

/* Opens a snapshot file, and checks its head: it must be of a whole image with a slot, and have no
 * part of a segment that does not exist. After an error, which was complained about, there is
 * nothing to close. */
enum ps_exit ps_snapshot_open(struct ps_snapshot *snapshot, const char *path);

/* Reads the whole file into snapshot->image. Checks the pieces of segments that have no memory
 * there, and leaves them out. */
enum ps_exit ps_snapshot_read(struct ps_snapshot *snapshot);

/* Returns true if the segment exists in the state that the file has. */
bool ps_snapshot_has_segment(const struct ps_snapshot *snapshot, const Perseas__Segment *segment);

void ps_snapshot_close(struct ps_snapshot *snapshot);

#endif
