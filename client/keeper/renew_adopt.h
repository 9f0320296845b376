/*
 * renew_adopt.h - makes the owner's memory what mirrors hold, under the epoch of its renewal. For
 * renew.c alone, while no transaction is sent.
 */
#ifndef PERSEAS_CLIENT_RENEW_ADOPT_H
#define PERSEAS_CLIENT_RENEW_ADOPT_H

#include "../core/handle.h"

/* Of the mirrors of `counted`, which are claimed: those that hold the memory, and the slot of this
 * epoch, afterwards, and have their data path. The others are left as they are, or with an image
 * beside that is not whole. */
uint32_t ps_renew_adopt(struct perseas *p, uint32_t counted);

#endif
