/*
 * level.h - prints the level of a store, and the faults that a store of level 0 still has, for
 * perseas status. It never asks a mirror.
 */
#ifndef PERSEAS_COMMAND_LEVEL_H
#define PERSEAS_COMMAND_LEVEL_H

#include "ask.h"

/* Print the level as text (nothing for a store of the highest level) or as JSON. */
void ps_store_level_print(const struct ps_images *images);
void ps_store_level_json(struct ps_json *json, const struct ps_images *images);

#endif
