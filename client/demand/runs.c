/*
 * runs.c - how much is fetched at once. A run of granules is one large page. Where mirror and
 * network are fast it comes much sooner than its granules would one by one: so who goes on touching
 * missing memory gets runs there. But the first of those who wait get a granule only, since a
 * program that takes over has its first transactions to run, and so does whoever waits where runs
 * are slow. Nobody waits behind more than one run that nobody needs.
 */
#include "demand.h"

enum {
	USUAL_OF = 8, /* runs, about */
	TRY = 64,     /* requests */
};

/* A run may have been slow since the host was busy: so now and then one shows how it is now. With a
 * limited rate nothing comes unasked beside what somebody waits for. */
struct ps_runs ps_runs_now(struct ps_demand *d, uint64_t now)
{
	struct ps_pace_of_runs *pace = &d->pace;
	const bool fast = pace->usual && pace->usual <= d->ops->fast && !d->rate;
	const bool quiet = now >= ps_runs_quiet_at(d);
	const bool rest = fast || quiet || ++pace->tries >= TRY;

	return (struct ps_runs){ fast && !pace->singles ? d->ops->run : 1, rest ? d->ops->run : 1,
		                 !quiet };
}

void ps_runs_begin(struct ps_demand *d, uint64_t now)
{
	d->settled_at = now + d->ops->settle;
	d->pace.singles = d->ops->singles;
}

/* Who waits for all of it touches nothing before. */
uint64_t ps_runs_quiet_at(const struct ps_demand *d)
{
	return d->waits_whole || d->quiet_at > d->settled_at ? d->quiet_at : d->settled_at;
}

void ps_runs_wait(struct ps_demand *d, uint64_t now)
{
	d->quiet_at = now + d->ops->quiet;
	d->pace.singles -= d->pace.singles > 0;
}

/* Several are under way at a time: what counts is how long each takes after the one before. */
void ps_runs_note(struct ps_demand *d, unsigned count, uint64_t asked_at, uint64_t now)
{
	struct ps_pace_of_runs *pace = &d->pace;
	const uint64_t from = asked_at > pace->answered_at ? asked_at : pace->answered_at;
	const uint64_t taken = now > from ? now - from : 1;

	pace->answered_at = now;
	if (count < d->ops->run)
		return;
	pace->tries = 0;
	pace->usual = pace->usual ? pace->usual - pace->usual / USUAL_OF + taken / USUAL_OF : taken;
}
