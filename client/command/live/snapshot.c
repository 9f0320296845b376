/*
 * snapshot.c - see snapshot.h.
 */
#include "snapshot.h"
#include "../ask/ask.h"
#include "../ui/new_file.h"
#include "../../../proto/control/envelope.h"
#include "../../../proto/control/segment_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- writing --- */

struct sink {
	struct ps_archive_sink sink;
	int fd;
	uint64_t written;
};

static int write_to_file(struct ps_archive_sink *base, const void *bytes, size_t len)
{
	struct sink *sink = (struct sink *)base;

	sink->written += len;
	return ps_file_write(sink->fd, bytes, len) ? 0 : -1;
}

static int add_segments(struct ps_archive_writer *writer, const struct ps_live_copy *copy)
{
	uint64_t done = 0;

	/* The format wants ascending ids; the header may have another order. */
	for (unsigned id = 0; id < PS_SEGMENTS_MAX; id++) {
		for (uint64_t at = 0; at < copy->sizes[id]; at += PS_ARCHIVE_PIECE_MAX) {
			uint64_t rest = copy->sizes[id] - at;
			uint64_t length = rest < PS_ARCHIVE_PIECE_MAX ? rest : PS_ARCHIVE_PIECE_MAX;

			if (ps_archive_add(writer, PS_REGION_SEGMENT + id, at,
			                   copy->segments[id] + at, length))
				return -1;
			done += length;
			ps_bar_show("writing", done, copy->bytes);
		}
	}
	return 0;
}

/* Adds the log region: the slot, and the record of its transaction, which has the transaction's
 * time. */
static int add_log(struct ps_archive_writer *writer, const struct ps_live_copy *copy)
{
	uint8_t page[PS_RING_OFFSET] = { 0 };

	memcpy(page, &copy->slot, sizeof(copy->slot));
	if (ps_archive_add(writer, PS_REGION_LOG, 0, page, sizeof(page)))
		return -1;
	if (!copy->record)
		return 0;
	return ps_archive_add(writer, PS_REGION_LOG,
	                      PS_RING_OFFSET + copy->record->position % copy->header->log_size,
	                      copy->record, copy->record->length);
}

static int write_archive(const struct ps_live_copy *copy, struct sink *sink)
{
	struct ps_archive_writer writer;
	int rc = ps_archive_begin(&writer, &sink->sink, copy->header, &copy->slot);

	if (!rc)
		rc = add_segments(&writer, copy);
	if (!rc)
		rc = add_log(&writer, copy);
	if (!rc)
		rc = ps_archive_end(&writer);
	ps_archive_close(&writer);
	return rc;
}

enum ps_exit ps_snapshot_write(const struct ps_live_copy *copy, const char *path, uint64_t *length)
{
	struct sink sink = { .sink.write = write_to_file };
	struct ps_new_file file;
	enum ps_exit status = ps_new_file_open(&file, path);

	if (status)
		return status;
	sink.fd = file.fd;
	errno = 0;
	if (write_archive(copy, &sink)) {
		status = ps_complain(PS_EXIT_FAILURE,
		                     "%s cannot be written: %s; nothing is left "
		                     "of it",
		                     path, errno ? strerror(errno) : "out of memory");
		ps_new_file_discard(&file);
		return status;
	}
	*length = sink.written;
	return ps_new_file_publish(&file);
}

/* --- reading --- */

static enum ps_exit complain_bad_snapshot(const struct ps_snapshot *snapshot, const char *why)
{
	return ps_complain(PS_EXIT_NO, "%s cannot be used: %s", snapshot->path, why);
}

static enum ps_exit map_log(struct ps_snapshot *snapshot)
{
	uint64_t size = snapshot->reader.header->log_size;
	void *log = mmap(NULL, PS_RING_OFFSET + size, PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (log == MAP_FAILED)
		return ps_complain(PS_EXIT_FAILURE,
		                   "no memory for the log of %" PRIu64 " bytes: "
		                   "%s",
		                   size, strerror(errno));
	snapshot->image.log = log;
	snapshot->image.ring_size = size;
	return PS_EXIT_OK;
}

static const char *head_fault(const struct ps_snapshot *snapshot)
{
	if (snapshot->reader.header->state != PERSEAS__STATE__STATE_CONSISTENT)
		return "the image in it was not whole";
	if (!ps_slot_valid(&snapshot->reader.slot))
		return "the image in it has no commit slot";
	return NULL;
}

/* Refuses a part that exists without the segment that it extends. A destroy ends both at once, so
 * the table is damaged; the part would be left out, and more may be missing. */
static enum ps_exit check_parts(const struct ps_snapshot *snapshot)
{
	const Perseas__Header *header = snapshot->reader.header;

