/*
 * spot.h - where a daemon runs, and which daemons fail together. The command places images by it
 * and finds losses (loss.h); the daemon's page finds losses only. It must never ask a daemon.
 */
#ifndef PERSEAS_PROTO_SPOT_H
#define PERSEAS_PROTO_SPOT_H

#include "../image/layout.h"

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
enum ps_domain ps_domain_by_name(const char *name);

/* A daemon and where it runs, as it reported. */
struct ps_spot {
	uint8_t daemon[PS_ID_SIZE]; /* the daemon's identity; all zero: unknown */
	const char *address;
	/* The name of the daemon's domain of each kind, "" if unknown. A machine's name is the id
	 * of its current boot. */
	char labels[PS_DOMAINS][PS_NAME_MAX + 1];
	uint64_t used, room; /* bytes that images take, and that are free for images */
	uint32_t stores;     /* number of stores that have an image there */
	uint32_t load;       /* load average of the host per processor, in thousandths */
	bool closed;         /* gets no image, because it does not answer or is being drained */
};

/* Sets the labels of a spot, of which each may be "". The machine is the host's boot, which may be
 * empty. */
void ps_spot_set_labels(struct ps_spot *spot, const char *host, const char *rack, const char *zone,
                        const ProtobufCBinaryData *boot);

/* Returns true if both spots are known to be in the same domain of that kind. */
bool ps_spots_share_domain(const struct ps_spot *one, const struct ps_spot *other,
                           enum ps_domain domain);

#endif
