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
	struct mapped mapped[SIM_SEGMENTS];
};

/* Outcomes of a step: go on, leave; a transaction did not even begin. */
enum { GO_ON, LEAVE, BLOCKED };

/* An error that cannot be; the dead may get any. */
int sim_unexpected(struct sim_application *a, const char *what, int rc);

/* A transaction; two that are open at the same time. */
int sim_work_one(struct sim_application *a);
int sim_work_two(struct sim_application *a);

/* Publishes what is mapped and not published. */
int sim_work_publish(struct sim_application *a);

#endif
