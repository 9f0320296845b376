/*
 * crc32c.c - the CRC-32C (Castagnoli) checksum.
 *
 * Undo records have a few hundred bytes and are checksummed on the commit path, so the latency of
 * short inputs matters. One branch chooses between the instruction and the table. Even short inputs
 * are split into three streams, because the processor starts a crc32 every cycle but finishes it
 * three cycles later.
 */
#include "crc32c.h"

#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* Castagnoli polynomial, bits reversed */

/* slice_tables[k][b] is what byte b, followed by k zero bytes, adds to the checksum. */
static uint32_t slice_tables[8][256];

static uint64_t load_word(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof word);
	return word;
}

/* Extends a checksum (not inverted) by table, eight bytes a step. */
static uint32_t extend_table(uint32_t crc, const uint8_t *at, size_t len)
{
	for (; len >= 8; at += 8, len -= 8) {
		uint64_t word = load_word(at) ^ crc;

		crc = slice_tables[7][word & 0xff] ^ slice_tables[6][word >> 8 & 0xff] ^
		      slice_tables[5][word >> 16 & 0xff] ^ slice_tables[4][word >> 24 & 0xff] ^
		      slice_tables[3][word >> 32 & 0xff] ^ slice_tables[2][word >> 40 & 0xff] ^
		      slice_tables[1][word >> 48 & 0xff] ^ slice_tables[0][word >> 56];
	}
	while (len--)
		crc = crc >> 8 ^ slice_tables[0][(crc ^ *at++) & 0xff];
	return crc;
}

static void fill_slices(void)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		slice_tables[0][byte] = crc;
	}
	for (unsigned byte = 0; byte < 256; byte++)
		for (int k = 1; k < 8; k++) {
			uint32_t before = slice_tables[k - 1][byte];

			slice_tables[k][byte] = before >> 8 ^ slice_tables[0][before & 0xff];
		}
}

#ifdef __x86_64__

#include <immintrin.h>

enum {
	STREAM_WORDS_MAX = 128, /* maximum words of 8 bytes in each of the three streams */
	STREAMS_MIN = 72,       /* bytes from which on three streams are faster than one */
};

static bool has_instruction;

/* word_shifts[k] is x^(64k - 33) modulo the polynomial. Multiplying a checksum by it has the effect
 * of appending k words of 8 zero bytes: the product of two reflected 32-bit values is one bit too
 * low, and the crc32 instruction that reduces it multiplies by x^32. */
static uint32_t word_shifts[2 * STREAM_WORDS_MAX + 1];

static void fill_shifts(void)
{
	static const uint8_t zeros[8];

	word_shifts[1] = 1; /* x^31 */
	for (unsigned k = 2; k <= 2 * STREAM_WORDS_MAX; k++)
		word_shifts[k] = extend_table(word_shifts[k - 1], zeros, sizeof zeros);
}

__attribute__((target("sse4.2,pclmul"))) static inline uint64_t multiply_carryless(uint64_t a,
                                                                                   uint32_t b)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a),
	                                       _mm_cvtsi64_si128((long long)b), 0);

	return (uint64_t)_mm_cvtsi128_si64(product);
}

/* Computes three streams of `words` words each in parallel, and combines them. */
__attribute__((target("sse4.2,pclmul"))) static inline uint64_t
extend_streams(uint64_t a, const uint8_t *at, size_t words)
{
	const uint8_t *second = at + 8 * words;
	const uint8_t *third = second + 8 * words;
	uint64_t b = 0, c = 0;

	for (size_t i = 0; i < 8 * words; i += 8) {
		a = _mm_crc32_u64(a, load_word(at + i));
		b = _mm_crc32_u64(b, load_word(second + i));
		c = _mm_crc32_u64(c, load_word(third + i));
	}
	return c ^ _mm_crc32_u64(0, multiply_carryless(a, word_shifts[2 * words]) ^
	                                    multiply_carryless(b, word_shifts[words]));
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t
extend_hardware(uint32_t crc, const uint8_t *at, size_t len)
{
	uint64_t wide = crc;

	while (len >= STREAMS_MIN) {
		size_t words = len / 24 < STREAM_WORDS_MAX ? len / 24 : STREAM_WORDS_MAX;

		wide = extend_streams(wide, at, words);
		at += 24 * words;
		len -= 24 * words;
	}
	for (; len >= 8; at += 8, len -= 8)
		wide = _mm_crc32_u64(wide, load_word(at));
	crc = (uint32_t)wide;
	while (len--)
		crc = _mm_crc32_u8(crc, *at++);
	return crc;
}

static void detect_hardware(void)
{
	__builtin_cpu_init();
	has_instruction = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
	if (has_instruction)
		fill_shifts();
}

#else

enum { has_instruction = false };

static uint32_t extend_hardware(uint32_t crc, const uint8_t *at, size_t len)
{
	return extend_table(crc, at, len);
}

static void detect_hardware(void) {}

#endif

/* Runs before all other constructors, so that no call needs to check whether it did. */
__attribute__((constructor(101))) static void fill_tables(void)
{
	fill_slices();
	detect_hardware();
}

uint32_t ps_crc32c(uint32_t crc, const void *data, size_t len)
{
	if (__builtin_expect(has_instruction, 1))
		return ~extend_hardware(~crc, data, len);
	return ~extend_table(~crc, data, len);
}

uint32_t ps_crc32c_table(uint32_t crc, const void *data, size_t len)
{
	return ~extend_table(~crc, data, len);
}
