/*
 * liveness.h - counts for how long nothing arrived on a connection. control_heartbeat.c looks at
 * regular intervals, and any byte resets the count. It counts looks instead of time: a process that
 * was stopped, or waited for a processor, did not look, and must not take that time for silence.
 */
#ifndef PERSEAS_CLIENT_LIVENESS_H
#define PERSEAS_CLIENT_LIVENESS_H

#include "../../proto/base/stream.h"

/* Looks within the limit. */
enum { PS_LIVENESS_LOOKS = 4 };

struct ps_liveness {
	uint64_t limit_ns; /* 0: off */
	uint64_t look_at;  /* when the next look is due */
	unsigned unheard;  /* looks since something arrived */
	bool heard;        /* something was received since the last look */
};

/* From now on a look is due in each quarter of the limit. 0 turns looking off. */
void ps_liveness_begin(struct ps_liveness *liveness, uint64_t limit_ns, uint64_t now_ns);

/* Looks, if a look is due. Returns true if nothing arrived within PS_LIVENESS_LOOKS looks in a row.
 * Bytes that wait in the socket count as heard. */
bool ps_liveness_look(struct ps_liveness *liveness, const struct ps_stream *stream,
                      uint64_t now_ns);

/* Takes the heartbeats that are first in the socket, between two messages of the stream. Returns
 * false if there were none. */
bool ps_liveness_take_signs(const struct ps_stream *stream);

#endif
