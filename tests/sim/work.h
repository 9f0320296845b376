/*
 * work.h - the transactions of an application, by any of its threads, and what the oracle is told
 * of them.
 */
#ifndef PERSEAS_SIM_WORK_H
#define PERSEAS_SIM_WORK_H

#include "../../client/perseas.h"
#include "oracle.h"
#include "process.h"

struct work;

/* The progress of an application that stores undo records as data (forger.c). */
struct sim_forger {
	unsigned phase;
	uint64_t goal;    /* seq of the transaction behind which the stored record lies */
	unsigned segment; /* that the next transaction changes */
	uint32_t length;  /* of its bytes, at the start of that; 0: it is one like others */
	uint8_t bytes[300];
};

struct mapped {
	uint8_t *base; /* NULL: not mapped */
	uint32_t size;
};

struct sim_application {
	struct sim_owner *owner;
	struct sim_world *world;
	uint32_t flags;
	bool last;
	perseas_t *p;
	struct sim_node *at; /* the last transaction that was sent */
	struct work *open;   /* transactions */
	bool leaving;        /* a thread has seen that it is over */
	bool mapping;        /* a thread is at the segments */
	/* 1 more than the number of the segment that it unmaps, which other threads leave alone */
	unsigned unmaps;
	bool attempting; /* a thread will roll back to a savepoint */
	unsigned maps;   /* of segments that were published */
	struct mapped mapped[SIM_NAMED];
	struct sim_heap *heap; /* NULL: no heap is open (heap_work.c) */
	struct sim_forger forger;
	struct sim_node *unwaited; /* the last that was committed and not waited for, or NULL */
	int fd;                    /* of perseas_fd, or -1 */
	uint64_t seen;             /* what perseas_durable told last */
};

/* Outcomes of a step: go on, leave; a transaction did not even begin. */
enum { GO_ON, LEAVE, BLOCKED };

/* Fails the schedule for an impossible error; a dead process may get any error. */
int sim_unexpected(struct sim_application *a, const char *what, int rc);

/* Runs one transaction, or two that are open at the same time. */
int sim_work_one(struct sim_application *a);
int sim_work_two(struct sim_application *a);

/* Asks by a token whether W hold a transaction, and how far they are. */
int sim_work_ask(struct sim_application *a);

/* Reads, and asks whether this process still is the owner, so that the answer may be given. */
int sim_work_confirm(struct sim_application *a);

/* The handle is closed, with this outcome. */
void sim_work_closed(struct sim_application *a, int rc);

/* Publishes the segments that are mapped and not published. */
int sim_work_publish(struct sim_application *a);

/* Destroys a segment, which is not mapped. */
int sim_work_destroy(struct sim_application *a, unsigned segment);

/* The segment grows by a page, if it can. */
int sim_work_grow(struct sim_application *a, unsigned segment);

/* Returns the heap's empty extents to the store. */
int sim_work_trim(struct sim_application *a);

#endif
