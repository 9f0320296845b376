/*
 * cmd_history.c - perseas history: shows which transaction changed which bytes, and when.
 */
#include "command.h"
#include "live/history.h"
#include "../../proto/base/json.h"
#include "live/live_copy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum ps_exit ps_verb_history_check(const struct ps_args *args)
{
	if ((args->offset || args->length) && !args->segment)
		return ps_complain(PS_EXIT_USAGE, "--offset and --length are within a segment: "
		                                  "name it with --segment");
	return PS_EXIT_OK;
}

static const char *record_kind_text(const struct ps_record *record)
{
	if (record->kind == PS_RECORD_DESTROY)
		return "destroy";
	return record->kind == PS_RECORD_PUBLISH ? "publish" : "transaction";
}

static const char *segment_name(const struct ps_history *history, const struct ps_record *record,
                                uint32_t id, char text[32])
{
	const Perseas__Segment *segment = ps_history_segment(history, record, id);

	if (segment)
		return segment->name;
	snprintf(text, 32, "segment %u (gone)", id);
	return text;
}

/* Returns the bytes in hexadecimal. The caller frees the text. */
static char *hex_of(const uint8_t *bytes, uint32_t length)
{
	static const char digits[] = "0123456789abcdef";
	char *text = ps_exit_if_null(malloc(2 * (size_t)length + 1));

	for (uint32_t i = 0; i < length; i++) {
		text[2 * (size_t)i] = digits[bytes[i] >> 4];
		text[2 * (size_t)i + 1] = digits[bytes[i] & 15];
	}
	text[2 * (size_t)length] = '\0';
	return text;
}

struct output {
	struct ps_json *json; /* NULL: print text */
	bool bytes;
};

static void print_bytes(const struct output *out, const char *key, const char *label,
                        const uint8_t *bytes, uint32_t length)
{
	char *text = hex_of(bytes, length);

	if (out->json)
		ps_json_text(out->json, key, text);
	else
		printf("        %s %s\n", label, text);
	free(text);
}

/* Prints the bytes of a range after the record's transaction. If the segment is gone, they are not
 * known. */
static void print_bytes_after(const struct ps_history *history, const struct output *out,
                              const struct ps_record *record, const struct ps_range *range)
{
	uint8_t *after;

	if (!ps_history_segment(history, record, range->segment))
		return;
	after = ps_exit_if_null(calloc(1, (size_t)range->length + 1));
	ps_history_bytes_after(history, range, after);
	print_bytes(out, "after", "became", after, range->length);
	free(after);
}

static void print_range(const struct ps_history *history, const struct output *out,
                        const struct ps_record *record, const struct ps_range *range,
                        const uint8_t *image)
{
	char gone[32];
	const char *name = segment_name(history, record, range->segment, gone);

	if (out->json) {
		ps_json_begin(out->json, NULL, '{');
		ps_json_text(out->json, "segment", name);
		ps_json_number(out->json, "offset", range->offset);
		ps_json_number(out->json, "length", range->length);
	} else if (image) {
		printf("    %s, offset %" PRIu64 ", %u byte%s\n", name, range->offset,
		       range->length, ps_plural(range->length));
	} else {
		printf("    %s\n", name);
	}
	if (out->bytes && image) {
		print_bytes(out, "before", "was   ", image, range->length);
		print_bytes_after(history, out, record, range);
	}
	if (out->json)
		ps_json_end(out->json, '}');
}

static void print_ranges(const struct ps_history *history, const struct output *out,
                         const struct ps_record *record)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *image;

	ps_record_begin_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &image))
		if (ps_history_wants_range(history, range))
			print_range(history, out, record, range, image);
}

static void print_record(const struct ps_history *history, const struct output *out,
                         const struct ps_record *record)
{
	char time[PS_TIME_TEXT];

	ps_time_text(time, record->time);
	if (!out->json) {
		const bool plain = record->kind == PS_RECORD_TRANSACTION;

		printf("transaction %" PRIu64 "  epoch %" PRIu64 "  %s%s%s  %u range%s\n",
		       record->seq, record->epoch, time, plain ? "" : "  ",
		       plain ? "" : record_kind_text(record), record->ranges,
		       ps_plural(record->ranges));
		print_ranges(history, out, record);
		return;
	}
	ps_json_begin(out->json, NULL, '{');
	ps_json_number(out->json, "seq", record->seq);
	ps_json_number(out->json, "epoch", record->epoch);
	ps_json_text(out->json, "time", time);
	ps_json_number(out->json, "time_ns", record->time);
	ps_json_text(out->json, "kind", record_kind_text(record));
	ps_json_begin(out->json, "ranges", '[');
	print_ranges(history, out, record);
	ps_json_end(out->json, ']');
	ps_json_end(out->json, '}');
}

