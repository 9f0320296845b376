/*
 * disguise.h - applications that store bytes which look like the store's own: commit slots,
 * headers, rosters, segment tables and old contents of the log. forger.h stores records where the
 * log looks for them.
 */
#ifndef PERSEAS_SIM_DISGUISE_H
#define PERSEAS_SIM_DISGUISE_H

#include "work.h"

/* Replaces some of the random `bytes`, which the application is about to store. They decide what
 * becomes of them, so that no chance is drawn and schedules stay as they are. */
void sim_disguise(struct sim_application *a, uint8_t *bytes, size_t length);

#endif
