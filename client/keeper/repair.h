/*
 * repair.h - compares the mirrors with the memory here, and repairs those that differ, as
 * `perseas verify --repair` orders. PROTOCOL.md, "Repair", has the rules.
 *
 *    NONE --> COMPARING --> SENDING --> NONE
 *
 * COMPARING asks all live mirrors for keyed digests of a piece, and takes transactions meanwhile. A
 * granule that changed before the answers came is compared again. A mirror's granule is wrong if W
 * others agree with the memory here; if fewer do, the repair ends, and nothing changes. SENDING
 * breaks the link of one mirror at a time, and the mirror comes back as after any broken link: the
 * copy to it sends the wrong granules with what it missed.
 *
 * The keeper calls this and holds admin. It waits for no mirror.
 */
#ifndef PERSEAS_CLIENT_REPAIR_H
#define PERSEAS_CLIENT_REPAIR_H

#include "../core/handle.h"

/* Begins the repair that the order with this id asks for. No repair is under way. */
void ps_repair_begin(struct perseas *p, const uint8_t *order_id);

/* Continues the repair, if one is under way, as far as possible without waiting. */
void ps_repair_step(struct perseas *p);

/* Returns when the repair next needs attention if nothing arrives, or PS_NEVER. */
uint64_t ps_repair_due_at(const struct perseas *p, uint64_t now);

#endif
