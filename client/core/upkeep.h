/*
 * upkeep.h - what a handle keeps of the work that goes on beside commits: the copy of a mirror, the
 * change of the roster, the orders, the claims that are made again. client/keeper changes it, with
 * admin, and its files say what each part means. Whoever has a handle only finds it here.
 */
#ifndef PERSEAS_CLIENT_UPKEEP_H
#define PERSEAS_CLIENT_UPKEEP_H

#include "error.h"
#include "../../proto/base/expiry.h"
#include "../../proto/control/envelope.h"
#include "../../proto/image/layout.h"

#include <stdbool.h>
#include <stdint.h>

struct ps_mirror;

/* One request to several mirrors, and what they said so far (due.h). */
struct ps_question {
	uint64_t id;           /* 0: nothing is asked */
	uint32_t due;          /* those whose answer is still due */
	uint32_t granted;      /* those that granted it */
	uint64_t until;        /* then its time is over */
	Perseas__Reply *reply; /* the last that granted it, or NULL */
	struct ps_error error; /* of the last that did not */
};

enum ps_resync_state {
	PS_RESYNC_NONE,
	PS_RESYNC_ASKING,     /* others are asked whether the mirror may be made anew */
	PS_RESYNC_RECORDING,  /* others record its new id */
	PS_RESYNC_MAKING,     /* it is asked for room for the copy, in place or beside */
	PS_RESYNC_ATTACHING,  /* its data path is being connected */
	PS_RESYNC_ADDING,     /* it is asked for the segments that are not published */
	PS_RESYNC_COPYING,    /* from here on it gets transactions, and chunks between them */
	PS_RESYNC_READING,    /* another mirror is asked for a chunk that is not mapped here */
	PS_RESYNC_VOUCHING,   /* and whether it is still this owner's */
	PS_RESYNC_CONFIRMING, /* others are asked whether it may vote */
	PS_RESYNC_FINISHING,  /* it is asked to count the image from now on */
};

/* The mirror that is being copied whole while transactions go on: one at a time (resync.c). */
struct ps_resync {
	enum ps_resync_state state;
	struct ps_mirror *mirror;     /* NULL: none */
	char why[256];                /* it is copied */
	bool anew;                    /* what it has does not count */
	bool in_place;                /* what it has is overwritten */
	uint8_t image_id[PS_ID_SIZE]; /* anew: the id that it gets */
	uint64_t births, comings;     /* the handle's when the mirror was told of its segments */
	uint64_t answer_by;           /* its own answer must be there by then */
	struct ps_question question;  /* ASKING, RECORDING and from READING on */
	uint32_t last, took;          /* RECORDING: to be asked after the others; asked before */
	Perseas__Reply *reply;        /* ATTACHING: the grant; VOUCHING: what was read */
	uint32_t region;              /* that is read: the log until the newest record was sought */
	uint64_t length;              /* READING: bytes that were asked for */
	uint32_t tried;               /* the mirrors that were asked for them */
	uint64_t left;                /* READING: when its segment was unmapped */
	bool confirmed;               /* enough others were asked since it was claimed */

	uint64_t seq;         /* where it began: what is born later comes with its publish */
	uint32_t segment;     /* id that the next chunk is of */
	uint64_t offset;      /* where in that segment it begins */
	uint64_t chunk;       /* bytes of it at most */
	uint64_t done, total; /* bytes */
	bool ours;            /* the image was this owner's already */
	bool begun;           /* a chunk was posted, and with it the slot */
	uint64_t until;       /* seq up to which the last chunk may hold transactions */
	bool awaited;         /* all is copied, and completions are waited for */
	bool fetching;        /* memory of the next chunk is not here yet */
	uint64_t next_at;     /* not before, for the rate's sake */
};

enum ps_change_stage {
	PS_CHANGE_NONE,
	PS_CHANGE_COPYING,    /* the new mirror is made, without a vote */
	PS_CHANGE_ASKING,     /* enough mirrors are asked whether they still are this owner's */
	PS_CHANGE_JOINT,      /* both rosters count, and the mirrors are told so */
	PS_CHANGE_MARKED,     /* it is decided: both count until W of the new one have the mark */
	PS_CHANGE_SETTLING,   /* the new one counts, and the mirrors are told so */
	PS_CHANGE_RELEASING,  /* the mirror that left is told so */
	PS_CHANGE_CANCELLING, /* it is taken back: the old one counts, and mirrors are told so */
};