/* Prints the records, the newest first, and undoes each when it has been printed. Returns how many
 * were printed. */
static uint64_t print_records(const struct ps_history *history, const struct output *out)
{
	uint64_t count = 0;

	for (size_t i = 0; i < history->count; i++) {
		const struct ps_record *record = ps_history_record(history, i);

		if (!record)
			break;
		if (history->shown[i]) {
			print_record(history, out, record);
			count++;
		}
		if (out->bytes)
			ps_history_undo(history, record);
	}
	return count;
}

static enum ps_exit print_history(const struct ps_history *history, const struct ps_args *args)
{
	struct ps_json json = { .out = stdout };
	struct output out = { .json = args->json ? &json : NULL, .bytes = args->shows_bytes };
	uint64_t count;

	if (args->json) {
		ps_json_begin(&json, NULL, '{');
		ps_json_text(&json, "store", args->store);
		ps_json_number(&json, "epoch", history->live.log.from.epoch);
		ps_json_number(&json, "seq", history->live.log.from.seq);
		ps_json_begin(&json, "transactions", '[');
	}
	count = print_records(history, &out);
	if (args->json) {
		ps_json_end(&json, ']');
		ps_json_number(&json, "looked_at", history->count);
		ps_json_text(&json, "ends", history->why_ends);
		ps_json_end(&json, '}');
	} else {
		printf("%" PRIu64 " shown, of %zu looked at, back from transaction %" PRIu64
		       "; it ends there: %s\n",
		       count, history->count, history->live.log.from.seq, history->why_ends);
	}
	return count ? PS_EXIT_OK : PS_EXIT_NO;
}

/* Reads the history, and prints it unless the image was mended meanwhile. */
static enum ps_log_step history_read(struct ps_peers *peers, const Perseas__StoreStatus *told,
                                     const struct ps_args *args, unsigned try, enum ps_exit *status)
{
	struct ps_history history;
	enum ps_log_step step = PS_LOG_FAILED;

	*status = ps_history_init(&history, peers, told, args);
	if (!*status) {
		step = ps_history_walk(&history, args, try);
		step = ps_live_copy_check_unchanged(peers, args->store, history.live.log.from.seq,
		                                    told, step);
		if (!step)
			*status = print_history(&history, args);
		else if (step == PS_LOG_FAILED)
			*status = ps_peers_complain(peers, 0);
		else if (try + 1 == PS_LIVE_TRIES)
			*status = ps_live_copy_complain_too_fast(args->store,
			                                         told->header->log_size);
	}
	ps_history_free(&history);
	return step;
}

/* Reads the history once, beginning with the mirror's status. An image that no roster lists has a
 * history, too. */
static enum ps_log_step try_once(struct ps_peers *peers, const struct ps_args *args, unsigned try,
                                 enum ps_exit *status)
{
	enum ps_log_step step = PS_LOG_FAILED;
	struct ps_images images;

	ps_images_fetch(&images, peers, args->store);
	if (!images.have)
		*status = ps_images_complain_absent(&images, args->store);
	else if (images.told[0]->header->state != PERSEAS__STATE__STATE_CONSISTENT)
		*status = ps_complain(PS_EXIT_NO,
		                      "%s: its image of store '%s' is not whole: its log holds no "
		                      "history; ask another mirror of the store",
		                      peers->addresses[0].text, args->store);
	else
		step = history_read(peers, images.told[0], args, try, status);
	ps_images_free(&images);
	return step;
}

enum ps_exit ps_verb_history(const struct ps_args *args)
{
	struct ps_peers peers;
	enum ps_log_step step = PS_LOG_OVERTAKEN;
	enum ps_exit status = ps_peers_open_one(&peers, args->from_mirror, &args->options);

	if (status)
		return status;
	for (unsigned try = 0; !status && step == PS_LOG_OVERTAKEN && try < PS_LIVE_TRIES; try++)
		step = try_once(&peers, args, try, &status);
	ps_peers_close(&peers);
	return status;
}
