/*
 * liveness.h - detects that nothing arrived on a connection for too long. control_heartbeat.c looks
 * at regular intervals, and any byte resets the count of looks. It counts looks rather than time: a
 * process that was stopped, or waited for a processor, did not look meanwhile, and must not take
 * that time for silence.
 */
#ifndef PERSEAS_CLIENT_LIVENESS_H
#define PERSEAS_CLIENT_LIVENESS_H

#include "../../proto/base/stream.h"

/* Looks within the limit after which a connection counts as silent. */
enum { PS_LIVENESS_LOOKS = 4 };

struct ps_liveness {
	uint64_t limit_ns; /* how long a connection may be silent; 0: forever */
	uint64_t look_at;  /* when the next look is due */
	unsigned unheard;  /* looks since a byte arrived */
	bool heard;        /* a byte arrived since the last look */
};

/* Sets the limit, and makes the next look due after a quarter of it. A limit of 0 ends the
 * looks. */
void ps_liveness_begin(struct ps_liveness *liveness, uint64_t limit_ns, uint64_t now_ns);

/* Looks, if a look is due. Returns true if nothing arrived within PS_LIVENESS_LOOKS looks in a row.
 * Bytes that wait in the socket count as heard. */
bool ps_liveness_look(struct ps_liveness *liveness, const struct ps_stream *stream,
                      uint64_t now_ns);

/* Takes heartbeats (messages of length 0) from the socket, between two messages of the stream.
 * Returns false if there were none. */
bool ps_liveness_take_heartbeats(const struct ps_stream *stream);

#endif
