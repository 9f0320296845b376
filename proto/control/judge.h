/*
 * judge.h - what a set of headers means: which store bears the name, which rosters are in force,
 * which images are members of these, which state is the newest, who is missing, and what an open
 * would come to. perseas_open asks before it claims, and again with what its claims told; the
 * command asks before it prints; the daemon asks for the order of rosters. It must never ask a
 * mirror, keep anything, or allocate: what it returns points into the headers that it was given.
 */
#ifndef PERSEAS_PROTO_JUDGE_H
#define PERSEAS_PROTO_JUDGE_H

#include "control.pb-c.h"
#include "quorum.h"
#include "rosters.h"
#include "../image/layout.h"

#include <stdbool.h>

/* What one mirror told of the name. All zero: it did not answer, or refused. */
struct ps_told {
	const Perseas__Header *header; /* of its image; NULL: it told of none */
	bool empty;                    /* it answered that it has no image */
	bool out;              /* it is the member that it is, but nothing that it says counts */
	bool has_slot;         /* where the image stands is known: */
	uint64_t epoch, seq;   /* there */
	const char *address;   /* by which a roster can list it; NULL: by none */
	bool added;            /* nobody named it: whoever asks has its address from a roster */
	const uint8_t *daemon; /* the identity of the daemon that answered; NULL: not told */
};

/* What an open would come to. From PS_OUTLOOK_UNSEEN on the newest state is known, and can be saved
 * elsewhere (perseas recover --onto, --to). */
enum ps_outlook {
	PS_OUTLOOK_NOTHING,    /* no image was told: create the store, or ask other mirrors */
	PS_OUTLOOK_UNFINISHED, /* its making was not finished: create it again */
	PS_OUTLOOK_AMBIGUOUS,  /* two stores of this name: ask the mirrors of one of them */
	PS_OUTLOOK_PARTED,     /* the store, and a fork of it: the same */
	PS_OUTLOOK_UNFILLED, /* its restore was not finished: begin that anew, or drop the store */
	PS_OUTLOOK_UNKNOWN,  /* fewer than R count: more mirrors must answer */
	PS_OUTLOOK_UNSEEN,   /* fewer than T, or too few to see a change of the roster: the same */
	PS_OUTLOOK_SHORT,    /* W cannot come to hold the state: the same */
	PS_OUTLOOK_OPENS,    /* it can be opened, from a live owner by a takeover */
};

/* Sets have bit i for told[i]. */
struct ps_judgement {
	enum ps_outlook outlook;
	const uint8_t *store_id; /* of the store that is meant; NULL: none */
	const uint8_t *rival_id; /* of another one that may be meant as well; NULL: none */
	/* The settled roster of level 1 that names the store together with store_id; NULL: the
	 * store is of level 0, where the id alone names it. */
	const Perseas__Roster *named;
	bool unfinished; /* no image of it was ever settled */

	const Perseas__Roster *settled; /* the newest that is settled */
	const Perseas__Roster *next;    /* newer, and not settled: both are in force; or NULL */
	bool marked;                    /* the change to `next` is decided */

	uint32_t belongs;                  /* those with an image of the store */
	const uint8_t *as[PS_MIRRORS_MAX]; /* the id of the member that it is; NULL: none */
	uint32_t listed;                   /* members by their image, not by their address */
	uint32_t loaded;                   /* of these, by that from which it was loaded */
	/* Those whose address leads to a daemon that is reached at another address, too. They
	 * count as not reached, and are the member of their address if it is not seen. */
	uint32_t elsewhere;
	unsigned same_as[PS_MIRRORS_MAX]; /* of those: the one that the daemon counts as */

	uint32_t counts;     /* listed, and a voice towards R (I6) */
	uint32_t candidates; /* of these, whole: their states may be chosen */
	int newest;          /* a candidate at the highest (epoch, seq); -1: there is none */
};

/* What is to be said of one that is `elsewhere`: its address, and that of the mirror that it is. */
#define PS_ELSEWHERE                                                                             \
	"%s is the same mirror as %s, seen from this host: it counts once. If the roster lists " \
	"another member there, that one was not reached"

/* The same of one that has an image of a fork, for the member that it should be. */
#define PS_FORKED                                                                         \
	"it has an image of this store by another roster, which has no image in common "  \
	"with this one, so that its state may be the newer one, and is not copied over: " \
	"perseas status shows it, and perseas drop, of this mirror alone, deletes it"

/* All of it. */
void ps_judge(struct ps_judgement *j, const struct ps_told *told, unsigned count);

/* Its steps, in this order, for perseas_open, which acts in between. Each takes what those before
 * it found, or what is put there instead. */

/* The store: of those that bear the name, the one that shows R and T of its newest roster, else the
 * one that shows R. Where two do, neither wins: anybody who may create stores can make one with
 * more images. Of stores that show less, and cannot be opened, it is the one with most images,
 * first of all most that its rosters list. Never one whose making was not finished where there is
 * another. If its images were raised with two keys, it is its own rival. outlook is one of the
 * first three, or undefined. */
void ps_judge_store(struct ps_judgement *j, const struct ps_told *told, unsigned count);
/* Returns what a message that names the rival by its id must add: that it has the store's own id,
 * and another key. Returns "" for any other rival. */
const char *ps_judge_rival_note(const struct ps_judgement *j);
/* The rosters of that store, and which of them names it: of settled ones a higher level counts for
 * more than any epoch and version. */
void ps_judge_rosters(struct ps_judgement *j, const struct ps_told *told, unsigned count);
/* Who is which member: by its image, by the image that it was loaded from, by its address. Of two
 * that were loaded from the same, one is. Of two addresses that lead to the same daemon, by its
 * identity or by the image that it shows, one is: one that was named, and of these the one by which
 * a roster lists the image. */
void ps_judge_members(struct ps_judgement *j, const struct ps_told *told, unsigned count);
/* What the images that are listed are worth (I6), and the newest state of them. */
void ps_judge_state(struct ps_judgement *j, const struct ps_told *told, unsigned count);

/* Do mirrors that were named have images of a fork, by the rosters of *j, that know a newest state
 * by themselves? Then either of the two may be what was acknowledged, and an open must be told
 * which. After ps_judge_members. */
bool ps_judge_parted(const struct ps_judgement *j, const struct ps_told *told, unsigned count);

/* Returns true if the store was made to be filled by its first transaction, and the state that R
 * mirrors give is before that. The rosters, members and state of *j are known. */
bool ps_judge_unfilled(const struct ps_judgement *j, const struct ps_told *told, unsigned count);

/* Of a set, one that stands at the highest (epoch, seq); -1: the set is empty. */
int ps_judge_newest(const struct ps_told *told, uint32_t set);

#endif
