/*
 * judge.h - derives the state of a store from the headers of its mirrors: which store has the name,
 * which rosters are in force, which images are members, which state is the newest, who is missing,
 * and whether an open would succeed. perseas_open() asks before it claims, and again with the
 * answers to its claims. The command asks before it prints, and the daemon asks for the order of
 * rosters. It must never contact a mirror, keep anything or allocate: results point into the
 * headers that it was given.
 */
#ifndef PERSEAS_PROTO_JUDGE_H
#define PERSEAS_PROTO_JUDGE_H

#include "control.pb-c.h"
#include "quorum.h"
#include "rosters.h"
#include "../image/layout.h"

#include <stdbool.h>

/* What one mirror answered when asked about a store by its name. All zero if the mirror did not
 * answer, or refused. */
struct ps_told {
	const Perseas__Header *header; /* header of its image; NULL: the answer has none */
	bool has_no_image;             /* the mirror answered that it has no image */
	/* The mirror stays a member, but the state and the rosters of its image are ignored. */
	bool is_excluded;
	bool has_slot;         /* epoch and seq are known */
	uint64_t epoch, seq;   /* the commit slot of the image */
	const char *address;   /* the address by which a roster may list it; NULL: none */
	bool from_roster;      /* the caller found the address in a roster and did not name it */
	const uint8_t *daemon; /* identity of the daemon; NULL: unknown */
};

/* The result that an open would have. From PS_OUTLOOK_BELOW_T on, the newest state is known and can
 * be saved elsewhere (perseas recover --onto, --to). R members must be reached by a claim, T by an
 * open, and W by a commit (quorum.h). */
enum ps_outlook {
	PS_OUTLOOK_NOTHING,    /* no mirror has an image: create the store, or ask other mirrors */
	PS_OUTLOOK_UNFINISHED, /* the store's creation was not finished: create it again */
	PS_OUTLOOK_AMBIGUOUS,  /* two stores with this name: ask the mirrors of one of them */
	PS_OUTLOOK_FORKED,     /* the store and a fork of it: ask the mirrors of one of them */
	PS_OUTLOOK_UNFILLED,   /* its restore was not finished: restore again, or drop the store */
	PS_OUTLOOK_BELOW_R, /* fewer than R members have images that count (I6): more must answer */
	/* Fewer than T members answered, or too few to exclude a change of the roster: more must
	 * answer. */
	PS_OUTLOOK_BELOW_T,
	PS_OUTLOOK_BELOW_W, /* fewer than W members can hold the state: more must answer */
	PS_OUTLOOK_OPENS,   /* the store can be opened, or taken over from a live owner */
};

/* The result. In sets, bit i stands for told[i], the answer of mirror i. */
struct ps_judgement {
	enum ps_outlook outlook;
	const uint8_t *store_id; /* id of the store; NULL: none */
	const uint8_t *rival_id; /* id of another store that the name may mean; NULL: none */
	/* The settled roster of level 1 that names the store together with store_id. NULL: the
	 * store has level 0, where the id alone names it. */
	const Perseas__Roster *naming_roster;
	bool creation_unfinished; /* no image of the store was ever settled */

	const Perseas__Roster *settled; /* the newest settled roster */
	/* A newer roster that is not settled, so both are in force; or NULL. */
	const Perseas__Roster *next;
	bool is_decided; /* the change to `next` is decided */

	uint32_t image_set; /* mirrors with an image of the store */
	/* For each mirror: the image id of the roster's member to which it was assigned; NULL:
	 * none. */
	const uint8_t *member_ids[PS_MIRRORS_MAX];
	/* Mirrors that were assigned to a member by their image, not by their address. */
	uint32_t member_set;
	/* The part of member_set whose images are in no roster, but were loaded from an image that
	 * a roster lists. */
	uint32_t loaded_set;
	/* Answers from a daemon that already answered at another address: two addresses lead to
	 * one daemon. Such an answer counts as if the mirror at its address had not been reached.
	 */
	uint32_t duplicate_set;
	unsigned duplicate_of[PS_MIRRORS_MAX]; /* index of the address that the daemon counts as */

	uint32_t counted_set; /* the part of member_set whose images count towards R (I6) */
	/* The part of counted_set whose images are consistent, so that their state may be
	 * chosen. */
	uint32_t candidate_set;
	int newest; /* a candidate with the highest (epoch, seq); -1: none */
};

/* Format of a note about a mirror in duplicate_set. The arguments are its address and the other
 * address of the same daemon. */
#define PS_SAME_MIRROR_NOTE                                                                      \
	"%s is the same mirror as %s, seen from this host: it counts once. If the roster lists " \
	"another member there, that one was not reached"

/* Note about a member's mirror whose image is of a fork of the store. */
#define PS_FORK_NOTE                                                                      \
	"it has an image of this store by another roster, which has no image in common "  \
	"with this one, so that its state may be the newer one, and is not copied over: " \
	"perseas status shows it, and perseas drop, of this mirror alone, deletes it"

/* Runs all steps below. */
void ps_judge(struct ps_judgement *j, const struct ps_told *told, unsigned count);

/* The steps, in this order. perseas_open() calls them one by one, because it acts between them.
 * Each step uses the results of the earlier steps, or results that the caller has put in their
 * place. */

/*
 * Chooses the store, if the answers show several stores with the name. A store is preferred
 * - if images of R and T members of its newest roster were shown, or else of R members. If two
 *   stores are equal in this, the result is ambiguous, because any client that may create stores
 *   can make one with more images;
 * - if no store shows R members, so that none can be opened: if it has the most images, counting
 *   images that its rosters list first.
 * A store whose creation was not finished is chosen only if there is no other store. If images of
 * one store were raised to level 1 with two different keys, the store is its own rival. Sets
 * outlook to PS_OUTLOOK_NOTHING, _UNFINISHED, _AMBIGUOUS or, if a store was chosen, _BELOW_R.
 */
void ps_judge_store(struct ps_judgement *j, const struct ps_told *told, unsigned count);
/* Returns a note for a message that names the rival by its id: that it has the same id as the store
 * but another key, or "" if the ids differ. */
const char *ps_judge_rival_note(const struct ps_judgement *j);
/* Sets `settled`, `next`, `is_decided` and `naming_roster`: the rosters of the chosen store. */
void ps_judge_rosters(struct ps_judgement *j, const struct ps_told *told, unsigned count);
/* Assigns each mirror to a member of the rosters: by its image, by the image that its image was
 * loaded from, or by its address. Of two images that were loaded from the same image, only one is
 * assigned. Of two addresses that lead to the same daemon (with the same identity or image), only
 * one is assigned: preferably an address that the caller named, and among these an address by which
 * a roster lists the image. */
void ps_judge_members(struct ps_judgement *j, const struct ps_told *told, unsigned count);
/* Finds which images of members count (I6), and the newest state among them. */
void ps_judge_state(struct ps_judgement *j, const struct ps_told *told, unsigned count);

/* Returns true if mirrors that the caller named have images of a fork that have a newest state of
 * their own. Then either state may be the acknowledged one, and the user must choose. Call after
 * ps_judge_members(). */
bool ps_judge_forked(const struct ps_judgement *j, const struct ps_told *told, unsigned count);

/* Returns true if the store was created to be filled by its first transaction, and that has not
 * committed. Call after ps_judge_state(). */
bool ps_judge_unfilled(const struct ps_judgement *j, const struct ps_told *told, unsigned count);

/* Returns the mirror of `set` with the highest (epoch, seq), or -1 if the set is empty. */
int ps_judge_newest(const struct ps_told *told, uint32_t set);

#endif
