/*
 * cmd_verify.c - perseas verify: are the images on the mirrors the same?
 */
#include "census.h"
#include "digest.h"

#include <inttypes.h>
#include <string.h>

struct verify {
	struct ps_panel panel;
	struct ps_census census;
	const char *store;
	bool compared[PS_MIRRORS_MAX];     /* its image counts, and has answered so far */
	unsigned mirrors;                  /* with compared[i] set at the beginning */
	unsigned base;                     /* one at the newest state: its table is the measure */
	bool live;                         /* an owner is there, or was meanwhile */
	bool moved;                        /* a slot changed meanwhile */
	bool unequal;                      /* slots differed from the beginning */
	unsigned segments;
	uint64_t bytes;
	unsigned differences;              /* lines printed */
};

/* What differs in one segment on one mirror. */
struct tally {
	uint64_t pieces;
	uint64_t first;            /* offset of the first */
};

static const char *name_of(const struct verify *v, unsigned i)
{
	return v->panel.addresses[i].text;
}

static bool same_slot(const Perseas__Slot *a, const Perseas__Slot *b)
{
	return a && b && a->epoch == b->epoch && a->seq == b->seq;
}

/* --- which images can be compared --- */

static void leave_out(const struct verify *v, unsigned i)
{
	const struct ps_census *census = &v->census;
	const char *why = "its commit slot is not valid";

	if (!census->told[i]) {
		ps_complain(PS_EXIT_OK, "%s", census->errors[i].text);
		return;
	}
	if (!ps_census_belongs(census, i))
		why = "it has another store of this name";
	else if (!ps_census_listed(census, i))
		why = "its image is not in the store's roster";
	else if (census->told[i]->header->state != PERSEAS__STATE__STATE_CONSISTENT)
		why = "its image is not whole";
	printf("%s: not compared: %s\n", name_of(v, i), why);
}

static void choose(struct verify *v)
{
	const struct ps_census *census = &v->census;

	for (unsigned i = 0; i < v->panel.count; i++) {
		v->compared[i] = ps_census_counts(census, i);
		if (!v->compared[i]) {
			leave_out(v, i);
			continue;
		}
		v->mirrors++;
		v->live |= census->told[i]->live;
		v->unequal |= !same_slot(census->told[i]->slot, census->newest->slot);
		if (census->told[i] == census->newest)
			v->base = i;
	}
}

/* --- segments --- */

static const Perseas__Segment *find(const Perseas__StoreStatus *status, const char *name)
{
	for (size_t k = 0; k < status->header->n_segments; k++) {
		const Perseas__Segment *segment = status->header->segments[k];

		if (!strcmp(segment->name, name) && ps_census_born(segment, status))
			return segment;
	}
	return NULL;
}

static void differs(struct verify *v, unsigned i, const char *segment, const char *how)
{
	ps_bar_clear();
	printf("%s: segment '%s' %s\n", name_of(v, i), segment, how);
	v->differences++;
}

/* Segments that the newest state does not have. */
static void find_surplus(struct verify *v)
{
	const Perseas__StoreStatus *base = v->census.told[v->base];

	for (unsigned i = 0; i < v->panel.count; i++) {
		const Perseas__StoreStatus *status = v->census.told[i];

		for (size_t k = 0; v->compared[i] && k < status->header->n_segments; k++) {
			const Perseas__Segment *segment = status->header->segments[k];

			if (ps_census_born(segment, status) && !find(base, segment->name))
				differs(v, i, segment->name, "is not in the newest state");
		}
	}
}

/* Sets ask[i] for the mirrors whose entry of the segment is the base's; says so of the others. */
static void match_entries(struct verify *v, const Perseas__Segment *segment, bool *ask,
                          uint32_t *ids)
{
	for (unsigned i = 0; i < v->panel.count; i++) {
		const Perseas__Segment *own;

		ask[i] = false;
		if (!v->compared[i])
			continue;
		own = find(v->census.told[i], segment->name);
		if (!own) {
			differs(v, i, segment->name, "is missing");
		} else if (own->size != segment->size || own->address != segment->address) {
			differs(v, i, segment->name, "has another size or address");
		} else {
			ask[i] = true;
			ids[i] = own->id;
		}
	}
}

/* A mirror that answered before, and does not any more, is left out from here on. */
static void note_answers(struct verify *v, bool *ask)
{
	for (unsigned i = 0; i < v->panel.count; i++) {
		const Perseas__DigestReply *digest;

		if (!ask[i])
			continue;
		if (!v->panel.replies[i]) {
			ps_complain(PS_EXIT_OK, "%s", v->panel.errors[i].text);
			ask[i] = v->compared[i] = false;
			continue;
		}
		digest = v->panel.replies[i]->digest;
		v->live |= digest->live;
		v->moved |= !same_slot(digest->slot, v->census.told[i]->slot);
	}
}

static unsigned votes_for(const struct verify *v, const bool *ask, uint32_t crc)
{
	unsigned votes = 0;

	for (unsigned i = 0; i < v->panel.count; i++)
		votes += ask[i] && v->panel.replies[i]->digest->crc == crc;
	return votes;
}

