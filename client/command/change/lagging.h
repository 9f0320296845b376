/*
 * lagging.h - in a command that has opened a store, waits for the mirrors that lag.
 */
#ifndef PERSEAS_CLIENT_LAGGING_H
#define PERSEAS_CLIENT_LAGGING_H

#include "../../perseas.h"

/* Waits until the mirrors that lag are up to date, which the library brings about after an open,
 * and shows how far that is. Returns earlier if a signal arrives that ps_stop_catch catches, or
 * once none of them has come further for ten seconds. */
void ps_lagging_await(perseas_t *p);

#endif