	for (size_t k = 0; k < header->n_segments; k++) {
		const Perseas__Segment *part = header->segments[k];
		const Perseas__Segment *before = ps_segment_part_before(header, part);

		if (before && ps_snapshot_has_segment(snapshot, part) &&
		    !ps_snapshot_has_segment(snapshot, before))
			return ps_complain(
				PS_EXIT_NO,
				"%s cannot be used: its table of segments is damaged: "
				"'%s' is there, and '%s', which it is a part of, is not; "
				"take another snapshot",
				snapshot->path, part->name, before->name);
	}
	return PS_EXIT_OK;
}

enum ps_exit ps_snapshot_open(struct ps_snapshot *snapshot, const char *path)
{
	const char *why = NULL;
	enum ps_exit status;

	memset(snapshot, 0, sizeof(*snapshot));
	snapshot->path = path;
	snapshot->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (snapshot->fd < 0)
		return ps_complain(PS_EXIT_FAILURE, "%s cannot be opened: %s", path,
		                   strerror(errno));
	ps_archive_file_init(&snapshot->file, snapshot->fd);
	if (ps_archive_open(&snapshot->reader, &snapshot->file.source, &why) == 0)
		why = head_fault(snapshot);
	status = why ? complain_bad_snapshot(snapshot, why) : check_parts(snapshot);
	if (!status)
		status = map_log(snapshot);
	if (status)
		ps_snapshot_close(snapshot);
	return status;
}

static void copy_piece(const struct ps_image *image, const struct ps_archive_piece *piece)
{
	uint8_t *base = piece->region == PS_REGION_LOG
	                        ? image->log
	                        : image->segments[piece->region - PS_REGION_SEGMENT].base;

	if (base)
		memcpy(base + piece->offset, piece->bytes, piece->length);
}

/* Returns what is wrong with the log, or NULL. Its slot must equal the head's, since the unfinished
 * record is found by it. */
static const char *log_fault(struct ps_snapshot *snapshot)
{
	const struct ps_slot *slot = &snapshot->reader.slot;
	const struct ps_record *record;
	struct ps_slot counts;

	if (ps_slot_choose(snapshot->image.log, &counts) < 0 ||
	    memcmp(&counts, slot, sizeof(counts)) != 0)
		return "the commit slots in it are not what its head says";
	record = ps_image_record_at(&snapshot->image, slot->last);
	if (record && record->seq == slot->seq)
		snapshot->time = record->time;
	return NULL;
}

enum ps_exit ps_snapshot_read(struct ps_snapshot *snapshot)
{
	uint64_t total = ps_image_size(snapshot->reader.header);
	struct ps_archive_piece piece;
	const char *why = NULL;
	int rc;

	while ((rc = ps_archive_next(&snapshot->reader, &piece, &why)) > 0) {
		copy_piece(&snapshot->image, &piece);
		snapshot->bytes += piece.length;
		ps_bar_show("reading", snapshot->bytes, total);
		if (ps_stop_requested())
			return ps_complain(PS_EXIT_FAILURE, "stopped by a signal");
	}
	ps_bar_clear();
	if (rc == 0)
		why = log_fault(snapshot);
	return why ? complain_bad_snapshot(snapshot, why) : PS_EXIT_OK;
}

bool ps_snapshot_has_segment(const struct ps_snapshot *snapshot, const Perseas__Segment *segment)
{
	return ps_segment_exists_at(segment, snapshot->reader.slot.seq);
}

void ps_snapshot_close(struct ps_snapshot *snapshot)
{
	if (snapshot->image.log)
		munmap(snapshot->image.log, PS_RING_OFFSET + snapshot->image.ring_size);
	ps_archive_free(&snapshot->reader);
	close(snapshot->fd);
}
