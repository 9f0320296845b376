/*
 * retained.h - which memory of this process handles have left to the application (perseas_retain).
 * handle.c notes it when a handle is closed, and place.c asks before it maps a segment over such
 * memory: nothing else is ever replaced, whatever mirrors say of a segment's size.
 */
#ifndef PERSEAS_CLIENT_RETAINED_H
#define PERSEAS_CLIENT_RETAINED_H

#include <stdbool.h>
#include <stdint.h>

/* These pages stay. Where there is no memory to note it, nothing is mapped over them later. Any
 * thread. */
void ps_retained_add(uint64_t start, uint64_t size);

/* Was all of it left, by any handles? What the application has unmapped since counts as well. Any
 * thread. */
bool ps_retained_has(uint64_t start, uint64_t size);

#endif
