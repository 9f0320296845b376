/*
 * fabric.c - which fabric a store's mirrors are on.
 */
#include "fabric.h"
#include "measure.h"

#include "../client/perseas.h"

#include <string.h>

int fabric_check(struct perseas *p, const char *asked, char *why, size_t size)
{
	struct perseas_mirror_stat mirror;

	for (unsigned i = 0; !perseas_mirror_stat(p, i, &mirror); i++) {
		if (mirror.state != PERSEAS_MIRROR_LIVE) {
			snprintf(why, size, "mirror %s is %s: %s", mirror.address,
			         perseas_mirror_state_name(mirror.state), mirror.trouble);
			return -1;
		}
		if (asked && strcmp(asked, mirror.fabric) != 0) {
			snprintf(why, size, "mirror %s is on %s, not on %s%s%s", mirror.address,
			         mirror.fabric, asked, mirror.trouble[0] ? ": " : "",
			         mirror.trouble);
			return -1;
		}
	}
	return 0;
}

void fabric_json(FILE *out, struct perseas *p)
{
	struct perseas_mirror_stat mirror;

	fprintf(out, "\"mirrors\": [");
	for (unsigned i = 0; !perseas_mirror_stat(p, i, &mirror); i++) {
		fprintf(out, "%s{\"address\": ", i ? ", " : "");
		measured_text_json(out, mirror.address);
		fprintf(out, ", \"fabric\": \"%s\", \"state\": \"%s\"}", mirror.fabric,
		        perseas_mirror_state_name(mirror.state));
	}
	fprintf(out, "]");
}

void fabric_print(FILE *out, struct perseas *p)
{
	struct perseas_mirror_stat mirror;

	for (unsigned i = 0; !perseas_mirror_stat(p, i, &mirror); i++)
		fprintf(out, "%s: %s, %s\n", mirror.address, mirror.fabric,
		        perseas_mirror_state_name(mirror.state));
}
