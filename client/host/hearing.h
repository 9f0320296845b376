/*
 * hearing.h - is the other end of a connection still heard of? The thread that sends signs of life
 * looks, for control_socket.c, and every byte that comes counts. What is counted is looks, not
 * time: a process that was stopped, or waited for a processor, has not heard meanwhile, nor looked.
 */
#ifndef PERSEAS_CLIENT_HEARING_H
#define PERSEAS_CLIENT_HEARING_H

#include "../../proto/base/stream.h"

/* The limit has so many looks. */
enum { PS_HEARING_LOOKS = 4 };

struct ps_hearing {
	uint64_t limit_ns; /* 0: nobody looks */
	uint64_t look_at;  /* the next time */
	unsigned unheard;  /* looks since something came */
	bool heard;        /* something came since the last look, and was taken */
};

/* From now on one look is due in each quarter of the limit; 0: none. */
void ps_hearing_begin(struct ps_hearing *hearing, uint64_t limit_ns, uint64_t now_ns);

/* A look, if one is due. True: nothing has come in PS_HEARING_LOOKS of them, one after the other.
 * What lies in the socket counts: it waits for a thread that has no time for it now. */
bool ps_hearing_look(struct ps_hearing *hearing, const struct ps_stream *stream, uint64_t now_ns);

/* Takes signs of life (messages without a byte) that lie in the socket before anything else. The
 * stream must stand between two messages. False: there were none. */
bool ps_hearing_take_signs(const struct ps_stream *stream);

#endif
