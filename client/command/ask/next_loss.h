/*
 * next_loss.h - where the mirrors of a store run, and in words which loss of them would hurt.
 * verdict.c calls it. It must never ask a mirror.
 */
#ifndef PERSEAS_COMMAND_NEXT_LOSS_H
#define PERSEAS_COMMAND_NEXT_LOSS_H

#include "ask.h"
#include "../../../proto/control/loss.h"

/* Fills in a spot for each mirror of the peers, closed where the mirror shows no image that a
 * roster in force lists. A mirror's machine is the boot of the host in which its image is in
 * memory. */
void ps_images_spots(const struct ps_images *images, struct ps_spot spots[PS_MIRRORS_MAX]);

/* Returns the mirrors that are known to run on the live owner's machine. */
uint32_t ps_images_beside_owner(const struct ps_images *images);

/* Prints ", on host h1 with mirrors a and b" if mirrors run on the live owner's machine. */
void ps_beside_owner_print(const struct ps_images *images);

/* Prints the loss, such as "host h1: mirrors a and b", or names the mirrors whose host is not
 * known. */
void ps_loss_print(FILE *out, const struct ps_loss *loss, const struct ps_images *images);

#endif
