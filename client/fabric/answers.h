/*
 * answers.h - parses and checks the stream of answers that a mirror sends over tcp, as it arrives.
 * Does no I/O.
 *
 * Answers come in the order of their cookies, which count up from 1. Answers to reads come after
 * all answers to writes, because a link reads only while no write is in flight, or after it has
 * posted all writes.
 */
#ifndef PERSEAS_CLIENT_ANSWERS_H
#define PERSEAS_CLIENT_ANSWERS_H

#include "../../proto/data/frame.h"

#include <stddef.h>
#include <stdint.h>

struct ps_answers {
	uint64_t last;   /* cookie of the last answer, or of the one that is arriving */
	uint64_t writes; /* answers to writes that have not arrived */
	uint64_t reads;  /* answers to reads that have not arrived completely */
	uint8_t *into;   /* where the next byte of a read goes */
	/* Bytes that the caller of the current read still lacks, whether requested yet or not. */
	uint64_t left;
	uint64_t completed; /* writes answered since the user last set this to 0 */

	struct ps_answer head; /* head of the answer that is arriving */
	uint32_t have;         /* bytes of `head` that have arrived */
	uint32_t payload;      /* bytes of payload still to come for the last head */
};

/*
 * Parses bytes of the stream. Returns PS_LINK_OK; PS_LINK_FENCED if the mirror says that the
 * session is over; or PS_LINK_BROKEN if it sent anything that was not requested. After
 * PS_LINK_FENCED or PS_LINK_BROKEN the caller must not call it again.
 */
int ps_answers_feed(struct ps_answers *answers, const void *bytes, size_t len);

/* Advances `into` by `len` bytes, at most `payload`, which the caller has received there without
 * ps_answers_feed(). */
void ps_answers_advance(struct ps_answers *answers, size_t len);

#endif
