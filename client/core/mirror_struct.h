/*
 * mirror_struct.h - struct ps_mirror, the handle's state of one mirror: its address, its session,
 * what was posted to it, and what an open found on it. mirror.h has the functions.
 */
#ifndef PERSEAS_CLIENT_MIRROR_STRUCT_H
#define PERSEAS_CLIENT_MIRROR_STRUCT_H

#include "address.h"
#include "control.pb-c.h"
#include "error.h"
#include "fabric.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/location.h"
#include "../../proto/image/layout.h"

#include <stdbool.h>
#include <stdint.h>

struct perseas;
struct ps_control;
struct ps_pending_answer;
struct ps_mirror;
struct ps_unsent_granules;

/* The state of a mirror's image, as its commit slot tells it. */
struct ps_image_position {
	uint64_t epoch, seq, next_position, last_position;
	/* The commit slot that is valid, 0 or 1; the next transaction writes the other one. */
	int valid_slot;
};

/* What an attempt to open has found out about a mirror. */
struct ps_probe_result {
	/* 0 if the mirror has the store; otherwise the PERSEAS_E code that says why not. */
	int code;
	struct ps_error error;   /* the sentence that goes with `code` */
	Perseas__Header *header; /* the header that the mirror told last, or NULL */
	struct ps_image_position position;
	/* The mirror was not asked, because it did not answer `perseas run` shortly before. */
	bool was_skipped;
	bool has_owner;          /* the mirror's image has an owner that is alive */
	char owner_address[128]; /* address of that owner */
	bool is_claimed;         /* the mirror granted the claim, and has a data path */
	bool counts_for_r;       /* counts toward the R mirrors that determine the newest state */
	bool is_candidate;       /* the mirror's state may be chosen as the newest */
	bool is_adopted;         /* holds the chosen state under this owner's epoch */
	bool has_broken_session; /* the session broke while the state was adopted or repaired */
	bool is_listed; /* a roster lists the image, or the image from whose spill it was loaded */
};

/* Handles an answer that no thread waits for (pending_answers.h). The function may keep *reply, and
 * then sets it to NULL. If the connection ended before the answer, *reply is NULL and `why` says
 * how it ended. The function only takes notes and disconnects no mirror, since its caller may be
 * working with any of them. Caller has admin. */
typedef void ps_answer_handler(struct perseas *p, struct ps_mirror *m,
                               const struct ps_pending_answer *pending, Perseas__Reply **reply,
                               const struct ps_error *why);

enum { PS_PENDING_MAX = 6 }; /* answers that may be due from a mirror at a time */

struct ps_pending_answer {
	ps_answer_handler *handler; /* takes the answer */
	void *arg;                  /* for `handler` */
	uint64_t ticket;            /* chosen by `handler`: tells it which request was answered */
};

/* Answers that a mirror owes and that no thread waits for, oldest first. */
struct ps_pending_answers {
	unsigned answer_count;
	struct ps_pending_answer answers[PS_PENDING_MAX];
	uint64_t oldest_asked_at;  /* when the request with the oldest pending answer was sent */
	uint64_t oldest_answer_by; /* when the oldest answer times out */
};

/* Calls of perseas_confirm, by number, that concern the present session; 0: none. */
struct ps_mirror_confirm {
	uint64_t asked_call; /* the last call for which the mirror was asked */
	/* The last call that the mirror's answers confirm. Guarded by p->lock. */
	uint64_t confirmed_call;
};

/* What this owner has written to the mirror's image. */
struct ps_own_image {
	/* The epoch under which the mirror was last LIVE, and the id of its image then. */
	uint64_t live_epoch;
	uint8_t live_id[PS_ID_SIZE];
	/* The last two epochs for which this owner wrote, or may have written, a slot to this
	 * image. */
	uint64_t written_epochs[2];
};

/* When to reconnect to a mirror that is DOWN. */
struct ps_retry {
	uint64_t next_try_at; /* no try before this time */
	uint64_t delay_ns;    /* between the last try and the next one */
};

