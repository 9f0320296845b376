/*
 * verify.c - see verify.h. What is under way, or was left unfinished, must never be reported as a
 * difference.
 */
#include "verify.h"

#include "compare.h"
#include "live_copy.h"
#include "../ask/digest.h"
#include "../ask/owner_report.h"
#include "../../../proto/base/json.h"
#include "../../../proto/control/segment_parts.h"
#include "../../../proto/control/segment_table.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOOKS_MAX = 16,           /* looks at mirrors that catch up, at most */
	SETTLE_MS = 20,           /* pause between two looks at mirrors that catch up */
	STRIDE_MIN = 16 << 10,    /* bytes of the shortest piece that is tried */
	STRIDE_FIRST = 512 << 10, /* bytes of the first piece */
};

/* The state of one round, which compares each segment once. */
struct verify {
	struct ps_peers peers;
	struct ps_images images;
	struct ps_compare compare;
	const char *store;
	/* Mirror i's image counts, and the mirror has answered so far. */
	bool compared[PS_MIRRORS_MAX];
	unsigned mirrors; /* mirrors with compared[i] set at the beginning */
	/* A mirror at the newest state, with whose segment table the others are compared. */
	unsigned base;
	bool live;            /* a live owner is or was seen */
	bool idle;            /* no mirror gets transactions, so checksums by the mirrors suffice */
	bool changed;         /* images were replaced or mended: the round begins again */
	bool too_fast;        /* the log was overwritten even before the shortest piece was read */
	bool same;            /* the verdict: all compared mirrors are equal */
	uint64_t stride;      /* bytes that are compared at a time while transactions commit */
	unsigned segments;    /* segments that were compared, without later parts */
	uint64_t bytes;       /* bytes of these segments, with later parts */
	uint64_t seq;         /* transaction at which the last piece was compared */
	unsigned differences; /* differences that were reported */
	unsigned behind;      /* segments for which a mirror was reported to be behind */
	/* The findings are printed as elements of an array; NULL: print text. */
	struct ps_json *json;
};

/* Counts the differences in one segment on one mirror. */
struct tally {
	uint64_t pieces; /* pieces of PS_COMPARE_PIECE that differ */
	uint64_t last;   /* number of the last of these pieces */
	uint64_t bytes;  /* bytes that differ */
	uint64_t first;  /* offset of the first byte that differs */
	uint64_t seq;    /* transaction at which the first difference was seen */
};

static const char *mirror_name(const struct verify *v, unsigned i)
{
	return v->peers.addresses[i].text;
}

static bool same_slot(const Perseas__Slot *a, const Perseas__Slot *b)
{
	return a && b && a->epoch == b->epoch && a->seq == b->seq;
}

/* Reports a fault as a line, or as an element of the array. what: a word for programs. */
static void report_fault(const struct verify *v, unsigned i, const char *segment, const char *what,
                         const char *how)
{
	if (!v->json && segment) {
		printf("%s: segment '%s' %s\n", mirror_name(v, i), segment, how);
	} else if (!v->json) {
		printf("%s: %s\n", mirror_name(v, i), how);
	} else {
		ps_json_begin(v->json, NULL, '{');
		ps_json_text(v->json, "mirror", mirror_name(v, i));
		ps_json_text(v->json, "segment", segment);
		ps_json_text(v->json, "what", what);
		ps_json_text(v->json, "how", how);
		ps_json_end(v->json, '}');
	}
}

/* --- which images can be compared --- */

/* Reports why image i is not compared. */
static void report_left_out(const struct verify *v, unsigned i)
{
	const struct ps_images *images = &v->images;
	const char *why = "not compared: its owner calls it lost, as it does not hold what it "
			  "acknowledged";

	if (!images->told[i]) {
		ps_complain(PS_EXIT_OK, "%s", images->errors[i].text);
		return;
	}
	if (!ps_images_is_of_store(images, i))
		why = "not compared: it has another store of this name";
	else if (!ps_images_is_listed(images, i))
		why = "not compared: its image is not in the store's roster";
	else if (images->told[i]->header->state != PERSEAS__STATE__STATE_CONSISTENT)
		why = "not compared: its image is not whole";
	else if (!images->told[i]->slot)
		why = "not compared: its commit slot is not valid";
	report_fault(v, i, NULL, "not compared", why);
}

