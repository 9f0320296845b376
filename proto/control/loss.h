/*
 * loss.h - finds the smallest failure that a store does not survive: the loss of one spot (a
 * daemon, spot.h), or of all spots on one machine or host, or in one rack or zone. perseas status
 * and the daemon's page call it with the mirrors of a store, and tests with tables. It must never
 * contact a daemon.
 */
#ifndef PERSEAS_PROTO_LOSS_H
#define PERSEAS_PROTO_LOSS_H

#include "spot.h"

struct ps_json;

struct ps_loss {
	/* False if `spots` is 0 only because hosts are not reported: a spot whose host is unknown
	 * may share it with others, whose common loss would be fatal. */
	bool is_certain;
	/* the kind of domain that is lost with all its spots; PS_DOMAINS: a single spot */
	enum ps_domain domain;
	/* The spots in that domain. If domain is PS_DOMAINS: the spots of which each one alone is
	 * fatal. 0: no loss of one domain is fatal. */
	uint32_t spots;
};

/* Returns true if the store still works without the spots in the set `lost`. */
typedef bool ps_survives_loss(const void *arg, uint32_t lost);

/*
 * Returns the loss of the fewest spots after which `works` returns false. At equal numbers a host
 * is preferred to its machine, and these to racks and zones. Closed spots are not considered, and
 * the spots in the set `gone` are lost already.
 */
struct ps_loss ps_smallest_fatal_loss(const struct ps_spot *spots, unsigned count, uint32_t gone,
                                      ps_survives_loss *works, const void *arg);

/* Returns the host or machine with the fewest spots, but at least two. `spots` is 0 if no two spots
 * are known to be on one host or machine. */
struct ps_loss ps_smallest_shared_host(const struct ps_spot *spots, unsigned count);

/* Returns what is lost: "mirror", or the name of the domain. Returns NULL if no loss of one domain
 * is fatal. */
const char *ps_loss_kind_name(const struct ps_loss *loss);

/* Writes the JSON member `key`: the loss, or null if `loss` is NULL. */
void ps_loss_json(struct ps_json *json, const char *key, const struct ps_loss *loss,
                  const struct ps_spot *spots, unsigned count);

/* Returns true if neither the machine nor the host of the spot is known. */
bool ps_spot_host_is_unknown(const struct ps_spot *spot);

#endif
