/*
 * test_copy_away.c - the fences of copies around the caches, looked at instruction by instruction.
 * Whether a store that lacks its fence is seen to pass another one depends on the processors
 * (test_litmus); whether the fence was there does not.
 */
#include "../../client/core/bytes.h"
#include "../support/unit.h"

#include "small_caches.h"
#include "stepping.h"

#if defined(__x86_64__)
enum {
	PAGE = 4096,
	ROOM = 80 << 10,
};

/* The instructions of a copy that were executed. */
static struct {
	bool fenced;       /* a store fence, at any time */
	unsigned around;   /* stores around the caches */
	unsigned before;   /* of these, before the first fence */
	unsigned unfenced; /* of these, with no fence behind them */
} seen;

/* The byte behind the prefixes of an instruction of the two-byte map; NULL: it is of another. */
static const uint8_t *opcode(const uint8_t *at)
{
	if (*at == 0xc5) /* VEX of two bytes */
		return at + 2;
	if (*at == 0xc4) /* of three */
		return (at[1] & 0x1f) == 1 ? at + 3 : NULL;
	if (*at == 0x62) /* EVEX */
		return (at[1] & 0x07) == 1 ? at + 4 : NULL;
	while (*at == 0x66 || *at == 0x67 || (*at & 0xf0) == 0x40)
		at++;
	return *at == 0x0f ? at + 1 : NULL;
}

static bool is_store_fence(const uint8_t *code)
{
	return code[0] == 0xae && (code[1] == 0xf8 || code[1] == 0xf0);
}

/* movntq and movntdq, movntps and movntpd, movnti. */
static bool is_store_around(const uint8_t *code)
{
	return code[0] == 0xe7 || code[0] == 0x2b || code[0] == 0xc3;
}

static void look(const uint8_t *instruction)
{
	const uint8_t *code = opcode(instruction);

	if (code && is_store_fence(code)) {
		seen.fenced = true;
		seen.unfenced = 0;
	} else if (code && is_store_around(code)) {
		seen.around++;
		seen.unfenced++;
		seen.before += !seen.fenced;
	}
}

static void watch(void *to, const void *from, size_t len)
{
	memset(&seen, 0, sizeof(seen));
	step_begin(look);
	ps_copy_uncached(to, from, len);
	step_end();
}

/* Stores before the copy, and those behind it, keep their side of it. */
static void check(size_t len, bool goes_around)
{
	static _Alignas(PAGE) uint8_t from[ROOM], to[ROOM];

	watch(to + len % 64, from, len);
	if (goes_around && !seen.around)
		fail_msg("nothing of %zu bytes went around the caches", len);
	if (seen.before)
		fail_msg("%zu bytes: %u stores went around the caches with no store fence before "
		         "them",
		         len, seen.before);
	if (seen.unfenced)
		fail_msg("%zu bytes: %u stores went around the caches with no store fence behind "
		         "them",
		         len, seen.unfenced);
}

static void copies_of_every_size_are_fenced(void **state)
{
	(void)state;
	for (size_t len = 1; len < PS_COPY_UNCACHED_MIN; len = len * 4 + 5)
		check(len, false);
	check(PS_COPY_UNCACHED_MIN - 1, false);
	check(PS_COPY_UNCACHED_MIN, true);
	check(PS_COPY_UNCACHED_MIN + 77, true);
}

static void copies_of_the_library_are_fenced(void **state)
{
	(void)state;
	for (size_t len = 16 << 10; len < 24 << 10; len += 1021)
		check(len, false);
	check(24 << 10, true);
	check(PS_COPY_UNCACHED_MIN - 1, true);
}
#else
static void copies_of_every_size_are_fenced(void **state)
{
	(void)state;
	print_message("SKIP: on this processor no copy goes around the caches\n");
	skip();
}

#define copies_of_the_library_are_fenced copies_of_every_size_are_fenced
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_of_every_size_are_fenced),
	};
	const struct CMUnitTest small[] = {
		cmocka_unit_test(copies_of_the_library_are_fenced),
	};

	(void)argc;
	return run_also_with_small_caches(argv, tests, small);
}
