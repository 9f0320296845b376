/*
 * straight.h - mirrors' memory that is read by the links that commits use (client/core/fabric.h,
 * F20), while it is fetched on demand: what the simulated fabrics have for that, and the threads of
 * an owner that do it, which pager_sim.c hires. Bytes come in parts, and time passes between them,
 * and before the promise is looked at, so that anything may happen there.
 */
#ifndef PERSEAS_SIM_STRAIGHT_H
#define PERSEAS_SIM_STRAIGHT_H

#include "../../client/core/demand.h"
#include "pager_sim.h"

/*
 * `shared` reads its mapping, which holds the bytes whatever becomes of the mirror. `stream` reads
 * as a device might that knows nothing of sessions: what the mirror's memory has just then, also
 * where another owner has it. Only the promise says whose that is.
 */
int sim_shared_peek(const struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                    uint64_t length);
int sim_stream_peek(const struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                    uint64_t length);

/* Fails if a thread still reads by a link that ends or gets other regions. */
void sim_straight_ends(const struct ps_link *link);

/* Reads one mirror for a lane: for the bulk lane on a task of its own, once it was hired, and for
 * the fault lane before `ask` returns. */
struct sim_reader {
	struct sim_owner *owner;
	unsigned which;
	bool *wakes; /* set when something was read */
	bool hired, quit;
	bool asked;             /* the answer is due, or has come */
	bool abandoned_request; /* no caller waits for the read any more, and it goes on */
	bool go, done;          /* asked to read; has read */
	struct ps_fetch_request fetch;
	struct ps_direct_read_result seen;
	uint8_t block[SIM_GRANULE * SIM_RUN];
};

void sim_reader_init(struct sim_reader *reader, struct sim_owner *o, unsigned which, bool *wakes);
/* Starts the reader. Returns 0, or -1 if the schedule has no readers or no thread is free. */
int sim_reader_hire(struct sim_reader *reader);
/* Waits for the read in progress, and ends the reader. */
void sim_reader_end(struct sim_reader *reader);

/* Begins a read while none is in progress. A granule, and what the fault lane asks for, is read
 * before this returns. */
void sim_reader_ask(struct sim_reader *reader, const struct ps_fetch_request *fetch);
/* Answers as the pager's functions of these names do. */
int sim_reader_answer(struct sim_reader *reader, struct ps_fetch_answer *fetched);
void sim_reader_drop(struct sim_reader *reader);
bool sim_reader_reads(struct sim_reader *reader);

#endif
