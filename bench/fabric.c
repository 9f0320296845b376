/*
 * fabric.c - checks and prints which fabric a store's mirrors use.
 */
#include "fabric.h"
#include "options.h"
#include "../client/perseas.h"
#include "../proto/base/json.h"

#include <string.h>

int fabric_check(struct perseas *p, const char *asked)
{
	struct perseas_mirror_stat mirror;
	char why[1024];

	for (unsigned i = 0; !perseas_mirror_stat(p, i, &mirror); i++) {
		if (mirror.state != PERSEAS_MIRROR_LIVE)
			snprintf(why, sizeof(why), "mirror %s is %s: %s", mirror.address,
			         perseas_mirror_state_name(mirror.state), mirror.trouble);
		else if (asked && strcmp(asked, mirror.fabric) != 0)
			snprintf(why, sizeof(why), "mirror %s is on %s, not on %s%s%s",
			         mirror.address, mirror.fabric, asked,
			         mirror.trouble[0] ? ": " : "", mirror.trouble);
		else
			continue;
		return program_fail("fabric", why);
	}
	return 0;
}

void fabric_json(struct ps_json *json, struct perseas *p)
{
	struct perseas_mirror_stat mirror;

	ps_json_begin(json, "mirrors", '[');
	for (unsigned i = 0; !perseas_mirror_stat(p, i, &mirror); i++) {
		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "address", mirror.address);
		ps_json_text(json, "fabric", mirror.fabric);
		ps_json_text(json, "state", perseas_mirror_state_name(mirror.state));
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

void fabric_print(FILE *out, struct perseas *p)
{
	struct perseas_mirror_stat mirror;

	for (unsigned i = 0; !perseas_mirror_stat(p, i, &mirror); i++)
		fprintf(out, "%s: %s, %s\n", mirror.address, mirror.fabric,
		        perseas_mirror_state_name(mirror.state));
}
