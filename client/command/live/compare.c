/*
 * compare.c - see compare.h.
 *
 * Each mirror is read like any running store: first its slot, then the bytes, then its log. The
 * mirrors are at different transactions. The bytes of each are undone to the lowest of these: by
 * the records that were followed while reading and, before a mirror's own slot, by older records of
 * its log.
 */
#include "compare.h"
#include "live_copy.h"
#include "../../../proto/control/segment_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 6 }; /* tries with one length of a piece */

static const char *mirror_name(const struct ps_compare *compare, unsigned i)
{
	return compare->peers->addresses[i].text;
}

enum ps_table_entry_match ps_compare_table_entry(const Perseas__StoreStatus *told,
                                                 const Perseas__Segment *segment)
{
	const Perseas__Segment *own = ps_images_find_segment(told, segment->name);

	if (own && ps_is_same_segment(own, segment))
		return PS_ENTRY_SAME;
	if (own && own->born == segment->born)
		return PS_ENTRY_DIFFERENT;
	/* The mirror may still have the segment that had this name before. */
	return told->slot->seq >= segment->born ? PS_ENTRY_MISSING : PS_ENTRY_BEHIND;
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
		if (!ps_live_reader_init(&compare->of[i].live, peers, i, store,
		                         images->told[i]->header->log_size))
			return false;
	}
	return true;
}

void ps_compare_close(struct ps_compare *compare)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		ps_live_reader_close(&compare->of[i].live);
		free(compare->of[i].bytes);
		compare->of[i].bytes = NULL;
	}
}

/* --- reading --- */

/* Leaves out mirror i, which failed. check_failures decides later whether to complain. */
static void piece_leave_out_failed_mirror(struct ps_compare *compare, struct ps_piece *piece,
                                          unsigned i)
{
	if (piece->takes_part[i]) {
		compare->of[i].has_failed = true;
		compare->of[i].why = compare->peers->errors[i];
	}
	piece->takes_part[i] = false;
}

static void ask_slots(struct ps_compare *compare, struct ps_piece *piece)
{
	for (unsigned i = 0; i < compare->peers->count; i++) {
		compare->of[i].before = compare->of[i].live.log.from;
		if (piece->takes_part[i] && !ps_live_reader_ask_state(&compare->of[i].live))
			piece_leave_out_failed_mirror(compare, piece, i);
	}
	for (unsigned i = 0; i < compare->peers->count; i++)
		if (piece->takes_part[i] && ps_log_receive_state(&compare->of[i].live.log))
			piece_leave_out_failed_mirror(compare, piece, i);
}

static void ask_bytes(struct ps_compare *compare, struct ps_piece *piece)
{
	for (unsigned i = 0; i < compare->peers->count; i++) {
		struct ps_live_reader *live = &compare->of[i].live;

		if (piece->takes_part[i] &&
		    (!ps_fetch_range(&live->fetch, PS_REGION_SEGMENT + piece->ids[i], piece->offset,
		                     piece->length, compare->of[i].bytes) ||
		     !ps_log_request_new(&live->log)))
			piece_leave_out_failed_mirror(compare, piece, i);
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

		if (!piece->takes_part[i])
			continue;
		step = ps_log_receive_tail(&compare->of[i].live.log);
		/* No request may be in flight when reading begins again. */
		ps_fetch_collect_all(&compare->of[i].live.fetch);
		if (step == PS_LOG_FAILED)
			piece_leave_out_failed_mirror(compare, piece, i);
		good &= step != PS_LOG_OVERTAKEN;
	}
	return good;
}

/* --- undoing to one transaction --- */

/* Returns the mirror at the lowest transaction. */
static unsigned find_lowest_mirror(const struct ps_compare *compare, const struct ps_piece *piece)
{
	unsigned best = PS_MIRRORS_MAX;

	for (unsigned i = 0; i < compare->peers->count; i++)
		if (piece->takes_part[i] &&
		    (best == PS_MIRRORS_MAX ||
		     compare->of[i].live.log.from.seq < compare->of[best].live.log.from.seq))
			best = i;
	return best;
}

/* Returns true if the mirror received transactions since the previous try, so that it will catch
 * up. */
