/*
 * loss.c - see loss.h.
 */
#include "loss.h"

#include "../base/json.h"

/* The arguments of ps_smallest_fatal_loss(). */
struct fleet {
	const struct ps_spot *spots;
	unsigned count;
	uint32_t gone; /* set of spots that are lost already */
	ps_survives_loss *works;
	const void *arg; /* argument of `works` */
};

bool ps_spot_host_is_unknown(const struct ps_spot *spot)
{
	return !*spot->labels[PS_DOMAIN_MACHINE] && !*spot->labels[PS_DOMAIN_HOST];
}

static bool is_fatal_loss(const struct fleet *fleet, uint32_t lost)
{
	return !fleet->works(fleet->arg, fleet->gone | lost);
}

static bool is_single(uint32_t set)
{
	return (set & (set - 1)) == 0;
}

/* Returns the spot and all others that are known to share its domain. */
static uint32_t domain_spots(const struct fleet *fleet, unsigned i, enum ps_domain domain)
{
	uint32_t set = UINT32_C(1) << i;

	for (unsigned k = 0; k < fleet->count; k++)
		if (!fleet->spots[k].closed &&
		    ps_spots_share_domain(&fleet->spots[i], &fleet->spots[k], domain))
			set |= UINT32_C(1) << k;
	return set;
}

/* Returns the spots of which each one alone is a fatal loss. */
static uint32_t find_fatal_spots(const struct fleet *fleet)
{
	uint32_t alone = 0;

	for (unsigned i = 0; i < fleet->count; i++)
		if (!fleet->spots[i].closed && is_fatal_loss(fleet, UINT32_C(1) << i))
			alone |= UINT32_C(1) << i;
	return alone;
}

/* Finds the domain with the fewest spots whose loss, together with the spots in `more`, is fatal.
 * Considers no kind of domain wider than `widest`. */
static struct ps_loss find_fatal_domain(const struct fleet *fleet, uint32_t more,
                                        enum ps_domain widest)
{
	static const enum ps_domain order[] = { PS_DOMAIN_HOST, PS_DOMAIN_MACHINE, PS_DOMAIN_RACK,
		                                PS_DOMAIN_ZONE };
	struct ps_loss best = { .is_certain = true, .domain = PS_DOMAINS };

	for (unsigned k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		for (unsigned i = 0; order[k] <= widest && i < fleet->count; i++) {
			const uint32_t set = domain_spots(fleet, i, order[k]);

			/* The caller has tried each spot alone. */
			if (fleet->spots[i].closed || is_single(set | more))
				continue;
			if (best.spots && __builtin_popcount(set) >= __builtin_popcount(best.spots))
				continue;
			if (is_fatal_loss(fleet, set | more))
				best = (struct ps_loss){ true, order[k], set };
		}
	return best;
}

struct ps_loss ps_smallest_fatal_loss(const struct ps_spot *spots, unsigned count, uint32_t gone,
                                      ps_survives_loss *works, const void *arg)
{
	const struct fleet fleet = { spots, count, gone, works, arg };
	struct ps_loss loss = { .is_certain = true,
		                .domain = PS_DOMAINS,
		                .spots = find_fatal_spots(&fleet) };
	uint32_t unknown = 0;

	if (!loss.spots)
		loss = find_fatal_domain(&fleet, 0, PS_DOMAIN_ZONE);
	for (unsigned i = 0; i < count; i++)
		if (!spots[i].closed && ps_spot_host_is_unknown(&spots[i]))
			unknown |= UINT32_C(1) << i;
	/* Spots that report no host could all be in the same domain, whichever it is. */
	if (!loss.spots && unknown)
		loss.is_certain = !find_fatal_domain(&fleet, unknown, PS_DOMAIN_ZONE).spots;
	return loss;
}

static bool is_one_at_most(const void *arg, uint32_t lost)
{
	(void)arg;
	return is_single(lost);
}

struct ps_loss ps_smallest_shared_host(const struct ps_spot *spots, unsigned count)
{
	const struct fleet fleet = { spots, count, 0, is_one_at_most, NULL };

	return find_fatal_domain(&fleet, 0, PS_DOMAIN_HOST);
}

const char *ps_loss_kind_name(const struct ps_loss *loss)
{
	if (!loss->spots)
		return NULL;
	return loss->domain == PS_DOMAINS ? "mirror" : ps_domain_name(loss->domain);
}

void ps_loss_json(struct ps_json *json, const char *key, const struct ps_loss *loss,
                  const struct ps_spot *spots, unsigned count)
{
	const char *name;

	if (!ps_json_begin_if(json, key, loss))
		return;
	name = loss->spots && loss->domain < PS_DOMAINS && loss->domain != PS_DOMAIN_MACHINE
	               ? spots[__builtin_ctz(loss->spots)].labels[loss->domain]
	               : NULL;
	ps_json_bool(json, "known", loss->is_certain);
	ps_json_text(json, "of", ps_loss_kind_name(loss));
	ps_json_text(json, "name", name);
	ps_json_begin(json, "mirrors", '[');
	for (unsigned i = 0; i < count; i++)
		if (loss->spots >> i & 1)
			ps_json_text(json, NULL, spots[i].address);
	ps_json_end(json, ']');
	ps_json_end(json, '}');
}
