/*
 * judge_rig.h - sets of headers for the tests of judge.c: what mirrors tell of a few stores,
 * each with rosters and images of its own.
 */
#ifndef PERSEAS_TESTS_JUDGE_RIG_H
#define PERSEAS_TESTS_JUDGE_RIG_H

#include "../../proto/control/judge.h"
#include "../support/unit.h"

enum {
	MIRRORS = 7, /* at most, in one set */
	IMAGES = 8,  /* of each store that may be there */
	ROSTERS = 4, /* rosters of each store, each newer than the one before */
	STORES = 3,
	MEMBERS = 5,
};

/* Rosters of one store: number r is of epoch r / 2, version r + 1. */
struct rosters {
	Perseas__Roster roster[ROSTERS];
	Perseas__Member members[ROSTERS][MEMBERS], *list[ROSTERS][MEMBERS];
};

struct scene {
	struct rosters of[STORES];
	Perseas__Header headers[MIRRORS];
	struct ps_told told[MIRRORS + 1];
	unsigned count;
	struct ps_judgement j;
};

/* Gives a test an empty scene. */
static inline int setup_scene(void **state)
{
	static struct scene scene;

	memset(&scene, 0, sizeof(scene));
	*state = &scene;
	return 0;
}

static inline ProtobufCBinaryData id_of(unsigned number)
{
	static uint8_t ids[64][PS_ID_SIZE];

	ids[number][3] = (uint8_t)(64 - number);
	ids[number][9] = 1;
	return (ProtobufCBinaryData){ PS_ID_SIZE, ids[number] };
}

static inline ProtobufCBinaryData store_of(unsigned store)
{
	return id_of(60 + store);
}

/* Image k of a store; its member's address is that of k. */
static inline ProtobufCBinaryData image_of(unsigned store, unsigned k)
{
	return id_of(store * IMAGES + k);
}

static inline char *address_of(unsigned store, unsigned k)
{
	static char texts[STORES * IMAGES][12];
	char *text = texts[store * IMAGES + k];

	snprintf(text, sizeof(texts[0]), "a%u", store * IMAGES + k);
	return text;
}

/* Makes roster r list the images of the mask, with W = acks. */
static inline void list(struct scene *s, unsigned store, unsigned r, unsigned acks, unsigned mask)
{
	struct rosters *of = &s->of[store];
	Perseas__Roster *roster = &of->roster[r];

	perseas__roster__init(roster);
	roster->epoch = r / 2;
	roster->version = r + 1;
	roster->acks = acks;
	roster->members = of->list[r];
	for (unsigned k = 0; k < IMAGES; k++) {
		Perseas__Member *member = &of->members[r][roster->n_members];

		if (!(mask >> k & 1))
			continue;
		perseas__member__init(member);
		member->address = address_of(store, k);
		member->image_id = image_of(store, k);
		of->list[r][roster->n_members++] = member;
	}
}

/* Adds a mirror with image k of a store, whole, at a transaction of epoch 1. */
static inline Perseas__Header *tell(struct scene *s, unsigned store, unsigned k, unsigned r,
                                    uint64_t seq)
{
	Perseas__Header *header = &s->headers[s->count];
	struct ps_told *told = &s->told[s->count++];

	perseas__header__init(header);
	header->store_id = store_of(store);
	header->image_id = image_of(store, k);
	header->state = PERSEAS__STATE__STATE_CONSISTENT;
	header->roster = &s->of[store].roster[r];
	*told = (struct ps_told){ .header = header,
		                  .has_slot = true,
		                  .epoch = 1,
		                  .seq = seq,
		                  .address = address_of(store, k) };
	return header;
}

/* Adds a mirror for each image of the mask, all at the same transaction. */
static inline void tell_all(struct scene *s, unsigned store, unsigned mask, unsigned r,
                            uint64_t seq)
{
	for (unsigned k = 0; k < IMAGES; k++)
		if (mask >> k & 1)
			tell(s, store, k, r, seq);
}

/* Adds a mirror that answers that it has nothing. */
static inline void tell_empty(struct scene *s, unsigned store, unsigned k)
{
	s->told[s->count++] = (struct ps_told){ .has_no_image = true,
		                                .address = address_of(store, k) };
}

static inline enum ps_outlook judge(struct scene *s)
{
	ps_judge(&s->j, s->told, s->count);
	return s->j.outlook;
}

static inline bool is_store(const struct scene *s, unsigned store)
{
	return s->j.store_id && !memcmp(s->j.store_id, store_of(store).data, PS_ID_SIZE);
}

/* Judges the scene, and asserts what an open would come to, and which images count. */
#define assert_judged(s, outlook, images)                    \
	do {                                                 \
		assert_int_equal(judge(s), outlook);         \
		assert_int_equal((s)->j.member_set, images); \
	} while (0)

/* Checks the outlook, and which store was chosen. */
#define assert_judged_store(s, outlook, store)       \
	do {                                         \
		assert_int_equal(judge(s), outlook); \
		assert_true(is_store(s, store));     \
	} while (0)

#endif