static void choose_images(struct verify *v)
{
	const struct ps_images *images = &v->images;
	const uint32_t lost = ps_owner_lost_mirror_set(images);

	v->idle = true;
	for (unsigned i = 0; i < v->peers.count; i++) {
		v->compared[i] = ps_images_is_candidate(images, i) && !(lost >> i & 1);
		if (!v->compared[i]) {
			report_left_out(v, i);
			continue;
		}
		v->mirrors++;
		v->live |= images->told[i]->live;
		v->idle &= !images->told[i]->live &&
		           same_slot(images->told[i]->slot, images->newest->slot);
		if (images->told[i] == images->newest)
			v->base = i;
	}
}

/* --- segments --- */

static void report_difference(struct verify *v, unsigned i, const char *segment, const char *how)
{
	ps_bar_clear();
	report_fault(v, i, segment, "differs", how);
	v->differences++;
}

static void report_behind(struct verify *v, unsigned i, const char *segment, const char *how)
{
	ps_bar_clear();
	report_fault(v, i, segment, "behind", how);
	v->behind++;
}

/* Reports a segment of mirror i that the newest state does not have. A mirror that is behind may
 * not have heard yet that the segment was destroyed. */
static void report_extra_segment(struct verify *v, unsigned i, const char *segment)
{
	const uint64_t seq = v->images.told[i]->slot->seq;
	char how[160];

	if (seq >= v->images.told[v->base]->slot->seq) {
		report_difference(v, i, segment, "is not in the newest state");
		return;
	}
	snprintf(how, sizeof(how),
	         "is not in the newest state any more, and this mirror stands at %" PRIu64, seq);
	report_behind(v, i, segment, how);
}

/* Reports the segments that the newest state does not have. */
static void report_extra_segments(struct verify *v)
{
	const Perseas__StoreStatus *base = v->images.told[v->base];

	for (unsigned i = 0; i < v->peers.count; i++) {
		const Perseas__StoreStatus *status = v->images.told[i];

		for (size_t k = 0; v->compared[i] && k < status->header->n_segments; k++) {
			const Perseas__Segment *segment = status->header->segments[k];

			if (ps_segment_exists_in_image(segment, status) &&
			    !ps_images_find_segment(base, segment->name))
				report_extra_segment(v, i, segment->name);
		}
	}
}

/* Reports a segment that mirror i does not have. A mirror that is behind may not have heard of it
 * yet. */
static void report_missing_segment(struct verify *v, unsigned i, const Perseas__Segment *segment)
{
	char how[160];

	snprintf(how, sizeof(how),
	         "is missing: transaction %" PRIu64 " made it, and this mirror "
	         "stands at %" PRIu64,
	         segment->born, v->images.told[i]->slot->seq);
	report_behind(v, i, segment->name, how);
}

/* Lets the mirrors take part that have the same table entry of the segment as the base. Reports the
 * others. */
static void match_table_entries(struct verify *v, const Perseas__Segment *segment,
                                struct ps_piece *piece)
{
	for (unsigned i = 0; i < v->peers.count; i++) {
		const Perseas__StoreStatus *told = v->images.told[i];

		if (!v->compared[i])
			continue;
		switch (ps_compare_table_entry(told, segment)) {
		case PS_ENTRY_SAME:
			piece->takes_part[i] = true;
			piece->ids[i] = ps_images_find_segment(told, segment->name)->id;
			break;
		case PS_ENTRY_DIFFERENT:
			report_difference(v, i, segment->name,
			                  "has another id, size, address or random id");
			break;
		case PS_ENTRY_MISSING:
			report_difference(v, i, segment->name, "is missing");
			break;
		case PS_ENTRY_BEHIND:
			report_missing_segment(v, i, segment);
			break;
		}
	}
}

