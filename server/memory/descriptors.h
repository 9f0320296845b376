/*
 * descriptors.h - distributes the last file descriptors: two are reserved for work that must always
 * succeed, and pieces, of which a client can create many, leave some to connections.
 */
#ifndef PERSEAS_SERVER_DESCRIPTORS_H
#define PERSEAS_SERVER_DESCRIPTORS_H

#include <stdbool.h>

enum { DESCRIPTORS_RESERVED = 2 };

struct descriptors {
	int reserved[DESCRIPTORS_RESERVED]; /* reserved descriptors; -1: could not be reserved */
	/* Number of descriptors that pieces must leave to connections; at most half of all. */
	unsigned left_to_others;
};

void descriptors_init(struct descriptors *descriptors);
/* Reserves the descriptors that are missing, by duplicating the descriptor `open`. Preserves
 * errno. */
void descriptors_reserve(struct descriptors *descriptors, int open);
/* Closes the reserved descriptors, so that the caller can open files before another thread does. */
void descriptors_release(struct descriptors *descriptors);
/* Returns true if a piece may use the descriptor fd, which the process has just opened. */
bool descriptors_may_use(const struct descriptors *descriptors, int fd);

#endif