/* States of the control connection and the data path to a mirror (session.c). */
enum ps_session_state {
	PS_SESSION_NONE,
	PS_SESSION_ASKING,    /* connecting, or waiting for the mirror's status */
	PS_SESSION_QUEUING,   /* the mirror's daemon is asked whether a copy may begin */
	PS_SESSION_CLAIMING,  /* the mirror has the right image, and is asked for the claim */
	PS_SESSION_ATTACHING, /* the claim is granted, and the data path is being connected */
	PS_SESSION_PREPARING, /* the image is being made ready to take what it lacks */
	PS_SESSION_UP,
};

struct ps_session {
	enum ps_session_state state;
	uint64_t answer_by; /* ASKING, QUEUING, CLAIMING, PREPARING: when the answer times out */
	/* PREPARING: p->upkeep.unpublished_generation when the mirror was told the segments. */
	uint64_t unpublished_generation;
	bool has_copy_turn; /* the daemon admitted a copy on this connection */
	/* ATTACHING, PREPARING: the answer that granted the claim, or NULL */
	Perseas__Reply *claim_reply;
};

/* A data path that is being connected. */
struct ps_attaching {
	unsigned failed_fabric_count; /* how many fabrics failed before this one */
	uint64_t deadline;            /* when this fabric times out */
};

/* The way from a detour back to the best fabric (detour.c). */
struct ps_way_back {
	uint64_t test_at;                     /* when to test the best fabric next */
	uint64_t best_fabric_retest_delay_ns; /* between the last test and the next one */
	uint32_t rdma_port;        /* the grant's RDMA port; 0: no test before the next grant */
	uint8_t token[PS_ID_SIZE]; /* the grant's token */
	const struct ps_fabric *best_fabric; /* the best fabric */
	/* The link that tests the best fabric; NULL: no test is under way. */
	struct ps_link *test_link;
	uint64_t test_times_out_at; /* when the test times out */
	/* How many links over the best fabric broke, each within a minute of the one before. */
	unsigned break_count;
	uint64_t last_broke_at; /* when the last of them broke */
};

/* A second connection to the mirror, which ends as soon as this process is killed, even while the
 * kernel still frees its memory (lifeline.h). */
struct ps_lifeline {
	bool is_possible; /* the session may have a lifeline: its data path shares no memory */
	uint8_t session_token[PS_ID_SIZE]; /* the session's token, if is_possible */
	uint64_t request_at;               /* when to request the connection; 0: do not */
	struct ps_control *control;
	uint64_t request_times_out_at; /* when the request times out */
	bool is_request_over;          /* the request was answered, or timed out */
};

/* When commits pause for the copy that is under way (pace.h). */
struct ps_commit_pauses {
	uint64_t commits_pause_until; /* until then commits pause, or did when they paused last */
	uint64_t commits_run_until;   /* until then commits run: no new pause begins before */
	uint64_t acked_at_pause;      /* the mirror's acked_seq when the last pause began */
};

/* Whole copies to a mirror that broke, since the last one that was completed. Guarded by
 * p->lock. */
struct ps_broken_copies {
	unsigned broken_copy_count;
	uint64_t sent_bytes; /* sum of the bytes that the broken copies sent */
	/* bytes of transactions per second during the last broken copy */
	uint64_t transaction_bytes_per_s;
	uint64_t last_broke_at; /* when the last copy broke */
	/* ns from last_broke_at to the next copy, if commits succeed without the mirror */
	uint64_t pause_before_next_ns;
	uint64_t copy_begun_at;          /* when the copy under way began */
	uint64_t ring_position_at_begin; /* the ring's head at that time */
	struct ps_commit_pauses commit_pauses;
	/* commits that waited for the broken copies and the present one */
	uint64_t waited_commit_count;
};

