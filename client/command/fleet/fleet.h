/*
 * fleet.h - all stores of many daemons: each daemon is asked once for its stores, over one
 * connection, and each store is judged as perseas status judges one. cmd_status.c calls it for
 * --all, and cmd_drain.c for the stores of all daemons. It must never claim a store.
 */
#ifndef PERSEAS_COMMAND_FLEET_H
#define PERSEAS_COMMAND_FLEET_H

#include "../ask/ask.h"
#include "../ask/verdict.h"
#include "../ask/survey.h"
#include "../ui/args.h"

/* The condition of a store, the worst first. */
enum ps_fleet_rank {
	PS_FLEET_STUCK, /* the store cannot commit or be opened, or has a commit in doubt */
	PS_FLEET_LACKS_REDUNDANCY, /* the store bears fewer losses than its roster promises */
	PS_FLEET_HAS_FAULT,        /* the store is usable; its line says what is wrong */
	PS_FLEET_OWNERLESS,        /* the store has no owner */
	PS_FLEET_GOOD,
	PS_FLEET_RANKS,
};

struct ps_fleet_daemon {
	struct ps_peers *peers; /* index of the daemon in `peers` is `peer_index` */
	unsigned peer_index;
	bool is_from_roster;   /* a roster named the daemon, not the list */
	Perseas__Reply *reply; /* NULL: peers->errors[peer_index] has the reason */
};

struct ps_fleet_store {
	const Perseas__Header *header; /* header of one of its images, in a reply */
	bool shares_name;              /* daemons told of another store with its name */
	enum ps_fleet_rank rank;
	char owner[96]; /* "": none */
	/* Status from the mirror that knows the live owner best; NULL: no owner is seen. */
	const Perseas__StoreStatus *owner_status;
	const Perseas__OwnerFigures *figures; /* the newest figures of that owner; NULL: none */
	enum ps_can commit;                   /* whether its owner, or an open, can commit */
	bool open;                            /* the store can be opened */
	/* Losses of mirrors that it bears now, and that its roster promises to bear. */
	unsigned losses_borne, losses_promised;
	unsigned live, members; /* members of the roster that are up to date, and all of them */
	bool has_slot;
	uint64_t epoch, seq; /* with has_slot: of the newest state seen */
	bool has_lag;
	uint64_t lag;         /* most transactions that a member is behind the newest state seen */
	uint64_t done, total; /* bytes of all resyncs in progress; total is 0 if there are none */
	uint64_t left_ms;     /* how long these take at their present rate; 0: unknown */
	/* The next loss that hurts, in the words of perseas status; "": the store is unusable. */
	char *next_loss;
	char *trouble; /* what is wrong; "": nothing */
};

struct ps_fleet {
	struct ps_peers **peer_sets; /* connections, in sets of up to PS_MIRRORS_MAX */
	unsigned peer_set_count;
	struct ps_fleet_daemon *daemons; /* the daemons of the list come first */
	unsigned count, silent_count;    /* number of daemons, and of those that did not answer */
	struct ps_fleet_store *stores;   /* by rank, then by name */
	unsigned store_count;
	unsigned ranks[PS_FLEET_RANKS]; /* stores of each rank */
	unsigned ownerless_count;       /* stores without an owner */
};

/* Asks the daemons of the list, then other daemons that rosters name. After an error, which was
 * complained about, there is nothing to free. (fleet_ask.c) */
enum ps_exit ps_fleet_ask_daemons(struct ps_fleet *fleet, const char *mirrors,
                                  const struct perseas_options *options);
void ps_fleet_free(struct ps_fleet *fleet);

/* Frees what ps_fleet_judge_stores filled in. ps_fleet_free does so, too. */
void ps_fleet_free_stores(struct ps_fleet *fleet);

/* Returns a comma-separated list of the daemons that rosters in force name and that the fleet has
 * not asked, or NULL. The caller frees it. */
char *ps_fleet_list_unasked(const struct ps_fleet *fleet);

const char *ps_fleet_address(const struct ps_fleet_daemon *daemon);

/* An image that a daemon listed in its reply. */
struct ps_fleet_image {
	unsigned daemon; /* index in fleet->daemons */
	const Perseas__StoreStatus *status;
	unsigned index; /* index in the list of that daemon's reply */
};

/* Sorts images by their stores' names and ids, then by the daemons. */
void ps_fleet_sort_images(struct ps_fleet_image *entries, unsigned count);

/* Returns the images of all replies, sorted by the store's name and id. The caller frees them. */
struct ps_fleet_image *ps_fleet_list_images(const struct ps_fleet *fleet, unsigned *count);
/* Returns how many of the sorted entries, from the first on, are images of the first one's store.
 */
unsigned ps_fleet_count_images_of_first_store(const struct ps_fleet_image *entries, unsigned count);

/* Returns true if a roster in force has a member at this address whose image was not seen.
 * (fleet_judge.c) */
bool ps_fleet_is_image_unseen(const struct ps_images *images, const char *address);

/* Fills in `images` with the images of one store, and judges them as perseas status does. Fills in
 * `peers` without connections. with_unseen_members: includes the daemons of members whose images
 * were not seen. (fleet_judge.c) */
void ps_fleet_fill_images(const struct ps_fleet *fleet, const struct ps_fleet_image *entries,
                          unsigned count, bool with_unseen_members, struct ps_peers *peers,
                          struct ps_images *images);
/* Fills in fleet->stores, each judged, and counts them by rank. */
void ps_fleet_judge_stores(struct ps_fleet *fleet);

/* Implements perseas status --all. (fleet_show.c) */
enum ps_exit ps_fleet_print_status(const struct ps_args *args);

struct ps_json;
struct ps_table;

/* Adds a cell that says how many transactions the store's mirrors are behind, or how far they are
 * copied. */
void ps_fleet_add_lag_cell(struct ps_table *table, unsigned column,
                           const struct ps_fleet_store *store);

/* Adds the facts about the store and its mirrors to the current JSON object. */
void ps_fleet_store_json(struct ps_json *json, const struct ps_fleet_store *store);

#endif
