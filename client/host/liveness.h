/*
 * liveness.h - counts for how long nothing arrived on a connection. control_heartbeat.c looks at
 * regular intervals, and any byte resets the count. It counts looks instead of time: a process that
 * was stopped, or waited for a processor, did not look, and must not take that time for silence.
 */
#ifndef PERSEAS_CLIENT_LIVENESS_H
#define PERSEAS_CLIENT_LIVENESS_H

#include "../../proto/base/stream.h"

/* The limit has so many looks. */
enum { PS_LIVENESS_LOOKS = 4 };

struct ps_liveness {
	uint64_t limit_ns; /* 0: nobody looks */
	uint64_t look_at;  /* the next time */
	unsigned unheard;  /* looks since something came */
	bool heard;        /* something came since the last look, and was taken */
};

/* From now on one look is due in each quarter of the limit; 0: none. */
void ps_liveness_begin(struct ps_liveness *liveness, uint64_t limit_ns, uint64_t now_ns);

/* A look, if one is due. True: nothing has come in PS_LIVENESS_LOOKS of them, one after the other.
 * What lies in the socket counts: it waits for a thread that has no time for it now. */
bool ps_liveness_look(struct ps_liveness *liveness, const struct ps_stream *stream,
                      uint64_t now_ns);

/* Takes signs of life (messages without a byte) that lie in the socket before anything else. The
 * stream must stand between two messages. False: there were none. */
bool ps_liveness_take_signs(const struct ps_stream *stream);

#endif
