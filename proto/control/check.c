/*
 * check.c - checks the range of every field of a control message.
 */
#include "check.h"

#include "check_claim.h"
#include "check_grant.h"
#include "check_host.h"
#include "check_move.h"
#include "check_segment.h"
#include "envelope.h"
#include "expiry_message.h"
#include "../data/frame.h"
#include "judge.h"
#include "key.h"
#include "segment_table.h"
#include "../base/latency.h"
#include "../base/text.h"

#include <string.h>

enum {
	TEXT_MAX = 255,          /* maximum bytes of an address or a version */
	MESSAGE_TEXT_MAX = 768,  /* maximum bytes of the sentence in a reply */
	DIRECTORY_MAX = 4096,    /* maximum bytes of a path */
	IDENTITY_TEXT_MAX = 127, /* maximum bytes of an identity */
};

static const char bad_name[] =
	"a store's or segment's name must be 1 to 63 of A-Z a-z 0-9 . _ - and begin with no dot";
static const char bad_id[] = "an id must be 16 bytes, not all zero";
static const char bad_epoch[] = "an owner's epoch must be 1 to 2^63 - 1";
static const char bad_roster_epoch[] = "a roster must not be of a later epoch than its owner";
static const char bad_first[] = "a store begins with version 1 of its roster, of epoch 0";
static const char bad_segments[] =
	"segments must be 1 to 128, each with an id of its own, 0 to 127";

/* Returns true if the text has at most `max` bytes and no control characters (C0, DEL, and C1 in
 * UTF-8), which could move a terminal's cursor. */
static bool text_valid(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);

	if (len > max)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i], after = (unsigned char)text[i + 1];

		if (c < 0x20 || c == 0x7f || (c == 0xc2 && after >= 0x80 && after < 0xa0))
			return false;
	}
	return true;
}

/* Addresses must be printable as they are: an address is dialed, so printing must not alter it. */
static bool address_valid(const char *address)
{
	return *address && text_valid(address, TEXT_MAX) && ps_is_printable(address);
}

const char *ps_roster_fault(const Perseas__Roster *roster)
{
	if (!roster)
		return "the roster is missing";
	if (roster->level > PS_LEVEL_MAX)
		return ps_later_version_text;
	if (roster->key_hash.len != 0 &&
	    (roster->level == 0 || roster->key_hash.len != PS_KEY_SIZE))
		return "the hash of a store's key must be 32 bytes, and belongs to level 1";
	if (roster->raised_epoch > (roster->level ? roster->epoch : 0))
		return "the epoch that raised a store must not be above that of its roster";
	if (roster->filling && roster->level == 0)
		return "the mark of a store that is being filled belongs to level 1";
	if (roster->n_members < 1 || roster->n_members > PS_MIRRORS_MAX)
		return "a roster must list 1 to 16 mirrors";
	if (roster->acks < 1 || roster->acks > roster->n_members)
		return "acks must be 1 to the number of mirrors";
	for (size_t i = 0; i < roster->n_members; i++) {
		const Perseas__Member *member = roster->members[i];

		if (!address_valid(member->address))
			return "a mirror's address must be 1 to 255 bytes of printable UTF-8";
		if (!ps_id_valid(member->image_id))
			return bad_id;
		for (size_t j = 0; j < i; j++)
			if (ps_id_equal(member->image_id, roster->members[j]->image_id.data))
				return "a roster lists the same image twice";
	}
	return NULL;
}

/* The loops are bounded, because ids are distinct and below PS_SEGMENTS_MAX. */
static const char *segments_fault(Perseas__Segment *const *segments, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *fault = ps_segment_fault(segments[i]);

		if (segments[i]->id >= PS_SEGMENTS_MAX)
			return bad_segments;
		if (!ps_name_valid(segments[i]->name))
			return bad_name;
		if (fault)
			return fault;
		for (size_t j = 0; j < i; j++) {
			if (segments[i]->id == segments[j]->id)
				return bad_segments;
			if (strcmp(segments[i]->name, segments[j]->name) == 0)
				return "two segments have the same name";
		}
	}
	return NULL;
}

static const char *promise_fault(const Perseas__Header *header)
{
	if (header->promised_epoch > 0)
		return ps_id_valid(header->promised_owner) ? NULL : bad_id;
	if (header->promised_owner.len != 0 && header->promised_owner.len != PS_ID_SIZE)
		return bad_id;
	return NULL;
}

