/*
 * renew_adopt.h - brings mirrors up to date with the owner's memory, under the epoch of its
 * renewal. Only renew.c calls this, while no transaction is sent.
 */
#ifndef PERSEAS_CLIENT_RENEW_ADOPT_H
#define PERSEAS_CLIENT_RENEW_ADOPT_H

#include "../core/handle.h"

/* Adopts on the claimed mirrors of `counted_mirrors` until W are adopted: they hold the owner's
 * memory and a slot of this epoch. Other mirrors are left unchanged, or with an unfinished image
 * beside theirs. The data path of an adopted mirror may have broken since
 * (ps_claims_ask_and_find_lost). */
void ps_renew_adopt_memory_on_mirrors(struct perseas *p, uint32_t counted_mirrors);

#endif
