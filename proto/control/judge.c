/*
 * judge.c - see judge.h. The rules are those of PROTOCOL.md: I6, I9, and the order of the steps of
 * an open.
 */
#include "judge.h"

#include "envelope.h"

#include <assert.h>
#include <string.h>

/* --- the store and its rosters --- */

static bool is_of_store(const struct ps_told *told, const struct ps_judgement *j)
{
	return told->header && ps_image_is_of_store(told->header, j->store_id, j->naming_roster);
}

static bool has_later_state(const struct ps_told *a, const struct ps_told *b)
{
	return a->epoch != b->epoch ? a->epoch > b->epoch : a->seq > b->seq;
}

/* Returns the header if its rosters are valid evidence, else NULL. While a store is being created,
 * an image that is not settled knows only the first roster, so it counts only if no image is
 * settled. */
static const Perseas__Header *valid_header(const struct ps_judgement *j, const struct ps_told *told)
{
	const Perseas__Header *header = is_of_store(told, j) ? told->header : NULL;

	if (!header || told->is_excluded ||
	    (!j->creation_unfinished && header->state == PERSEAS__STATE__STATE_CREATING))
		return NULL;
	return header;
}

/* Finds the roster of level 1 that names the store. A store whose id is derived from its key takes
 * precedence over one that was raised to level 1, because only holders of the key can make its
 * images. Returns false if two keys claim an id that is derived from neither, so that either may be
 * the store's. */
static bool find_naming_roster(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	const Perseas__Roster *named = NULL;
	bool unique = true;

	/* The caller has set the naming roster, because it knows the store already. */
	if (j->naming_roster && j->naming_roster->level > 0)
		return true;
	j->naming_roster = NULL;
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = valid_header(j, &told[i]);
		const Perseas__Roster *roster = header ? header->roster : NULL;

		if (!roster || roster->level == 0 ||
		    (named && ps_rosters_name_same_store(roster, named)))
			continue;
		unique = !named || !roster->key_hash.len || !named->key_hash.len;
		if (!named || !roster->key_hash.len)
			named = roster;
	}
	j->naming_roster = named;
	return unique;
}

/* Returns true if the change to the next roster is decided. A mirror that was removed may keep the
 * mark of an earlier change, whose roster has been settled since; that mark is ignored. */
static bool is_decided(const struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = valid_header(j, &told[i]);

		if (header && header->marked && ps_roster_newer(header->next_roster, j->settled))
			return true;
	}
	return false;
}

/* Two rosters with equal (epoch, version) are the same, unless one is forged: a client that may
 * create stores can make an image with any first roster. No owner has ever written to such an
 * image, so its slot is not later than that of a genuine one, and the roster of the image with the
 * latest slot is taken. */
void ps_judge_rosters(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	const struct ps_told *by = NULL;

	j->settled = j->next = NULL;
	assert(j->store_id);
	(void)find_naming_roster(j, told, count);
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = valid_header(j, &told[i]);
		int order;

		if (!header)
			continue;
		order = ps_roster_order(header->roster, j->settled);
		if (order > 0 || (order == 0 && by && has_later_state(&told[i], by))) {
			j->settled = header->roster;
			by = &told[i];
		}
		if (ps_roster_newer(header->next_roster, j->next))
			j->next = header->next_roster;
	}
	if (!ps_roster_newer(j->next, j->settled))
		j->next = NULL;
	j->is_decided = is_decided(j, told, count);
}

static bool is_image_listed(const struct ps_judgement *j, ProtobufCBinaryData image)
{
	return image.len == PS_ID_SIZE &&
	       (ps_roster_member(j->settled, image.data) || ps_roster_member(j->next, image.data));
}

/* Returns true if an earlier answer is from the same image at another address. */
static bool repeats_earlier_image(const struct ps_judgement *j, const struct ps_told *told,
                                  unsigned i)
{
	for (unsigned k = 0; k < i; k++) {
		const Perseas__Header *header = valid_header(j, &told[k]);

		if (header && ps_id_equal(header->image_id, told[i].header->image_id.data))
			return true;
	}
	return false;
}

/* Counts the images of a store. One image that its rosters list outweighs all images that they do
 * not. */
static unsigned weigh_store(const uint8_t *store_id, bool unfinished, const struct ps_told *told,
                            unsigned count)
{
	struct ps_judgement j = { .store_id = store_id, .creation_unfinished = unfinished };
	unsigned weight = 0;

	ps_judge_rosters(&j, told, count);
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = valid_header(&j, &told[i]);

		if (!header || repeats_earlier_image(&j, told, i))
			continue;
		weight++;
		if (is_image_listed(&j, header->image_id) || is_image_listed(&j, header->parent_id))
			weight += PS_MIRRORS_MAX;
	}
	return weight;
}

