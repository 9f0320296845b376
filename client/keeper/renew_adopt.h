/*
 * renew_adopt.h - makes the owner's memory what mirrors hold, under the epoch of its renewal. For
 * renew.c alone, while no transaction is sent.
 */
#ifndef PERSEAS_CLIENT_RENEW_ADOPT_H
#define PERSEAS_CLIENT_RENEW_ADOPT_H

#include "../core/handle.h"

/* Adopts on mirrors of `counted`, which are claimed, until W are good: they hold the memory, and
 * the slot of this epoch. The others are left as they are, or with an image beside that is not
 * whole. The data path of a good mirror may have broken since (ps_claims_broken). */
void ps_renew_adopt(struct perseas *p, uint32_t counted);

#endif
