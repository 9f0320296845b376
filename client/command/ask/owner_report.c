/*
 * owner_report.c - what a live owner reports about its mirrors, for perseas status.
 */
#include "owner_report.h"

#include <inttypes.h>
#include <string.h>

static const char *order_kind_text(Perseas__OrderKind kind)
{
	switch (kind) {
	case PERSEAS__ORDER_KIND__ORDER_ADD:
		return "add";
	case PERSEAS__ORDER_KIND__ORDER_REMOVE:
		return "remove";
	case PERSEAS__ORDER_KIND__ORDER_REPLACE:
		return "replace";
	case PERSEAS__ORDER_KIND__ORDER_RAISE:
		return "raise";
	case PERSEAS__ORDER_KIND__ORDER_CANCEL:
		return "cancel";
	case PERSEAS__ORDER_KIND__ORDER_REPAIR:
		return "repair";
	default:
		return "none";
	}
}

static bool has_operator_order(const Perseas__StoreStatus *status)
{
	return status->order && status->order->kind != PERSEAS__ORDER_KIND__ORDER_NONE;
}

static void print_operator_order(const Perseas__StoreStatus *status)
{
	const Perseas__Order *order = status->order;
	const Perseas__OrderResult *result = status->result;

	printf("\nthe owner has been asked: %s%s%s%s%s%s",
	       order->kind == PERSEAS__ORDER_KIND__ORDER_REPAIR ? "" : "roster ",
	       order_kind_text(order->kind), *order->address ? " " : "", order->address,
	       *order->with ? " " : "", order->with);
	if (order->acks)
		printf(" --acks %u", order->acks);
	if (result && *result->text)
		printf(": %s", result->text);
	printf("\n");
}

/* Adds how far the copy to the mirror has come. */
static void add_resync_cell(struct ps_table *table, const Perseas__MirrorReport *report)
{
	const Perseas__Resync *resync = report->resync;
	char done[PS_SIZE_TEXT], total[PS_SIZE_TEXT], left[PS_DURATION_TEXT] = "";

	if (resync && resync->left_ms)
		ps_duration_text(left, resync->left_ms * 1000000);
	if (report->total)
		ps_table_set_cell(table, 3, "%s of %s (%u%%)%s%s%s",
		                  ps_size_text(done, report->done),
		                  ps_size_text(total, report->total),
		                  ps_percent(report->done, report->total), *left ? ", " : "", left,
		                  *left ? " left" : "");
	else
		ps_table_set_cell(table, 3, "-");
}

static void print_mirror(struct ps_table *table, const Perseas__MirrorReport *report)
{
	ps_table_set_cell(table, 0, "%s", report->address);
	ps_table_set_cell(table, 1, "%s", report->state);
	ps_table_set_cell(table, 2, "%" PRIu64, report->seq);
	add_resync_cell(table, report);
	ps_table_set_cell(table, 4, "%s", report->trouble);
}

uint64_t ps_owner_doubt_ms(const Perseas__StoreStatus *status)
{
	return status->figures ? status->figures->doubt_ms : 0;
}

uint64_t ps_owner_missing_bytes(const Perseas__StoreStatus *status)
{
	return status->figures ? status->figures->missing : 0;
}

/* Returns true if the owner calls the image lost. An image in state joining never is: an
 * interrupted copy left it. */
static bool is_called_lost(const Perseas__StoreStatus *owner, const Perseas__Header *header)
{
	if (header->state != PERSEAS__STATE__STATE_CONSISTENT)
		return false;
	for (size_t k = 0; k < owner->n_mirrors; k++) {
		const Perseas__MirrorReport *report = owner->mirrors[k];

		if (report->image_id.len && ps_id_equal(header->image_id, report->image_id.data))
			return !strcmp(report->state, "lost");
	}
	return false;
}

uint32_t ps_owner_lost_mirror_set(const struct ps_images *images)
{
	const int at = ps_images_find_owner(images);
	uint32_t lost = 0;

	for (unsigned i = 0; at >= 0 && i < images->peers->count; i++)
		if (ps_images_is_listed(images, i) &&
		    is_called_lost(images->told[at], images->told[i]->header))
			lost |= UINT32_C(1) << i;
	return lost;
}

