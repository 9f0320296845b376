/*
 * location.c - see location.h.
 */
#include "location.h"

#include <stdio.h>
#include <string.h>

void ps_location_read(struct ps_location *location, const Perseas__Location *message)
{
	memset(location, 0, sizeof(*location));
	if (!message)
		return;
	snprintf(location->host, sizeof(location->host), "%s", message->host);
	snprintf(location->rack, sizeof(location->rack), "%s", message->rack);
	snprintf(location->zone, sizeof(location->zone), "%s", message->zone);
	location->is_boot_known = message->boot.len == PS_ID_SIZE;
	if (location->is_boot_known)
		memcpy(location->boot, message->boot.data, PS_ID_SIZE);
}

Perseas__Location *ps_location_message(struct ps_location *location, Perseas__Location *message)
{
	perseas__location__init(message);
	message->host = location->host;
	message->rack = location->rack;
	message->zone = location->zone;
	if (location->is_boot_known)
		message->boot = (ProtobufCBinaryData){ PS_ID_SIZE, location->boot };
	return *location->host || *location->rack || *location->zone || location->is_boot_known
	               ? message
	               : NULL;
}
