/*
 * advice.h - tells the operator what to do about mirrors that lost their memory, where an owner
 * cannot make their images anew. cmd_status.c calls it. It must never ask a mirror: it reads images
 * that were fetched before.
 */
#ifndef PERSEAS_COMMAND_ADVICE_H
#define PERSEAS_COMMAND_ADVICE_H

#include "ask.h"

/* Prints nothing if an owner can make the lost images anew. */
void ps_advice_print(const struct ps_images *images, const char *store);

#endif
