/*
 * judge.c - see judge.h. The rules are those of PROTOCOL.md: I6, I9, and the order of an open's
 * steps.
 */
#include "judge.h"

#include "envelope.h"

#include <assert.h>
#include <string.h>

/* --- the store, and its rosters --- */

static bool is_of(const struct ps_told *told, const struct ps_judgement *j)
{
	return told->header && ps_store_is(told->header, j->store_id, j->named);
}

static bool is_later(const struct ps_told *a, const struct ps_told *b)
{
	return a->epoch != b->epoch ? a->epoch > b->epoch : a->seq > b->seq;
}

/* The header, if it has a say in which rosters are in force, else NULL. While the making goes on
 * elsewhere, an image that is not settled knows only the first one. */
static const Perseas__Header *heard_header(const struct ps_judgement *j, const struct ps_told *told)
{
	const Perseas__Header *header = is_of(told, j) ? told->header : NULL;

	if (!header || told->out ||
	    (!j->unfinished && header->state == PERSEAS__STATE__STATE_CREATING))
		return NULL;
	return header;
}

/*
 * Finds the roster of level 1 that names the store. A store whose id is made of its key comes
 * before one that was raised: nobody else can make its images. Returns false if two keys claim an
 * id that is made of neither, so that either of them may be the store's.
 */
static bool find_name(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	const Perseas__Roster *named = NULL;
	bool unique = true;

	/* Whoever asks has seen it before. */
	if (j->named && j->named->level > 0)
		return true;
	j->named = NULL;
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = heard_header(j, &told[i]);
		const Perseas__Roster *roster = header ? header->roster : NULL;

		if (!roster || roster->level == 0 || (named && ps_roster_same_name(roster, named)))
			continue;
		unique = !named || !roster->key_hash.len || !named->key_hash.len;
		if (!named || !roster->key_hash.len)
			named = roster;
	}
	j->named = named;
	return unique;
}

/* Returns true if the change to the next roster is decided. A mirror that left the roster may keep
 * the mark of an earlier change, whose roster has been settled since: that mark does not count. */
static bool is_decided(const struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = heard_header(j, &told[i]);

		if (header && header->marked && ps_roster_newer(header->next_roster, j->settled))
			return true;
	}
	return false;
}

/* Two rosters of the same (epoch, version) are the same, unless somebody who may create stores made
 * one up, which is then of the first version: no image that it came with was ever owned. */
void ps_judge_rosters(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	const struct ps_told *by = NULL;

	j->settled = j->next = NULL;
	(void)find_name(j, told, count);
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = heard_header(j, &told[i]);
		int order;

		if (!header)
			continue;
		order = ps_roster_order(header->roster, j->settled);
		if (order > 0 || (order == 0 && by && is_later(&told[i], by))) {
			j->settled = header->roster;
			by = &told[i];
		}
		if (ps_roster_newer(header->next_roster, j->next))
			j->next = header->next_roster;
	}
	if (!ps_roster_newer(j->next, j->settled))
		j->next = NULL;
	j->marked = is_decided(j, told, count);
}

static bool is_listed(const struct ps_judgement *j, ProtobufCBinaryData image)
{
	return image.len == PS_ID_SIZE &&
	       (ps_roster_member(j->settled, image.data) || ps_roster_member(j->next, image.data));
}

/* Was it heard of at another address already? */
static bool is_repeated(const struct ps_judgement *j, const struct ps_told *told, unsigned i)
{
	for (unsigned k = 0; k < i; k++) {
		const Perseas__Header *header = heard_header(j, &told[k]);

		if (header && ps_id_equal(header->image_id, told[i].header->image_id.data))
			return true;
	}
	return false;
}

/* One image that is listed outweighs all that are not. */
static unsigned weigh_store(const uint8_t *store_id, bool unfinished, const struct ps_told *told,
                            unsigned count)
{
	struct ps_judgement j = { .store_id = store_id, .unfinished = unfinished };
	unsigned weight = 0;

	ps_judge_rosters(&j, told, count);
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = heard_header(&j, &told[i]);

		if (!header || is_repeated(&j, told, i))
			continue;
		weight++;
		if (is_listed(&j, header->image_id) || is_listed(&j, header->parent_id))
			weight += PS_MIRRORS_MAX;
	}
	return weight;
}

/* --- members --- */

static bool is_taken(const struct ps_judgement *j, unsigned count, const uint8_t *image_id)
{
	for (unsigned i = 0; i < count; i++)
		if (j->as[i] && !memcmp(j->as[i], image_id, PS_ID_SIZE))
			return true;
	return false;
}

static bool lists_there(const Perseas__Roster *roster, const struct ps_told *told)
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

