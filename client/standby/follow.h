/*
 * follow.h - follows who owns a store: asks its mirrors for their status, then has them report
 * changes (Watch). Standbys call it. It must never claim the store. It may misjudge the store only
 * in ways that an open of the store detects.
 */
#ifndef PERSEAS_CLIENT_FOLLOW_H
#define PERSEAS_CLIENT_FOLLOW_H

#include "images.h"
#include "known_store.h"

#include <poll.h>

enum {
	PS_SENTENCE = 512,
	/* Descriptors of all mirrors, and of a lookup of the list. */
	PS_FOLLOW_FDS = PS_MIRRORS_MAX + 1,
};

enum ps_ownership {
	PS_OWNER_UNKNOWN, /* too few mirrors answer to tell, or an open would fail */
	PS_OWNER_LIVES,   /* an owner lives: an open without takeover would be refused */
	PS_OWNER_NONE,    /* no owner lives: an open may begin */
};

/* A planned handover by the store's present or last owner. */
struct ps_handover_state {
	bool exists;     /* a handover is ordered; if not, the other members are zero */
	bool is_present; /* mirrors report that the standby with the mark `to` follows the store */
	uint8_t id[PS_ID_SIZE], to[PS_OWNER_MARK];
	char name[PS_NAME_MAX + 1]; /* name of the standby that takes over */
};

/* The result of one look at the store. */
struct ps_follow_result {
	enum ps_ownership ownership;
	bool is_ours; /* the live owner's id begins with follow->mark */
	/* Other owners have so many mirrors that an owner with follow->mark cannot commit. */
	bool is_fenced;
	bool is_found; /* at least one mirror has the store */
	/* Every mirror answered that it has no image of the store, or only a damaged one. */
	bool has_no_image;
	/* An open may create the store (ps_images_is_uncreated). While the name of the list may
	 * stand for other mirrors, this and has_no_image are false. */
	bool is_uncreated;
	uint32_t last_order; /* the highest `order` among the standbys that follow the store */
	struct ps_handover_state handover; /* the planned handover */
	char text[PS_SENTENCE];            /* the result for people, as a clause without a period */
};

/* What is known of one mirror. Its index is the same in `looks` and in `watches`. */
struct ps_followed {
	bool asked;          /* a Watch is in flight */
	bool answered_early; /* the last Watch was answered with news within RETRY_MS */
	/* The Watch in flight tells the mirror how warm the copy is. */
	bool tells_warmth;
	/* The mirror had an image when a store and its fork were seen. */
	bool showed_fork;
	bool is_unlisted_member; /* not on the list, but has an image that a roster lists */
	/* The last Watch asked the mirror to report changes from these three values. */
	bool watched_live;                    /* an owner lives */
	uint64_t watched_epoch;               /* the promised epoch */
	uint8_t watched_handover[PS_ID_SIZE]; /* id of the handover; all zero: none */
	uint64_t asked_ns, until_ns;          /* when the Watch was sent, and when it times out */
	uint64_t watch_at_ns;                 /* earliest time for the next Watch */
	/* Earliest time to ask a silent mirror for its status again. */
	uint64_t look_at_ns;
};

struct ps_follow {
	const char *store;
	const uint8_t *mark; /* first bytes of the ids of this standby's own owners; NULL: none */
	/* The name and order under which mirrors show this standby, with the mark, to others. The
	 * name belongs to the caller. NULL, the initial value: mirrors do not show it. */
	const char *name;
	uint32_t order;
	/* What mirrors show of this standby's copy, if copies is true: the bytes of the store's
	 * memory (0 while unknown), and how many of them are in the copy. The caller sets these
	 * before each look. */
	bool has_copy;
	uint64_t store_bytes, copied_bytes;
	struct ps_peers status_peers; /* connections on which mirrors are asked for their status */
	struct ps_peers
		watch_peers; /* connections to the same mirrors, on which Watch requests wait */
	struct ps_followed mirrors[PS_MIRRORS_MAX];
	/* Epoch and version of the newest roster that was ever seen; 0: none was. */
	uint64_t roster_epoch, roster_version;
	/* The store that was seen. The caller may set it before the first look, and take it after
	 * the last. */
	struct ps_settled_store settled;
	/* A store and a fork of it were seen, or one of the two, not known which (forks.h). */
	bool is_forked;
	const char *list;           /* the list of mirrors or its name; the caller's */
	uint64_t name_looked_up_ns; /* when the last lookup of the list's name began */
	/* The lookup in flight, which needs the env of `looks`; NULL: none. */
	struct ps_list_lookup *lookup;
	/* A lookup of the list's name began, and none has succeeded since: the name may stand for
	 * mirrors that are not followed. */
	bool is_list_uncertain;
	/* Called with the result of each look before ps_follow_look_at_store returns. NULL: not
	 * called. */
	void (*on_result)(void *arg, const struct ps_images *images,
	                  const struct ps_follow_result *now);
	void *on_result_arg;
};

/* Begins to follow a store. mark: the PS_OWNER_MARK bytes with which the ids of the caller's own
 * owners begin, or NULL. The mark, both strings and the envs belong to the caller and must outlive
 * `follow`; the two envs may be the same. A list given by its name is looked up again now and then
 * while no mirror has the store. Returns 0, or an error of ps_env_resolve_list with *error, after
 * which there is nothing to close. */
int ps_follow_open(struct ps_follow *follow, const char *store, const char *mirrors,
                   const uint8_t *mark, struct ps_env *looks, struct ps_env *watches,
                   uint32_t timeout_ms, struct ps_error *error);
void ps_follow_close(struct ps_follow *follow);
/* Ends the connections in `looks`, so that the caller may free their env. The caller must still end
 * `watches`. */
void ps_follow_close_look_connections(struct ps_follow *follow);

/* Adds mirrors that the caller knows from elsewhere. Must be called before the first look. A roster
 * that does not name such a mirror has it forgotten, unless the roster is older than `places`. */
void ps_follow_add_mirrors(struct ps_follow *follow, const struct ps_roster_places *places);

/* Asks the mirrors for their status, for at most timeout_ms, and sends Watch requests to those that
 * answer. Does not wait for silent mirrors if the others would suffice for an open (`enough` in
 * peers.h). */
void ps_follow_look_at_store(struct ps_follow *follow, struct ps_follow_result *now);

/* Fills in what to poll for, and lowers *until_ns to the time at which to stop. Returns the number
 * of descriptors. */
unsigned ps_follow_fill_pollfds(struct ps_follow *follow, struct pollfd fds[PS_FOLLOW_FDS],
                                uint64_t *until_ns);
/* Takes what arrived after polling. Returns true if another look is due. */
bool ps_follow_is_look_due(struct ps_follow *follow);

/* Hands the status connection to the mirror at this address over to the caller. Returns NULL if it
 * has none that is alive. */
struct ps_control *ps_follow_take_connection(struct ps_follow *follow, const char *address);

/* Returns true if mirror `i` is not on the list, but had an image that a roster lists at the last
 * look. An open by the list alone might ask no mirror that has the store, and create another one.
 * Images of forks and newcomers do not count. */
bool ps_follow_is_unlisted_member(const struct ps_follow *follow, unsigned i);

/* Returns true if the mirror at this address did not answer a moment ago. */
bool ps_follow_is_silent(const struct ps_follow *follow, const char *address);

uint64_t ps_follow_now_ns(const struct ps_follow *follow); /* CLOCK_MONOTONIC in ns */

#endif