/* Returns true if all mirrors compute the same checksum and no image changed in between. Otherwise
 * the piece is compared byte by byte. */
static bool checksums_agree(struct verify *v, struct ps_piece *piece)
{
	const Perseas__DigestReply *first = NULL;
	bool equal_mirrors = true;

	ps_digest_ask_mirrors(&v->peers, v->store, piece->takes_part, piece->ids, piece->offset,
	                      piece->length);
	for (unsigned i = 0; i < v->peers.count; i++) {
		const Perseas__DigestReply *digest;

		if (!piece->takes_part[i])
			continue;
		if (!v->peers.replies[i])
			return false;
		digest = v->peers.replies[i]->digest;
		first = first ? first : digest;
		v->live |= digest->live;
		v->idle &= !digest->live && same_slot(digest->slot, v->images.told[i]->slot);
		equal_mirrors &= digest->crc == first->crc;
	}
	return equal_mirrors && v->idle;
}

static void tally_piece(struct verify *v, const struct ps_piece *piece, struct tally *tallies)
{
	for (unsigned i = 0; i < v->peers.count; i++) {
		uint64_t number = piece->offset / PS_COMPARE_PIECE;

		if (!(piece->differing_set >> i & 1))
			continue;
		if (tallies[i].pieces == 0) {
			tallies[i].first = piece->first_difference[i];
			tallies[i].seq = v->compare.seq;
		}
		tallies[i].pieces += tallies[i].pieces == 0 || tallies[i].last != number;
		tallies[i].last = number;
		tallies[i].bytes += piece->difference_bytes[i];
	}
}

/* Compares the first v->stride bytes of the piece, at most. Halves the stride when the log was
 * overwritten before the bytes were read, and lengthens it by an eighth while mirrors agree. */
static enum ps_comparison compare_stride(struct verify *v, struct ps_piece *piece)
{
	uint64_t whole = piece->length;

	for (;;) {
		enum ps_comparison verdict;

		piece->length = whole < v->stride ? whole : v->stride;
		verdict = ps_compare_piece(&v->compare, piece, v->base);
		if (verdict != PS_TOO_FAST || v->stride == STRIDE_MIN || ps_stop_requested()) {
			if (verdict == PS_SAME && v->stride < PS_COMPARE_PIECE)
				v->stride += v->stride / 8;
			return verdict;
		}
		v->stride = v->stride / 2 > STRIDE_MIN ? v->stride / 2 : STRIDE_MIN;
	}
}

/* Compares the beginning of the piece. Sets piece->length to the length that was compared. */
static void compare_piece(struct verify *v, struct ps_piece *piece, struct tally *tallies)
{
	if (v->idle && checksums_agree(v, piece))
		return;
	v->compare.waits_for_progress = v->live;
	switch (compare_stride(v, piece)) {
	case PS_SAME:
		break;
	case PS_DIFFERENT:
		tally_piece(v, piece, tallies);
		break;
	case PS_CHANGED:
		v->changed = true;
		break;
	case PS_TOO_FAST:
		v->too_fast = true;
		break;
	}
	v->seq = v->compare.seq;
	for (unsigned i = 0; i < v->peers.count; i++)
		if (piece->ids[i] != UINT32_MAX && !piece->takes_part[i])
			v->compared[i] = false;
}

static void report_segment(struct verify *v, const Perseas__Segment *segment,
                           const struct tally *tallies)
{
	for (unsigned i = 0; i < v->peers.count; i++) {
		const struct tally *t = &tallies[i];
		char how[200];

		if (t->pieces == 0)
			continue;
		snprintf(how, sizeof(how),
		         "differs from the other mirrors at transaction %" PRIu64
		         ", first at offset %" PRIu64 " (%" PRIu64 " byte%s in %" PRIu64
		         " of %" PRIu64 " pieces)",
		         t->seq, t->first, t->bytes, ps_plural(t->bytes), t->pieces,
		         (segment->size + PS_COMPARE_PIECE - 1) / PS_COMPARE_PIECE);
		report_difference(v, i, segment->name, how);
	}
}

