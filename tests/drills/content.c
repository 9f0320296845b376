/*
 * content.c - computes the changes of transaction k, and the whole state after it. owner.c uses it
 * to write, and to check what was recovered. Its results depend only on k and the shape.
 */
#include "content.h"

#include <string.h>

enum {
	STRIPES_MAX = 1 << 10, /* upper bound for a segment's stripe, in bytes */
	SHORT_MAX = 400,       /* upper bound for most ranges, in bytes */
	BULK_EVERY = 8,        /* one transaction in this many also has a long range */
	BULK_MAX = 16 << 10,   /* upper bound for long ranges, which take a while to copy */
};

struct book books[BOOKS] = {
	{ "ledger", 64 << 10 },
	{ "journal", BOOK_MAX },
	{ "accounts", 0 },
	{ "notes", 0 },
};
unsigned book_count = 2;

/* The bounds in use, which content_shape changes. */
static uint32_t short_max = SHORT_MAX, bulk_max = BULK_MAX, bulk_every = BULK_EVERY;

/* Returns the next number of a random sequence; each seed begins at another point of it. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void content_shape(uint64_t seed)
{
	uint64_t state = seed;

	if (!seed)
		return;
	book_count = 1 + (unsigned)(draw(&state) % BOOKS);
	for (unsigned i = 0; i < book_count; i++)
		books[i].size = STRIPES * (8 + draw(&state) % (STRIPES_MAX - 7));
	short_max = 1 + (uint32_t)(draw(&state) % (4 * SHORT_MAX));
	bulk_max = 1 + (uint32_t)(draw(&state) % (4 * BULK_MAX));
	bulk_every = 1 + (uint32_t)(draw(&state) % (2 * BULK_EVERY));
}

static struct change random_change(uint64_t *state, uint32_t most)
{
	struct change change = { .book = (unsigned)(draw(state) % book_count) };

	if (most > books[change.book].size / 2)
		most = (uint32_t)(books[change.book].size / 2);
	change.length = 1 + (uint32_t)(draw(state) % most);
	change.offset = draw(state) % (books[change.book].size - change.length);
	change.seed = draw(state);
	return change;
}

unsigned content_plan(uint64_t k, struct change changes[CHANGES_MAX])
{
	uint64_t state = k;
	unsigned count = 0;

	for (unsigned i = 0; i < book_count; i++) {
		uint64_t stripe = books[i].size / STRIPES;

		changes[count++] = (struct change){ .book = i,
			                            .length = (uint32_t)stripe,
			                            .offset = k % STRIPES * stripe,
			                            .seed = draw(&state) };
	}
	for (unsigned i = 0; i < 3; i++)
		changes[count++] = random_change(&state, short_max);
	if (k % bulk_every == 0)
		changes[count++] = random_change(&state, bulk_max);
	changes[count++] = (struct change){ .length = sizeof(k), .seed = k, .counter = true };
	return count;
}

void content_fill(uint8_t *to, const struct change *change)
{
	uint64_t state = change->seed, word = change->seed;

	for (uint32_t at = 0; at < change->length; at += sizeof(word)) {
		uint32_t rest = change->length - at;

		if (!change->counter)
			word = draw(&state);
		memcpy(to + at, &word, rest < sizeof(word) ? rest : sizeof(word));
	}
}

void content_make(uint64_t k, uint8_t *const images[BOOKS])
{
	struct change changes[CHANGES_MAX];

	for (uint64_t i = k > STRIPES ? k - STRIPES : 1; i <= k; i++) {
		unsigned count = content_plan(i, changes);

		for (unsigned c = 0; c < count; c++)
			content_fill(images[changes[c].book] + changes[c].offset, &changes[c]);
	}
}

uint64_t content_counter(uint8_t *const images[BOOKS])
{
	uint64_t k;

	memcpy(&k, images[0], sizeof(k));
	return k;
}
