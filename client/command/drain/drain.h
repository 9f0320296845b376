/*
 * drain.h - moving the images of one mirror elsewhere: a change of the roster for each store, made
 * as perseas roster makes it. cmd_drain.c calls it. It keeps nothing but what the mirrors keep, so
 * that another run goes on where this one was killed; and it deletes no image that could still
 * count.
 */
#ifndef PERSEAS_COMMAND_DRAIN_H
#define PERSEAS_COMMAND_DRAIN_H

#include "../ask/ask.h"
#include "../fleet/fleet.h"
#include "../ask/survey.h"
#include "../ui/args.h"

enum ps_drain_end {
	PS_DRAIN_UNTRIED,
	PS_DRAIN_MOVED,   /* another daemon has its place, and it is deleted */
	PS_DRAIN_DELETED, /* it counted for nothing, and is deleted */
	PS_DRAIN_PLANNED, /* a dry run: it could be moved, or deleted */
	PS_DRAIN_LEFT,    /* why was complained about */
};

/* An image that the drained mirror showed, or, with --gone, that another member showed of the same
 * store. */
struct ps_drain_image {
	const Perseas__StoreStatus *status; /* of a list that ps_drain has */
	char mirrors[PS_LIST_TEXT];         /* members of its rosters, as these list them */
	char from[256], to[256];            /* "": not moved */
	enum ps_drain_end end;
};

struct ps_drain {
	const struct ps_args *args;
	const char *gone;       /* with --gone, the drained mirror's address; else NULL */
	struct ps_peers mirror; /* the drained mirror */
	Perseas__Reply *list;   /* its stores at the beginning; NULL with --gone */
	struct ps_fleet fleet;  /* what all daemons had then */
	struct ps_fleet_entry *entries;
	unsigned entry_count;
	struct ps_survey survey; /* daemons that may get images, and others where members are */
	unsigned candidates;     /* of these, the first so many */
	struct ps_drain_image *images;
	unsigned count;
};

/* Moves one image, or with --dry-run says what it would do, and sets image->end. If the image
 * stays, returns PS_EXIT_PARTLY if another run may get further, else an error. */
enum ps_exit ps_drain_image(struct ps_drain *drain, struct ps_drain_image *image);

/* --- drain_judge.c --- */

/* Returns the member of the settled roster that the image is, or was loaded from; if the mirror is
 * gone, the member at that address; or NULL. */
const Perseas__Member *ps_drain_member(const struct ps_images *images,
                                       const Perseas__Header *header, const char *gone);

/* Returns true if one daemon told of the image by two addresses. The image's id alone does not show
 * that: a client that may create stores can make an image under another's id, but has claimed
 * neither. */
bool ps_drain_same_image(const Perseas__Header *here, const Perseas__Header *there);

/* Returns why the image cannot be moved, in words that follow "store 'NAME' stays: ", or NULL. */
const char *ps_drain_trouble(const struct ps_images *images, const Perseas__Header *header,
                             const char *gone);

/* Returns true if the store's owner calls the mirror at this address live. */
bool ps_drain_lives(const struct ps_images *images, const char *address);

/* How long a mirror that took a place, and may have died since, must be silent before it is
 * replaced: it may just be restarting. */
enum { PS_DRAIN_SILENT_MS = 3000 };

struct ps_drain_silence {
	char address[256]; /* "": none is silent */
	uint64_t since_ns;
};

/* Notes that a look found this mirror silent (NULL: none). Returns true if all looks of the last
 * PS_DRAIN_SILENT_MS did. */
bool ps_drain_silent(struct ps_drain_silence *silence, const char *address, uint64_t now_ns);

/* Why a daemon does not get an image of a store. `mine` is an image of that store; `theirs` is the
 * daemon's image of the store's name, or NULL. */
enum ps_drain_refusal {
	PS_DRAIN_TAKES,
	PS_DRAIN_HAS_ANOTHER, /* store of that name */
	PS_DRAIN_HAS_IT,      /* it is the drained mirror, or a member, by another address */
	PS_DRAIN_HAS_NEWER,   /* roster of the store */
	PS_DRAIN_HAS_FORK,
};

enum ps_drain_refusal ps_drain_refuses(const Perseas__Header *theirs, const Perseas__Header *mine,
                                       const struct ps_images *images);

/* Returns the address of a daemon that knows a newer settled roster than the mirrors whose images
 * were fetched, or NULL. */
const char *ps_drain_newer(const struct ps_fleet *fleet, const struct ps_fleet_entry *entries,
                           unsigned count, const struct ps_images *images);

/*
 * Chooses the daemon that takes the place of `old`, as perseas place would: as far from the members
 * that stay as --apart says, else as far as possible and no nearer than the members are now. It
 * answers, has room, no other store of that name, no fork of this one and no newer roster. Returns
 * NULL, with a complaint, if no daemon fits. (drain_target.c)
 */
struct ps_spot *ps_drain_target(struct ps_drain *drain, const struct ps_drain_image *image,
                                const struct ps_images *images, const Perseas__Member *old);

/*
 * drain_named.c: how many stores of the daemons of LIST have a roster that names the mirror, which
 * listed no image of them; each is complained about. PS_EXIT_NO: there are some.
 */
enum ps_exit ps_drain_named(const struct ps_drain *drain, unsigned *named);

#endif
