/*
 * fuzz_answer.c - any bytes as the stream of answers of a mirror: they never reach beyond what was
 * asked for, and how they are cut makes no difference.
 *
 * Input: writes due, bytes asked for (2), length of the cuts, then the stream.
 */
#include "../../client/fabric/answers.h"
#include "../../client/core/fabric.h"
#include "target.h"

enum { HEAD = 4 };

/* Feeds the stream in cuts; the memory for reads is exactly as long as was asked for. */
static int feed(struct ps_answers *answers, const uint8_t *head, const uint8_t *stream, size_t size,
                size_t cut, uint8_t *bytes)
{
	size_t asked = (size_t)head[1] << 8 | head[2], n;
	int code = PS_LINK_OK;

	memset(answers, 0, sizeof(*answers));
	answers->writes = head[0];
	answers->reads = asked > 0;
	answers->into = bytes;
	answers->left = asked;
	for (; size > 0 && code == PS_LINK_OK; stream += n, size -= n) {
		n = size < cut ? size : cut;
		code = ps_answers_feed(answers, stream, n);
	}
	require(code == PS_LINK_OK || code == PS_LINK_BROKEN || code == PS_LINK_FENCED);
	require(answers->completed + answers->writes == head[0]);
	require(answers->left <= asked && answers->into == bytes + (asked - answers->left));
	require(answers->payload <= answers->left);
	require(answers->have <= sizeof(answers->head));
	return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ps_answers whole, cut;
	uint8_t *a, *b;
	size_t asked;

	if (size < HEAD)
		return 0;
	asked = (size_t)data[1] << 8 | data[2];
	a = calloc(1, asked ? asked : 1);
	b = calloc(1, asked ? asked : 1);
	if (a && b) {
		int one = feed(&whole, data, data + HEAD, size - HEAD, size, a);
		int two = feed(&cut, data, data + HEAD, size - HEAD, data[3] + 1, b);

		require(one == two);
		require(whole.completed == cut.completed && whole.left == cut.left);
		require(memcmp(a, b, asked) == 0);
	}
	free(a);
	free(b);
	return 0;
}