static void compare_segment(struct verify *v, const Perseas__Segment *segment)
{
	struct tally tallies[PS_MIRRORS_MAX] = { { 0 } };
	struct ps_piece piece = { .size = segment->size };

	/* An id that no segment has marks mirrors that never took part. */
	memset(piece.ids, 0xff, sizeof(piece.ids));
	match_table_entries(v, segment, &piece);
	while (piece.offset < segment->size && !v->changed && !v->too_fast &&
	       !ps_stop_requested()) {
		/* Mirrors compute checksums of whole pieces, so no comparison goes beyond the end
		 * of one. */
		uint64_t piece_end = (piece.offset / PS_COMPARE_PIECE + 1) * PS_COMPARE_PIECE;

		piece.length = (piece_end < segment->size ? piece_end : segment->size) -
		               piece.offset;
		compare_piece(v, &piece, tallies);
		piece.offset += piece.length;
		ps_bar_show(segment->name, piece.offset, segment->size);
	}
	if (v->changed)
		return;
	report_segment(v, segment, tallies);
	v->segments += !ps_segment_part_before(v->images.told[v->base]->header, segment);
	v->bytes += segment->size;
}

/* --- the verdict --- */

static unsigned count_compared(const struct verify *v)
{
	unsigned count = 0;

	for (unsigned i = 0; i < v->peers.count; i++)
		count += v->compared[i];
	return count;
}

/* Reports the mirrors that are behind in an idle store, since they stay behind. */
static void print_behind(const struct verify *v)
{
	const Perseas__Slot *newest = v->images.newest->slot;
	char how[200];

	for (unsigned i = 0; i < v->peers.count && !v->live; i++) {
		const Perseas__Slot *slot = v->compared[i] ? v->images.told[i]->slot : newest;

		if (slot->seq >= newest->seq)
			continue;
		snprintf(how, sizeof(how),
		         "stands at transaction %" PRIu64 ", %" PRIu64
		         " behind: perseas recover %s mends it",
		         slot->seq, newest->seq - slot->seq, v->store);
		report_fault(v, i, NULL, "behind", how);
	}
}

/* Returns the transaction at which the mirrors were compared. */
static uint64_t compared_seq(const struct verify *v)
{
	return v->idle ? v->images.newest->slot->seq : v->seq;
}

static enum ps_exit print_same_and_choose_status(struct verify *v, unsigned count)
{
	size_t members = v->images.roster->n_members;
	char size[PS_SIZE_TEXT];

	if (!v->json)
		printf("store '%s': %u of %zu mirrors hold the same: %u segment%s, %s, "
		       "epoch %" PRIu64 ", transaction %" PRIu64 "%s\n",
		       v->store, count, members, v->segments, ps_plural(v->segments),
		       ps_size_text(size, v->bytes), v->images.newest->slot->epoch, compared_seq(v),
		       v->live ? ", while it runs" : "");
	print_behind(v);
	v->same = true;
	return count < members || count < v->mirrors ? PS_EXIT_PARTLY : PS_EXIT_OK;
}

static enum ps_exit verify_verdict(struct verify *v)
{
	unsigned count = count_compared(v);
	size_t members = v->images.roster->n_members;

	if (v->differences)
		return ps_complain(PS_EXIT_NO, "the mirrors of store '%s' differ", v->store);
	if (ps_stop_requested())
		return ps_complain(PS_EXIT_PARTLY, "stopped by a signal before all was compared");
	if (v->too_fast)
		return ps_live_copy_complain_too_fast(v->store, v->images.header->log_size),
		       PS_EXIT_PARTLY;
	if (v->behind)
		return ps_complain(PS_EXIT_PARTLY,
		                   "not conclusive: a mirror of store '%s' is "
		                   "behind; its owner mends it, or perseas recover",
		                   v->store);
	if (count < 2 && members > 1)
		return ps_complain(PS_EXIT_PARTLY,
		                   "not conclusive: %u of %zu mirrors of store "
		                   "'%s' can be compared, and two must be",
		                   count, members, v->store);
	return print_same_and_choose_status(v, count);
}