/* How many mirrors a roster has, and W. */
struct ps_roster_size {
	uint32_t members, acks;
};

/* The change of the roster that goes on, or that was the last (change.c). */
struct ps_change {
	enum ps_change_stage stage;
	uint8_t id[PS_ID_SIZE];      /* of the order that asks for it; all zero: asked for here */
	struct ps_mirror *old, *new; /* that leaves, that joins; or NULL */
	bool gone;                   /* `old` leaves for good: no open can be through it */
	bool leaves;       /* a member leaves, which need not be a mirror of this handle */
	bool raises;       /* nobody leaves or joins: the level becomes 1 */
	char address[256]; /* its address */
	struct ps_roster_size before, after; /* as the change finds the roster, and leaves it */
	uint64_t seq;                /* what W of the new roster must hold before it counts alone */
	bool met;                    /* the new mirror was copied to, if only for a while */
	bool same;                   /* the new mirror's address leads to a member: */
	bool moves;                  /* the one that leaves, which only gets another address */
	uint64_t until;              /* the new mirror must be at work by then */
	uint64_t grace;              /* until then all that were asked are waited for */
	struct ps_question question; /* ASKING, RELEASING */
	int code;                    /* stage NONE: 0 or why it was refused */
	char text[256];              /* how far it is, or why it was refused */
	bool awaited;                /* a thread waits for its end, and has not yet seen it */
};

/* The rosters as they are told to the mirrors (telling.c). */
struct ps_telling {
	uint64_t what[5];  /* their epochs and versions, and the mark */
	uint64_t round;    /* counts what was told */
	uint32_t took;     /* the mirrors that have recorded it */
	uint64_t again_at; /* then those that have not are told again */
};

/* The result of an order. */
struct ps_order_end {
	uint8_t id[PS_ID_SIZE]; /* all zero: of none */
	int code;
	char text[256];
	struct ps_roster_size before, after;
};

/* The orders and handovers that were taken up last, so that none of them is taken up twice, and the
 * ends of the orders before the last (orders.c). */
enum { PS_ORDERS_KEPT = 16 };
struct ps_orders {
	uint8_t ids[PS_ORDERS_KEPT][PS_ID_SIZE];
	unsigned count;
	struct ps_order_end ends[PS_ORDERS_KEPT];
	unsigned ended;
	Perseas__Reply *waiting; /* the answer with which one came that is to be obeyed, or NULL */
};

/* An owner that claims its mirrors again (renew.c). */
struct ps_renewal {
	uint64_t above;  /* the highest promise that any mirror told of, and that can be followed */
	uint64_t sealed; /* meanwhile: the epoch before, which the records in the ring are of */
	uint64_t next_at; /* not before */
	uint64_t delay;
	char past[400]; /* with p->superseded: how it knows that it went back in time; or "" */
	bool wanted;    /* although no mirror is fenced: records of a new form need a new epoch */
	bool stuck;     /* as of the keeper's last round (stuck.h) */
	const char *cause; /* of the one that is under way, or of the last one */
};

/* The last event about one certificate, CA or revocation list that expires (expiry_watch.c). */
struct ps_expiry_told {
	uint64_t until_s; /* when it expires; 0: nothing was told */
	uint64_t at_s;
	enum ps_expiry_stage stage;
};

struct ps_expiry_watch {
	uint64_t look_at;       /* when the next look is due, by the env's now() */
	struct ps_expiries own; /* of this process's own files, as they were at own_at_s */
	uint64_t own_at_s;
	struct ps_expiry_told own_told, told[PS_MIRRORS_MAX];
};

/* What admin is for. What commits and statistics see of it changes with the lock. */
struct ps_upkeep {
	uint64_t births;  /* grows when segments are published, or destroyed */
	uint64_t comings; /* the same with each segment that comes or goes, and is not published */
	struct ps_resync resync;
	struct ps_change change;
	struct ps_telling telling;
	struct ps_orders orders;
	struct ps_renewal renewal;
	uint64_t questions; /* so many were asked */
	uint64_t pulse_at;  /* when the next sign of life is due */
	struct ps_expiry_watch expiry;
};

#endif
