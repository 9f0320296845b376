/*
 * test_judge_random.c - what holds for every set of headers, shown for thousands of random ones.
 * The seeds are fixed, so that a run repeats.
 */
#include "judge_rig.h"

enum { SEEDS = 20000 };

static uint32_t dice;

/* 0 to n - 1. */
static unsigned roll(unsigned n)
{
	dice = dice * 1664525 + 1013904223;
	return (unsigned)(((uint64_t)dice * n) >> 32);
}

static void draw_header(struct scene *s, unsigned k)
{
	static const Perseas__State states[] = {
		PERSEAS__STATE__STATE_CREATING,   PERSEAS__STATE__STATE_JOINING,
		PERSEAS__STATE__STATE_JOINING,    PERSEAS__STATE__STATE_CONSISTENT,
		PERSEAS__STATE__STATE_CONSISTENT, PERSEAS__STATE__STATE_CONSISTENT,
	};
	const unsigned store = roll(4) ? 0 : roll(STORES), r = roll(ROSTERS);
	Perseas__Header *header = tell(s, store, k, r, roll(4));
	struct ps_told *told = &s->told[s->count - 1];
	const unsigned next = r + 1 + roll(ROSTERS), parent = roll(IMAGES);

	header->state = states[roll(sizeof(states) / sizeof(states[0]))];
	header->harmless = roll(2);
	if (next < ROSTERS) {
		header->next_roster = &s->of[store].roster[next];
		header->marked = !roll(4);
	}
	if (!roll(3) && parent != k)
		header->parent_id = image_of(store, parent);
	told->epoch = roll(3);
	told->is_excluded = !roll(10);
	told->has_slot = roll(10);
}

/* The mirror before is asked by another address, too. */
static void draw_copy(struct scene *s, unsigned k)
{
	s->told[k] = s->told[k - 1];
	s->told[k].address = NULL;
	s->count++;
}

/* A set of headers, each from one of three stores, with rosters that overlap. */
static void draw(struct scene *s, uint32_t seed)
{
	unsigned mirrors;

	dice = seed * 2654435761u;
	memset(s, 0, sizeof(*s));
	for (unsigned store = 0; store < STORES; store++)
		for (unsigned r = 0; r < ROSTERS; r++) {
			unsigned mask = 1 + roll((1 << MEMBERS) - 1);

			mask <<= roll(IMAGES - MEMBERS);
			list(s, store, r, 1 + roll((unsigned)__builtin_popcount(mask)), mask);
		}
	mirrors = roll(MIRRORS + 1);
	for (unsigned k = 0; k < mirrors; k++) {
		if (!roll(8))
			tell_empty(s, 0, k);
		else if (!roll(8))
			s->told[s->count++] = (struct ps_told){ .address = address_of(0, k) };
		else if (k && !roll(20))
			draw_copy(s, k);
		else
			draw_header(s, k);
		/* Its image may have moved to another address since. */
		if (!roll(4))
			s->told[k].address = NULL;
	}
}

/* Copies the scene with its mirrors in another order: told[i] goes to place to[i]. */
static void shuffle(const struct scene *s, struct scene *other, unsigned to[MIRRORS])
{
	*other = *s;
	for (unsigned i = 0; i < s->count; i++)
		to[i] = i;
	for (unsigned i = s->count; i > 1; i--) {
		const unsigned k = roll(i), at = to[k];

		to[k] = to[i - 1];
		to[i - 1] = at;
	}
	for (unsigned i = 0; i < s->count; i++)
		other->told[to[i]] = s->told[i];
}

static bool same_id(const uint8_t *a, const uint8_t *b)
{
	return a == b || (a && b && !memcmp(a, b, PS_ID_SIZE));
}

static void assert_alike(const struct ps_judgement *a, const struct ps_judgement *b)
{
	assert_int_equal(a->outlook, b->outlook);
	assert_true(same_id(a->store_id, b->store_id));
	assert_int_equal(a->creation_unfinished, b->creation_unfinished);
	assert_ptr_equal(a->settled, b->settled);
	assert_ptr_equal(a->next, b->next);
	assert_int_equal(a->is_decided, b->is_decided);
}

