/*
 * check_move.c - checks the messages of standbys and planned handovers, for check.c.
 */
#include "check_move.h"

#include "check.h"
#include "envelope.h"
#include "../data/frame.h"

enum {
	MOVE_MIN_MS = 1000, /* shortest and longest time for which a mirror keeps a handover */
	MOVE_MAX_MS = 86400000,
	WATCH_MIN_MS = 1000,
};

static const char bad_name[] =
	"a store's or standby's name must be 1 to 63 of A-Z a-z 0-9 . _ - and begin with no dot";
static const char bad_id[] = "the id of a handover must be 16 bytes, not all zero";
static const char bad_epoch[] = "the epoch of a handover must be 1 to 2^63 - 1";
static const char bad_mark[] = "the mark of a standby must be 4 bytes";

static bool owner_mark_valid(ProtobufCBinaryData mark)
{
	return mark.len == PS_OWNER_MARK;
}

static const char *standby_fault(const Perseas__Standby *standby)
{
	if (!ps_name_valid(standby->name))
		return bad_name;
	if (standby->order > PS_ORDER_MAX)
		return "a standby's order must be 0 to 100";
	if (standby->memory > PS_SEGMENTS_MAX * PS_SEGMENT_MAX)
		return "a standby copies no more memory than a store may have";
	if (standby->warm > standby->memory)
		return "a standby's copy has more than the store's memory";
	return owner_mark_valid(standby->mark) ? NULL : bad_mark;
}

const char *ps_standbys_fault(Perseas__Standby *const *standbys, size_t count)
{
	const char *fault = count <= PS_STANDBYS_MAX ? NULL : "a store has 64 standbys at most";

	for (size_t i = 0; i < count && !fault; i++)
		fault = standby_fault(standbys[i]);
	return fault;
}

const char *ps_handover_fault(const Perseas__Handover *handover)
{
	const char *fault;

	if (!ps_id_valid(handover->id))
		return bad_id;
	if (handover->epoch < 1 || handover->epoch > PS_EPOCH_MAX)
		return bad_epoch;
	if (!owner_mark_valid(handover->to))
		return bad_mark;
	if (!ps_name_valid(handover->name))
		return bad_name;
	if ((fault = ps_slot_fault(handover->last)))
		return fault;
	return ps_slot_fault(handover->first);
}

const char *ps_move_fault(const Perseas__MoveRequest *move)
{
	if (!ps_name_valid(move->store))
		return bad_name;
	if (!ps_id_valid(move->id))
		return bad_id;
	if (move->withdraw)
		return NULL;
	if (move->epoch < 1 || move->epoch > PS_EPOCH_MAX)
		return bad_epoch;
	if (!owner_mark_valid(move->to))
		return bad_mark;
	if (!ps_name_valid(move->name))
		return bad_name;
	return move->within_ms >= MOVE_MIN_MS && move->within_ms <= MOVE_MAX_MS
	               ? NULL
	               : "a move must be for 1 s to 1 day";
}

static bool is_empty_or_id(ProtobufCBinaryData id)
{
	return id.len == 0 || ps_id_valid(id);
}

const char *ps_watch_fault(const Perseas__WatchRequest *watch)
{
	if (!ps_name_valid(watch->store))
		return bad_name;
	if (!is_empty_or_id(watch->handover))
		return bad_id;
	if (watch->within_ms && (watch->within_ms < WATCH_MIN_MS || watch->within_ms > PS_WATCH_MS))
		return "a watch must be answered within 1 to 30 s";
	return watch->standby ? standby_fault(watch->standby) : NULL;
}

const char *ps_watch_reply_fault(const Perseas__WatchReply *watch)
{
	return is_empty_or_id(watch->handover) ? NULL : bad_id;
}
