/*
 * descriptors.h - distributes the last file descriptors: two are reserved for work that must always
 * succeed, and pieces, of which a client can create many, leave some to connections.
 */
#ifndef PERSEAS_SERVER_DESCRIPTORS_H
#define PERSEAS_SERVER_DESCRIPTORS_H

#include <stdbool.h>

enum { DESCRIPTORS_RESERVED = 2 };

struct descriptor_reserve {
	int reserved[DESCRIPTORS_RESERVED]; /* reserved descriptors; -1: could not be reserved */
	/* Number of descriptors that pieces must leave to connections; at most half of all. */
	unsigned left_to_others;
};

void descriptor_reserve_init(struct descriptor_reserve *reserve);
/* Reserves the descriptors that are missing, by duplicating the descriptor `open`. Preserves
 * errno. */
void descriptor_reserve_refill(struct descriptor_reserve *reserve, int open);
/* Closes the reserved descriptors, so that the caller can open files before another thread does. */
void descriptor_reserve_release(struct descriptor_reserve *reserve);
/* Returns true if a piece may use the descriptor fd, which the process has just opened. */
bool descriptor_reserve_allows_piece(const struct descriptor_reserve *reserve, int fd);

#endif
