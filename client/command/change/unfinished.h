/*
 * unfinished.h - removes an unfinished store, which a command that filled it left when it was
 * killed. The same command calls it when it runs again, and so does perseas drop. It must never
 * remove a store that was filled.
 */
#ifndef PERSEAS_COMMAND_UNFINISHED_H
#define PERSEAS_COMMAND_UNFINISHED_H

#include "../ui/ui.h"
#include "../../perseas.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns true if the mirrors have an unfinished store of this name. */
bool ps_unfinished_exists(const char *store, const char *mirrors,
                          const struct perseas_options *options);

/* Deletes the unfinished store, if its id is store_id or store_id is NULL. On an error, complains
 * and says whether any image was deleted. */
enum ps_exit ps_unfinished_remove(const char *store, const char *mirrors, const uint8_t *store_id,
                                  const struct perseas_options *options);

#endif
