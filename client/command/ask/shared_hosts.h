/*
 * shared_hosts.h - a warning for a store of which mirrors share a host, and so are lost together.
 * Commands call it that have placed mirrors (create, roster, restore, recover). It changes
 * nothing.
 */
#ifndef PERSEAS_COMMAND_SHARED_HOSTS_H
#define PERSEAS_COMMAND_SHARED_HOSTS_H

#include "../../perseas.h"

/* Asks the mirrors of the list, and those that the store's roster has, and complains about each
 * host or machine with several of them. Says nothing of mirrors that do not answer. */
void ps_shared_hosts_warn(const char *store, const char *mirrors,
                          const struct perseas_options *options);

#endif
