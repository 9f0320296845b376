/*
 * test_crc32c.c - the checksum is the Castagnoli one, by instruction and by table.
 */
#include "../../proto/image/crc32c.h"
#include "../support/unit.h"

/* The definition, bit by bit. */
static uint32_t by_definition(uint32_t crc, const uint8_t *at, size_t len)
{
	crc = ~crc;
	while (len--) {
		crc ^= *at++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static void fill(uint8_t *bytes, size_t len)
{
	uint32_t state = 12345;

	for (size_t i = 0; i < len; i++) {
		state = state * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(state >> 24);
	}
}

/* The check value of the catalogues and the four vectors of RFC 3720, B.4. */
TEST(published_values_come_out)
{
	uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];

	memset(ones, 0xff, sizeof ones);
	for (int i = 0; i < 32; i++) {
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	assert_int_equal(ps_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(ps_crc32c(0, zeros, 32), 0x8a9136aa);
	assert_int_equal(ps_crc32c(0, ones, 32), 0x62a8ab43);
	assert_int_equal(ps_crc32c(0, up, 32), 0x46dd794e);
	assert_int_equal(ps_crc32c(0, down, 32), 0x113fdb5c);
	assert_int_equal(ps_crc32c_table(0, up, 32), 0x46dd794e);
	assert_int_equal(ps_crc32c(0, NULL, 0), 0);
	assert_int_equal(ps_crc32c_table(7, NULL, 0), 7);
}

/* Every length around the cuts into streams, at every alignment, from any start value. */
TEST(both_ways_follow_the_definition)
{
	static uint8_t bytes[2 * 3 * 1024 + 128];

	fill(bytes, sizeof bytes);
	for (size_t len = 0; len < 2 * 3 * 1024 + 100; len += len < 300 ? 1 : 37) {
		size_t shift = len % 9;
		uint32_t start = (uint32_t)len * 2654435761u;
		uint32_t expected = by_definition(start, bytes + shift, len);

		assert_int_equal(ps_crc32c(start, bytes + shift, len), expected);
		assert_int_equal(ps_crc32c_table(start, bytes + shift, len), expected);
	}
}

/* A long input summed in two parts, cut at any place. */
TEST(a_sum_extends_over_its_parts)
{
	static uint8_t bytes[4000];
	uint32_t whole;

	fill(bytes, sizeof bytes);
	whole = ps_crc32c(0, bytes, sizeof bytes);
	for (size_t cut = 0; cut <= sizeof bytes; cut += 13) {
		uint32_t first = ps_crc32c(0, bytes, cut);

		assert_int_equal(ps_crc32c(first, bytes + cut, sizeof bytes - cut), whole);
	}
}

/* The input ends, and begins, at pages that cannot be read. */
TEST(nothing_outside_the_input_is_read)
{
	uint8_t *pages = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *page = pages + 4096;

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
	fill(page, 4096);
	for (size_t len = 0; len <= 4096; len += len < 300 ? 1 : 61) {
		assert_int_equal(ps_crc32c(0, page + 4096 - len, len),
		                 ps_crc32c_table(0, page + 4096 - len, len));
		assert_int_equal(ps_crc32c(0, page, len), ps_crc32c_table(0, page, len));
	}
	munmap(pages, 3 * 4096);
}
