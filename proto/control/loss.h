/*
 * loss.h - the smallest loss that something does not survive: of one spot, or of all spots on one
 * machine or host, in one rack or zone. perseas status and the daemon's page call it with the
 * mirrors of a store; tests, with tables. It asks nobody.
 */
#ifndef PERSEAS_PROTO_LOSS_H
#define PERSEAS_PROTO_LOSS_H

#include "spot.h"

struct ps_json;

struct ps_loss {
	/* False if no loss of a known domain hurts, but a spot whose host is not known could share
	 * it with others. */
	bool known;
	/* the domain that is lost with all its spots; PS_DOMAINS: a single spot */
	enum ps_domain domain;
	uint32_t spots; /* of one spot alone: any of these; 0: no such loss hurts */
};

/* Returns true if the thing in question still works without the spots in the set `lost`. */
typedef bool ps_loss_works(const void *arg, uint32_t lost);

/*
 * Returns the smallest loss after which `works` returns false, by the number of spots that are
 * lost. At equal numbers a host comes before its machine, and these before racks and zones. Closed
 * spots are not there, and the spots in the set `gone` are lost already.
 */
struct ps_loss ps_loss_smallest(const struct ps_spot *spots, unsigned count, uint32_t gone,
                                ps_loss_works *works, const void *arg);

/* Returns the smallest set of several spots that are known to be on one host or one machine. Its
 * `spots` is 0 if no two are. */
struct ps_loss ps_spots_together(const struct ps_spot *spots, unsigned count);

/* Adds the member `key`: the loss, or null if `loss` is NULL. */
void ps_loss_json(struct ps_json *json, const char *key, const struct ps_loss *loss,
                  const struct ps_spot *spots, unsigned count);

/* Returns true if neither the machine nor the host of the spot is known. */
bool ps_spot_unknown(const struct ps_spot *spot);

#endif