TEST(whoever_is_asked_first_it_is_judged_alike)
{
	static struct scene s, other;

	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		unsigned to[MIRRORS];

		draw(&s, seed);
		judge(&s);
		shuffle(&s, &other, to);
		judge(&other);
		assert_alike(&s.j, &other.j);
		/* Which of two with the same image is the member depends on the order. */
		for (unsigned i = 0; !s.j.duplicate_set && i < s.count; i++) {
			assert_true(same_id(s.j.member_ids[i], other.j.member_ids[to[i]]));
			assert_int_equal(s.j.image_set >> i & 1, other.j.image_set >> to[i] & 1);
			assert_int_equal(s.j.member_set >> i & 1, other.j.member_set >> to[i] & 1);
			assert_int_equal(s.j.loaded_set >> i & 1, other.j.loaded_set >> to[i] & 1);
			assert_int_equal(s.j.counted_set >> i & 1,
			                 other.j.counted_set >> to[i] & 1);
			assert_int_equal(s.j.candidate_set >> i & 1,
			                 other.j.candidate_set >> to[i] & 1);
		}
		assert_int_equal(s.j.newest < 0, other.j.newest < 0);
		if (s.j.newest < 0 || s.j.duplicate_set)
			continue;
		assert_int_equal(s.told[s.j.newest].epoch, other.told[other.j.newest].epoch);
		assert_int_equal(s.told[s.j.newest].seq, other.told[other.j.newest].seq);
	}
}

/* Adds a mirror that does not answer, or whose image left the roster. */
TEST(who_knows_no_more_changes_nothing)
{
	static struct scene s, more;

	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		Perseas__Header old = PERSEAS__HEADER__INIT;
		unsigned at;

		draw(&s, seed);
		judge(&s);
		more = s;
		at = more.count++;
		more.told[at] = (struct ps_told){ 0 };
		if (roll(2) && s.j.settled && s.j.outlook != PS_OUTLOOK_AMBIGUOUS) {
			old.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t *)s.j.store_id };
			old.image_id = id_of(STORES * IMAGES);
			old.roster = (Perseas__Roster *)s.j.settled;
			old.state = s.j.creation_unfinished ? PERSEAS__STATE__STATE_CREATING
			                                    : PERSEAS__STATE__STATE_CONSISTENT;
			more.told[at] = (struct ps_told){
				.header = &old, .has_slot = true, .epoch = 9, .seq = 9
			};
		}
		judge(&more);
		assert_alike(&s.j, &more.j);
		assert_memory_equal(s.j.member_ids, more.j.member_ids, sizeof(s.j.member_ids));
		assert_int_equal(s.j.member_set, more.j.member_set);
		assert_int_equal(s.j.loaded_set, more.j.loaded_set);
		assert_int_equal(s.j.counted_set, more.j.counted_set);
		assert_int_equal(s.j.newest, more.j.newest);
	}
}

static bool says(const struct scene *s, const struct ps_told *told)
{
	return told->header && !told->is_excluded &&
	       same_id(told->header->store_id.data, s->j.store_id) &&
	       (s->j.creation_unfinished || told->header->state != PERSEAS__STATE__STATE_CREATING);
}

/* Store, rosters and state are what some mirror told, and nobody with a say told of newer ones. */
TEST(what_is_chosen_is_held_by_somebody)
{
	static struct scene s;

	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		bool store = false, settled = false, next = false;

		draw(&s, seed);
		judge(&s);
		for (unsigned i = 0; i < s.count; i++) {
			const struct ps_told *told = &s.told[i];

			assert_false(told->header && !told->is_excluded && !s.j.store_id);
			if (!says(&s, told))
				continue;
			store = true;
			settled |= told->header->roster == s.j.settled;
			next |= told->header->next_roster == s.j.next;
			assert_false(ps_roster_newer(told->header->roster, s.j.settled));
			if (ps_roster_newer(told->header->next_roster, s.j.settled))
				assert_false(ps_roster_newer(told->header->next_roster, s.j.next));
			if (s.j.candidate_set >> i & 1)
				assert_true(told->epoch < s.told[s.j.newest].epoch ||
				            (told->epoch == s.told[s.j.newest].epoch &&
				             told->seq <= s.told[s.j.newest].seq));
		}
		assert_true(!s.j.store_id || store);
		assert_true(!s.j.store_id || settled);
		assert_true(!s.j.next || next);
		assert_int_equal(s.j.newest >= 0, s.j.candidate_set != 0);
		assert_true(s.j.newest < 0 || s.j.candidate_set >> s.j.newest & 1);
	}
}

/* --- the rules, counted in another way: member by member --- */

/* The image that is this member of a roster in force; of several the one with the lowest id. */
static const struct ps_told *find_image(const struct scene *s, const Perseas__Member *member)
{
	const struct ps_told *heir = NULL;

	for (unsigned i = 0; i < s->count; i++) {
		const Perseas__Header *header = s->told[i].header;

		if (!header || !same_id(header->store_id.data, s->j.store_id))
			continue;
		if (same_id(header->image_id.data, member->image_id.data))
			return &s->told[i];
		if (!same_id(header->parent_id.data, member->image_id.data) ||
		    ps_roster_member(s->j.settled, header->image_id.data) ||
		    ps_roster_member(s->j.next, header->image_id.data))
			continue;
		if (!heir ||
		    memcmp(header->image_id.data, heir->header->image_id.data, PS_ID_SIZE) < 0)
			heir = &s->told[i];
	}
	return heir;
}

