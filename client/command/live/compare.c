/*
 * compare.c - one piece of a segment on several mirrors, compared as it was at one transaction.
 *
 * Each mirror is read as any store that runs: slot, bytes, log. Mirrors stand at different
 * transactions; all are undone to the lowest of them, by the records that were followed and, for
 * those before a mirror's own slot, by the log's past.
 */
#include "compare.h"
#include "live_copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 6 }; /* of one length of a piece */

static const char *name_of(const struct ps_compare *compare, unsigned i)
{
	return compare->peers->addresses[i].text;
}

bool ps_compare_open(struct ps_compare *compare, struct ps_peers *peers,
                     const struct ps_images *images, const char *store, const bool *take)
{
	memset(compare, 0, sizeof(*compare));
	compare->peers = peers;
	compare->images = images;
	compare->store = store;
	for (unsigned i = 0; i < peers->count; i++) {
		if (!take[i])
			continue;
		compare->of[i].bytes = malloc(PS_COMPARE_PIECE);
		if (!compare->of[i].bytes)
			return ps_complain(PS_EXIT_OK, "out of memory");
		if (!ps_live_init(&compare->of[i].live, peers, i, store,
		                  images->told[i]->header->log_size))
			return false;
	}
	return true;
}

void ps_compare_close(struct ps_compare *compare)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		ps_live_close(&compare->of[i].live);
		free(compare->of[i].bytes);
		compare->of[i].bytes = NULL;
	}
}

/* --- reading --- */

/* Leaves out mirror i, which failed. leavers_are_the_same decides later whether to complain. */
static void piece_leave(struct ps_compare *compare, struct ps_piece *piece, unsigned i)
{
	if (piece->ask[i]) {
		compare->of[i].left = true;
		compare->of[i].why = compare->peers->errors[i];
	}
	piece->ask[i] = false;
}

static void ask_slots(struct ps_compare *compare, struct ps_piece *piece)
{
	for (unsigned i = 0; i < compare->peers->count; i++) {
		compare->of[i].before = compare->of[i].live.log.from;
		if (piece->ask[i] && !ps_live_ask_state(&compare->of[i].live))
			piece_leave(compare, piece, i);
	}
	for (unsigned i = 0; i < compare->peers->count; i++)
		if (piece->ask[i] && ps_log_receive_state(&compare->of[i].live.log))
			piece_leave(compare, piece, i);
}

static void ask_bytes(struct ps_compare *compare, struct ps_piece *piece)
{
	for (unsigned i = 0; i < compare->peers->count; i++) {
		struct ps_live *live = &compare->of[i].live;

		if (piece->ask[i] &&
		    (!ps_fetch_range(&live->fetch, PS_REGION_SEGMENT + piece->ids[i], piece->offset,
		                     piece->length, compare->of[i].bytes) ||
		     !ps_log_request_new(&live->log)))
			piece_leave(compare, piece, i);
	}
}

/* Reads the piece from all mirrors. Returns false if reading must begin again. */
static bool piece_read(struct ps_compare *compare, struct ps_piece *piece)
{
	bool good = true;

	ask_slots(compare, piece);
	ask_bytes(compare, piece);
	for (unsigned i = 0; i < compare->peers->count; i++) {
		enum ps_log_step step;

		if (!piece->ask[i])
			continue;
		step = ps_log_receive_tail(&compare->of[i].live.log);
		/* No request may be in flight when reading begins again. */
		ps_fetch_drain(&compare->of[i].live.fetch);
		if (step == PS_LOG_FAILED)
			piece_leave(compare, piece, i);
		good &= step != PS_LOG_OVERTAKEN;
	}
	return good;
}

/* --- one transaction for all --- */

static unsigned piece_lowest(const struct ps_compare *compare, const struct ps_piece *piece)
{
	unsigned best = PS_MIRRORS_MAX;

	for (unsigned i = 0; i < compare->peers->count; i++)
		if (piece->ask[i] &&
		    (best == PS_MIRRORS_MAX ||
		     compare->of[i].live.log.from.seq < compare->of[best].live.log.from.seq))
			best = i;
	return best;
}

