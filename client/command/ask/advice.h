/*
 * advice.h - tells the operator what to do about mirrors that lost their memory, where the owner
 * cannot make their images anew. cmd_status.c calls it. It must never ask a mirror: it reads images
 * that were fetched before.
 */
#ifndef PERSEAS_COMMAND_ADVICE_H
#define PERSEAS_COMMAND_ADVICE_H

#include "ask.h"

/* Prints nothing if the owner can make lost images anew, or if the store has no owner. */
void ps_advice_print(const struct ps_images *images, const char *store);

#endif