enum worth { ABSENT, LOST, THERE, VOICE, CANDIDATE };

/* Returns true if a member of one roster, by its image, is a member of the other. */
static bool meets(const Perseas__Roster *roster, const Perseas__Roster *other)
{
	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (ps_roster_member(other, roster->members[k]->image_id.data))
			return true;
	return false;
}

static bool lists(const Perseas__Roster *roster, ProtobufCBinaryData id)
{
	return id.len && ps_roster_member(roster, id.data);
}

/* Returns true if the image may be replaced: it counts for no other store, whose rosters have none
 * of these images. After a change is decided, the roster before it means nothing. */
static bool is_free(const struct scene *s, const Perseas__Header *header)
{
	const Perseas__Roster *one = header->roster, *two = header->next_roster;

	if (header->marked && two)
		one = NULL;
	if (!lists(one, header->image_id) && !lists(two, header->image_id) &&
	    !lists(one, header->parent_id) && !lists(two, header->parent_id))
		return true;
	return meets(one, s->j.settled) || meets(one, s->j.next) || meets(two, s->j.settled) ||
	       meets(two, s->j.next);
}

/* The mirror that stands for a member whose image nobody shows: test_judge.c says which. */
static const struct ps_told *find_substitute(const struct scene *s, const Perseas__Member *member)
{
	for (unsigned i = 0; i < s->count; i++)
		if (!(s->j.member_set >> i & 1) && s->j.member_ids[i] &&
		    same_id(member->image_id.data, s->j.member_ids[i]))
			return &s->told[i];
	return NULL;
}

static enum worth worth_of(const struct scene *s, const Perseas__Member *member)
{
	const struct ps_told *told = find_image(s, member);
	const struct ps_told *by = told ? NULL : find_substitute(s, member);

	if (!told)
		return by && !by->is_excluded &&
		                       (by->has_no_image ||
		                        (by->header && is_free(s, by->header) &&
		                         same_id(by->header->store_id.data, s->j.store_id)))
		               ? LOST
		               : ABSENT;
	if (told->is_excluded)
		return ABSENT;
	if (told->header->state == PERSEAS__STATE__STATE_CONSISTENT)
		return told->has_slot ? CANDIDATE : THERE;
	return told->header->state == PERSEAS__STATE__STATE_CREATING || told->header->harmless
	               ? VOICE
	               : THERE;
}

static unsigned count(const struct scene *s, const Perseas__Roster *roster, enum worth least)
{
	unsigned count = 0;

	for (size_t k = 0; k < roster->n_members; k++)
		count += worth_of(s, roster->members[k]) >= least;
	return count;
}

static unsigned most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned r_of(const Perseas__Roster *roster)
{
	return (unsigned)roster->n_members - roster->acks + 1;
}

/* I9, by this roster. */
static bool remakes(const struct scene *s, const Perseas__Roster *roster,
                    const Perseas__Member *member)
{
	const bool own = ps_roster_member(roster, member->image_id.data);
	const unsigned others = (unsigned)roster->n_members - own;

	return others && count(s, roster, THERE) >= least(others, most(roster->acks, r_of(roster)));
}

static bool opens(const struct scene *s)
{
	const Perseas__Roster *old = s->j.settled, *next = s->j.next, *last = next ? next : old;
	const unsigned n = (unsigned)old->n_members;
	const unsigned t = n == 1 ? 1 : least(n - 1, most(old->acks, r_of(old)));
	unsigned whole = count(s, last, THERE);

	if (!s->j.candidate_set || count(s, old, VOICE) < r_of(old) ||
	    count(s, last, VOICE) < r_of(last))
		return false;
	if (count(s, old, THERE) < (next ? n - t + 1 : t))
		return false;
	for (size_t k = 0; k < last->n_members; k++)
		whole += worth_of(s, last->members[k]) == LOST &&
		         remakes(s, old, last->members[k]) && remakes(s, last, last->members[k]);
	return whole >= last->acks;
}

TEST(it_opens_where_the_rules_say_so)
{
	static struct scene s;
	unsigned yes = 0, no = 0;

	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		draw(&s, seed);
		if (judge(&s) < PS_OUTLOOK_BELOW_R) {
			assert_true(!s.j.store_id || s.j.creation_unfinished ||
			            s.j.outlook == PS_OUTLOOK_AMBIGUOUS ||
			            s.j.outlook == PS_OUTLOOK_FORKED);
			continue;
		}
		assert_int_equal(s.j.outlook == PS_OUTLOOK_OPENS, opens(&s));
		yes += s.j.outlook == PS_OUTLOOK_OPENS;
		no += s.j.outlook != PS_OUTLOOK_OPENS;
	}
	assert_in_range(yes, SEEDS / 20, SEEDS);
	assert_in_range(no, SEEDS / 20, SEEDS);
}