static const char *log_size_fault(uint64_t size)
{
	if (size < PS_LOG_MIN || size > PS_LOG_MAX || size % PS_PAGE != 0)
		return "a log's size must be a multiple of 4096 from 4 KiB to 64 GiB";
	return NULL;
}

static const char *ids_of_image_fault(const Perseas__Header *header)
{
	if (!ps_id_valid(header->store_id) || !ps_id_valid(header->image_id))
		return bad_id;
	if (header->parent_id.len == 0)
		return NULL;
	if (!ps_id_valid(header->parent_id))
		return bad_id;
	return ps_id_equal(header->parent_id, header->image_id.data)
	               ? "an image cannot be its own parent"
	               : NULL;
}

const char *ps_header_fault(const Perseas__Header *header)
{
	const char *fault;

	if (!header)
		return "the header is missing";
	if (!ps_name_valid(header->store))
		return bad_name;
	if ((fault = ids_of_image_fault(header)))
		return fault;
	if (header->state < PERSEAS__STATE__STATE_NONE ||
	    header->state > PERSEAS__STATE__STATE_JOINING)
		return "the image's state is none that this version knows";
	if ((fault = promise_fault(header)) || (fault = log_size_fault(header->log_size)) ||
	    (fault = ps_roster_fault(header->roster)))
		return fault;
	if (header->next_roster && (fault = ps_roster_fault(header->next_roster)))
		return fault;
	if (header->next_roster && header->next_roster->level < header->roster->level)
		return "the level of a store is never lowered";
	if (header->next_roster && header->next_roster->filling != header->roster->filling)
		return "the mark of a store that is being filled never changes";
	if (header->marked && !header->next_roster)
		return "only a change to a next roster can be decided";
	if (ps_boot_fault(&header->boot))
		return ps_boot_fault(&header->boot);
	if (!text_valid(header->creator, IDENTITY_TEXT_MAX) ||
	    !text_valid(header->sharer, IDENTITY_TEXT_MAX))
		return "an image's creator and its sharer must be 127 bytes or less, no control "
		       "characters";
	fault = segments_fault(header->segments, header->n_segments);
	return fault ? fault : ps_random_ids_fault(header);
}

const char *ps_image_fault(const Perseas__Header *header)
{
	const char *fault = ps_header_fault(header);

	if (fault)
		return fault;
	return ps_key_fault(header->key, header->store_id, header->roster, header->next_roster);
}

/* Checks a header that a mirror shows to clients other than the owner: it must not have the key. */
static const char *shown_header_fault(const Perseas__Header *header)
{
	const char *fault = ps_header_fault(header);

	if (!fault && header->key.len != 0)
		fault = "a mirror tells a store's key only in the answer to a claim";
	return fault;
}

/* Checks a list of at least one segment id, without repetition. */
static const char *ids_fault(const uint32_t *ids, size_t count)
{
	bool seen[PS_SEGMENTS_MAX] = { false };

	if (count < 1 || count > PS_SEGMENTS_MAX)
		return bad_segments;
	for (size_t i = 0; i < count; i++) {
		if (ids[i] >= PS_SEGMENTS_MAX || seen[ids[i]])
			return bad_segments;
		seen[ids[i]] = true;
	}
	return NULL;
}

static const char *name_fault(const char *store)
{
	return ps_name_valid(store) ? NULL : bad_name;
}

static const char *store_fault(const char *store, ProtobufCBinaryData id)
{
	if (!ps_name_valid(store))
		return bad_name;
	return ps_id_valid(id) ? NULL : bad_id;
}

static const char *owner_fault(uint64_t epoch, ProtobufCBinaryData owner)
{
	if (epoch < 1 || epoch > PS_EPOCH_MAX)
		return bad_epoch;
	return ps_id_valid(owner) ? NULL : bad_id;
}

static const char *create_fault(const Perseas__CreateRequest *create)
{
	const char *fault = store_fault(create->store, create->store_id);

	if (fault)
		return fault;
	if (!ps_id_valid(create->image_id))
		return bad_id;
	if ((fault = log_size_fault(create->log_size)) || (fault = ps_roster_fault(create->roster)))
		return fault;
	if (create->roster->epoch != 0 || create->roster->version != 1)
		return bad_first;
	return ps_key_fault(create->key, create->store_id, create->roster, NULL);
}

static const char *add_segments_fault(const Perseas__AddSegmentsRequest *add)
{
	if (add->n_segments < 1)
		return bad_segments;
	for (size_t i = 0; i < add->n_segments; i++)
		if (add->segments[i]->born != 0)
			return "a segment that is added must not be born yet: publish it";
	return segments_fault(add->segments, add->n_segments);
}

