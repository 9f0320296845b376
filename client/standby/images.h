/*
 * images.h - the images of one store, as its mirrors report them without a claim. Standbys and the
 * command take them. It must never change anything on a mirror.
 */
#ifndef PERSEAS_CLIENT_IMAGES_H
#define PERSEAS_CLIENT_IMAGES_H

#include "peers.h"
#include "../../proto/control/judge.h"

struct ps_images {
	const struct ps_peers *peers;
	Perseas__Reply *replies[PS_MIRRORS_MAX]; /* the answers; owned by this struct */
	/* The status of each peer's image, or NULL if it has none; errors[i] says why. */
	const Perseas__StoreStatus *told[PS_MIRRORS_MAX];
	struct ps_error errors[PS_MIRRORS_MAX];
	unsigned answered;          /* number of peers that answered */
	unsigned have;              /* number of peers with a store of this name */
	struct ps_judgement judged; /* the judgement that perseas_open would reach */
	/* Peers that are not on the list, and reach the same daemon as another peer. They count as
	 * not reached. */
	uint32_t duplicates;
	/* Facts about the store that an open would use; NULL: no peer has it. */
	const Perseas__Header *header; /* the header of one of its images */
	const Perseas__Roster *roster; /* newest roster of that store, settled or not */
	/* The image at the newest state, of those that count; NULL: no image counts. */
	const Perseas__StoreStatus *newest;
};

/* Asks the peers for their images of the store, and judges them. */
void ps_images_fetch(struct ps_images *images, struct ps_peers *peers, const char *store);
void ps_images_free(struct ps_images *images);

/* Judges ->peers, ->told and ->errors, and fills in the other members except ->answered. For
 * callers that asked mirrors for all of their stores at once. */
void ps_images_judge(struct ps_images *images);

/* Returns the planned handover of the store's present or last owner, or NULL. If two were
 * ordered at the same time at different mirrors, every caller gets the same one. */
const Perseas__Handover *ps_images_handover(const struct ps_images *images);

/* Adds a peer at the address. Returns false if a peer has that address, if it is malformed, or if
 * there is no room. */
bool ps_peers_add_address(struct ps_peers *peers, const char *address);

/* Takes the images again, with more peers, as perseas_open does: members of rosters whose images
 * were not seen, and the mirror that a change of the roster adds. Returns false if there are no
 * such peers. */
bool ps_images_fetch_more(struct ps_images *images, struct ps_peers *peers, const char *store);

/* Returns true if the list names peer `i`, or a roster in force or a change of the roster has its
 * address. */
bool ps_images_is_peer_named(const struct ps_images *images, unsigned i);

/* Returns true if mirror status `a` tells more of the live owner than `b`, which may be NULL: `a`
 * has the higher epoch; if the epochs are the same, it alone has the owner's report; otherwise it
 * heard from the owner later. An owner sends no report to a mirror that it prepares for a copy. */
bool ps_owner_is_better_known(const Perseas__StoreStatus *a, const Perseas__StoreStatus *b);

/* Returns the peer that knows best who the live owner is, or -1 if no peer sees one. */
int ps_images_find_owner(const struct ps_images *images);

/* Returns true if no owner is live, and the last one ended before it had brought this image up to
 * date: a copy to it did not end, or it has an earlier owner's slot. */
bool ps_images_is_left_behind(const struct ps_images *images, const Perseas__StoreStatus *image);

/* Returns the address of the mirror that the live owner's change of the roster will add, or NULL if
 * it adds none or a roster lists that mirror already. */
const char *ps_images_joining_address(const struct ps_images *images);

/* Fills in `told` for ps_judge, with pointers into the images. */
void ps_images_fill_told(const struct ps_images *images, struct ps_told told[PS_MIRRORS_MAX]);

/* Returns true if every peer answered, and none has more than an unfinished creation. A silent
 * mirror that only a roster names may be the one that has the store. */
bool ps_images_is_uncreated(const struct ps_images *images);

/* Returns true if peer `i` has an image of the store that an open would use. */
bool ps_images_is_of_store(const struct ps_images *images, unsigned i);

/* Returns true if the image of peer `i` is this member's: it has the member's image id, or was
 * loaded from a spill of the image with that id, and the next open records its own id. */
bool ps_images_is_member(const struct ps_images *images, unsigned i, const Perseas__Member *member);

/* Returns the image of this member, or NULL if no peer has it. */
const Perseas__StoreStatus *ps_images_find_member(const struct ps_images *images,
                                                  const Perseas__Member *member);

/*
 * Returns the address at which this member is. A seen image is at the address of its peer. Of other
 * members a live owner knows it. Otherwise it is the address of the roster; if another member was
 * seen there, the two are taken to have exchanged their addresses.
 */
const char *ps_images_address_of(const struct ps_images *images, const Perseas__Member *member);

/* Returns the member of the settled roster that is at this address, or NULL. */
const Perseas__Member *ps_images_member_at(const struct ps_images *images, const char *address);

/* Returns true if this member's image was seen where the roster lists another member, or where it
 * lists none, and a daemon without the image answered at the member's address in the roster. */
bool ps_images_is_address_old(const struct ps_images *images, const Perseas__Member *member);

/* Returns true if it is not known which of several members that were not seen is at which address,
 * because seen ones have exchanged their addresses with some of them. */
bool ps_images_are_addresses_unclear(const struct ps_images *images);

/* Returns true if a roster in force lists the image of peer `i`, or the one that it was loaded
 * from. */
bool ps_images_is_listed(const struct ps_images *images, unsigned i);

/* Returns true if the image of peer `i` was loaded from a spill, and a roster lists the spilled
 * image. */
bool ps_images_is_loaded_from_spill(const struct ps_images *images, unsigned i);

/* Returns true if the image of peer `i` is a second one of a member that another peer shows. It
 * would count if that peer did not answer. */
bool ps_images_is_second_of_member(const struct ps_images *images, unsigned i);

/* Returns true if the image of peer `i` is whole, is listed, and has a slot, so that it may be
 * compared with others. */
bool ps_images_is_candidate(const struct ps_images *images, unsigned i);

#endif
