/*
 * answers.h - the stream of answers that a mirror sends over tcp, read and checked as it comes.
 * No I/O.
 *
 * Answers come in the order of their cookies, which count up from 1. Those to reads that are
 * due come after those to writes: a link reads only when it has nothing else under way, or has
 * posted it before.
 */
#ifndef PERSEAS_CLIENT_ANSWERS_H
#define PERSEAS_CLIENT_ANSWERS_H

#include "../../proto/data/frame.h"

#include <stddef.h>
#include <stdint.h>

struct ps_answers {
	uint64_t last;      /* cookie of the last answer, or of the one that is arriving */
	uint64_t writes;    /* answers due to writes */
	uint64_t reads;     /* answers due to reads, the one that is arriving included */
	uint8_t *into;      /* where the next byte of the reads goes */
	uint64_t left;      /* bytes of the reads that have not arrived, asked or not */
	uint64_t completed; /* writes that were answered, since the user set it to 0 */

	struct ps_answer head;
	uint32_t have;    /* bytes of head that are there */
	uint32_t payload; /* bytes that still follow the last head */
};

/*
 * Takes bytes off the stream. PS_LINK_OK; PS_LINK_FENCED: the mirror says that the session is
 * over; PS_LINK_BROKEN: it sent what nobody asked for. After the latter two it must be fed no
 * more.
 */
int ps_answers_feed(struct ps_answers *answers, const void *bytes, size_t len);

/* `len` bytes, at most `payload`, have been put to `into` by the caller. */
void ps_answers_received(struct ps_answers *answers, size_t len);

#endif