static const char *destroy_fault(const Perseas__DestroyRequest *destroy)
{
	if (destroy->seq < 1)
		return "a destroy must name the seq of its record, 1 or more";
	return ids_fault(destroy->ids, destroy->n_ids);
}

static const char *lifeline_fault(const Perseas__LifelineRequest *lifeline)
{
	return ps_id_valid(lifeline->token) ? NULL : "a lifeline must show a token of 16 bytes";
}

static const char *publish_fault(const Perseas__PublishRequest *publish)
{
	if (publish->seq < 1)
		return "a publish must name the seq of its record, 1 or more";
	return ids_fault(publish->ids, publish->n_ids);
}

/* Returns true if the roster was made by this owner or an earlier one. Returns true for NULL. */
static bool roster_not_later(const Perseas__Roster *roster, uint64_t epoch)
{
	return !roster || roster->epoch <= epoch;
}

static const char *rebuild_fault(const Perseas__RebuildRequest *rebuild)
{
	const char *fault = ps_image_fault(rebuild->header);

	if (fault || (fault = owner_fault(rebuild->epoch, rebuild->owner)))
		return fault;
	for (size_t i = 0; i < rebuild->header->n_segments; i++)
		if (rebuild->header->segments[i]->died != 0)
			return "an image is not made with a segment that is destroyed";
	return roster_not_later(rebuild->header->roster, rebuild->epoch) &&
	                       roster_not_later(rebuild->header->next_roster, rebuild->epoch)
	               ? NULL
	               : bad_roster_epoch;
}

static const char *roster_request_fault(const Perseas__RosterRequest *request)
{
	const Perseas__Roster *settled = request->roster, *next = request->next;
	const char *fault = ps_roster_fault(settled);

	if (!fault && request->mark && !next)
		return "only a change to a next roster can be decided";
	if (fault || !next)
		return fault;
	if ((fault = ps_roster_fault(next)))
		return fault;
	if (!request->settled || !ps_roster_newer(next, settled))
		return "a next roster must be newer than the one that it comes with, a settled one";
	return NULL;
}

/* Checks a drop: it names both ids, or neither. */
static const char *drop_fault(const Perseas__DropRequest *drop)
{
	if (!ps_name_valid(drop->store))
		return bad_name;
	if (drop->store_id.len == 0 && drop->image_id.len == 0)
		return NULL;
	return ps_id_valid(drop->store_id) && ps_id_valid(drop->image_id) ? NULL : bad_id;
}

static const char *reports_fault(Perseas__MirrorReport *const *reports, size_t count)
{
	const char *fault;

	if (count > PS_MIRRORS_MAX)
		return "an owner reports on 16 mirrors at most";
	for (size_t i = 0; i < count; i++) {
		const Perseas__MirrorReport *report = reports[i];

		if (!*report->address || !text_valid(report->address, TEXT_MAX) ||
		    !text_valid(report->state, TEXT_MAX) || !text_valid(report->trouble, TEXT_MAX))
			return "an owner's report on a mirror must be an address and texts, of 255 "
			       "bytes at most, without control characters";
		if (report->image_id.len && !ps_id_valid(report->image_id))
			return bad_id;
		if ((fault = ps_location_fault(report->location)))
			return fault;
		if (report->resync && !text_valid(report->resync->whole, TEXT_MAX))
			return "the reason for a whole copy must be a name";
	}
	return NULL;
}

/* Returns true if the address is valid and required, or empty and not required. */
static bool order_address_valid(const char *address, bool due)
{
	return due ? address_valid(address) : !*address;
}

/* Return true if an order of this kind names a mirror to remove, or one to add. */
static bool names_mirror_to_remove(Perseas__OrderKind kind)
{
	return kind == PERSEAS__ORDER_KIND__ORDER_REMOVE ||
	       kind == PERSEAS__ORDER_KIND__ORDER_REPLACE;
}

static bool names_mirror_to_add(Perseas__OrderKind kind)
{
	return kind == PERSEAS__ORDER_KIND__ORDER_ADD || kind == PERSEAS__ORDER_KIND__ORDER_REPLACE;
}

