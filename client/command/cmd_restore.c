/*
 * cmd_restore.c - perseas restore: makes a new store from a snapshot.
 */
#include "command.h"
#include "../../proto/base/json.h"
#include "../../proto/control/segment_parts.h"
#include "ask/shared_hosts.h"
#include "change/remake.h"
#include "live/snapshot.h"

#include <inttypes.h>

/* Maps one new segment for a segment of the snapshot and all parts by which it grew, and has the
 * file read into it. */
static enum ps_exit map_segment(struct ps_snapshot *snapshot, struct ps_remake *remake,
                                const Perseas__Segment *segment)
{
	const Perseas__Header *header = snapshot->reader.header;
	const Perseas__Segment *part = segment;
	uint64_t size = 0;
	void *base = NULL;
	enum ps_exit status;

	for (; part && ps_snapshot_has_segment(snapshot, part);
	     part = ps_segment_part_next(header, part))
		size += part->size;
	status = ps_remake_map(remake, segment->name, size, segment->address, &base);
	part = segment;
	for (uint64_t at = 0; !status && at < size;
	     at += part->size, part = ps_segment_part_next(header, part)) {
		snapshot->image.segments[part->id].base = (uint8_t *)base + at;
		snapshot->image.segments[part->id].size = part->size;
	}
	return status;
}

/* Maps the segments that exist, and reads the file into them. Rolls back the unfinished transaction
 * in this memory. */
static enum ps_exit snapshot_load(struct ps_snapshot *snapshot, struct ps_remake *remake)
{
	const Perseas__Header *header = snapshot->reader.header;
	enum ps_exit status = PS_EXIT_OK;
	struct ps_slot slot;

	for (size_t k = 0; k < header->n_segments && !status; k++) {
		const Perseas__Segment *segment = header->segments[k];

		if (ps_snapshot_has_segment(snapshot, segment) &&
		    !ps_segment_part_before(header, segment))
			status = map_segment(snapshot, remake, segment);
	}
	if (!status)
		status = ps_snapshot_read(snapshot);
	if (!status && ps_image_recover(&snapshot->image, &slot) < 0)
		status = ps_complain(PS_EXIT_NO,
		                     "%s cannot be used: the undo record of its "
		                     "unfinished transaction names bytes outside of the store",
		                     snapshot->path);
	return status;
}

static void print_restored(const struct ps_snapshot *snapshot, const struct ps_remake *remake)
{
	const struct ps_slot *slot = &snapshot->reader.slot;
	struct ps_json json = { .out = stdout };

	if (!remake->quiet) {
		printf("store '%s' of %s, as it was at epoch %" PRIu64 ", transaction %" PRIu64
		       ", is now store '%s' on %s; open it there:\n    perseas_open(\"%s\", "
		       "\"%s\", …)\n",
		       snapshot->reader.header->store, snapshot->path, slot->epoch, slot->seq,
		       remake->store, remake->mirrors, remake->store, remake->mirrors);
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", remake->store);
	ps_json_list(&json, "mirrors", remake->mirrors);
	ps_json_number(&json, "alike", remake->equal_mirrors);
	ps_json_text(&json, "file", snapshot->path);
	ps_json_text(&json, "of_store", snapshot->reader.header->store);
	ps_json_number(&json, "of_epoch", slot->epoch);
	ps_json_number(&json, "of_seq", slot->seq);
	ps_json_end(&json, '}');
}

static enum ps_exit restore_fill(const struct ps_args *args, struct ps_remake *remake)
{
	struct ps_snapshot snapshot;
	enum ps_exit status = ps_snapshot_open(&snapshot, args->snapshot_file);

	if (status)
		return status;
	status = snapshot_load(&snapshot, remake);
	if (!status && ps_stop_requested())
		status = ps_complain(PS_EXIT_FAILURE, "stopped by a signal");
	if (!status)
		status = ps_remake_publish(remake);
	if (!status || status == PS_EXIT_PARTLY)
		print_restored(&snapshot, remake);
	ps_snapshot_close(&snapshot);
	return status;
}

/* Reads and checks the whole file, before anything is made. */
static enum ps_exit check_file(const struct ps_args *args, struct ps_remake *remake)
{
	const Perseas__Header *header;
	struct ps_snapshot snapshot;
	enum ps_exit status = ps_snapshot_open(&snapshot, args->snapshot_file);

	if (status)
		return status;
	header = snapshot.reader.header;
	remake->options.log_size = header->log_size;
	for (size_t k = 0; k < header->n_segments; k++)
		remake->segments += ps_snapshot_has_segment(&snapshot, header->segments[k]);
	status = ps_snapshot_read(&snapshot);
	ps_snapshot_close(&snapshot);
	return status;
}

enum ps_exit ps_verb_restore(const struct ps_args *args)
{
	struct ps_remake remake = {
		.store = args->store,
		.mirrors = args->mirrors,
		.options = args->options,
		.quiet = args->json,
		.hint = "restore under another name",
	};
	enum ps_exit status;

	ps_bar_show_library_copies();
	ps_stop_catch();
	status = check_file(args, &remake);
	if (!status)
		status = ps_remake_check(&remake);
	if (!status)
		status = ps_remake_begin(&remake);
	if (status)
		return status;
	status = restore_fill(args, &remake);
	if (status && status != PS_EXIT_PARTLY) {
		ps_remake_delete_unfilled(&remake);
		return status;
	}
	ps_remake_close(&remake);
	ps_shared_hosts_warn(args->store, args->mirrors, &args->options);
	return status;
}
