/*
 * peeker.h - reads missing bytes by a link whose fabric can peek (core/fabric.h, F20), for
 * pager_uffd.c: what is short at once, and a run on a thread of its own, so that several sources
 * copy on several processors. That thread touches the mirror's memory and the source's room, never
 * memory that is missing. If the mirror's memory hangs, the run is given up, and nothing else is
 * asked of the peeker until it has ended after all.
 */
#ifndef PERSEAS_CLIENT_PEEKER_H
#define PERSEAS_CLIENT_PEEKER_H

#include "../core/demand.h"

#include <semaphore.h>

struct ps_peeker {
	bool asked, quit;
	bool given_up; /* what was asked last, and it may be read still */
	sem_t go, done;
	struct ps_fetch_request fetch;
	uint8_t *room; /* what is read goes there */
	struct ps_peek_result seen;
	void (*tell)(void *arg); /* called on its thread when a run has come, or not; or NULL */
	void *arg;
};

/* Reads what is asked for by its link, to where there is room for it; and what is seen of the
 * mirror. What a peeker does; the simulator has it done by threads of its own. */
void ps_peek(const struct ps_fetch_request *fetch, uint8_t *room, struct ps_peek_result *seen);

void ps_peeker_init(struct ps_peeker *peeker, void (*tell)(void *arg), void *arg);
/* Its thread, if there was one, has ended. */
void ps_peeker_free(struct ps_peeker *peeker);
/* The thread's function, whose arg is the struct ps_peeker; until ps_peeker_quit. */
void *ps_peeker_run(void *arg);
void ps_peeker_quit(struct ps_peeker *peeker);

/* To `room`; `at_once` bytes at most are read before it returns. Nothing is asked yet, nor read. */
void ps_peeker_ask(struct ps_peeker *peeker, const struct ps_fetch_request *fetch, uint8_t *room,
                   uint32_t at_once);
/* 1: *fetched is set; 0: not yet. Something was asked. */
int ps_peeker_answer(struct ps_peeker *peeker, struct ps_fetch_answer *fetched);
/* The answer finds nobody. */
void ps_peeker_drop(struct ps_peeker *peeker);
/* Does what was dropped go on? Until it does not, the room is the peeker's, and the link stays. */
bool ps_peeker_reads(struct ps_peeker *peeker);

#endif