static const char *order_fault(const Perseas__Order *order)
{
	if (!order)
		return "the order is missing";
	if (!ps_id_valid(order->id))
		return bad_id;
	if ((order->kind < PERSEAS__ORDER_KIND__ORDER_ADD ||
	     order->kind > PERSEAS__ORDER_KIND__ORDER_CANCEL) &&
	    order->kind != PERSEAS__ORDER_KIND__ORDER_RAISE &&
	    order->kind != PERSEAS__ORDER_KIND__ORDER_REPAIR)
		return "an order must be to add, to remove or to replace a mirror, to take that "
		       "back, to raise the store's level, or to repair mirrors";
	if (!order_address_valid(order->address, names_mirror_to_remove(order->kind)) ||
	    !order_address_valid(order->with, names_mirror_to_add(order->kind)))
		return "an order must name the mirror that goes, the one that comes, both or none, "
		       "as its kind wants, by addresses of 1 to 255 bytes";
	return order->acks <= PS_MIRRORS_MAX ? NULL : "acks must be 0 to 16";
}

static const char *order_request_fault(const Perseas__OrderRequest *request)
{
	return ps_name_valid(request->store) ? order_fault(request->order) : bad_name;
}

/* Returns true if a roster may have this number of members and this W, or if both are 0
 * (unknown). */
static bool roster_size_valid(uint32_t members, uint32_t acks)
{
	return members <= PS_MIRRORS_MAX && acks <= members && !acks == !members;
}

static const char *result_fault(const Perseas__OrderResult *result)
{
	if (!ps_id_valid(result->id))
		return bad_id;
	if (!roster_size_valid(result->members_before, result->acks_before) ||
	    !roster_size_valid(result->members, result->acks) ||
	    !result->members != !result->members_before)
		return "the rosters of an order's result must have 1 to 16 members, and acks from "
		       "1 to their number";
	return text_valid(result->text, TEXT_MAX) && text_valid(result->whole, TEXT_MAX)
	               ? NULL
	               : "an order's result must be 255 bytes or less, no control characters";
}

/* Checks an owner's counters. NULL is valid, because owners need not count. */
static const char *figures_fault(const Perseas__OwnerFigures *figures)
{
	return figures && figures->commit ? ps_latency_fault(figures->commit) : NULL;
}

static const char *confirm_fault(const Perseas__ConfirmRequest *confirm)
{
	const char *fault = reports_fault(confirm->mirrors, confirm->n_mirrors);

	if (fault || (fault = figures_fault(confirm->figures)) ||
	    (fault = ps_boot_fault(&confirm->boot)))
		return fault;
	return confirm->result ? result_fault(confirm->result) : NULL;
}

static const char *claim_fault(const Perseas__ClaimRequest *claim)
{
	const char *fault = ps_name_valid(claim->store) ? ps_claim_ids_fault(claim) : bad_name;

	return fault ? fault : owner_fault(claim->epoch, claim->owner);
}

/* Has no default case, so that the compiler reports a request without a row. */
const char *ps_request_fault(const Perseas__Request *request)
{
	switch (request->body_case) {
#define MESSAGE(field, FIELD, Type, replied, REPLIED, fault, ...)            \
	case PERSEAS__REQUEST__BODY_##FIELD: {                               \
		const Perseas__##Type##Request *const body = request->field; \
                                                                             \
		(void)body;                                                  \
		return fault;                                                \
	}
#include "messages.h"
	case PERSEAS__REQUEST__BODY__NOT_SET:
	case _PERSEAS__REQUEST__BODY__CASE_IS_INT_SIZE:
		break;
	}
	return "the request is empty, or one that this version does not know";
}

/* Accepts a slot whose fields are all zero: a mirror reports that if its image has no valid
 * slot. */
const char *ps_slot_fault(const Perseas__Slot *slot)
{
	bool none;

	if (!slot)
		return NULL;
	none = !slot->epoch && !slot->seq && !slot->next && !slot->last;
	if (slot->index > 1 || slot->next % PS_ALIGN != 0 || slot->last % PS_ALIGN != 0 ||
	    (slot->last >= slot->next && !none))
		return "a commit slot's fields do not fit together";
	return NULL;
}

static const char *grant_fault(const Perseas__Grant *grant)
{
	const char *fault = ps_grant_fault(grant);

	if (!fault && !text_valid(grant->rdma_trouble, TEXT_MAX))
		fault = "why a grant has no rdma must be text without control characters";
	return fault;
}