/* Returns true if the mirror received transactions since the last try: then it is not behind for
 * long. */
static bool mirror_goes_on(const struct ps_compare *compare, unsigned i)
{
	return compare->of[i].live.log.from.seq != compare->of[i].before.seq;
}

enum reach { REACHED, TOO_SHORT, REACH_FAILED };

/* Walks back until all records after `seq` are there. */
static enum reach walk_to(struct ps_log_reader *log, uint64_t seq)
{
	const struct ps_record *record;
	int rc = 0;

	while (!rc && log->older.seq > seq)
		rc = ps_log_read_older(log, &record);
	return rc < 0 ? REACH_FAILED : rc ? TOO_SHORT : REACHED;
}

/* Returns true if the log holds the transaction at which `low` stands, with the same content. Each
 * epoch has one owner, so records with the same epoch and seq are equal. */
static bool same_history(struct ps_log_reader *log, const struct ps_log_reader *low)
{
	struct ps_log_reader own = *low;
	const struct ps_record *a, *b;

	if (low->from.seq == 0)
		return true;
	return !ps_log_read_older(log, &a) && !ps_log_read_older(&own, &b) &&
	       a->epoch == b->epoch && a->seq == b->seq && a->position == b->position &&
	       a->crc == b->crc;
}

static void piece_exclude(const struct ps_compare *compare, struct ps_piece *piece, unsigned i,
                          const char *why)
{
	ps_complain(PS_EXIT_OK,
	            "%s: not compared, it stands at epoch %" PRIu64 ", transaction %" PRIu64 ", %s",
	            name_of(compare, i), compare->of[i].live.log.from.epoch,
	            compare->of[i].live.log.from.seq, why);
	piece->ask[i] = false;
}

/* Takes mirror i back to where mirror `low` stands. False: one of them was left out instead, or
 * (*again) it may be better the next time. */
static bool piece_align(struct ps_compare *compare, struct ps_piece *piece, unsigned i,
                        unsigned low, bool last, bool *again)
{
	struct ps_log_reader *log = &compare->of[i].live.log;
	const struct ps_log_reader *base = &compare->of[low].live.log;
	enum reach reach = walk_to(log, base->from.seq);

	if (reach == REACH_FAILED) {
		piece_leave(compare, piece, i);
		return false;
	}
	if (reach == REACHED && log->from.epoch == base->from.epoch)
		return true;
	if (!last || (compare->patient && mirror_goes_on(compare, low))) {
		*again = true;
	} else if (reach == TOO_SHORT) {
		piece_exclude(compare, piece, low, "further behind than the others' logs reach");
	} else {
		compare->patient = false;
		if (same_history(log, base))
			return true;
		piece_exclude(compare, piece, log->from.epoch < base->from.epoch ? i : low,
		              "and its history cannot be joined to that of the others");
	}
	return false;
}

/* Undoes all pieces to the same transaction. False: begin again; a mirror may have left. */
static bool piece_align_all(struct ps_compare *compare, struct ps_piece *piece, bool last)
{
	unsigned low = piece_lowest(compare, piece);
	bool again = false;

	for (unsigned i = 0; i < compare->peers->count && low < PS_MIRRORS_MAX; i++)
		if (piece->ask[i] && i != low && !piece_align(compare, piece, i, low, last, &again))
			return false;
	for (unsigned i = 0; i < compare->peers->count; i++) {
		const struct ps_window window = {
			.bytes = compare->of[i].bytes,
			.offset = piece->offset,
			.length = piece->length,
			.segment = piece->ids[i],
		};
		struct ps_windows windows = { 0 };

		if (!piece->ask[i])
			continue;
		ps_windows_add(&windows, &window, piece->size);
		compare->seq = compare->of[low].live.log.from.seq;
		if (!ps_live_undo(&compare->of[i].live, &windows, compare->seq))
			piece_leave(compare, piece, i);
	}
	return true;
}

/* --- comparing --- */

