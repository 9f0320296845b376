/*
 * check_host.c - checks what a daemon reports about its host, for check.c.
 */
#include "check_host.h"

#include "envelope.h"

const char *ps_boot_fault(const ProtobufCBinaryData *boot)
{
	return boot->len == 0 || boot->len == PS_ID_SIZE ? NULL
	                                                 : "the id of a boot must be 16 bytes";
}

const char *ps_labels_fault(const char *host, const char *rack, const char *zone)
{
	const char *const labels[] = { host, rack, zone };

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (*labels[i] && !ps_name_valid(labels[i]))
			return "a label must be of the characters of names, 63 at most";
	return NULL;
}

const char *ps_location_fault(const Perseas__Location *location)
{
	const char *fault;

	if (!location)
		return NULL;
	fault = ps_labels_fault(location->host, location->rack, location->zone);
	return fault ? fault : ps_boot_fault(&location->boot);
}

const char *ps_host_reply_fault(const Perseas__HostReply *host)
{
	const char *fault = ps_labels_fault(host->host, host->rack, host->zone);

	if (fault || (fault = ps_boot_fault(&host->boot)))
		return fault;
	return host->owners <= host->stores ? NULL : "there are more live owners than stores";
}
