/*
 * cmd_snapshot.c - perseas snapshot: copies a store to a file, or checks such a file.
 */
#include "command.h"
#include "../../proto/base/json.h"
#include "../../proto/control/segment_parts.h"
#include "live/snapshot.h"

#include <inttypes.h>

enum ps_exit ps_verb_snapshot_check(const struct ps_args *args)
{
	if (args->check_file) {
		if (args->store || args->from_mirror || args->to_path)
			return ps_complain(PS_EXIT_USAGE, "--check FILE stands alone");
		return PS_EXIT_OK;
	}
	if (!args->store || !args->to_path)
		return ps_complain(PS_EXIT_USAGE, "usage: perseas snapshot STORE --from MIRROR "
		                                  "--to FILE, or perseas snapshot --check FILE");
	return PS_EXIT_OK;
}

static void print_state(const struct ps_slot *slot, uint64_t time)
{
	char text[PS_TIME_TEXT];

	printf("epoch %" PRIu64 ", transaction %" PRIu64, slot->epoch, slot->seq);
	if (time)
		printf(" of %s", ps_time_text(text, time));
	else if (slot->seq)
		printf(" (time unknown: its record is not in the log)");
}

static void state_json(struct ps_json *json, const struct ps_slot *slot, uint64_t time)
{
	char text[PS_TIME_TEXT];

	ps_json_number(json, "epoch", slot->epoch);
	ps_json_number(json, "seq", slot->seq);
	ps_json_text(json, "time", time ? ps_time_text(text, time) : NULL);
}

static void print_snapshot_taken(const struct ps_live_copy *copy, const struct ps_args *args,
                                 uint64_t length)
{
	const uint64_t time = copy->record ? copy->record->time : 0;
	const size_t segments = ps_count_segments_without_parts(copy->header);
	char bytes[PS_SIZE_TEXT], size[PS_SIZE_TEXT];
	struct ps_json json = { .out = stdout };

	if (!args->json) {
		printf("store '%s' on %s, as it was at ", args->store, args->from_mirror);
		print_state(&copy->slot, time);
		printf(": %zu segment%s, %s; %s written to %s\n", segments, ps_plural(segments),
		       ps_size_text(bytes, copy->bytes), ps_size_text(size, length), args->to_path);
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", args->store);
	ps_json_text(&json, "mirror", args->from_mirror);
	state_json(&json, &copy->slot, time);
	ps_json_number(&json, "segments", segments);
	ps_json_number(&json, "bytes", copy->bytes);
	ps_json_text(&json, "file", args->to_path);
	ps_json_number(&json, "file_bytes", length);
	ps_json_end(&json, '}');
}

static enum ps_exit snapshot_take(const struct ps_args *args, struct ps_peers *peers)
{
	struct ps_live_copy copy;
	uint64_t length = 0;
	enum ps_exit status = ps_live_copy_take(&copy, peers, args->store);

	if (status)
		return status;
	ps_bar_clear();
	status = ps_snapshot_write(&copy, args->to_path, &length);
	ps_bar_clear();
	if (!status)
		print_snapshot_taken(&copy, args, length);
	ps_live_copy_free(&copy);
	return status;
}

static uint64_t segment_bytes(const struct ps_snapshot *snapshot, unsigned *count)
{
	const Perseas__Header *header = snapshot->reader.header;
	uint64_t bytes = 0;

	*count = 0;
	for (size_t k = 0; k < header->n_segments; k++) {
		if (!ps_snapshot_has_segment(snapshot, header->segments[k]))
			continue;
		bytes += header->segments[k]->size;
		*count += !ps_segment_part_before(header, header->segments[k]);
	}
	return bytes;
}

static void print_checked_file(const struct ps_snapshot *snapshot, bool as_json)
{
	const char *store = snapshot->reader.header->store;
	struct ps_json json = { .out = stdout };
	char size[PS_SIZE_TEXT];
	unsigned count;
	uint64_t bytes = segment_bytes(snapshot, &count);

	if (!as_json) {
		printf("%s is good: store '%s' at ", snapshot->path, store);
		print_state(&snapshot->reader.slot, snapshot->time);
		printf(", %u segment%s, %s\n", count, ps_plural(count), ps_size_text(size, bytes));
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "file", snapshot->path);
	ps_json_text(&json, "store", store);
	state_json(&json, &snapshot->reader.slot, snapshot->time);
	ps_json_number(&json, "segments", count);
	ps_json_number(&json, "bytes", bytes);
	ps_json_end(&json, '}');
}

static enum ps_exit snapshot_check(const char *path, bool as_json)
{
	struct ps_snapshot snapshot;
	enum ps_exit status = ps_snapshot_open(&snapshot, path);

	if (status)
		return status;
	status = ps_snapshot_read(&snapshot);
	if (!status)
		print_checked_file(&snapshot, as_json);
	ps_snapshot_close(&snapshot);
	return status;
}

enum ps_exit ps_verb_snapshot(const struct ps_args *args)
{
	struct ps_peers peers;
	enum ps_exit status;

	ps_bar_show_library_copies();
	if (args->check_file)
		return snapshot_check(args->check_file, args->json);
	status = ps_peers_open_one(&peers, args->from_mirror, &args->options);
	if (status)
		return status;
	status = snapshot_take(args, &peers);
	ps_peers_close(&peers);
	return status;
}
