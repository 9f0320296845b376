/*
 * spot.c - see spot.h.
 */
#include "spot.h"

#include "../base/text.h"

#include <stdio.h>
#include <string.h>

static const char *const names[PS_DOMAINS] = { "machine", "host", "rack", "zone" };

void ps_spot_set_labels(struct ps_spot *spot, const char *host, const char *rack, const char *zone,
                        const ProtobufCBinaryData *boot)
{
	const char *const labels[PS_DOMAINS] = { "", host, rack, zone };
	char machine[PS_HEX_TEXT];

	for (unsigned i = 0; i < PS_DOMAINS; i++)
		snprintf(spot->labels[i], sizeof(spot->labels[i]), "%s", labels[i]);
	if (boot->len == PS_ID_SIZE)
		strcpy(spot->labels[PS_DOMAIN_MACHINE], ps_hex_text(machine, boot->data));
}

const char *ps_domain_name(enum ps_domain domain)
{
	return names[domain];
}

enum ps_domain ps_domain_by_name(const char *name)
{
	enum ps_domain domain = PS_DOMAIN_MACHINE;

	while (domain < PS_DOMAINS && strcmp(names[domain], name) != 0)
		domain++;
	return domain;
}

bool ps_spots_share_domain(const struct ps_spot *one, const struct ps_spot *other,
                           enum ps_domain domain)
{
	return *one->labels[domain] && !strcmp(one->labels[domain], other->labels[domain]);
}