static unsigned votes_for(const struct ps_compare *compare, const struct ps_piece *piece,
                          unsigned i)
{
	unsigned votes = 0;

	for (unsigned k = 0; k < compare->peers->count; k++)
		votes += piece->ask[k] &&
		         !memcmp(compare->of[k].bytes, compare->of[i].bytes, piece->length);
	return votes;
}

/* Returns the mirror with the bytes that most mirrors have; without a majority, the base or the
 * first mirror. */
static unsigned right_one(const struct ps_compare *compare, const struct ps_piece *piece,
                          unsigned base)
{
	unsigned best = 0, right = base;

	for (unsigned k = 0; k <= compare->peers->count; k++) {
		unsigned i = k == 0 ? base : k - 1, votes;

		if (!piece->ask[i])
			continue;
		votes = votes_for(compare, piece, i);
		if (votes > best) {
			best = votes;
			right = i;
		}
	}
	return right;
}

static void find_differences(const struct ps_compare *compare, struct ps_piece *piece,
                             unsigned base)
{
	unsigned right = right_one(compare, piece, base);
	const uint8_t *want = compare->of[right].bytes;

	piece->differing = 0;
	for (unsigned i = 0; i < compare->peers->count; i++) {
		const uint8_t *have = compare->of[i].bytes;

		if (!piece->ask[i] || !memcmp(have, want, piece->length))
			continue;
		piece->differing |= (uint64_t)1 << i;
		piece->bytes[i] = 0;
		for (uint64_t at = piece->length; at-- > 0;) {
			if (have[at] == want[at])
				continue;
			piece->first[i] = piece->offset + at;
			piece->bytes[i]++;
		}
	}
}

/* Returns false if an image was repaired or replaced meanwhile: then it proves nothing. */
static bool images_are_the_same(const struct ps_compare *compare, const struct ps_piece *piece)
{
	struct ps_images now;
	bool same = true;

	ps_images_take(&now, compare->peers, compare->store);
	for (unsigned i = 0; i < compare->peers->count && same; i++)
		same = !piece->ask[i] || (now.told[i] && ps_copy_same(compare->images->told[i],
		                                                      now.told[i], compare->seq));
	ps_images_free(&now);
	return same;
}

/* Returns true if the mirror has another image now, or lacks a segment that it had at the
 * beginning. */
static bool leaver_changed(const struct ps_compare *compare, const struct ps_images *now,
                           unsigned i)
{
	const Perseas__StoreStatus *before = compare->images->told[i];

	return now->told[i] &&
	       !ps_copy_same(before, now->told[i], before->slot ? before->slot->seq : 0);
}

/* Returns false if a failure is explained by a change, such as a destroyed segment. Otherwise
 * complains about each mirror that failed. */
static bool leavers_are_the_same(struct ps_compare *compare)
{
	struct ps_images now;
	bool any = false, same = true;

	for (unsigned i = 0; i < compare->peers->count; i++) {
		any |= compare->of[i].left;
		if (compare->of[i].left)
			ps_fetch_drain(&compare->of[i].live.fetch);
	}
	if (!any)
		return true;
	ps_images_take(&now, compare->peers, compare->store);
	for (unsigned i = 0; i < compare->peers->count && same; i++)
		same = !compare->of[i].left || !leaver_changed(compare, &now, i);
	ps_images_free(&now);
	for (unsigned i = 0; i < compare->peers->count && same; i++) {
		if (compare->of[i].left)
			ps_complain(PS_EXIT_OK, "%s", compare->of[i].why.text);
		compare->of[i].left = false;
	}
	return same;
}

enum ps_verdict ps_compare_piece(struct ps_compare *compare, struct ps_piece *piece, unsigned base)
{
	for (unsigned try = 0; try < TRIES; try++) {
		bool last = !compare->patient || try >= TRIES / 2;

		bool good = piece_read(compare, piece) && piece_align_all(compare, piece, last);

		if (!leavers_are_the_same(compare))
			return PS_CHANGED;
		if (!good)
			continue;
		find_differences(compare, piece, base);
		if (!piece->differing)
			return PS_SAME;
		return images_are_the_same(compare, piece) ? PS_DIFFERENT : PS_CHANGED;
	}
	return PS_TOO_FAST;
}
