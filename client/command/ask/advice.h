/*
 * advice.h - what an operator has to do about a store whose mirrors lost their memory, where its
 * owner cannot mend that. cmd_status.c calls it. It must never ask a mirror: it goes by a census.
 */
#ifndef PERSEAS_COMMAND_ADVICE_H
#define PERSEAS_COMMAND_ADVICE_H

#include "ask.h"

/* Prints nothing where the owner makes lost images anew, or where there is no owner. */
void ps_advice_print(const struct ps_census *census, const char *store);

#endif
