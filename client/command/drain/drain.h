/*
 * drain.h - moves the images of one mirror to other daemons, by a change of the roster of each
 * store, made as perseas roster makes it. cmd_drain.c calls it. It keeps no state but what the
 * mirrors have, so that another run continues where a killed one stopped. It must never delete an
 * image that could still count.
 */
#ifndef PERSEAS_COMMAND_DRAIN_H
#define PERSEAS_COMMAND_DRAIN_H

#include "../ask/ask.h"
#include "../change/roster.h"
#include "../fleet/fleet.h"
#include "../ask/survey.h"
#include "../ui/args.h"

/* How the work on an image ended. */
enum ps_drain_end {
	PS_DRAIN_UNTRIED,
	PS_DRAIN_MOVED,   /* another daemon took its place; deleted, except with --gone */
	PS_DRAIN_DELETED, /* the image counted for nothing, and was deleted */
	PS_DRAIN_PLANNED, /* a dry run: the image could be moved, or deleted */
	PS_DRAIN_LEFT,    /* the image stays; the reason was complained about */
};

/* An image that the drained mirror showed, or, with --gone, that another member showed of the same
 * store. */
struct ps_drain_image {
	const Perseas__StoreStatus *status; /* in the mirror's list, or in a list of the fleet */
	char mirrors[PS_LIST_TEXT];         /* the members of its rosters, as a list */
	/* Address of the member that left the roster, and of its replacement; "": not moved. */
	char from[256], to[256];
	struct ps_replacement_copy copy; /* of the store to the replacement */
	enum ps_drain_end end;
};

struct ps_drain {
	const struct ps_args *args;
	const char *gone;       /* with --gone, the drained mirror's address; else NULL */
	struct ps_peers mirror; /* the drained mirror */
	/* The stores of the drained mirror at the beginning; NULL with --gone. */
	Perseas__Reply *list;
	struct ps_fleet fleet;          /* the stores of all daemons at the beginning */
	struct ps_fleet_image *entries; /* the images of the fleet */
	unsigned entry_count;
	/* Daemons that may get images, then daemons on which members are. */
	struct ps_survey survey;
	unsigned candidate_count; /* spots of the survey, the first ones, that may get images */
	struct ps_drain_image *images; /* the images to move */
	unsigned count;
};

/* Moves one image, or with --dry-run says what it would do, and sets image->end. If the image
 * stays, returns PS_EXIT_PARTLY if another run may get further, else an error. */
enum ps_exit ps_drain_image(struct ps_drain *drain, struct ps_drain_image *image);

/* --- drain_judge.c --- */

/* Returns the member of the settled roster that the image is, or was loaded from; if the mirror is
 * gone, the member that is at that address; or NULL. */
const Perseas__Member *ps_drain_find_member(const struct ps_images *images,
                                            const Perseas__Header *header, const char *gone);

/* Returns true if the two headers are of one image, which a daemon showed at two addresses. The
 * image's id alone does not prove that, because a client that may create stores can make an image
 * with another's id. Such a copy was not claimed like the original, so the claims are compared,
 * too. */
bool ps_drain_is_same_image(const Perseas__Header *here, const Perseas__Header *there);

/* Returns why the image cannot be moved, in words that follow "store 'NAME' stays: ", or NULL. */
const char *ps_drain_explain_obstacle(const struct ps_images *images, const Perseas__Header *header,
                                      const char *gone);

/* How long a mirror that replaced another one must be silent before it is replaced, too: it may
 * just be restarting. */
enum { PS_DRAIN_SILENT_MS = 3000 };

/* Which mirror is silent, and since when. */
struct ps_drain_silence {
	char address[256]; /* "": none is silent */
	uint64_t since_ns;
};

/* Notes which mirror a look found silent (NULL: none). Returns true if all looks of the last
 * PS_DRAIN_SILENT_MS found the same mirror silent. */
bool ps_drain_note_silence(struct ps_drain_silence *silence, const char *address, uint64_t now_ns);

/* Whether a daemon may get an image of a store, or why not. `mine` is an image of that store;
 * `theirs` is the daemon's image of the store's name, or NULL. */
enum ps_drain_refusal {
	PS_DRAIN_ACCEPTS,          /* the daemon may get the image */
	PS_DRAIN_HAS_OTHER_STORE,  /* the daemon has another store of this name */
	PS_DRAIN_HAS_THIS_IMAGE,   /* the daemon is the drained mirror or a member */
	PS_DRAIN_HAS_NEWER_ROSTER, /* the daemon's image has a newer roster of the store */
	PS_DRAIN_HAS_FORK,         /* the daemon's image is of a fork of the store */
};

enum ps_drain_refusal ps_drain_check_daemon(const Perseas__Header *theirs,
                                            const Perseas__Header *mine,
                                            const struct ps_images *images);

/* Returns the address of a daemon that knows a newer settled roster than the mirrors whose images
 * were fetched, or NULL. */
const char *ps_drain_find_newer_roster(const struct ps_fleet *fleet,
                                       const struct ps_fleet_image *entries, unsigned count,
                                       const struct ps_images *images);

/*
 * Chooses the daemon that takes the place of `old`, as perseas place would: as far from the members
 * that stay as --apart says, else as far as possible and no nearer than the members are now. The
 * daemon answers and has room, and has no other store of that name, no fork of this one and no
 * newer roster. Returns NULL, with a complaint, if no daemon fits. (drain_target.c)
 */
struct ps_spot *ps_drain_choose_target(struct ps_drain *drain, const struct ps_drain_image *image,
                                       const struct ps_images *images, const Perseas__Member *old);

/*
 * Counts the stores whose roster names the drained mirror although the mirror listed no image of
 * them, by the lists of the daemons of LIST. Complains about each. Returns PS_EXIT_NO if there are
 * any. (drain_named.c)
 */
enum ps_exit ps_drain_check_unlisted_members(const struct ps_drain *drain, unsigned *named);

#endif
