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

/* The link ends, or gets other regions: nobody may be reading by it. */
void sim_straight_ends(const struct ps_link *link);

/* Reads one mirror for the thread that fetches: runs on a task of its own. */
struct sim_reader {
	struct sim_owner *owner;
	unsigned which;
	bool *wakes; /* set when something was read */
	bool hired, quit;
	bool asked;    /* the answer is due, or has come */
	bool given_up; /* what was asked for finds nobody, and is read all the same */
	bool go, done; /* it is to read; it has */
	struct ps_missing fetch;
	struct ps_seen seen;
	uint8_t block[SIM_GRANULE * SIM_RUN];
};

void sim_reader_init(struct sim_reader *reader, struct sim_owner *o, unsigned which, bool *wakes);
/* 0; or -1: the schedule is not one of those, or there is no thread. */
int sim_reader_hire(struct sim_reader *reader);
/* What it reads is waited for. */
void sim_reader_end(struct sim_reader *reader);

/* Nothing is asked, nor read. A granule is read before it returns. */
void sim_reader_ask(struct sim_reader *reader, const struct ps_missing *fetch);
/* As the pager's answer, drop and reads. */
int sim_reader_answer(struct sim_reader *reader, struct ps_fetched *fetched);
void sim_reader_drop(struct sim_reader *reader);
bool sim_reader_reads(struct sim_reader *reader);

#endif
