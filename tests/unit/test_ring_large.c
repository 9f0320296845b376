/*
 * test_ring_large.c - the ring's memory comes to lie in large pages when it has been written, and
 * no sooner, by the keeper of an owner.
 */
#include "large_pages.h"
#include "owner.h"

enum { RING = 4 * LARGE, ENTRY = 64 << 10, AT_ONCE = 4 };

/* Every byte of an entry. */
static uint8_t byte_of(uint64_t seq)
{
	return (uint8_t)(seq % 251);
}

static void append(struct ps_ring *ring, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes; done += ENTRY) {
		struct ps_ring_entry *entry = ps_ring_append_entry(ring, ENTRY);

		memset(entry, byte_of(ring->last_seq), ENTRY);
	}
}

static void assert_whole(const struct ps_ring *ring)
{
	for (uint64_t seq = ring->first_seq; seq <= ring->last_seq; seq++) {
		const uint8_t *bytes = (const uint8_t *)ps_ring_find_entry(ring, seq);

		for (unsigned i = 0; i < ENTRY; i++)
			assert_int_equal(bytes[i], byte_of(seq));
	}
}

/* Small pages are no fault where the kernel was out of large ones meanwhile. */
static void assert_large(const void *base, uint64_t expected, unsigned long refused)
{
	if (count_refused() == refused)
		assert_int_equal(count_large(base), expected);
}

/* Where every page is large that can be, nothing is gathered. */
static bool are_large_at_once(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
	char line[64] = "";

	if (file && !fgets(line, sizeof(line), file))
		*line = 0;
	if (file)
		fclose(file);
	return strstr(line, "[always]") != NULL;
}

static void need_small_pages(void)
{
	if (can_be_large() && !are_large_at_once())
		return;
	printf("the kernel gathers no pages here (MADV_COLLAPSE, Linux 6.1), or none is small\n");
	skip();
}

TEST(what_was_written_comes_to_lie_in_large_pages)
{
	const unsigned long refused = count_refused();
	struct ps_ring ring;

	need_small_pages();
	assert_int_equal(ps_ring_init(&ring, RING + LARGE / 2), 0);
	assert_int_equal((uintptr_t)ring.base % LARGE, 0);
	assert_false(ps_ring_make_large_pages(&ring, 0));
	append(&ring, LARGE - ENTRY);
	assert_false(ps_ring_make_large_pages(&ring, ring.append_position));
	assert_int_equal(count_large(ring.base), 0);
	append(&ring, 2 * ENTRY);
	assert_false(ps_ring_make_large_pages(&ring, ring.append_position));
	assert_large(ring.base, LARGE, refused);
	append(&ring, RING);
	assert_false(ps_ring_make_large_pages(&ring, ring.append_position));
	assert_large(ring.base, RING, refused);
	assert_whole(&ring);
	append(&ring, 3 * RING);
	assert_false(ps_ring_make_large_pages(&ring, ring.append_position));
	assert_whole(&ring);
	ps_ring_free(&ring);
}

TEST(a_few_are_gathered_at_once)
{
	const unsigned long refused = count_refused();
	struct ps_ring ring;

	need_small_pages();
	assert_int_equal(ps_ring_init(&ring, 2 * RING), 0);
	append(&ring, 2 * RING - LARGE);
	assert_true(ps_ring_make_large_pages(&ring, ring.append_position));
	assert_large(ring.base, AT_ONCE * LARGE, refused);
	assert_false(ps_ring_make_large_pages(&ring, ring.append_position));
	assert_large(ring.base, 2 * RING - LARGE, refused);
	assert_whole(&ring);
	ps_ring_free(&ring);
}

/* The keeper does it while nobody asks for anything. */
TEST(an_owner_gathers_its_ring)
{
	const unsigned long refused = count_refused();
	const struct ps_ring *ring;
	struct owner *o;

	need_small_pages();
	o = owner_new(2);
	o->options.ring_size = RING;
	owner_begin(o);
	ring = &o->p->commit.ring;
	while (ring->append_position < 2 * LARGE)
		assert_int_equal(owner_put(o, 0, SIZE / 2, 7), 0);
	direct_keep(o->d, o->p);
	assert_large(ring->base, 2 * LARGE, refused);
	owner_free(o);
}
