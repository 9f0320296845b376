/*
 * retained.h - the memory of this process that closed handles left to the application
 * (perseas_retain). handle.c adds to the list when a handle is closed. place.c maps a segment over
 * existing memory only if the list has all of it, whatever mirrors say about the segment's size.
 */
#ifndef PERSEAS_CLIENT_RETAINED_H
#define PERSEAS_CLIENT_RETAINED_H

#include <stdbool.h>
#include <stdint.h>

/* Adds a range of whole pages. If there is no memory to note the range, no segment can be mapped
 * over it later. From any thread. */
void ps_retained_add_range(uint64_t start, uint64_t size);

/* Returns true if handles left all of the range, even if the application has unmapped some of it
 * since. From any thread. */
bool ps_retained_covers_whole_range(uint64_t start, uint64_t size);

#endif
