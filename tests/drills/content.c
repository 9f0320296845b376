#include "content.h"

#include <string.h>

enum {
	SHORT_MAX = 400,     /* bytes of most ranges */
	BULK_EVERY = 8,      /* one of so many transactions has a long range too .. */
	BULK_MAX = 16 << 10, /* .. of so many bytes, that takes a while to copy */
};

const struct book books[BOOKS] = {
	{ "ledger", 64 << 10 },
	{ "journal", BOOK_MAX },
};

/* A sequence in which every seed begins somewhere else. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static struct change random_change(uint64_t *state, uint32_t most)
{
	struct change change = { .book = (unsigned)(draw(state) % BOOKS) };

	change.length = 1 + (uint32_t)(draw(state) % most);
	change.offset = draw(state) % (books[change.book].size - change.length);
	change.seed = draw(state);
	return change;
}

unsigned content_plan(uint64_t k, struct change changes[CHANGES_MAX])
{
	uint64_t state = k;
	unsigned count = 0;

	for (unsigned i = 0; i < BOOKS; i++) {
		uint64_t stripe = books[i].size / STRIPES;

		changes[count++] = (struct change){ .book = i,
			                            .length = (uint32_t)stripe,
			                            .offset = k % STRIPES * stripe,
			                            .seed = draw(&state) };
	}
	for (unsigned i = 0; i < 3; i++)
		changes[count++] = random_change(&state, SHORT_MAX);
	if (k % BULK_EVERY == 0)
		changes[count++] = random_change(&state, BULK_MAX);
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
