/*
 * census.h - what the mirrors of a panel tell about one store, without claiming it.
 */
#ifndef PERSEAS_COMMAND_CENSUS_H
#define PERSEAS_COMMAND_CENSUS_H

#include "panel.h"

struct ps_census {
	const struct ps_panel *panel;
	Perseas__Reply *replies[PS_MIRRORS_MAX]; /* taken from the panel */
	/* What a mirror has, NULL: nothing, and errors[i] says why. */
	const Perseas__StoreStatus *told[PS_MIRRORS_MAX];
	struct ps_error errors[PS_MIRRORS_MAX];
	unsigned answered; /* mirrors */
	unsigned have;     /* mirrors with a store of this name */
	/* Of several stores that bear the name, the one with the most listed images; NULL: none. */
	const Perseas__Header *header;      /* with the newest roster of it */
	const Perseas__Roster *roster;      /* that roster */
	const Perseas__StoreStatus *newest; /* at the highest (epoch, seq) of its images that
	                                       count; NULL: none has a slot */
};

void ps_census_take(struct ps_census *census, struct ps_panel *panel, const char *store);
void ps_census_free(struct ps_census *census);

/* Is the mirror's image one of the chosen store? */
bool ps_census_belongs(const struct ps_census *census, unsigned i);

/* Is the mirror's image that of this member of the newest roster? By its id, or because it was
 * loaded from a spill of that member's image: the next open records its own id. */
bool ps_census_is(const struct ps_census *census, unsigned i, const Perseas__Member *member);

/* Does the newest roster list that image? */
bool ps_census_listed(const struct ps_census *census, unsigned i);

/* .. as that from which it was loaded? */
bool ps_census_loaded(const struct ps_census *census, unsigned i);

/* Whole, listed, and with a slot: such an image may be compared with others. */
bool ps_census_counts(const struct ps_census *census, unsigned i);

/* The segment exists: published by a transaction that the image holds. */
bool ps_census_born(const Perseas__Segment *segment, const Perseas__StoreStatus *status);

/* Complains that no mirror has the store, with each mirror's own sentence. */
enum ps_exit ps_census_nobody(const struct ps_census *census, const char *store);

const char *ps_state_text(Perseas__State state);

struct ps_json;

/* A commit slot as an object, null where there is none. */
void ps_json_slot(struct ps_json *json, const char *key, const Perseas__Slot *slot);

#endif