static void fetch_images_until_tables_agree(struct verify *v)
{
	for (unsigned look = 0; look < LOOKS_MAX; look++) {
		ps_images_fetch(&v->images, &v->peers, v->store);
		if (!ps_images_tables_differ(&v->images))
			return;
		ps_images_free(&v->images);
		poll(NULL, 0, SETTLE_MS);
	}
	ps_images_fetch(&v->images, &v->peers, v->store);
}

static enum ps_exit compare_all(struct verify *v)
{
	const Perseas__Header *header;

	choose_images(v);
	if (v->mirrors == 0)
		return ps_complain(PS_EXIT_PARTLY,
		                   "not conclusive: no mirror has an image of "
		                   "store '%s' that counts",
		                   v->store);
	if (!ps_compare_open(&v->compare, &v->peers, &v->images, v->store, v->compared))
		return PS_EXIT_FAILURE;
	header = v->images.told[v->base]->header;
	report_extra_segments(v);
	for (size_t k = 0; k < header->n_segments && !v->changed && !v->too_fast; k++)
		if (ps_segment_exists_in_image(header->segments[k], v->images.newest))
			compare_segment(v, header->segments[k]);
	return v->changed ? PS_EXIT_PARTLY : verify_verdict(v);
}

static void begin_json(const struct verify *v)
{
	ps_json_begin(v->json, NULL, '{');
	ps_json_text(v->json, "store", v->store);
	ps_json_begin(v->json, "findings", '[');
}

static void end_json(const struct verify *v)
{
	const bool known = v->images.have > 0;

	ps_json_end(v->json, ']');
	ps_json_text(v->json, "result",
	             v->differences ? "different"
	             : v->same      ? "same"
	                            : "inconclusive");
	ps_json_number(v->json, "compared", known ? count_compared(v) : 0);
	ps_json_number(v->json, "mirrors", known ? v->images.roster->n_members : 0);
	ps_json_number(v->json, "segments", v->segments);
	ps_json_number(v->json, "bytes", v->bytes);
	if (known && v->images.newest) {
		ps_json_number(v->json, "epoch", v->images.newest->slot->epoch);
		ps_json_number(v->json, "seq", compared_seq(v));
	}
	ps_json_bool(v->json, "live", v->live);
	ps_json_end(v->json, '}');
}

static enum ps_exit verify_peers(struct verify *v)
{
	enum ps_exit status;

	if (v->json)
		begin_json(v);
	fetch_images_until_tables_agree(v);
	if (!v->images.have)
		status = ps_images_complain_absent(&v->images, v->store);
	else if (ps_images_check_ambiguous(&v->images, v->store))
		status = PS_EXIT_PARTLY;
	else
		status = compare_all(v);
	if (v->json)
		end_json(v);
	return status;
}

/* Prints the round's JSON if `print` is true, and frees it. */
static void print_json(struct ps_json *json, char **text, bool print)
{
	if (fclose(json->out) == 0 && print)
		fputs(*text, stdout);
	free(*text);
}

enum ps_exit ps_verify_once(const struct ps_args *args, bool *changed)
{
	struct verify v = { .store = args->store, .stride = STRIDE_FIRST };
	enum ps_exit status = ps_peers_open(&v.peers, args->mirrors, &args->options);
	struct ps_json json = { .out = NULL };
	char *text = NULL;
	size_t size;

	*changed = false;
	if (status)
		return status;
	if (args->json) {
		json.out = ps_exit_if_null(open_memstream(&text, &size));
		v.json = &json;
	}
	status = verify_peers(&v);
	*changed = v.changed;
	if (args->json)
		print_json(&json, &text, !v.changed);
	ps_compare_close(&v.compare);
	ps_images_free(&v.images);
	ps_peers_close(&v.peers);
	ps_bar_clear();
	fflush(stdout);
	return status;
}
