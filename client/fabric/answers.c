/*
 * answers.c - parses the stream of answers over tcp (answers.h).
 */
#include "answers.h"
#include "../core/fabric.h"

#include <assert.h>
#include <string.h>

/* Returns how many bytes the next answer to a read has: reads are split into pieces of
 * PS_READ_MAX. */
static uint32_t next_read_length(const struct ps_answers *answers)
{
	return answers->left < PS_READ_MAX ? (uint32_t)answers->left : PS_READ_MAX;
}

/* Checks an answer's head, which has arrived completely. */
static int begin_answer(struct ps_answers *answers)
{
	const struct ps_answer *head = &answers->head;

	if (!ps_answer_valid(head))
		return PS_LINK_BROKEN;
	if (head->status == PS_ANSWER_BAD_TOKEN)
		return PS_LINK_FENCED;
	if (head->status != PS_ANSWER_OK || head->cookie != answers->last + 1)
		return PS_LINK_BROKEN;
	if (answers->writes > 0) {
		if (head->op != PS_OP_WRITE || head->length != 0)
			return PS_LINK_BROKEN;
		answers->writes--;
		answers->completed++;
	} else {
		if (answers->reads == 0 || head->op != PS_OP_READ || head->length == 0 ||
		    head->length != next_read_length(answers))
			return PS_LINK_BROKEN;
		answers->payload = head->length;
	}
	answers->last = head->cookie;
	answers->have = 0;
	return PS_LINK_OK;
}

void ps_answers_advance(struct ps_answers *answers, size_t len)
{
	assert(answers->reads > 0 && len <= answers->payload);
	answers->into += len;
	answers->left -= len;
	answers->payload -= (uint32_t)len;
	if (answers->payload == 0)
		answers->reads--;
}

int ps_answers_feed(struct ps_answers *answers, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	size_t n;
	int code;

	while (len > 0) {
		if (answers->payload > 0) {
			n = len < answers->payload ? len : answers->payload;
			memcpy(answers->into, at, n);
			ps_answers_advance(answers, n);
		} else {
			n = sizeof(answers->head) - answers->have;
			n = len < n ? len : n;
			memcpy((uint8_t *)&answers->head + answers->have, at, n);
			answers->have += (uint32_t)n;
			if (answers->have == sizeof(answers->head)) {
				code = begin_answer(answers);
				if (code)
					return code;
			}
		}
		at += n;
		len -= n;
	}
	return PS_LINK_OK;
}
