/*
 * bytes.h - copying a few bytes without a call. Most of what a transaction logs and writes is
 * shorter than a cache line, where calling memcpy costs more than the copy.
 */
#ifndef PERSEAS_CLIENT_BYTES_H
#define PERSEAS_CLIENT_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void ps_copy_word(uint8_t *to, const uint8_t *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	/* Keeps the compiler from merging words into wider accesses. */
	__asm__("" : "+r"(word));
	memcpy(to, &word, sizeof(word));
}

static inline void ps_copy_below_16(uint8_t *to, const uint8_t *from, size_t len)
{
	uint64_t first, last;

	if (len >= 8) {
		memcpy(&first, from, 8);
		memcpy(&last, from + len - 8, 8);
		memcpy(to, &first, 8);
		memcpy(to + len - 8, &last, 8);
		return;
	}
	while (len-- > 0)
		*to++ = *from++;
}

/* memcpy by words. The last word may overlap the one before it. Wider accesses would be slower:
 * most bytes copied here were stored by words a moment ago, and a load that spans two such stores
 * waits until they have left the processor. */
static inline void ps_copy_short(void *to_bytes, const void *from_bytes, size_t len)
{
	const uint8_t *from = from_bytes;
	uint8_t *to = to_bytes;
	size_t at;

	if (len >= 16) {
		for (at = 0; at + 32 < len; at += 32) {
			ps_copy_word(to + at, from + at);
			ps_copy_word(to + at + 8, from + at + 8);
			ps_copy_word(to + at + 16, from + at + 16);
			ps_copy_word(to + at + 24, from + at + 24);
		}
		for (; at + 8 < len; at += 8)
			ps_copy_word(to + at, from + at);
		ps_copy_word(to + len - 8, from + len - 8);
	} else {
		ps_copy_below_16(to, from, len);
	}
}

enum {
	/* Up to this many bytes, ps_copy_short is faster than memcpy. */
	PS_COPY_SHORT = 256,
	/* From this many bytes on, ps_copy_uncached bypasses the caches. */
	PS_COPY_UNCACHED_MIN = 64 << 10,
};

/* bytes.c: memcpy, but fast also if the target lies a few bytes behind the source, modulo a page,
 * where memcpy is slow. */
void ps_copy_long(void *to, const void *from, size_t len);

/* memcpy to memory that no thread reads soon: long copies bypass the caches, whose contents stay.
 * Stores before and after the copy keep their order with it. */
void ps_copy_uncached(void *to, const void *from, size_t len);

/* memcpy with up to four threads, for long copies into memory that has no pages yet: the kernel
 * takes longer to make the pages than the copy takes. */
void ps_copy_parallel(void *to, const void *from, size_t len);

static inline void ps_copy(void *to, const void *from, size_t len)
{
	if (len > PS_COPY_SHORT)
		ps_copy_long(to, from, len);
	else
		ps_copy_short(to, from, len);
}

#endif
