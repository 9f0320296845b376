/*
 * weak_acks.h - the warning that a store of several mirrors has W = 1. perseas status and perseas
 * doctor print it. It never asks a mirror.
 */
#ifndef PERSEAS_COMMAND_WEAK_ACKS_H
#define PERSEAS_COMMAND_WEAK_ACKS_H

#include "control.pb-c.h"

enum { PS_WEAK_ACKS_TEXT = 320 };

/* Sets text to what W = 1 means for a store with this roster, and what to do; to "" if W is larger,
 * if the roster has one member only, or if it is NULL. Returns text. */
const char *ps_weak_acks_text(char text[PS_WEAK_ACKS_TEXT], const Perseas__Roster *roster);

#endif
