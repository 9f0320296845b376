/*
 * location.h - where a mirror's daemon runs, as an owner keeps it. The owner takes it from answers
 * to its Confirms, and reports it to all mirrors. It is for display only.
 */
#ifndef PERSEAS_PROTO_LOCATION_H
#define PERSEAS_PROTO_LOCATION_H

#include "../image/layout.h"
#include "control.pb-c.h"

#include <stdbool.h>

struct ps_location {
	char host[PS_NAME_MAX + 1], rack[PS_NAME_MAX + 1], zone[PS_NAME_MAX + 1];
	uint8_t boot[PS_ID_SIZE]; /* id of the host's boot (proto/base/boot.h) */
	bool is_boot_known;
};

/* Copies a checked message. NULL makes all of the location unknown. */
void ps_location_read(struct ps_location *location, const Perseas__Location *message);

/* Fills in a message that points into the location. Returns it, or NULL if all is unknown. */
Perseas__Location *ps_location_message(struct ps_location *location, Perseas__Location *message);

#endif
