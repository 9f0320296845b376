/*
 * next_loss.c - see next_loss.h.
 */
#include "next_loss.h"

#include <string.h>

void ps_images_fill_spots(const struct ps_images *images, struct ps_spot spots[PS_MIRRORS_MAX])
{
	memset(spots, 0, PS_MIRRORS_MAX * sizeof(*spots));
	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__StoreStatus *told = images->told[i];

		spots[i].address = images->peers->addresses[i].text;
		spots[i].closed = !told || !ps_images_is_listed(images, i);
		if (!spots[i].closed)
			ps_spot_set_labels(&spots[i], told->host, told->rack, told->zone,
			                   &told->header->boot);
	}
}

uint32_t ps_mirror_set_on_owner_machine(const struct ps_images *images)
{
	const int at = ps_images_find_owner(images);
	const Perseas__StoreStatus *owner = at < 0 ? NULL : images->told[at];
	uint32_t beside = 0;

	for (unsigned i = 0; owner && owner->owner_boot.len && i < images->peers->count; i++)
		if (images->told[i] && ps_images_is_listed(images, i) &&
		    images->told[i]->header->boot.len &&
		    ps_id_equal(owner->owner_boot, images->told[i]->header->boot.data))
			beside |= UINT32_C(1) << i;
	return beside;
}

static void print_mirror_set(FILE *out, const struct ps_spot *spots, uint32_t set, const char *last)
{
	for (unsigned i = 0; set; i++) {
		const uint32_t rest = set & ~(UINT32_C(1) << i);

		if (rest == set)
			continue;
		fprintf(out, "%s%s", spots[i].address,
		        !rest               ? ""
		        : rest & (rest - 1) ? ", "
		                            : last);
		set = rest;
	}
}

static void print_mirrors_without_host(FILE *out, const struct ps_spot *spots, unsigned count)
{
	uint32_t unknown = 0;

	for (unsigned i = 0; i < count; i++)
		if (!spots[i].closed && ps_spot_host_is_unknown(&spots[i]))
			unknown |= UINT32_C(1) << i;
	fprintf(out, "not known, since the host of ");
	print_mirror_set(out, spots, unknown, " and ");
	fprintf(out, " is not told");
}

/* Prints the host labels of a machine's mirrors, each label once. */
static void print_hosts(FILE *out, const struct ps_spot *spots, uint32_t set)
{
	const char *before = " (hosts ";

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		const char *host = spots[i].labels[PS_DOMAIN_HOST];
		bool named = !*host || !(set >> i & 1);

		for (unsigned k = 0; k < i; k++)
			named = named ||
			        (set >> k & 1 &&
			         ps_spots_share_domain(&spots[k], &spots[i], PS_DOMAIN_HOST));
		if (named)
			continue;
		fprintf(out, "%s%s", before, host);
		before = ", ";
	}
	if (*before == ',')
		fprintf(out, ")");
}

static void print_domain(FILE *out, const struct ps_loss *loss, const struct ps_spot *spots)
{
	const unsigned first = (unsigned)__builtin_ctz(loss->spots);

	if (loss->domain == PS_DOMAIN_MACHINE) {
		fprintf(out, "one machine");
		print_hosts(out, spots, loss->spots);
	} else {
		fprintf(out, "%s %s", ps_domain_name(loss->domain),
		        spots[first].labels[loss->domain]);
	}
	fprintf(out, ": mirrors ");
	print_mirror_set(out, spots, loss->spots, " and ");
}

void ps_loss_print(FILE *out, const struct ps_loss *loss, const struct ps_images *images)
{
	struct ps_spot spots[PS_MIRRORS_MAX];

	ps_images_fill_spots(images, spots);
	if (!loss->is_certain) {
		print_mirrors_without_host(out, spots, images->peers->count);
	} else if (!loss->spots) {
		fprintf(out, "none alone");
	} else if (loss->domain == PS_DOMAINS) {
		fprintf(out, "%s", loss->spots & (loss->spots - 1) ? "any of " : "");
		print_mirror_set(out, spots, loss->spots, ", ");
	} else {
		print_domain(out, loss, spots);
	}
}

void ps_owner_machine_print(const struct ps_images *images)
{
	const uint32_t beside = ps_mirror_set_on_owner_machine(images);
	struct ps_spot spots[PS_MIRRORS_MAX];
	const char *host;

	if (!beside)
		return;
	ps_images_fill_spots(images, spots);
	host = spots[__builtin_ctz(beside)].labels[PS_DOMAIN_HOST];
	printf(", on %s%s with mirror%s ", *host ? "host " : "one machine", host,
	       beside & (beside - 1) ? "s" : "");
	print_mirror_set(stdout, spots, beside, " and ");
}