/* --- members --- */

static bool is_assigned(const struct ps_judgement *j, unsigned count, const uint8_t *image_id)
{
	for (unsigned i = 0; i < count; i++)
		if (j->member_ids[i] && !memcmp(j->member_ids[i], image_id, PS_ID_SIZE))
			return true;
	return false;
}

static bool lists_at_address(const Perseas__Roster *roster, const struct ps_told *told)
{
	const Perseas__Header *header = told->header;

	for (size_t k = 0; roster && told->address && k < roster->n_members; k++) {
		const Perseas__Member *member = roster->members[k];

		if (!strcmp(member->address, told->address) &&
		    (ps_id_equal(header->image_id, member->image_id.data) ||
		     ps_id_equal(header->parent_id, member->image_id.data)))
			return true;
	}
	return false;
}

/* Returns true if the image was never claimed and another image with the same id was. A client that
 * may create stores can make an image under a member's id, but cannot claim it. */
static bool is_unclaimed_twin(const struct ps_judgement *j, const struct ps_told *told,
                              unsigned count, unsigned i)
{
	const Perseas__Header *header = told[i].header;

	for (unsigned k = 0; k < count && !header->promised_epoch; k++)
		if (is_of_store(&told[k], j) && told[k].header->promised_epoch &&
		    ps_id_equal(header->image_id, told[k].header->image_id.data))
			return true;
	return false;
}

static bool shows_image(const struct ps_judgement *j, const struct ps_told *told, unsigned count,
                        unsigned i)
{
	return is_of_store(&told[i], j) && !is_unclaimed_twin(j, told, count, i);
}

/* Returns the rank of an address among the addresses that lead to the same daemon. The image
 * belongs to the address with the lowest rank. Addresses that the caller named rank below others,
 * and among these an address by which a roster lists the image. */
static unsigned address_rank(const struct ps_judgement *j, const struct ps_told *told)
{
	const bool lists = told->header &&
	                   (lists_at_address(j->settled, told) || lists_at_address(j->next, told));

	return 2 * told->from_roster + !lists;
}

/* Compares daemons by their identities, or by their images if an identity is unknown. */
static bool is_same_daemon(const struct ps_judgement *j, const struct ps_told *told, unsigned count,
                           unsigned a, unsigned b)
{
	if (told[a].daemon && told[b].daemon && !memcmp(told[a].daemon, told[b].daemon, PS_ID_SIZE))
		return true;
	return shows_image(j, told, count, a) && shows_image(j, told, count, b) &&
	       ps_id_equal(told[a].header->image_id, told[b].header->image_id.data);
}

static void find_duplicates(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned first = i;

		for (unsigned k = 0; k < count; k++) {
			const unsigned turn = address_rank(j, &told[k]),
				       before = address_rank(j, &told[first]);

			if (is_same_daemon(j, told, count, i, k) &&
			    (turn < before || (turn == before && k < first)))
				first = k;
		}
		if (first == i)
			continue;
		j->duplicate_set |= (uint32_t)1 << i;
		j->duplicate_of[i] = first;
	}
}

static void assign_by_image(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = told[i].header;

		if (j->duplicate_set >> i & 1 || !shows_image(j, told, count, i) ||
		    !is_image_listed(j, header->image_id))
			continue;
		j->member_ids[i] = header->image_id.data;
		j->member_set |= (uint32_t)1 << i;
	}
}

/* Returns true if this image can take the place in the roster of its parent, the image that it was
 * loaded from. */
static bool can_replace_parent(const struct ps_judgement *j, const struct ps_told *told,
                               unsigned count)
{
	return is_of_store(told, j) && !is_image_listed(j, told->header->image_id) &&
	       is_image_listed(j, told->header->parent_id) &&
	       !is_assigned(j, count, told->header->parent_id.data);
}

/* Assigns mirrors by the parents of their images. Of two images with the same parent, the one with
 * the lower id is assigned, so that every client assigns the same one. */