static bool has_mirror_progressed(const struct ps_compare *compare, unsigned i)
{
	return compare->of[i].live.log.from.seq != compare->of[i].before.seq;
}

enum reach { REACHED, TOO_SHORT, REACH_FAILED };

/* Reads the log back until it has all records after `seq`. */
static enum reach read_back_to(struct ps_log_reader *log, uint64_t seq)
{
	const struct ps_record *record;
	int rc = 0;

	while (!rc && log->older.seq > seq)
		rc = ps_log_read_older(log, &record);
	return rc < 0 ? REACH_FAILED : rc ? TOO_SHORT : REACHED;
}

/* Returns true if the log holds the transaction at which the mirror of `low` is, with the same
 * content. Each epoch has one owner, so records with the same epoch and seq are equal. */
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

/* Leaves out mirror i, with a complaint. */
static void piece_leave_out_mirror(const struct ps_compare *compare, struct ps_piece *piece,
                                   unsigned i, const char *why)
{
	ps_complain(PS_EXIT_OK,
	            "%s: not compared, it stands at epoch %" PRIu64 ", transaction %" PRIu64 ", %s",
	            mirror_name(compare, i), compare->of[i].live.log.from.epoch,
	            compare->of[i].live.log.from.seq, why);
	piece->takes_part[i] = false;
}

/* Reads mirror i's log back to the transaction of mirror `lowest`, so that its bytes can be undone
 * to there. Returns false if that failed: one of the two was left out or, with *try_again set, the
 * next try may succeed. */
static bool piece_read_log_back_to(struct ps_compare *compare, struct ps_piece *piece, unsigned i,
                                   unsigned lowest, bool is_last_try, bool *try_again)
{
	struct ps_log_reader *log = &compare->of[i].live.log;
	const struct ps_log_reader *base = &compare->of[lowest].live.log;
	enum reach reach = read_back_to(log, base->from.seq);

	if (reach == REACH_FAILED) {
		piece_leave_out_failed_mirror(compare, piece, i);
		return false;
	}
	if (reach == REACHED && log->from.epoch == base->from.epoch)
		return true;
	if (!is_last_try ||
	    (compare->waits_for_progress && has_mirror_progressed(compare, lowest))) {
		*try_again = true;
	} else if (reach == TOO_SHORT) {
		piece_leave_out_mirror(compare, piece, lowest,
		                       "further behind than the others' logs reach");
	} else {
		compare->waits_for_progress = false;
		if (same_history(log, base))
			return true;
		piece_leave_out_mirror(compare, piece,
		                       log->from.epoch < base->from.epoch ? i : lowest,
		                       "and its history cannot be joined to that of the others");
	}
	return false;
}

/* Undoes the bytes of all mirrors to the same transaction. Returns false if reading must begin
 * again, perhaps without a mirror that was left out. */
static bool piece_undo_to_lowest_mirror(struct ps_compare *compare, struct ps_piece *piece,
                                        bool is_last_try)
{
	unsigned low = find_lowest_mirror(compare, piece);
	bool again = false;

	for (unsigned i = 0; i < compare->peers->count && low < PS_MIRRORS_MAX; i++)
		if (piece->takes_part[i] && i != low &&
		    !piece_read_log_back_to(compare, piece, i, low, is_last_try, &again))
			return false;
	for (unsigned i = 0; i < compare->peers->count; i++) {
		const struct ps_window window = {
			.bytes = compare->of[i].bytes,
			.offset = piece->offset,
			.length = piece->length,
			.segment = piece->ids[i],
		};
		struct ps_windows windows = { 0 };

		if (!piece->takes_part[i])
			continue;
		ps_windows_add(&windows, &window, piece->size);
		compare->seq = compare->of[low].live.log.from.seq;
		if (!ps_live_reader_undo(&compare->of[i].live, &windows, compare->seq))
			piece_leave_out_failed_mirror(compare, piece, i);
	}
	return true;
}

/* --- comparing --- */

static unsigned count_equal_mirrors(const struct ps_compare *compare, const struct ps_piece *piece,
                                    unsigned i)
{
	unsigned votes = 0;

	for (unsigned k = 0; k < compare->peers->count; k++)
		votes += piece->takes_part[k] &&
		         !memcmp(compare->of[k].bytes, compare->of[i].bytes, piece->length);
	return votes;
}

