/*
 * frame.c - the decoder of the tcp data path.
 *
 * Payload goes from the caller's buffer straight into the image. The decoder asks for the memory of
 * an extent each time it is about to write there, because regions may have changed since the last
 * call.
 */
#include "frame.h"

#include <assert.h>
#include <string.h>

#define BROKEN UINT32_MAX /* value of `have` after the peer broke the protocol */

/* The bytes of the stream that ps_decoder_feed() was given and has not consumed. */
struct input {
	const uint8_t *at;
	size_t left;
};

void ps_decoder_init(struct ps_decoder *decoder, const struct ps_decoder_ops *ops, void *ctx)
{
	memset(decoder, 0, sizeof *decoder);
	decoder->ops = ops;
	decoder->ctx = ctx;
}

bool ps_answer_valid(const struct ps_answer *answer)
{
	if (answer->zero != 0 || answer->status > PS_ANSWER_OTHER_IDENTITY)
		return false;
	if (answer->status != PS_ANSWER_OK)
		return answer->length == 0; /* the peer may have sent an unknown op */
	if (answer->op == PS_OP_READ)
		return answer->length >= 1 && answer->length <= PS_READ_MAX;
	return (answer->op == PS_OP_HELLO || answer->op == PS_OP_WRITE) && answer->length == 0;
}

static void send_answer(struct ps_decoder *decoder, enum ps_answer_status status, uint32_t length,
                        const uint8_t *bytes)
{
	struct ps_answer answer = {
		.op = decoder->frame.op,
		.status = (uint8_t)status,
		.length = length,
		.cookie = decoder->frame.cookie,
	};

	decoder->ops->answer(decoder->ctx, &answer, bytes);
}

/* Answers with PS_ANSWER_BAD_FRAME and makes all later calls fail. */
static int refuse_stream(struct ps_decoder *decoder)
{
	decoder->have = BROKEN;
	send_answer(decoder, PS_ANSWER_BAD_FRAME, 0, NULL);
	return -1;
}

static void end_frame(struct ps_decoder *decoder)
{
	decoder->have = 0;
	decoder->extent = 0;
	decoder->filled = 0;
	decoder->payload = false;
}

static bool frame_valid(const struct ps_frame *frame)
{
	if (frame->zero != 0 || (frame->flags & ~PS_FRAME_SIGNALLED) != 0)
		return false;
	if (frame->op == PS_OP_READ)
		return frame->count == 1;
	return frame->op == PS_OP_WRITE && frame->count >= 1 &&
	       frame->count <= PS_FRAME_EXTENTS_MAX;
}

/* Returns true if all extents of the frame lie in memory that the peer may access. */
static bool extents_valid(const struct ps_decoder *decoder)
{
	const bool write = decoder->frame.op == PS_OP_WRITE;

	for (uint32_t i = 0; i < decoder->frame.count; i++) {
		const struct ps_extent *extent = &decoder->extents[i];

		if (extent->length == 0 || (!write && extent->length > PS_READ_MAX))
			return false;
		if (!decoder->ops->where(decoder->ctx, extent, write))
			return false;
	}
	return true;
}

/* Fills up `to`, which already has its first `have` bytes, to `size` bytes as far as the input
 * reaches. Returns how many bytes it copied. */
static uint32_t gather_bytes(void *to, uint32_t have, uint32_t size, struct input *input)
{
	uint32_t len = size - have;

	assert(have <= size);
	if (len > input->left)
		len = (uint32_t)input->left;
	memcpy((uint8_t *)to + have, input->at, len);
	input->at += len;
	input->left -= len;
	return len;
}

/* Consumes bytes of the frame's head. Returns 0, or -1 if the head is invalid. */
static int receive_head(struct ps_decoder *decoder, struct input *input)
{
	decoder->have += gather_bytes(&decoder->frame, decoder->have, sizeof decoder->frame, input);
	if (decoder->have == sizeof decoder->frame && !frame_valid(&decoder->frame))
		return refuse_stream(decoder);
	return 0;
}

static int answer_read(struct ps_decoder *decoder)
{
	const struct ps_extent *extent = &decoder->extents[0];
	const uint8_t *bytes = decoder->ops->where(decoder->ctx, extent, false);

	if (!bytes)
		return refuse_stream(decoder);
	send_answer(decoder, PS_ANSWER_OK, extent->length, bytes);
	end_frame(decoder);
	return 0;
}

/* Consumes bytes of the extents. Checks them all once they are complete. Returns 0, or -1 if one is
 * invalid. */
static int receive_extents(struct ps_decoder *decoder, struct input *input)
{
	const uint32_t head = sizeof decoder->frame;
	const uint32_t size = decoder->frame.count * (uint32_t)sizeof decoder->extents[0];

	decoder->have += gather_bytes(decoder->extents, decoder->have - head, size, input);
	if (decoder->have < head + size)
		return 0;
	if (!extents_valid(decoder))
		return refuse_stream(decoder);
	if (decoder->frame.op == PS_OP_READ)
		return answer_read(decoder);
	decoder->payload = true;
	return 0;
}

/* Writes bytes into the current extent. Returns 0, or -1 if its memory is no longer accessible. */
static int receive_payload(struct ps_decoder *decoder, struct input *input)
{
	const struct ps_extent *extent = &decoder->extents[decoder->extent];
	uint8_t *to = decoder->ops->where(decoder->ctx, extent, true);

	if (!to)
		return refuse_stream(decoder);
	decoder->filled += gather_bytes(to, decoder->filled, extent->length, input);
	if (decoder->filled < extent->length)
		return 0;
	decoder->filled = 0;
	if (++decoder->extent < decoder->frame.count)
		return 0;
	if (decoder->frame.flags & PS_FRAME_SIGNALLED)
		send_answer(decoder, PS_ANSWER_OK, 0, NULL);
	end_frame(decoder);
	return 0;
}

int ps_decoder_feed(struct ps_decoder *decoder, const void *bytes, size_t len)
{
	struct input input = { bytes, len };
	int result = decoder->have == BROKEN ? -1 : 0;

	while (result == 0 && input.left > 0) {
		if (decoder->payload)
			result = receive_payload(decoder, &input);
		else if (decoder->have < sizeof decoder->frame)
			result = receive_head(decoder, &input);
		else
			result = receive_extents(decoder, &input);
	}
	return result;
}