static const char *store_status_fault(const Perseas__StoreStatus *status)
{
	const char *fault;

	if (!status)
		return "the store's status is missing";
	if ((fault = shown_header_fault(status->header)))
		return fault;
	if ((fault = ps_slot_fault(status->slot)))
		return fault;
	if (!text_valid(status->owner_address, TEXT_MAX) || !text_valid(status->fabric, TEXT_MAX))
		return "the owner's address or fabric must be text without control characters";
	if (!text_valid(status->files_missing, MESSAGE_TEXT_MAX))
		return "what is said of files must be text without control characters";
	if ((fault = ps_labels_fault(status->host, status->rack, status->zone)))
		return fault;
	if ((fault = ps_boot_fault(&status->owner_boot)))
		return fault;
	if ((fault = reports_fault(status->mirrors, status->n_mirrors)))
		return fault;
	if (status->order && (fault = order_fault(status->order)))
		return fault;
	if ((fault = figures_fault(status->figures)))
		return fault;
	if ((fault = ps_standbys_fault(status->standbys, status->n_standbys)))
		return fault;
	if (status->handover && (fault = ps_handover_fault(status->handover)))
		return fault;
	return status->result ? result_fault(status->result) : NULL;
}

static const char bad_version[] = "the daemon's version must be text without control characters";

static const char *list_reply_fault(const Perseas__ListReply *list)
{
	const char *fault = text_valid(list->version, TEXT_MAX) ? NULL : bad_version;

	for (size_t i = 0; i < list->n_set_aside && !fault; i++)
		if (!address_valid(list->set_aside[i]->folder))
			fault = "a folder's name must be 1 to 255 printable characters";
	for (size_t i = 0; i < list->n_refused && !fault; i++)
		fault = text_valid(list->refused[i]->why, TEXT_MAX)
		                ? name_fault(list->refused[i]->store)
		                : "why an image is refused must be text without control characters";
	for (size_t i = 0; i < list->n_stores && !fault; i++)
		fault = store_status_fault(list->stores[i]);
	return fault ? fault : ps_expiries_fault(list->expiries, list->n_expiries);
}

static const char *claim_reply_fault(const Perseas__ClaimReply *claim)
{
	const char *fault = ps_image_fault(claim->header);

	if (fault)
		return fault;
	if (claim->header->state != PERSEAS__STATE__STATE_JOINING &&
	    (!claim->slot || claim->slot->next == 0))
		return "the commit slot is missing";
	if ((fault = ps_slot_fault(claim->slot)))
		return fault;
	return grant_fault(claim->grant);
}

static const char *rebuild_reply_fault(const Perseas__RebuildReply *rebuild)
{
	const char *fault = shown_header_fault(rebuild->header);

	return fault ? fault : grant_fault(rebuild->grant);
}

static const char *confirm_reply_fault(const Perseas__ConfirmReply *confirm)
{
	const char *fault = ps_slot_fault(confirm->slot);

	if (fault)
		return fault;
	if (confirm->handover && (fault = ps_handover_fault(confirm->handover)))
		return fault;
	if ((fault = ps_expiries_fault(confirm->expiring, confirm->n_expiring)) ||
	    (fault = ps_location_fault(confirm->location)))
		return fault;
	return confirm->order ? order_fault(confirm->order) : NULL;
}

static const char *spill_reply_fault(const Perseas__SpillReply *spill)
{
	return text_valid(spill->directory, DIRECTORY_MAX)
	               ? NULL
	               : "the spill directory must be a path without control characters";
}

static const char *reply_body_fault(const Perseas__Reply *reply)
{
	switch (reply->body_case) {
#define MESSAGE(field, FIELD, Type, replied, REPLIED, fault, answer_fault, ...) \
	case PERSEAS__REPLY__BODY_##REPLIED: {                                  \
		const Perseas__##Type##Reply *const body = reply->replied;      \
                                                                                \
		(void)body;                                                     \
		return answer_fault;                                            \
	}
#include "messages.h"
	case PERSEAS__REPLY__BODY_WORKING:
		return NULL;
	case PERSEAS__REPLY__BODY__NOT_SET:
	case _PERSEAS__REPLY__BODY__CASE_IS_INT_SIZE:
		break;
	}
	return reply->status == PERSEAS__STATUS__STATUS_OK
	               ? "a reply that grants the request must have a body"
	               : NULL;
}

const char *ps_reply_fault(const Perseas__Reply *reply)
{
	if (reply->status < PERSEAS__STATUS__STATUS_OK ||
	    reply->status > PERSEAS__STATUS__STATUS_OTHER)
		return "the reply's status is none that this version knows";
	if (!text_valid(reply->message, MESSAGE_TEXT_MAX))
		return "a reply's message must be 768 bytes or less without control characters";
	if (reply->daemon.len > 0 && !ps_id_valid(reply->daemon))
		return bad_id;
	return reply_body_fault(reply);
}