/* Returns the mirror with the bytes that most mirrors have; without a majority, the base or the
 * first mirror. */
static unsigned find_reference_mirror(const struct ps_compare *compare,
                                      const struct ps_piece *piece, unsigned base)
{
	unsigned best = 0, right = base;

	for (unsigned k = 0; k <= compare->peers->count; k++) {
		unsigned i = k == 0 ? base : k - 1, votes;

		if (!piece->takes_part[i])
			continue;
		votes = count_equal_mirrors(compare, piece, i);
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
	unsigned right = find_reference_mirror(compare, piece, base);
	const uint8_t *want = compare->of[right].bytes;

	piece->differing_set = 0;
	for (unsigned i = 0; i < compare->peers->count; i++) {
		const uint8_t *have = compare->of[i].bytes;

		if (!piece->takes_part[i] || !memcmp(have, want, piece->length))
			continue;
		piece->differing_set |= (uint64_t)1 << i;
		piece->difference_bytes[i] = 0;
		for (uint64_t at = piece->length; at-- > 0;) {
			if (have[at] == want[at])
				continue;
			piece->first_difference[i] = piece->offset + at;
			piece->difference_bytes[i]++;
		}
	}
}

/* Returns false if an image was repaired or replaced meanwhile, so that the comparison proves
 * nothing. */
static bool are_images_unchanged(const struct ps_compare *compare, const struct ps_piece *piece)
{
	struct ps_images now;
	bool same = true;

	ps_images_fetch(&now, compare->peers, compare->store);
	for (unsigned i = 0; i < compare->peers->count && same; i++)
		same = !piece->takes_part[i] ||
		       (now.told[i] && ps_live_copy_is_same_image(compare->images->told[i],
		                                                  now.told[i], compare->seq));
	ps_images_free(&now);
	return same;
}

/* Returns true if the mirror has another image now, or lacks a segment that it had at the
 * beginning. */
static bool has_failed_image_changed(const struct ps_compare *compare, const struct ps_images *now,
                                     unsigned i)
{
	const Perseas__StoreStatus *before = compare->images->told[i];

	return now->told[i] && !ps_live_copy_is_same_image(before, now->told[i],
	                                                   before->slot ? before->slot->seq : 0);
}

/* Returns false if a mirror failed because its image changed, for example because a segment was
 * destroyed. Otherwise complains about each mirror that failed. */
static bool check_failures(struct ps_compare *compare)
{
	struct ps_images now;
	bool any = false, same = true;

	for (unsigned i = 0; i < compare->peers->count; i++) {
		any |= compare->of[i].has_failed;
		if (compare->of[i].has_failed)
			ps_fetch_collect_all(&compare->of[i].live.fetch);
	}
	if (!any)
		return true;
	ps_images_fetch(&now, compare->peers, compare->store);
	for (unsigned i = 0; i < compare->peers->count && same; i++)
		same = !compare->of[i].has_failed || !has_failed_image_changed(compare, &now, i);
	ps_images_free(&now);
	for (unsigned i = 0; i < compare->peers->count && same; i++) {
		if (compare->of[i].has_failed)
			ps_complain(PS_EXIT_OK, "%s", compare->of[i].why.text);
		compare->of[i].has_failed = false;
	}
	return same;
}

enum ps_comparison ps_compare_piece(struct ps_compare *compare, struct ps_piece *piece,
                                    unsigned base)
{
	for (unsigned try = 0; try < TRIES; try++) {
		bool last = !compare->waits_for_progress || try >= TRIES / 2;

		bool good = piece_read(compare, piece) &&
		            piece_undo_to_lowest_mirror(compare, piece, last);

		if (!check_failures(compare))
			return PS_CHANGED;
		if (!good)
			continue;
		find_differences(compare, piece, base);
		if (!piece->differing_set)
			return PS_SAME;
		return are_images_unchanged(compare, piece) ? PS_DIFFERENT : PS_CHANGED;
	}
	return PS_TOO_FAST;
}
