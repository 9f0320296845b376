/*
 * census.h - what the mirrors of peers tell about one store, without claiming it. Standbys take
 * it, and the command. It must never change anything on a mirror.
 */
#ifndef PERSEAS_CLIENT_CENSUS_H
#define PERSEAS_CLIENT_CENSUS_H

#include "peers.h"
#include "../../proto/control/judge.h"

struct ps_census {
	const struct ps_peers *peers;
	Perseas__Reply *replies[PS_MIRRORS_MAX]; /* taken from the peers */
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

void ps_census_take(struct ps_census *census, struct ps_peers *peers, const char *store);
void ps_census_free(struct ps_census *census);

/* Judges what is in ->peers, ->told and ->errors, and fills in the rest but ->answered. For who
 * asked mirrors otherwise than by peers of this store; ps_census_take calls it itself. */
void ps_census_judge(struct ps_census *census);

/* The planned handover of the store's present or last owner; NULL: there is none. Of two that were
 * asked for at the same time, at different mirrors, everybody takes the same. */
const Perseas__Handover *ps_census_handover(const struct ps_census *census);

/* Begins to ask at an address, too. False: it is asked already, it is none, or there are as many
 * mirrors as there may be. */
bool ps_census_ask_at(struct ps_peers *peers, const char *address);

/* As perseas_open does, takes it again with mirrors that a roster lists and the list does not, of
 * which the images were not seen; and with the one that a change of the roster brings. False: there
 * are none. */
bool ps_census_widen(struct ps_census *census, struct ps_peers *peers, const char *store);

/* Is it of the list, or one that the rosters that the census saw, or a change, have there? */
bool ps_census_needs(const struct ps_census *census, unsigned i);

/* Does `a` know better than `b` (NULL: nothing) who the live owner is? The one of the higher epoch
 * is; of several that know of it, the one that heard from it last. */
bool ps_owner_better(const Perseas__StoreStatus *a, const Perseas__StoreStatus *b);

/* The mirror that knows best, or -1: none sees one. */
int ps_owner_at(const struct ps_census *census);

/* The mirror that a change of the roster, which the live owner makes now, is to bring. NULL: there
 * is none, or a roster lists it already: as a member it is known by its image, wherever it was
 * seen. */
const char *ps_owner_newcomer(const struct ps_census *census);

/* What the mirrors told, as it is judged. It points into the census. */
void ps_census_tell(const struct ps_census *census, struct ps_told told[PS_MIRRORS_MAX]);

/* Is the mirror's image one of the chosen store? */
bool ps_census_belongs(const struct ps_census *census, unsigned i);

/* Is the mirror's image that of this member? By its id, or because it was loaded from a spill of
 * that member's image: the next open records its own id. */
bool ps_census_is(const struct ps_census *census, unsigned i, const Perseas__Member *member);

/* What shows the image of this member; NULL: nobody does. */
const Perseas__StoreStatus *ps_census_image(const struct ps_census *census,
                                            const Perseas__Member *member);

/* Does a roster in force list that image, or the one that it was loaded from? */
bool ps_census_listed(const struct ps_census *census, unsigned i);

/* Is it listed as the image that it was loaded from? */
bool ps_census_loaded(const struct ps_census *census, unsigned i);

/* Whole, listed, and with a slot: such an image may be compared with others. */
bool ps_census_counts(const struct ps_census *census, unsigned i);

#endif
