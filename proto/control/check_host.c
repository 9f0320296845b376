/*
 * check_host.c - the range of every field of what a daemon tells of its host, for check.c.
 */
#include "check_host.h"

#include "envelope.h"

const char *ps_host_reply_fault(const Perseas__HostReply *host)
{
	const char *const labels[] = { host->host, host->rack, host->zone };

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (*labels[i] && !ps_name_valid(labels[i]))
			return "a label must be of the characters of names, 63 at most";
	return host->owners <= host->stores ? NULL : "there are more live owners than stores";
}
