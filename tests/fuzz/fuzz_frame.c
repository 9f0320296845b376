/*
 * fuzz_frame.c - any bytes as the stream of a data connection. In pieces or at once, the
 * same is applied and answered.
 *
 * The first byte is the size of the pieces; the stream follows.
 */
#include "../../proto/image/crc32c.h"
#include "../../proto/data/frame.h"
#include "target.h"

enum { MEMORY = 8192 }; /* of the smallest log: what an owner writes lies inside */

struct mirror {
	uint8_t log[MEMORY];
	uint8_t segment[MEMORY];
	uint8_t promise[MEMORY];
	uint32_t answers; /* checksum of all */
	struct ps_decoder decoder;
};

static uint8_t *where(void *ctx, const struct ps_extent *extent, bool write)
{
	struct mirror *mirror = ctx;

	if (extent->offset > MEMORY || extent->length > MEMORY - extent->offset)
		return NULL;
	if (extent->region == PS_REGION_LOG)
		return mirror->log + extent->offset;
	if (extent->region == PS_REGION_SEGMENT)
		return mirror->segment + extent->offset;
	if (extent->region == PS_REGION_PROMISE && !write)
		return mirror->promise + extent->offset;
	return NULL;
}

static void answer(void *ctx, const struct ps_answer *given, const uint8_t *bytes)
{
	struct mirror *mirror = ctx;

	assert(ps_answer_valid(given));
	mirror->answers = ps_crc32c(mirror->answers, given, sizeof *given);
	mirror->answers = ps_crc32c(mirror->answers, bytes, given->length);
}

static int feed(struct mirror *mirror, const uint8_t *data, size_t size, size_t piece)
{
	static const struct ps_decoder_ops ops = { where, answer };
	uint8_t *buffer = malloc(piece); /* each piece ends where the buffer does */
	int result = 0;

	memset(mirror, 0, sizeof *mirror);
	ps_decoder_init(&mirror->decoder, &ops, mirror);
	while (result == 0 && size > 0) {
		size_t len = piece < size ? piece : size;

		memcpy(buffer + piece - len, data, len);
		result = ps_decoder_feed(&mirror->decoder, buffer + piece - len, len);
		data += len;
		size -= len;
	}
	free(buffer);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mirror whole, pieces;
	int result;

	if (size < 2)
		return 0;
	result = feed(&whole, data + 1, size - 1, size - 1);
	assert(feed(&pieces, data + 1, size - 1, data[0] ? data[0] : 1) == result);
	assert(memcmp(whole.log, pieces.log, MEMORY) == 0);
	assert(memcmp(whole.segment, pieces.segment, MEMORY) == 0);
	assert(whole.answers == pieces.answers);
	return 0;
}