void ps_owner_print(const Perseas__StoreStatus *status)
{
	struct ps_table table = { 0 };

	if (status->silent_ms > PS_OWNER_SILENT_MS)
		printf("the owner was last heard %.1f s ago\n", (double)status->silent_ms / 1000);
	if (ps_owner_doubt_ms(status))
		printf("a commit has been in doubt for %.1f s: fewer than W mirrors hold it\n",
		       (double)ps_owner_doubt_ms(status) / 1000);
	if (status->n_mirrors) {
		ps_table_add_heads(&table, "AS ITS OWNER SEES IT|STATE|SEQ|RESYNC|TROUBLE");
		for (size_t k = 0; k < status->n_mirrors; k++)
			print_mirror(&table, status->mirrors[k]);
		printf("\n");
		ps_table_print(&table, stdout);
	}
	if (has_operator_order(status))
		print_operator_order(status);
}

static void resync_json(struct ps_json *json, const Perseas__MirrorReport *report)
{
	const Perseas__Resync *resync = report->resync;

	if (ps_json_begin_if(json, "resync", report->total)) {
		ps_json_number(json, "done", report->done);
		ps_json_number(json, "total", report->total);
		ps_json_number(json, "percent", ps_percent(report->done, report->total));
		ps_json_number_if(json, "rate", resync && resync->rate, resync ? resync->rate : 0);
		ps_json_number_if(json, "left_ms", resync && resync->left_ms,
		                  resync ? resync->left_ms : 0);
		ps_json_text(json, "whole", resync && *resync->whole ? resync->whole : NULL);
		ps_json_end(json, '}');
	}
}

static void mirror_json(struct ps_json *json, const Perseas__MirrorReport *report)
{
	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "address", report->address);
	ps_json_text(json, "state", report->state);
	ps_json_number(json, "seq", report->seq);
	resync_json(json, report);
	ps_json_number_if(json, "copy_place", report->copy_place, report->copy_place);
	if (ps_json_begin_if(json, "broken_copies", report->broken != NULL)) {
		ps_json_number(json, "count", report->broken->count);
		ps_json_number(json, "bytes", report->broken->bytes);
		ps_json_number(json, "rate_needed", report->broken->rate);
		ps_json_number(json, "commits_waited", report->broken->waited);
		ps_json_end(json, '}');
	}
	ps_json_text(json, "trouble", report->trouble);
	ps_json_end(json, '}');
}

static void operator_order_json(struct ps_json *json, const Perseas__StoreStatus *status)
{
	const Perseas__OrderResult *result = status->result;

	if (!ps_json_begin_if(json, "order", has_operator_order(status)))
		return;
	ps_json_text(json, "change", order_kind_text(status->order->kind));
	ps_json_text(json, "address", status->order->address);
	ps_json_text(json, "with", status->order->with);
	ps_json_number(json, "acks", status->order->acks);
	ps_json_text(json, "progress", result ? result->text : NULL);
	ps_json_end(json, '}');
}

void ps_owner_json(struct ps_json *json, const Perseas__StoreStatus *status)
{
	ps_json_begin(json, "owner", '{');
	ps_json_text(json, "address", status->owner_address);
	ps_json_number(json, "epoch", status->header->promised_epoch);
	ps_json_number(json, "silent_ms", status->silent_ms);
	ps_json_number(json, "doubt_ms", ps_owner_doubt_ms(status));
	ps_json_number(json, "missing", ps_owner_missing_bytes(status));
	ps_json_number(json, "resync_bytes", status->figures ? status->figures->resync_bytes : 0);
	ps_json_begin(json, "mirrors", '[');
	for (size_t k = 0; k < status->n_mirrors; k++)
		mirror_json(json, status->mirrors[k]);
	ps_json_end(json, ']');
	operator_order_json(json, status);
	ps_json_end(json, '}');
}
