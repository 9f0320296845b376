/*
 * place.h - chooses the daemons that hold the images of a store, by where they run and what they
 * have left. perseas place and perseas drain call it with what daemons reported; tests call it with
 * invented fleets. It asks no mirror, and changes nothing.
 */
#ifndef PERSEAS_COMMAND_PLACE_H
#define PERSEAS_COMMAND_PLACE_H

#include "../../../proto/image/layout.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets of daemons that fail together, the narrowest first. Daemons on one machine run on one
 * kernel, whatever hosts their labels name: each may run in a container. */
enum ps_domain { PS_DOMAIN_MACHINE, PS_DOMAIN_HOST, PS_DOMAIN_RACK, PS_DOMAIN_ZONE, PS_DOMAINS };

/* Returns "machine", "host", "rack" or "zone". */
const char *ps_domain_name(enum ps_domain domain);
/* Returns the domain of that name, or PS_DOMAINS if no domain has it. */
enum ps_domain ps_domain_named(const char *name);

/* A daemon, as it reported itself. */
struct ps_spot {
	uint8_t daemon[PS_ID_SIZE]; /* the daemon's identity; all zero: not told */
	const char *address;
	char labels[PS_DOMAINS][PS_NAME_MAX + 1]; /* "": not known; of a machine: its boot's id */
	uint64_t used, room;                      /* bytes that images take, and can still take */
	uint32_t stores;
	uint32_t load; /* a processor, in thousandths */
	bool closed;   /* it gets no image: it does not answer, or is being drained */
};

struct ps_wish {
	unsigned copies;       /* images to place */
	uint64_t bytes;        /* of each; 0: not known */
	enum ps_domain apart;  /* no two of the store in the same of these, or of narrower ones */
	const unsigned *there; /* spots that have an image of the store and keep it */
	unsigned there_count;
};

enum { PS_PLACE_WHY = 400 };

/* Sets the labels of a spot; each may be "". The machine is the boot id of the host, which may be
 * empty. */
void ps_spot_locate(struct ps_spot *spot, const char *host, const char *rack, const char *zone,
                    const ProtobufCBinaryData *boot);

/* Returns true if both spots are known to be in the same domain of that kind. */
bool ps_spots_share(const struct ps_spot *one, const struct ps_spot *other, enum ps_domain domain);

/* Returns the widest domain in which all of these spots are apart, or PS_DOMAINS if two share a
 * host or machine, or if the place of one is not known. */
enum ps_domain ps_spots_apart(const struct ps_spot *spots, const unsigned *set, unsigned count);

/* Returns the widest domain that all open spots name, or PS_DOMAINS if they do not even name
 * hosts. */
enum ps_domain ps_domain_usual(const struct ps_spot *spots, unsigned count);

/*
 * Chooses wish->copies spots into `chosen`, the best first: in each domain the spot that would be
 * the least full, then the one with the fewest stores, then the one with the least load. Returns
 * false if fewer are apart; `why` then says what is missing and what to do.
 *
 * Where domains are nested (a host in one rack, a rack in one zone) it finds a choice if one
 * exists.
 */
bool ps_spots_choose(const struct ps_spot *spots, unsigned count, const struct ps_wish *wish,
                     unsigned *chosen, char why[PS_PLACE_WHY]);

#endif
