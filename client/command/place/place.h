/*
 * place.h - which daemons are to hold the images of a store, by where they run and what they have
 * left. perseas place and perseas drain call it with what daemons told; tests, with whole fleets on
 * paper. It asks nobody, and changes nothing.
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

/* A daemon, as it told. */
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

/* Sets the labels of a spot, of which each may be "". The machine is the host's boot, which may be
 * empty. */
void ps_spot_locate(struct ps_spot *spot, const char *host, const char *rack, const char *zone,
                    const ProtobufCBinaryData *boot);

/* Returns true if both spots are known to be in the same domain of that kind. */
bool ps_spots_share(const struct ps_spot *one, const struct ps_spot *other, enum ps_domain domain);

/* Returns the widest domain of which these spots are all in different ones, or PS_DOMAINS if two
 * are on one host or machine, or if it is not known where one runs. */
enum ps_domain ps_spots_apart(const struct ps_spot *spots, const unsigned *set, unsigned count);

/* Returns the widest domain that all open spots name, or PS_DOMAINS if they do not even name
 * hosts. */
enum ps_domain ps_domain_usual(const struct ps_spot *spots, unsigned count);

/*
 * Chooses wish->copies spots, the best first, into `chosen`: of each domain the one that would be
 * the least full, then the one with the fewest stores, then the one with the least load. Returns
 * false if there are not so many that are apart; `why` says what is missing and what to do.
 *
 * Where domains lie within each other (a host in one rack, a rack in one zone) it finds a choice
 * whenever there is one.
 */
bool ps_spots_choose(const struct ps_spot *spots, unsigned count, const struct ps_wish *wish,
                     unsigned *chosen, char why[PS_PLACE_WHY]);

#endif