static void assign_by_parent(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = told[i].header;
		bool first = true;

		if (j->duplicate_set >> i & 1 || !can_replace_parent(j, &told[i], count))
			continue;
		for (unsigned k = 0; k < count; k++)
			if (can_replace_parent(j, &told[k], count) &&
			    ps_id_equal(told[k].header->parent_id, header->parent_id.data) &&
			    memcmp(told[k].header->image_id.data, header->image_id.data,
			           PS_ID_SIZE) < 0)
				first = false;
		if (!first)
			continue;
		assert(!j->member_ids[i]);
		j->member_ids[i] = header->parent_id.data;
		j->member_set |= (uint32_t)1 << i;
		j->loaded_set |= (uint32_t)1 << i;
	}
}

/* A mirror without a listed image must be the member at its address: it lost its image or did not
 * answer. */
static void assign_by_address(struct ps_judgement *j, const Perseas__Roster *roster,
                              const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		for (size_t k = 0; roster && told[i].address && k < roster->n_members; k++) {
			const Perseas__Member *member = roster->members[k];

			if (!j->member_ids[i] && !is_assigned(j, count, member->image_id.data) &&
			    !strcmp(member->address, told[i].address))
				j->member_ids[i] = member->image_id.data;
		}
	}
}

/*
 * Assigns members that no image shows to mirrors at listed addresses whose own members were seen
 * elsewhere: two members may have swapped addresses. A daemon that answers has lost what such a
 * member had, so mirrors that did not answer go first.
 */
static void assign_remaining(struct ps_judgement *j, const Perseas__Roster *roster,
                             const struct ps_told *told, unsigned count, bool that_answer)
{
	for (unsigned i = 0; i < count; i++) {
		const bool answers = (told[i].header || told[i].has_no_image) &&
		                     !(j->duplicate_set >> i & 1);

		if (j->member_ids[i] || answers != that_answer || !told[i].address ||
		    !ps_roster_member_at(roster, told[i].address))
			continue;
		for (size_t k = 0; k < roster->n_members && !j->member_ids[i]; k++)
			if (!is_assigned(j, count, roster->members[k]->image_id.data))
				j->member_ids[i] = roster->members[k]->image_id.data;
	}
}

void ps_judge_members(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	j->image_set = j->member_set = j->loaded_set = j->duplicate_set = 0;
	memset(j->member_ids, 0, sizeof(j->member_ids));
	for (unsigned i = 0; i < count; i++)
		j->image_set |= (uint32_t)is_of_store(&told[i], j) << i;
	find_duplicates(j, told, count);
	assign_by_image(j, told, count);
	assign_by_parent(j, told, count);
	assign_by_address(j, j->settled, told, count);
	assign_by_address(j, j->next, told, count);
	for (int that_answer = 0; that_answer <= 1; that_answer++) {
		assign_remaining(j, j->settled, told, count, that_answer);
		assign_remaining(j, j->next, told, count, that_answer);
	}
	assert((j->member_set & j->duplicate_set) == 0 && (j->loaded_set & ~j->member_set) == 0);
}

/* --- the newest state --- */

int ps_judge_newest(const struct ps_told *told, uint32_t set)
{
	int best = -1;

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		if (set >> i & 1 && (best < 0 || has_later_state(&told[i], &told[best])))
			best = (int)i;
	return best;
}

/* Returns true if the image counts towards R although it is not consistent (I6): it is joining in
 * place and the copy was harmless, or it is being created and an open settles it before
 * claiming. */
static bool counts_though_inconsistent(const Perseas__Header *header)
{
	return header->state == PERSEAS__STATE__STATE_CREATING ||
	       (header->state == PERSEAS__STATE__STATE_JOINING && header->harmless);
}

void ps_judge_state(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	j->counted_set = j->candidate_set = 0;
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = told[i].header;

		if (!header || !(j->member_set >> i & 1) || told[i].is_excluded)
			continue;
		if (header->state == PERSEAS__STATE__STATE_CONSISTENT && told[i].has_slot)
			j->candidate_set |= (uint32_t)1 << i;
		else if (counts_though_inconsistent(header))
			j->counted_set |= (uint32_t)1 << i;
	}
	j->counted_set |= j->candidate_set;
	assert((j->counted_set & ~j->member_set) == 0 && (j->candidate_set & ~j->counted_set) == 0);
	j->newest = ps_judge_newest(told, j->candidate_set);
}

/* --- the outlook --- */

static struct ps_quorum quorum_of(const struct ps_judgement *j, const Perseas__Roster *roster)
{
	struct ps_quorum quorum = { 0, (unsigned)roster->n_members, roster->acks };

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		if (j->member_ids[i] && ps_roster_member(roster, j->member_ids[i]))
			quorum.set |= (uint32_t)1 << i;
	return quorum;
}

