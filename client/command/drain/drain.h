/*
 * drain.h - moving the images of one mirror elsewhere: a change of the roster for each store, made
 * as perseas roster makes it. cmd_drain.c calls it. It keeps nothing but what the mirrors keep, so
 * that another run goes on where this one was killed; and it deletes no image that could still
 * count.
 */
#ifndef PERSEAS_COMMAND_DRAIN_H
#define PERSEAS_COMMAND_DRAIN_H

#include "../ask/ask.h"
#include "../place/survey.h"
#include "../ui/args.h"

enum ps_drain_end {
	PS_DRAIN_UNTRIED,
	PS_DRAIN_MOVED,   /* another daemon has its place, and it is deleted */
	PS_DRAIN_DELETED, /* it counted for nothing, and is deleted */
	PS_DRAIN_PLANNED, /* a dry run: it could be moved, or deleted */
	PS_DRAIN_LEFT,    /* why was complained about */
};

/* An image of the mirror, as the mirror told of it. */
struct ps_drain_image {
	const Perseas__StoreStatus *status; /* of the list that ps_drain has */
	char mirrors[PS_LIST_TEXT];         /* members of its rosters, as these list them */
	char from[256], to[256];            /* "": not moved */
	enum ps_drain_end end;
};

struct ps_drain {
	const struct ps_args *args;
	struct ps_panel mirror;  /* the one that is drained */
	Perseas__Reply *list;    /* what it had at the beginning */
	struct ps_survey survey; /* daemons that may get images, and others where members are */
	unsigned candidates;     /* of these, the first so many */
	struct ps_drain_image *images;
	unsigned count;
};

/* Moves one image, or says what would be done. What becomes of it is image->end; where it is left,
 * PS_EXIT_PARTLY if another run may come further, else another status than PS_EXIT_OK. */
enum ps_exit ps_drain_image(struct ps_drain *drain, struct ps_drain_image *image);

/*
 * drain_target.c: which daemon takes the place of `old` in the store that the census saw: the one
 * that perseas place would choose, as far apart from the members that stay as --apart says, else as
 * far as there is one and no less than the members are now. It answers, has room, no other store of
 * that name, and no newer roster of this one. NULL, with a complaint: there is none.
 */
struct ps_spot *ps_drain_target(struct ps_drain *drain, const struct ps_drain_image *image,
                                const struct ps_census *census, const Perseas__Member *old);

/*
 * drain_named.c: how many stores of the daemons of LIST have a roster that names the mirror, which
 * listed no image of them; each is complained about. PS_EXIT_NO: there are some.
 */
enum ps_exit ps_drain_named(const struct ps_drain *drain, unsigned *named);

#endif
