/*
 * descriptors.h - who gets the last descriptors: two are kept for what must always be done, and
 * pieces, of which anybody who may make stores can have many, leave some to connections.
 */
#ifndef PERSEAS_SERVER_DESCRIPTORS_H
#define PERSEAS_SERVER_DESCRIPTORS_H

#include <stdbool.h>

enum { DESCRIPTORS_KEPT = 2 };

struct descriptors {
	int kept[DESCRIPTORS_KEPT]; /* -1: it could not be had again */
	unsigned left;              /* that pieces leave to others; of few, no more than half */
};

void descriptors_init(struct descriptors *descriptors);
/* Takes those that it lacks, as copies of an open one. errno stays as it is. */
void descriptors_keep(struct descriptors *descriptors, int open);
/* Whoever opens something next, before another thread does, finds one. */
void descriptors_give(struct descriptors *descriptors);
/* May a piece have this one, which is the lowest that was free? */
bool descriptors_spare(const struct descriptors *descriptors, int fd);

#endif