/* A client that may create stores can make an image under a member's id, but cannot claim it: one
 * that nobody ever claimed gives way to one of the same id that was. */
static bool gives_way(const struct ps_judgement *j, const struct ps_told *told, unsigned count,
                      unsigned i)
{
	const Perseas__Header *header = told[i].header;

	for (unsigned k = 0; k < count && !header->promised_epoch; k++)
		if (is_of(&told[k], j) && told[k].header->promised_epoch &&
		    ps_id_equal(header->image_id, told[k].header->image_id.data))
			return true;
	return false;
}

static bool shows_image(const struct ps_judgement *j, const struct ps_told *told, unsigned count,
                        unsigned i)
{
	return is_of(&told[i], j) && !gives_way(j, told, count, i);
}

/* Of two addresses that lead to the same daemon, the one whose turn is first has its image. */
static unsigned turn_of(const struct ps_judgement *j, const struct ps_told *told)
{
	const bool lists = told->header &&
	                   (lists_there(j->settled, told) || lists_there(j->next, told));

	return 2 * told->added + !lists;
}

/* A daemon that tells no identity is known by its image. */
static bool is_same_daemon(const struct ps_judgement *j, const struct ps_told *told, unsigned count,
                           unsigned a, unsigned b)
{
	if (told[a].daemon && told[b].daemon && !memcmp(told[a].daemon, told[b].daemon, PS_ID_SIZE))
		return true;
	return shows_image(j, told, count, a) && shows_image(j, told, count, b) &&
	       ps_id_equal(told[a].header->image_id, told[b].header->image_id.data);
}

static void find_elsewhere(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned first = i;

		for (unsigned k = 0; k < count; k++) {
			const unsigned turn = turn_of(j, &told[k]),
				       before = turn_of(j, &told[first]);

			if (is_same_daemon(j, told, count, i, k) &&
			    (turn < before || (turn == before && k < first)))
				first = k;
		}
		if (first == i)
			continue;
		j->elsewhere |= (uint32_t)1 << i;
		j->same_as[i] = first;
	}
}

static void take_images(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = told[i].header;

		if (j->elsewhere >> i & 1 || !shows_image(j, told, count, i) ||
		    !is_listed(j, header->image_id))
			continue;
		j->as[i] = header->image_id.data;
		j->listed |= (uint32_t)1 << i;
	}
}

/* Is it an image that can be the member that its parent was? */
static bool is_heir(const struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	return is_of(told, j) && !is_listed(j, told->header->image_id) &&
	       is_listed(j, told->header->parent_id) &&
	       !is_taken(j, count, told->header->parent_id.data);
}

/* Of two that were loaded from the same, the one with the lower id: whoever asks takes the same. */
static void take_loaded(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = told[i].header;
		bool first = true;

		if (j->elsewhere >> i & 1 || !is_heir(j, &told[i], count))
			continue;
		for (unsigned k = 0; k < count; k++)
			if (is_heir(j, &told[k], count) &&
			    ps_id_equal(told[k].header->parent_id, header->parent_id.data) &&
			    memcmp(told[k].header->image_id.data, header->image_id.data,
			           PS_ID_SIZE) < 0)
				first = false;
		if (!first)
			continue;
		j->as[i] = header->parent_id.data;
		j->listed |= (uint32_t)1 << i;
		j->loaded |= (uint32_t)1 << i;
	}
}

/* A mirror without a listed image must be the member of its address: it lost what it had, or was
 * not reached. */
static void take_by_address(struct ps_judgement *j, const Perseas__Roster *roster,
                            const struct ps_told *told, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		for (size_t k = 0; roster && told[i].address && k < roster->n_members; k++) {
			const Perseas__Member *member = roster->members[k];

			if (!j->as[i] && !is_taken(j, count, member->image_id.data) &&
			    !strcmp(member->address, told[i].address))
				j->as[i] = member->image_id.data;
		}
	}
}

/*
 * Takes mirrors at listed addresses whose own members are seen elsewhere for members that no image
 * shows: the addresses of two members may have been swapped. A daemon that answers has lost what
 * such a member had, so mirrors that were not reached go first.
 */
static void take_rest(struct ps_judgement *j, const Perseas__Roster *roster,
                      const struct ps_told *told, unsigned count, bool that_answer)
{
	for (unsigned i = 0; i < count; i++) {
		const bool answers = (told[i].header || told[i].empty) && !(j->elsewhere >> i & 1);

		if (j->as[i] || answers != that_answer || !told[i].address ||
		    !ps_roster_at(roster, told[i].address))
			continue;
		for (size_t k = 0; k < roster->n_members && !j->as[i]; k++)
			if (!is_taken(j, count, roster->members[k]->image_id.data))
				j->as[i] = roster->members[k]->image_id.data;
	}
}

