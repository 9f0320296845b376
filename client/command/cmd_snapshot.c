/*
 * cmd_snapshot.c - perseas snapshot: a copy of a store in a file, and the check of one.
 */
#include "snapshot.h"

#include <inttypes.h>

enum ps_exit ps_check_snapshot(const struct ps_args *args)
{
	if (args->check) {
		if (args->store || args->from || args->to)
			return ps_complain(PS_EXIT_USAGE, "--check FILE stands alone");
		return PS_EXIT_OK;
	}
	if (!args->store || !args->from || !args->to)
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
}

static enum ps_exit take(const struct ps_args *args, struct ps_panel *panel)
{
	char bytes[PS_SIZE_TEXT], size[PS_SIZE_TEXT];
	struct ps_copy copy;
	uint64_t length = 0;
	enum ps_exit status = ps_copy_take(&copy, panel, args->store);

	if (status)
		return status;
	ps_bar_clear();
	status = ps_snapshot_write(&copy, args->to, &length);
	ps_bar_clear();
	if (!status) {
		printf("store '%s' on %s, as it was at ", args->store, panel->addresses[0].text);
		print_state(&copy.slot, copy.record ? copy.record->time : 0);
		printf(": %zu segment%s, %s; %s written to %s\n", copy.header->n_segments,
		       copy.header->n_segments == 1 ? "" : "s",
		       ps_size_text(bytes, copy.bytes), ps_size_text(size, length), args->to);
	}
	ps_copy_free(&copy);
	return status;
}

static uint64_t segment_bytes(const struct ps_snapshot *snapshot, unsigned *count)
{
	const Perseas__Header *header = snapshot->reader.header;
	uint64_t bytes = 0;

	*count = 0;
	for (size_t k = 0; k < header->n_segments; k++) {
		if (!ps_snapshot_has(snapshot, header->segments[k]))
			continue;
		bytes += header->segments[k]->size;
		++*count;
	}
	return bytes;
}

static enum ps_exit check(const char *path)
{
	struct ps_snapshot snapshot;
	char size[PS_SIZE_TEXT];
	uint64_t bytes;
	unsigned count;
	enum ps_exit status = ps_snapshot_open(&snapshot, path);

	if (status)
		return status;
	status = ps_snapshot_read(&snapshot);
	if (!status) {
		bytes = segment_bytes(&snapshot, &count);
		printf("%s is good: store '%s' at ", path, snapshot.reader.header->store);
		print_state(&snapshot.reader.slot, snapshot.time);
		printf(", %u segment%s, %s\n", count, count == 1 ? "" : "s",
		       ps_size_text(size, bytes));
	}
	ps_snapshot_close(&snapshot);
	return status;
}

enum ps_exit ps_verb_snapshot(const struct ps_args *args)
{
	struct ps_panel panel;
	enum ps_exit status;

	ps_bar_start();
	if (args->check)
		return check(args->check);
	status = ps_panel_open_one(&panel, args->from, args->connect_timeout_ms);
	if (status)
		return status;
	status = take(args, &panel);
	ps_panel_close(&panel);
	return status;
}
