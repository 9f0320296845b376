/*
 * shared_hosts.h - warns if mirrors of a store share a host, and so are lost together. Commands
 * that place mirrors call it (create, roster, restore, recover). It changes nothing.
 */
#ifndef PERSEAS_COMMAND_SHARED_HOSTS_H
#define PERSEAS_COMMAND_SHARED_HOSTS_H

#include "../../perseas.h"

/* Asks the mirrors of the list and of the store's roster, and complains about each host or machine
 * with several of them. Mirrors that do not answer are left out without a complaint. */
void ps_shared_hosts_warn(const char *store, const char *mirrors,
                          const struct perseas_options *options);

#endif
