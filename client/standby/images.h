/*
 * images.h - the images of one store, as its mirrors tell of them, without claiming it. Standbys
 * take them, and the command. It must never change anything on a mirror.
 */
#ifndef PERSEAS_CLIENT_IMAGES_H
#define PERSEAS_CLIENT_IMAGES_H

#include "peers.h"
#include "../../proto/control/judge.h"

struct ps_images {
	const struct ps_peers *peers;
	Perseas__Reply *replies[PS_MIRRORS_MAX]; /* taken from the peers */
	/* What each peer has; NULL: nothing, and errors[i] says why. */
	const Perseas__StoreStatus *told[PS_MIRRORS_MAX];
	struct ps_error errors[PS_MIRRORS_MAX];
	unsigned answered;          /* peers that answered */
	unsigned have;              /* peers with a store of this name */
	struct ps_judgement judged; /* as perseas_open judges it, too */
	/* Peers that no list named, and that are a mirror of the list by another address: they
	 * count as not reached. */
	uint32_t elsewhere;
	/* Of the store that is meant; NULL: no peer has one. */
	const Perseas__Header *header;      /* of one of its images */
	const Perseas__Roster *roster;      /* the newest, settled or not */
	const Perseas__StoreStatus *newest; /* at the newest state of its images that count; NULL:
	                                       none does */
};

/* Asks the peers for their images of the store, and judges them. */
void ps_images_take(struct ps_images *images, struct ps_peers *peers, const char *store);
void ps_images_free(struct ps_images *images);

/* Judges what is in ->peers, ->told and ->errors, and fills in the rest but ->answered. For callers
 * that asked mirrors for all their stores at once. */
void ps_images_judge(struct ps_images *images);

/* Returns the planned handover of the store's present or last owner, or NULL. If two were
 * ordered at the same time at different mirrors, every caller gets the same one. */
const Perseas__Handover *ps_images_handover(const struct ps_images *images);

/* Adds a peer at the address. Returns false if the address was asked already or is none, or if
 * there is no room. */
bool ps_images_ask_at(struct ps_peers *peers, const char *address);

/* Takes the images again, as perseas_open does, with mirrors that a roster lists, the list does
 * not, and whose images were not seen, and with the mirror that a change of the roster brings.
 * Returns false if there are no such mirrors. */
bool ps_images_widen(struct ps_images *images, struct ps_peers *peers, const char *store);

/* Returns true if peer `i` is of the list, or is at an address that a roster in force, or a change,
 * has. */
bool ps_images_needs(const struct ps_images *images, unsigned i);

/* Returns true if `a` knows better than `b` who the live owner is: of a higher epoch, or, of the
 * same, heard from later. `b` may be NULL, which knows nothing. */
bool ps_owner_better(const Perseas__StoreStatus *a, const Perseas__StoreStatus *b);

/* Returns the peer that knows best who the live owner is, or -1 if no peer sees one. */
int ps_owner_at(const struct ps_images *images);

/* Returns the address of the mirror that the live owner's change of the roster will add, or NULL if
 * it adds none or a roster lists that mirror already. */
const char *ps_owner_newcomer(const struct ps_images *images);

/* Fills in what the mirrors told, as ps_judge takes it. It points into the images. */
void ps_images_tell(const struct ps_images *images, struct ps_told told[PS_MIRRORS_MAX]);

/* Returns true if peer `i` has an image of the store that is meant. */
bool ps_images_belongs(const struct ps_images *images, unsigned i);

/* Returns true if the image of peer `i` is this member's: by its id, or because it was loaded from
 * a spill of that member's image. The next open records its own id. */
bool ps_images_is_member(const struct ps_images *images, unsigned i, const Perseas__Member *member);

/* Returns the image of this member, or NULL if no peer shows it. */
const Perseas__StoreStatus *ps_images_of(const struct ps_images *images,
                                         const Perseas__Member *member);

/* Returns true if a roster in force lists the image of peer `i`, or the one that it was loaded
 * from. */
bool ps_images_listed(const struct ps_images *images, unsigned i);

/* Returns true if the image of peer `i` is listed as the one that it was loaded from. */
bool ps_images_loaded(const struct ps_images *images, unsigned i);

/* Returns true if the image of peer `i` is whole, is listed, and has a slot, so that it may be
 * compared with others. */
bool ps_images_counts(const struct ps_images *images, unsigned i);

#endif