/* Returns true if the mirror has no image, or if its image may be replaced. */
static bool may_be_replaced(const struct ps_judgement *j, const struct ps_told *told, unsigned i)
{
	const Perseas__Header *header = told[i].header;

	if (j->duplicate_set >> i & 1)
		return false;
	if (told[i].has_no_image)
		return true;
	return (j->image_set >> i & 1 || (header && ps_image_is_of_level_0(header, j->store_id))) &&
	       !ps_image_is_forked(header, j->settled, j->next);
}

/* Returns the members that lost their image and that an open may remake by I9, given that the
 * mirrors in `by` hold the claim. */
static uint32_t find_remakable(const struct ps_judgement *j, const struct ps_told *told,
                               unsigned count, const struct ps_quorum quorums[2], uint32_t by)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < count; i++)
		if (j->member_ids[i] && !(j->member_set >> i & 1) && !told[i].is_excluded &&
		    may_be_replaced(j, told, i) && ps_quorum_allows_remake(&quorums[0], by, i) &&
		    (!j->next || ps_quorum_allows_remake(&quorums[1], by, i)))
			set |= (uint32_t)1 << i;
	return set;
}

static enum ps_outlook find_outlook(const struct ps_judgement *j, const struct ps_told *told,
                                    unsigned count)
{
	const struct ps_quorum quorums[2] = {
		quorum_of(j, j->settled),
		j->next ? quorum_of(j, j->next) : (struct ps_quorum){ 0 },
	};
	const struct ps_quorum *old = &quorums[0], *last = j->next ? &quorums[1] : old;
	const unsigned t = ps_quorum_t(old);
	uint32_t reached = 0;

	for (unsigned i = 0; i < count; i++)
		if (j->member_set >> i & 1 && !told[i].is_excluded)
			reached |= (uint32_t)1 << i;
	if (j->newest < 0 || ps_quorum_count_members(old, j->counted_set) < ps_quorum_r(old) ||
	    ps_quorum_count_members(last, j->counted_set) < ps_quorum_r(last))
		return PS_OUTLOOK_BELOW_R;
	if (ps_quorum_count_members(old, reached) < (j->next ? old->members - t + 1 : t))
		return PS_OUTLOOK_BELOW_T;
	reached |= find_remakable(j, told, count, quorums, reached);
	return ps_quorum_count_members(last, reached) < last->acks ? PS_OUTLOOK_BELOW_W
	                                                           : PS_OUTLOOK_OPENS;
}

bool ps_judge_unfilled(const struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	return j->settled->filling &&
	       (j->creation_unfinished ||
	        (find_outlook(j, told, count) != PS_OUTLOOK_BELOW_R && told[j->newest].seq == 0));
}

/* --- which store the name means --- */

/* The evidence for one of several stores with the same name. */
struct evidence {
	/* The outlook if there were no other store. Any client can make images, so their number
	 * proves nothing; R images of the newest roster prove that the store is genuine. */
	enum ps_outlook outlook;
	unsigned weight; /* weight of a store that shows fewer than R; else 0 */
};

static struct evidence judge_alone(const uint8_t *store_id, bool unfinished,
                                   const struct ps_told *told, unsigned count)
{
	struct ps_judgement alone = { .store_id = store_id, .creation_unfinished = unfinished };
	struct evidence name = { PS_OUTLOOK_BELOW_R, 0 };

	name.weight = weigh_store(store_id, unfinished, told, count);
	if (!name.weight)
		name.outlook = PS_OUTLOOK_NOTHING;
	if (!name.weight || unfinished)
		return name;
	/* Either key may be the store's, so no other store may be taken instead. */
	if (!find_naming_roster(&alone, told, count))
		return (struct evidence){ PS_OUTLOOK_BELOW_W, 0 };
	ps_judge_rosters(&alone, told, count);
	ps_judge_members(&alone, told, count);
	ps_judge_state(&alone, told, count);
	name.outlook = find_outlook(&alone, told, count);
	/* The choice of a store depends on R and T only, not on W. */
	if (name.outlook == PS_OUTLOOK_OPENS)
		name.outlook = PS_OUTLOOK_BELOW_W;
	if (name.outlook > PS_OUTLOOK_BELOW_R)
		name.weight = 0;
	return name;
}

static int compare_evidence(const struct evidence *a, const struct evidence *b)
{
	if (a->outlook != b->outlook)
		return a->outlook > b->outlook ? 1 : -1;
	return (a->weight > b->weight) - (a->weight < b->weight);
}