/* What most of them say; where there is no most, what the base says, or the first of them. */
static bool majority(const struct verify *v, const bool *ask, uint32_t *crc)
{
	unsigned best = 0;

	for (unsigned k = 0; k <= v->panel.count; k++) {
		unsigned i = k == 0 ? v->base : k - 1;
		unsigned votes;

		if (!ask[i])
			continue;
		votes = votes_for(v, ask, v->panel.replies[i]->digest->crc);
		if (votes > best) {
			best = votes;
			*crc = v->panel.replies[i]->digest->crc;
		}
	}
	return best > 0;
}

static void compare_piece(const struct verify *v, const bool *ask, uint64_t offset,
                          struct tally *tallies)
{
	uint32_t crc;

	if (!majority(v, ask, &crc))
		return;
	for (unsigned i = 0; i < v->panel.count; i++) {
		if (!ask[i] || v->panel.replies[i]->digest->crc == crc)
			continue;
		if (tallies[i].pieces++ == 0)
			tallies[i].first = offset;
	}
}

static void report_segment(struct verify *v, const Perseas__Segment *segment,
                           const struct tally *tallies)
{
	for (unsigned i = 0; i < v->panel.count; i++) {
		char how[160];
		uint64_t first = tallies[i].first;

		if (tallies[i].pieces == 0)
			continue;
		snprintf(how, sizeof(how), "differs from the other mirrors, first between its "
		         "bytes %"
		         PRIu64 " and %" PRIu64 " (in %" PRIu64 " of %" PRIu64 " pieces)", first,
		         first + ps_digest_length(first, segment->size) - 1, tallies[i].pieces,
		         (segment->size + PS_DIGEST_PIECE - 1) / PS_DIGEST_PIECE);
		differs(v, i, segment->name, how);
	}
}

static void compare_segment(struct verify *v, const Perseas__Segment *segment)
{
	struct tally tallies[PS_MIRRORS_MAX] = { { 0, 0 } };
	uint32_t ids[PS_MIRRORS_MAX] = { 0 };
	bool ask[PS_MIRRORS_MAX];

	match_entries(v, segment, ask, ids);
	for (uint64_t offset = 0; offset < segment->size;) {
		uint64_t length = ps_digest_length(offset, segment->size);

		ps_digest_ask(&v->panel, v->store, ask, ids, offset, length);
		note_answers(v, ask);
		compare_piece(v, ask, offset, tallies);
		offset += length;
		ps_bar_show(segment->name, offset, segment->size);
	}
	report_segment(v, segment, tallies);
	v->segments++;
	v->bytes += segment->size;
}

/* --- the verdict --- */

static unsigned count_compared(const struct verify *v)
{
	unsigned count = 0;

	for (unsigned i = 0; i < v->panel.count; i++)
		count += v->compared[i];
	return count;
}

static enum ps_exit verdict_different(const struct verify *v)
{
	if (v->live || v->moved)
		return ps_complain(PS_EXIT_PARTLY, "not conclusive: store '%s' has a live owner, "
		                   "whose transactions reach the mirrors at different times; "
		                   "verify it while nothing is committed", v->store);
	if (v->unequal)
		return ps_complain(PS_EXIT_PARTLY, "not conclusive: the mirrors stand at different "
		                   "transactions, so they must differ; perseas recover %s mends "
		                   "them", v->store);
	return ps_complain(PS_EXIT_NO, "the mirrors of store '%s' differ; if its last owner "
	                   "crashed, an unfinished transaction may be why: perseas recover %s "
	                   "rolls it back, and verify then tells", v->store, v->store);
}

static enum ps_exit verdict(const struct verify *v)
{
	unsigned count = count_compared(v);
	size_t members = v->census.roster->n_members;
	char size[PS_SIZE_TEXT];

	if (v->differences)
		return verdict_different(v);
	if (count < 2 && members > 1)
		return ps_complain(PS_EXIT_PARTLY, "not conclusive: %u of %zu mirrors of store "
		                   "'%s' can be compared, and two must be", count, members,
		                   v->store);
	printf("store '%s': %u of %zu mirrors hold the same: %u segment%s, %s, epoch %" PRIu64
	       ", transaction %" PRIu64 "\n", v->store, count, members, v->segments,
	       v->segments == 1 ? "" : "s", ps_size_text(size, v->bytes),
	       v->census.newest->slot->epoch, v->census.newest->slot->seq);
	return count < members || count < v->mirrors ? PS_EXIT_PARTLY : PS_EXIT_OK;
}

static enum ps_exit verify(struct verify *v)
{
	const Perseas__Header *header;

	choose(v);
	if (v->mirrors == 0)
		return ps_complain(PS_EXIT_PARTLY, "not conclusive: no mirror has an image of "
		                   "store '%s' that counts", v->store);
	header = v->census.told[v->base]->header;
	find_surplus(v);
	for (size_t k = 0; k < header->n_segments; k++)
		if (ps_census_born(header->segments[k], v->census.newest))
			compare_segment(v, header->segments[k]);
	return verdict(v);
}

enum ps_exit ps_verb_verify(const struct ps_args *args)
{
	struct verify v = { .store = args->store };
	enum ps_exit status = ps_panel_open(&v.panel, args->mirrors, args->connect_timeout_ms);

	if (status)
		return status;
	ps_bar_start();
	ps_census_take(&v.census, &v.panel, args->store);
	status = v.census.have ? verify(&v) : ps_census_nobody(&v.census, args->store);
	ps_census_free(&v.census);
	ps_panel_close(&v.panel);
	return status;
}