struct ps_mirror {
	struct ps_address address;
	enum perseas_mirror_state state;
	struct ps_control *control; /* the control connection; NULL: not connected */
	/* Identity of the daemon that answers on `control`; all zero: it told none. */
	uint8_t daemon_id[PS_ID_SIZE];
	/* Id of the store's image that this daemon told last; all zero: it told none. */
	uint8_t shown_image_id[PS_ID_SIZE];
	struct ps_session session; /* used once the store is open */
	struct ps_lifeline lifeline;
	struct ps_attaching attaching;             /* used while a data path is being connected */
	struct ps_pending_answers pending_answers; /* answers that no thread waits for */
	struct ps_mirror_confirm confirm;          /* calls of perseas_confirm (confirm.c) */
	/* The last round in which the mirror was told the rosters (roster_telling.c). */
	uint64_t last_told_roster_round;
	/* Id of the last operator's order that the mirror passed on; all zero: none
	 * (operator_orders.c). */
	uint8_t last_order_id[PS_ID_SIZE];
	const struct ps_fabric *fabric; /* the fabric of `link`, or of the link before */
	struct ps_link *link;           /* NULL: not connected */
	/* transactions are posted to the link: the mirror is LIVE, REPLAYING or RESYNCING */
	bool is_active;
	bool is_image_in_roster; /* a roster lists the image that image_id names */
	uint8_t image_id[PS_ID_SIZE];
	/* the commit slot, 0 or 1, that is valid once all that was posted has arrived */
	unsigned valid_slot;
	uint64_t posted_seq; /* seq of the last transaction posted to the mirror */
	/* Seq of the last transaction that the mirror completed; kept while DOWN. */
	uint64_t acked_seq;
	/* The mirror was LOST, or said that it has no sound image, and has not been brought up to
	 * date since: it holds nothing of what it completed. */
	bool is_copy_lost;
	unsigned chains_in_flight; /* chains posted and not yet completed */
	/* The link has completed a transaction or a part of a copy. */
	bool has_link_completed_chain;
	/* How many completions are still to come until a copy's chunk is complete; 0: no chunk is
	 * in flight. */
	unsigned completions_until_chunk;
	bool has_vote; /* the mirror is in a roster, so its acknowledgements count */
	/* The image was loaded from a spill, and no roster lists its new id yet. */
	bool is_from_spill;
	uint8_t image_id_after_spill_load[PS_ID_SIZE]; /* the image's new id, if is_from_spill */
	/* The mirror's address comes from a roster, not from the caller's list. */
	bool is_from_roster;
	bool is_joining;         /* a roster change adds the mirror, which has no vote yet */
	bool was_left_connected; /* a standby left the mirror connected, without a claim */
	/* The mirror did not answer `perseas run` shortly before this open. */
	bool was_silent;
	struct ps_retry retry; /* used while the mirror is DOWN */
	struct ps_broken_copies broken_copies;
	/* STALE, LOST: place in its daemon's line of those that wait for a copy's turn, from 1; 0:
	 * it does not wait. */
	uint32_t copy_place;
	/* The granules that a copy in place must still send; NULL: no copy is unfinished. Guarded
	 * by admin. */
	struct ps_unsent_granules *unsent_granules;
	/* where the mirror runs, as its daemon reported it last. Guarded by admin. */
	struct ps_location location;
	struct ps_own_image own_image; /* what this owner has written to the mirror's image */
	bool is_claim_denied; /* the mirror's access rules refused this owner's last claim */
	/* the last link was PS_LINK_LOST, and this one has completed nothing yet */
	bool is_after_lost_link;
	/* The mirror answered the last claim that its memory is gone, so it must be made anew. */
	bool has_lost_memory;
	/* When a commit last waited because the mirror could not keep up. */
	uint64_t last_delayed_commit_at;
	/* Since when the mirror has blocked commits that must not wait (pace.c), 0 if it blocks
	 * none; and its acked_seq at that time. */
	uint64_t blocks_commits_since, acked_seq_when_blocking_began;
	char trouble_text[256]; /* what is wrong with the mirror, for people; "": nothing */
	/* Why the link does not use the best fabric; "" if it does. */
	char detour_reason[256];
	struct ps_way_back way_back;  /* used while detour_reason is not empty */
	struct ps_probe_result probe; /* what an open or a renewal has found out */
};

#endif
