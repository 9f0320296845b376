/*
 * test_peek.c - what is read of a mirror by a link (client/demand/direct_reader.h): its slot before
 * the bytes, for a mirror goes on meanwhile.
 */
#include "../../client/core/fabric.h"
#include "../../client/demand/direct_reader.h"
#include "../../proto/image/image.h"
#include "../support/unit.h"

enum { EPOCH = 7, REGION = PS_REGION_SEGMENT, LENGTH = 64 };

/* A mirror that stands at another transaction each time that it is looked at, whose seq all bytes
 * of its segment are then. */
static uint8_t seq;
static bool has_slot, promises;

static int peek(const struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                uint64_t length)
{
	(void)link;
	seq++;
	if (region != PS_REGION_LOG) {
		memset(bytes, seq, length);
		return promises ? PS_LINK_OK : PS_LINK_BROKEN;
	}
	assert_int_equal(offset, 0);
	memset(bytes, 0, length);
	if (has_slot)
		ps_slot_encode(bytes, EPOCH, seq, PS_FIRST_POSITION, 0);
	return PS_LINK_OK;
}

static const struct ps_fabric fabric = { .peek = peek };

static void read_it(uint8_t *block, struct ps_direct_read_result *seen)
{
	const struct ps_fetch_request fetch = { .region = REGION,
		                                .length = LENGTH,
		                                .direct_link = { &fabric, NULL } };

	ps_direct_read(&fetch, block, seen);
}

TEST(test_the_bytes_are_no_older_than_the_slot)
{
	uint8_t block[LENGTH];
	struct ps_direct_read_result seen;

	has_slot = promises = true;
	read_it(block, &seen);
	assert_int_equal(seen.epoch, EPOCH);
	assert_true(seen.seq > 0 && seen.seq <= block[0]);
	assert_int_equal(block[LENGTH - 1], block[0]);
	assert_true(seen.promised);
}

TEST(test_what_the_mirror_has_not_is_not_seen)
{
	uint8_t block[LENGTH];
	struct ps_direct_read_result seen;

	has_slot = promises = false;
	read_it(block, &seen);
	assert_int_equal(seen.epoch, 0);
	assert_int_equal(seen.seq, 0);
	assert_false(seen.promised);
}