void ps_judge_members(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	j->belongs = j->listed = j->loaded = j->elsewhere = 0;
	memset(j->as, 0, sizeof(j->as));
	for (unsigned i = 0; i < count; i++)
		j->belongs |= (uint32_t)is_of(&told[i], j) << i;
	find_elsewhere(j, told, count);
	take_images(j, told, count);
	take_loaded(j, told, count);
	take_by_address(j, j->settled, told, count);
	take_by_address(j, j->next, told, count);
	for (int that_answer = 0; that_answer <= 1; that_answer++) {
		take_rest(j, j->settled, told, count, that_answer);
		take_rest(j, j->next, told, count, that_answer);
	}
}

/* --- the state --- */

int ps_judge_newest(const struct ps_told *told, uint32_t set)
{
	int best = -1;

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		if (set >> i & 1 && (best < 0 || is_later(&told[i], &told[best])))
			best = (int)i;
	return best;
}

/* I6: one that is joining counts where that began in place and did no harm. One that is still being
 * created is settled by an open, before it claims. */
static bool has_voice(const Perseas__Header *header)
{
	return header->state == PERSEAS__STATE__STATE_CREATING ||
	       (header->state == PERSEAS__STATE__STATE_JOINING && header->harmless);
}

void ps_judge_state(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	j->counts = j->candidates = 0;
	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *header = told[i].header;

		if (!header || !(j->listed >> i & 1) || told[i].out)
			continue;
		if (header->state == PERSEAS__STATE__STATE_CONSISTENT && told[i].has_slot)
			j->candidates |= (uint32_t)1 << i;
		else if (has_voice(header))
			j->counts |= (uint32_t)1 << i;
	}
	j->counts |= j->candidates;
	j->newest = ps_judge_newest(told, j->candidates);
}

/* --- the outlook --- */

static struct ps_quorum quorum_of(const struct ps_judgement *j, const Perseas__Roster *roster)
{
	struct ps_quorum quorum = { 0, (unsigned)roster->n_members, roster->acks };

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		if (j->as[i] && ps_roster_member(roster, j->as[i]))
			quorum.set |= (uint32_t)1 << i;
	return quorum;
}

/* Has it nothing of the store, or what may be replaced? */
static bool is_free(const struct ps_judgement *j, const struct ps_told *told, unsigned i)
{
	const Perseas__Header *header = told[i].header;

	if (j->elsewhere >> i & 1)
		return false;
	if (told[i].empty)
		return true;
	return (j->belongs >> i & 1 || (header && ps_store_precedes(header, j->store_id))) &&
	       !ps_image_forked(header, j->settled, j->next);
}

/* The members that lost their image, and that I9 lets an open make anew by these. */
static uint32_t find_remade(const struct ps_judgement *j, const struct ps_told *told,
                            unsigned count, const struct ps_quorum quorums[2], uint32_t by)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < count; i++)
		if (j->as[i] && !(j->listed >> i & 1) && !told[i].out && is_free(j, told, i) &&
		    ps_quorum_remakes(&quorums[0], by, i) &&
		    (!j->next || ps_quorum_remakes(&quorums[1], by, i)))
			set |= (uint32_t)1 << i;
	return set;
}

static enum ps_outlook look_ahead(const struct ps_judgement *j, const struct ps_told *told,
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
		if (j->listed >> i & 1 && !told[i].out)
			reached |= (uint32_t)1 << i;
	if (j->newest < 0 || ps_quorum_members(old, j->counts) < ps_quorum_r(old) ||
	    ps_quorum_members(last, j->counts) < ps_quorum_r(last))
		return PS_OUTLOOK_UNKNOWN;
	if (ps_quorum_members(old, reached) < (j->next ? old->members - t + 1 : t))
		return PS_OUTLOOK_UNSEEN;
	reached |= find_remade(j, told, count, quorums, reached);
	return ps_quorum_members(last, reached) < last->acks ? PS_OUTLOOK_SHORT : PS_OUTLOOK_OPENS;
}

bool ps_judge_unfilled(const struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	return j->settled->filling &&
	       (j->unfinished ||
	        (look_ahead(j, told, count) != PS_OUTLOOK_UNKNOWN && told[j->newest].seq == 0));
}

/* --- which store --- */

/* What speaks for one of several stores of a name. */
struct claim_to_name {
	/* What an open would come to if there were no other store: how many images it shows says
	 * nothing, but R of its newest roster do. */
	enum ps_outlook outlook;
	unsigned weight; /* of stores that do not show R; else 0 */
};

