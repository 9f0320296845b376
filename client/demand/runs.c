/*
 * runs.c - how much is fetched at once. A run of granules is one large page. Where mirror and
 * network are fast it comes much sooner than its granules would one by one. Where they are slow,
 * whoever touches missing memory waits for a granule only, and not behind a run that nobody needs.
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
	const bool rest = fast || now >= d->quiet_at || ++pace->tries >= TRY;

	return (struct ps_runs){ fast ? d->ops->run : 1, rest ? d->ops->run : 1 };
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
