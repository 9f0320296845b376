/*
 * census.h - what the mirrors of a panel tell about one store, without claiming it.
 */
#ifndef PERSEAS_COMMAND_CENSUS_H
#define PERSEAS_COMMAND_CENSUS_H

#include "panel.h"
#include "../../../proto/control/judge.h"

struct ps_census {
	const struct ps_panel *panel;
	Perseas__Reply *replies[PS_MIRRORS_MAX]; /* taken from the panel */
	/* What a mirror has, NULL: nothing, and errors[i] says why. */
	const Perseas__StoreStatus *told[PS_MIRRORS_MAX];
	struct ps_error errors[PS_MIRRORS_MAX];
	unsigned answered;          /* mirrors */
	unsigned have;              /* mirrors with a store of this name */
	struct ps_judgement judged; /* as perseas_open judges it, too */
	/* Nobody named them, and they are mirrors that were named: they count as not reached. */
	uint32_t elsewhere;
	/* Of the store that is meant; NULL: no mirror has one. */
	const Perseas__Header *header;      /* of one of its images */
	const Perseas__Roster *roster;      /* the newest, settled or not */
	const Perseas__StoreStatus *newest; /* at the newest state of its images that count; NULL:
	                                       none does */
};

void ps_census_take(struct ps_census *census, struct ps_panel *panel, const char *store);
void ps_census_free(struct ps_census *census);

/* As perseas_open does, takes it again with mirrors that a roster lists and the list does not, of
 * which the images were not seen; and with the one that a change of the roster brings. False: there
 * are none. */
bool ps_census_widen(struct ps_census *census, struct ps_panel *panel, const char *store);

/* Is it at that address for the roster? NULL: it names nobody. */
bool ps_roster_names(const Perseas__Roster *roster, const char *address);

/* Is it of the list, or one that the rosters that the census saw, or a change, have there? */
bool ps_census_needs(const struct ps_census *census, unsigned i);

/* The same with a panel that is opened for it, and closed with it. After an error, which is
 * complained about, there is nothing to close. */
enum ps_exit ps_census_open(struct ps_census *census, struct ps_panel *panel, const char *store,
                            const char *mirrors, const struct perseas_options *options);
void ps_census_close(struct ps_census *census, struct ps_panel *panel);

/* What the mirrors told, as it is judged. It points into the census. */
void ps_census_tell(const struct ps_census *census, struct ps_told told[PS_MIRRORS_MAX]);

/* Is the mirror's image one of the chosen store? */
bool ps_census_belongs(const struct ps_census *census, unsigned i);

/* Is the mirror's image that of this member? By its id, or because it was loaded from a spill of
 * that member's image: the next open records its own id. */
bool ps_census_is(const struct ps_census *census, unsigned i, const Perseas__Member *member);

/* What shows the image of this member; NULL: nobody does, which texts call PS_NOT_SEEN. */
const Perseas__StoreStatus *ps_census_image(const struct ps_census *census,
                                            const Perseas__Member *member);

#define PS_NOT_SEEN "not seen"

/* Does a roster in force list that image, or the one that it was loaded from? */
bool ps_census_listed(const struct ps_census *census, unsigned i);

/* Is it listed as the image that it was loaded from? */
bool ps_census_loaded(const struct ps_census *census, unsigned i);

/* Whole, listed, and with a slot: such an image may be compared with others. */
bool ps_census_counts(const struct ps_census *census, unsigned i);

/* The header's entry of that number; NULL: it has none. */
const Perseas__Segment *ps_header_segment(const Perseas__Header *header, uint32_t id);

/* Does it exist at that transaction? */
bool ps_segment_born(const Perseas__Segment *segment, uint64_t seq);

/* The segment exists: published by a transaction that the image holds. */
bool ps_census_born(const Perseas__Segment *segment, const Perseas__StoreStatus *status);

/* Complains that no mirror has the store, with each mirror's own sentence. */
enum ps_exit ps_census_nobody(const struct ps_census *census, const char *store);

const char *ps_state_text(Perseas__State state);

/* A commit slot as "epoch:seq", "-" where there is none. */
void ps_table_slot(struct ps_table *table, unsigned column, const Perseas__Slot *slot);

struct ps_json;

/* A commit slot as an object, null where there is none. */
void ps_json_slot(struct ps_json *json, const char *key, const Perseas__Slot *slot);

#endif