static struct claim_to_name look_alone(const uint8_t *store_id, bool unfinished,
                                       const struct ps_told *told, unsigned count)
{
	struct ps_judgement alone = { .store_id = store_id, .unfinished = unfinished };
	struct claim_to_name name = { PS_OUTLOOK_UNKNOWN, 0 };

	name.weight = weigh_store(store_id, unfinished, told, count);
	if (!name.weight)
		name.outlook = PS_OUTLOOK_NOTHING;
	if (!name.weight || unfinished)
		return name;
	/* Either key may be the store's: no other store may be taken instead of it. */
	if (!find_name(&alone, told, count))
		return (struct claim_to_name){ PS_OUTLOOK_SHORT, 0 };
	ps_judge_rosters(&alone, told, count);
	ps_judge_members(&alone, told, count);
	ps_judge_state(&alone, told, count);
	name.outlook = look_ahead(&alone, told, count);
	/* R and T are there: whether W can be had is no matter of which store is meant. */
	if (name.outlook == PS_OUTLOOK_OPENS)
		name.outlook = PS_OUTLOOK_SHORT;
	if (name.outlook > PS_OUTLOOK_UNKNOWN)
		name.weight = 0;
	return name;
}

static int compare_claims(const struct claim_to_name *a, const struct claim_to_name *b)
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

/* Of the stores that mirrors told of that were named, or that were not (`added`). Of those with the
 * same claim, the one with the lowest id is taken, in whatever order they were told of, and the
 * next one is its rival. */
static void choose_among(struct ps_judgement *j, const struct ps_told *told, unsigned count,
                         bool added)
{
	struct claim_to_name best = { PS_OUTLOOK_NOTHING, 0 };

	for (unsigned i = 0; i < count; i++) {
		const uint8_t *id = told[i].header ? told[i].header->store_id.data : NULL;
		struct claim_to_name name = { PS_OUTLOOK_NOTHING, 0 };
		int order;

		if (id && told[i].added == added)
			name = look_alone(id, j->unfinished, told, count);
		order = compare_claims(&name, &best);
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

/* Who names mirrors of one store has said which is meant, whatever is at other addresses that its
 * roster has. */
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
	j->unfinished = false;
	choose_store(j, told, count);
	if (!j->store_id) {
		j->unfinished = true;
		choose_store(j, told, count);
	}
	j->named = NULL;
	if (j->store_id && !find_name(j, told, count))
		j->rival_id = j->store_id;
	if (!j->store_id)
		j->outlook = PS_OUTLOOK_NOTHING;
	else if (j->unfinished)
		j->outlook = PS_OUTLOOK_UNFINISHED;
	else
		j->outlook = j->rival_id ? PS_OUTLOOK_AMBIGUOUS : PS_OUTLOOK_UNKNOWN;
}

const char *ps_judge_rival_note(const struct ps_judgement *j)
{
	return memcmp(j->rival_id, j->store_id, PS_ID_SIZE) ? "" : " (with another key)";
}

bool ps_judge_parted(const struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	struct ps_judgement other = { .store_id = j->store_id, .named = j->named };
	struct ps_told others[PS_MIRRORS_MAX + 1] = { 0 };

	for (unsigned i = 0; i < count; i++)
		if (is_of(&told[i], j) && !told[i].added && !(j->listed >> i & 1) &&
		    ps_image_forked(told[i].header, j->settled, j->next))
			others[i] = told[i];
	ps_judge_rosters(&other, others, count);
	if (!other.settled)
		return false;
	ps_judge_members(&other, others, count);
	ps_judge_state(&other, others, count);
	/* No owner ever adopted it: nothing was acknowledged there. */
	if (other.newest >= 0 && others[other.newest].epoch == 0)
		return false;
	return look_ahead(&other, others, count) >= PS_OUTLOOK_SHORT;
}

void ps_judge(struct ps_judgement *j, const struct ps_told *told, unsigned count)
{
	memset(j, 0, sizeof(*j));
	j->newest = -1;
	ps_judge_store(j, told, count);
	if (!j->store_id)
		return;
	ps_judge_rosters(j, told, count);
	assert(j->settled); /* a store is chosen by those that have a say */
	ps_judge_members(j, told, count);
	ps_judge_state(j, told, count);
	if (j->outlook == PS_OUTLOOK_UNKNOWN)
		j->outlook = look_ahead(j, told, count);
	if (j->outlook >= PS_OUTLOOK_UNKNOWN && ps_judge_parted(j, told, count))
		j->outlook = PS_OUTLOOK_PARTED;
	else if (j->outlook != PS_OUTLOOK_AMBIGUOUS && ps_judge_unfilled(j, told, count))
		j->outlook = PS_OUTLOOK_UNFILLED;
}
