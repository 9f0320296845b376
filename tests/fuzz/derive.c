/*
 * derive.c - see derive.h.
 */
#include "derive.h"

#include <string.h>

enum { PLACES_MAX = 4, SHORT = 64 };

/* xorshift64*, after one step of splitmix64 so that neighbors differ. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dU;
}

static uint64_t seed_of(uint64_t number)
{
	uint64_t x = (number + 1) * 0x9e3779b97f4a7c15U;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
	return x ^ (x >> 31) ? x ^ (x >> 31) : 1;
}

/* Below `limit`. Every second one is among the first bytes, where headers are. */
static size_t draw_place(uint64_t *state, size_t limit)
{
	const uint64_t drawn = draw(state);

	return (size_t)((drawn >> 1) % (drawn & 1 && limit > SHORT ? SHORT : limit));
}

/* A number at which a check of bounds may be wrong, in 1, 2, 4 or 8 bytes, little-endian. */
static void put_number(uint8_t *bytes, size_t size, uint64_t *state)
{
	static const uint64_t numbers[] = {
		0,    1,     2,       7,         8,          16,        17,
		32,   64,    127,     128,       255,        256,       4095,
		4096, 65535, 1 << 20, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX,
	};
	const uint64_t number = numbers[draw(state) % (sizeof(numbers) / sizeof(numbers[0]))];
	size_t width = (size_t)1 << draw(state) % 4;
	uint8_t *at = bytes + draw_place(state, size);

	if (width > size - (size_t)(at - bytes))
		width = size - (size_t)(at - bytes);
	for (size_t i = 0; i < width; i++)
		at[i] = (uint8_t)(number >> 8 * i);
}

/* Inserts copies of the byte that stands there: a few, or so many that a text gets too long. */
static size_t stretch(uint8_t *bytes, size_t size, size_t room, uint64_t *state)
{
	const size_t at = draw_place(state, size);
	const uint64_t drawn = draw(state);
	size_t more = 1 + (drawn >> 1) % (drawn & 1 ? 8 : DERIVED_GROWTH);

	if (more > room)
		more = room;
	memmove(bytes + at + more, bytes + at, size - at);
	memset(bytes + at, bytes[at + more], more);
	return size + more;
}

static size_t cut_out(uint8_t *bytes, size_t size, uint64_t *state)
{
	const size_t at = draw_place(state, size);
	size_t length = 1 + draw(state) % SHORT;

	if (length > size - at)
		length = size - at;
	memmove(bytes + at, bytes + at + length, size - at - length);
	return size - length;
}

size_t derive(uint8_t *bytes, size_t size, uint64_t number)
{
	const size_t most = size + DERIVED_GROWTH;
	uint64_t state = seed_of(number);

	for (uint64_t places = 1 + draw(&state) % PLACES_MAX; places > 0 && size > 0; places--) {
		switch (draw(&state) % 8) {
		case 0:
			size = stretch(bytes, size, most - size, &state);
			break;
		case 1:
			size = cut_out(bytes, size, &state);
			break;
		case 2:
			size = draw_place(&state, size);
			break;
		case 3:
			bytes[draw_place(&state, size)] = (uint8_t)draw(&state);
			break;
		case 4:
			bytes[draw_place(&state, size)] ^= (uint8_t)(1u << draw(&state) % 8);
			break;
		default:
			put_number(bytes, size, &state);
			break;
		}
	}
	return size;
}
