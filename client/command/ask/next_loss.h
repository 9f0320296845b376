/*
 * next_loss.h - finds out where the mirrors of a store run, and says in words which loss of mirrors
 * would stop the store. verdict.c calls it. It must never ask a mirror.
 */
#ifndef PERSEAS_COMMAND_NEXT_LOSS_H
#define PERSEAS_COMMAND_NEXT_LOSS_H

#include "ask.h"
#include "../../../proto/control/loss.h"

/* Fills in the spot of each peer: where its daemon runs. The spot is closed if the peer shows no
 * image that a roster in force lists. The machine of a spot is the boot of the host whose memory
 * has the image. */
void ps_images_fill_spots(const struct ps_images *images, struct ps_spot spots[PS_MIRRORS_MAX]);

/* Returns the mirrors that are known to run on the live owner's machine. */
uint32_t ps_mirror_set_on_owner_machine(const struct ps_images *images);

/* Prints ", on host h1 with mirrors a and b" if mirrors run on the live owner's machine. */
void ps_owner_machine_print(const struct ps_images *images);

/* Prints the loss, such as "host h1: mirrors a and b", or names the mirrors whose host is not
 * known. */
void ps_loss_print(FILE *out, const struct ps_loss *loss, const struct ps_images *images);

#endif