static void note_rival(struct ps_judgement *j, const uint8_t *id)
{
	if (!j->rival_id || memcmp(id, j->rival_id, PS_ID_SIZE) < 0)
		j->rival_id = id;
}

/* Chooses among the stores of mirrors that the caller named, or among those of mirrors found in
 * rosters. Of stores with equal evidence it takes the one with the lowest id, and the next one is
 * its rival. The result does not depend on the order of the answers. */
static void choose_among(struct ps_judgement *j, const struct ps_told *told, unsigned count,
                         bool added)
{
	struct evidence best = { PS_OUTLOOK_NOTHING, 0 };

	for (unsigned i = 0; i < count; i++) {
		const uint8_t *id = told[i].header ? told[i].header->store_id.data : NULL;
		struct evidence name = { PS_OUTLOOK_NOTHING, 0 };
		int order;

		if (id && told[i].from_roster == added)
			name = judge_alone(id, j->creation_unfinished, told, count);
		order = compare_evidence(&name, &best);
		if (name.outlook == PS_OUTLOOK_NOTHING || order < 0 ||
		    (j->store_id && !memcmp(id, j->store_id, PS_ID_SIZE)))
			continue;
		if (order > 0) {
			j->store_id = id;
			j->rival_id = NULL;
			best = name;
		} else if (memcmp(id, j->store_id, PS_ID_SIZE) < 0) {
			note_rival(j, j->store_id);
			j->store_id = id;
		} else {
			note_rival(j, id);
		}
	}
}

/* Considers mirrors found in rosters only if no mirror that the caller named has an image. */
static void choose_store(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	j->rival_id = NULL;
	choose_among(j, told, count, false);
	if (!j->store_id)
		choose_among(j, told, count, true);
}

void ps_judge_store(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	j->store_id = NULL;
	j->creation_unfinished = false;
	choose_store(j, told, count);
	if (!j->store_id) {
		j->creation_unfinished = true;
		choose_store(j, told, count);
	}
	j->naming_roster = NULL;
	if (j->store_id && !find_naming_roster(j, told, count))
		j->rival_id = j->store_id;
	if (!j->store_id)
		j->outlook = PS_OUTLOOK_NOTHING;
	else if (j->creation_unfinished)
		j->outlook = PS_OUTLOOK_UNFINISHED;
	else
		j->outlook = j->rival_id ? PS_OUTLOOK_AMBIGUOUS : PS_OUTLOOK_BELOW_R;
}

const char *ps_judge_rival_note(const struct ps_judgement *j)
{
	assert(j->rival_id && j->store_id);
	return memcmp(j->rival_id, j->store_id, PS_ID_SIZE) ? "" : " (with another key)";
}

bool ps_judge_forked(const struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	struct ps_judgement other = { .store_id = j->store_id, .naming_roster = j->naming_roster };
	struct ps_told others[PS_MIRRORS_MAX + 1] = { 0 };

	for (unsigned i = 0; i < count; i++)
		if (is_of_store(&told[i], j) && !told[i].from_roster && !(j->member_set >> i & 1) &&
		    ps_image_is_forked(told[i].header, j->settled, j->next))
			others[i] = told[i];
	ps_judge_rosters(&other, others, count);
	if (!other.settled)
		return false;
	ps_judge_members(&other, others, count);
	ps_judge_state(&other, others, count);
	/* No owner ever adopted that state, so nothing was acknowledged there. */
	if (other.newest >= 0 && others[other.newest].epoch == 0)
		return false;
	return find_outlook(&other, others, count) >= PS_OUTLOOK_BELOW_W;
}

void ps_judge(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	memset(j, 0, sizeof(*j));
	j->newest = -1;
	ps_judge_store(j, told, count);
	if (!j->store_id)
		return;
	ps_judge_rosters(j, told, count);
	assert(j->settled); /* ps_judge_store() chooses only stores with valid rosters */
	ps_judge_members(j, told, count);
	ps_judge_state(j, told, count);
	if (j->outlook == PS_OUTLOOK_BELOW_R)
		j->outlook = find_outlook(j, told, count);
	if (j->outlook >= PS_OUTLOOK_BELOW_R && ps_judge_forked(j, told, count))
		j->outlook = PS_OUTLOOK_FORKED;
	else if (j->outlook != PS_OUTLOOK_AMBIGUOUS && ps_judge_unfilled(j, told, count))
		j->outlook = PS_OUTLOOK_UNFILLED;
}
