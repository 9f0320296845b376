/*
 * direct_reader.h - reads missing bytes through a link whose fabric can peek (core/fabric.h, F20),
 * for pager_uffd.c. Short reads are done by the caller, long ones by a thread of the peeker's own,
 * so that several sources are copied on several processors. That thread touches the mirror's memory
 * and the source's room, never memory that is missing. If the mirror's memory hangs, the read is
 * given up, and the peeker takes no other request until it has ended after all.
 */
#ifndef PERSEAS_CLIENT_DIRECT_READER_H
#define PERSEAS_CLIENT_DIRECT_READER_H

#include "../core/demand.h"

#include <semaphore.h>

struct ps_direct_reader {
	bool has_request, must_quit;
	bool abandoned_request; /* the last request was dropped, and its read may go on */
	sem_t go, done;
	struct ps_fetch_request fetch;
	uint8_t *room; /* where the bytes go */
	struct ps_direct_read_result seen;
	void (*tell)(void *arg); /* called on its thread at the end of each read; or NULL */
	void *arg;
};

/* Reads the bytes of a request through its link into `room`, and sets *seen to the mirror's state.
 * Peekers call it, and so does the simulator, on threads of its own. */
void ps_direct_read(const struct ps_fetch_request *fetch, uint8_t *room,
                    struct ps_direct_read_result *seen);

void ps_direct_reader_init(struct ps_direct_reader *peeker, void (*tell)(void *arg), void *arg);
/* Caller has joined the thread that ran ps_direct_reader_run, if there was one. */
void ps_direct_reader_free(struct ps_direct_reader *peeker);
/* The function of the peeker's thread, whose arg is the peeker. It returns after
 * ps_direct_reader_quit. */
void *ps_direct_reader_run(void *arg);
void ps_direct_reader_quit(struct ps_direct_reader *peeker);

/* Begins a read into `room`. Up to `at_once` bytes are read before it returns. Caller has taken or
 * dropped the last answer, and ps_direct_reader_is_still_reading() is false. */
void ps_direct_reader_begin(struct ps_direct_reader *peeker, const struct ps_fetch_request *fetch,
                            uint8_t *room, uint32_t at_once);
/* Returns 1 and sets *fetched if the read has ended, or 0. Caller has asked. */
int ps_direct_reader_poll(struct ps_direct_reader *peeker, struct ps_fetch_answer *fetched);
/* Ignores the answer of a read that was asked for. */
void ps_direct_reader_cancel(struct ps_direct_reader *peeker);
/* Returns true while a dropped read goes on. It uses the room and the link until then. */
bool ps_direct_reader_is_still_reading(struct ps_direct_reader *peeker);

#endif
