/*
 * level.h - what perseas status says of the level of a store, and of the faults that a store of
 * level 0 still has. It never asks a mirror.
 */
#ifndef PERSEAS_COMMAND_LEVEL_H
#define PERSEAS_COMMAND_LEVEL_H

#include "ask.h"

/* Prints nothing for a store of the highest level. */
void ps_level_print(const struct ps_images *images);
void ps_level_json(struct ps_json *json, const struct ps_images *images);

#endif
