/*
 * upkeep.h - the state of the handle's work in the background: the copy to a mirror, changes of the
 * roster, orders, and renewal of the claims. client/keeper changes it, with admin; its files
 * explain each part.
 */
#ifndef PERSEAS_CLIENT_UPKEEP_H
#define PERSEAS_CLIENT_UPKEEP_H

#include "error.h"
#include "../../proto/base/expiry.h"
#include "../../proto/base/keyed_digest_tls.h"
#include "../../proto/control/envelope.h"
#include "../../proto/image/layout.h"

#include <stdbool.h>
#include <stdint.h>

struct ps_mirror;

/* A request to several mirrors, and their answers so far (pending_answers.h). */
struct ps_question {
	uint64_t id;                          /* 0: no question is under way */
	uint32_t unanswered_mirrors;          /* mirrors that have not answered yet */
	uint32_t granting_mirrors;            /* mirrors that granted the request */
	uint64_t deadline;                    /* when the question times out */
	Perseas__Reply *last_granting_answer; /* NULL: no mirror granted the request */
	struct ps_error last_refusal; /* error of the last answer that refused the request */
};

enum ps_resync_state {
	PS_RESYNC_NONE,
	PS_RESYNC_ASKING,      /* other mirrors are asked whether this one may be made anew (I9) */
	PS_RESYNC_RECORDING,   /* other mirrors record the mirror's new id */
	PS_RESYNC_COMPARING,   /* the image is compared by digests before it is overwritten */
	PS_RESYNC_MAKING_ROOM, /* the mirror is asked to make room for the copy */
	PS_RESYNC_ATTACHING,   /* the mirror's data path is being connected */
	PS_RESYNC_ADDING,      /* the mirror is asked to add the unpublished segments */
	PS_RESYNC_COPYING, /* from here on the mirror gets transactions, with chunks in between */
	PS_RESYNC_READING, /* another mirror is asked for a chunk that is not mapped here */
	/* The owner of the mirror that was read is checked before the chunk is used. */
	PS_RESYNC_VOUCHING,
	PS_RESYNC_CONFIRMING, /* other mirrors are asked whether the copied one may vote */
	PS_RESYNC_FINISHING,  /* the mirror is asked to make the image count from now on */
};

/* The base of a copy in place says which granules it has to send (unsent_granules.h). */
enum ps_unsent_base {
	PS_UNSENT_ALL, /* nothing is known of the image */
	/* The image is a prefix of this owner's history, which ends at its slot. */
	PS_UNSENT_CHANGED,
	PS_UNSENT_REST, /* this owner's last copy to the image broke, and its set is still there */
	/* Another owner wrote the image, and digests say where it differs. */
	PS_UNSENT_DIFFERENT,
	/* The image is a prefix of this owner's history but for the granules of its set, which are
	 * wrong (repair.h). */
	PS_UNSENT_REPAIR,
};

/* Why a copy sends everything. doc/operating.md lists the names ("A mirror comes back"). */
struct ps_whole_reason {
	const char *name; /* for programs */
	const char *text; /* for people; NULL: `copy_reason` of the copy says it */
};

/* How far a copy had come at some time. */
struct ps_resync_mark {
	uint64_t noted_at, sent_bytes;
};

/* The copy to a mirror while transactions go on, one mirror at a time (resync.c). */
struct ps_resync {
	enum ps_resync_state state;
	struct ps_mirror *target; /* the mirror that is copied to, or NULL */
	char copy_reason[256];    /* the reason for the copy, for people */
	/* The mirror's previous image does not count: it gets a new id (I9). */
	bool gets_new_image_id;
	/* The mirror's previous image is overwritten, not kept until the end. */
	bool is_in_place;
	enum ps_unsent_base unsent_base; /* what is known of the image, if `is_in_place` */
	const struct ps_whole_reason *whole_reason; /* why everything is sent, or NULL */
	uint8_t new_image_id[PS_ID_SIZE];           /* the new id, if `gets_new_image_id` */
	/* p->upkeep's values of the same names when the mirror was told of the segments */
	uint64_t publish_generation;
	uint64_t unpublished_generation;
	uint64_t answer_by;          /* when the mirror's own answer times out */
	struct ps_question question; /* used in ASKING, RECORDING, and from READING on */
	/* RECORDING. ask_last_mirrors: mirrors to ask only after the others. recorded_mirrors:
	 * mirrors that have recorded the new id, before ask_last_mirrors were asked. */
	uint32_t ask_last_mirrors, recorded_mirrors;
	Perseas__Reply *saved_answer; /* ATTACHING: the grant; VOUCHING: the bytes that were read */
	/* The region that is read from other mirrors: the log until the newest record was sought,
	 * then segments. */
	uint32_t read_region;
	/* READING: how many bytes were asked for. COMPARING: how many bytes the mirror was asked to
	 * digest; 0: none. */
	uint64_t requested_bytes;
	/* Mirrors that were asked for the bytes of the present read. */
	uint32_t mirrors_asked_to_read;
	/* READING: last_unmap_seq of the segment when the read began. If the segment has another
	 * value by now, it was mapped meanwhile. */
	uint64_t last_unmap_seq;
	/* COMPARING: the key, and the digests of what the mirror was asked to digest, as it is
	 * here. */
	uint8_t digest_key[PS_DIGEST_KEY];
	uint8_t digests[PS_DIGESTS_MAX * PS_DIGEST];
	/* Enough other mirrors confirmed the claim since this one was claimed. */
	bool others_confirmed_claim;

	/* The last seq when the copy began. Segments published later come with their publish. */
	uint64_t last_seq_at_begin;
	/* Id of the segment of the next chunk; COMPARING: of the next digests. */
	uint32_t next_segment_id;
	uint64_t next_offset; /* where in that segment the next chunk begins, or the next digests */
	uint64_t max_chunk_bytes; /* maximum bytes of a chunk */
	bool is_comparison_done;  /* the granules to send are known (unsent_granules.h) */
	/* The last chunk, until its granules are taken out of the set; sent_end 0: no chunk. */
	uint32_t sent_segment;
	uint64_t sent_from, sent_end;
	uint64_t sent_bytes, total_bytes; /* bytes sent so far; bytes to send */
	/* The last two times at which `sent_bytes` was noted for the present rate. */
	struct ps_resync_mark recent_mark, previous_mark;
	bool image_already_counted;  /* the image already counted under this owner in this epoch */
	bool has_posted_first_chunk; /* the first chunk was posted, together with the commit slot */
	/* The last chunk may contain transactions up to this seq. */
	uint64_t newest_seq_in_last_chunk;
	bool is_all_posted;     /* everything is posted, and only its completion is awaited */
	bool is_fetching_chunk; /* memory of the next chunk is missing here, and being fetched */
	uint64_t next_chunk_at; /* no chunk before this time, to limit the rate */
};

enum ps_repair_state {
	PS_REPAIR_NONE,
	PS_REPAIR_COMPARING, /* live mirrors are compared with the memory here; nothing changes */
	PS_REPAIR_SENDING,   /* mirrors that differ are copied to, one at a time */
};

/* The repair of mirrors that an operator ordered (repair.c). */
struct ps_repair {
	enum ps_repair_state state;
	uint8_t order_id[PS_ID_SIZE];
	uint64_t publish_generation; /* p->upkeep's value when the repair began */
	/* COMPARING: where the piece begins; its bytes, or 0 if no mirror was asked about it yet;
	 * the most granules that it may have; and how often its first granule had changed before
	 * the answers came. */
	uint32_t piece_segment_id;
	uint64_t piece_offset, piece_bytes;
	unsigned max_granules, first_granule_retry_count;
	uint64_t common_seq;         /* all mirrors that were asked hold this transaction */
	uint64_t next_piece_at;      /* no piece before this time, to limit the rate */
	uint64_t question_id;        /* the id of the last question */
	uint32_t unanswered_mirrors; /* mirrors that have not answered yet */
	uint32_t answering_mirrors;
	/* The piece's digests here, and for each granule the mirrors that gave the same one. */
	uint8_t digests[PS_DIGESTS_MAX * PS_DIGEST];
	uint32_t agreeing_mirrors[PS_DIGESTS_MAX];
	uint64_t wrong_granule_count;     /* granules that are wrong at a mirror */
	uint64_t unsettled_granule_count; /* granules that changed whenever they were compared */
	unsigned repaired_mirror_count;   /* mirrors that were repaired */
	struct ps_mirror *target;         /* SENDING: the mirror that is being repaired, or NULL */
	/* SENDING: when the repair ends unless the target is copied to. */
	uint64_t ends_unless_copied_at;
};

/* Sums up the copies to a mirror that joins a roster. */
struct ps_joining_copy {
	uint64_t sent_bytes; /* by all copies, broken ones included */
	/* why the last copy sends the whole store; NULL: it sends what differs */
	const struct ps_whole_reason *whole_reason;
};

enum ps_change_stage {
	PS_CHANGE_NONE,
	PS_CHANGE_COPYING, /* the new mirror is copied to; it has no vote yet */
	/* Enough mirrors are asked whether they still are this owner's. */
	PS_CHANGE_ASKING,
	PS_CHANGE_JOINT, /* both rosters count, and the mirrors are told so */
	/* Decided: both rosters count until W of the new one have the mark. */
	PS_CHANGE_MARKED,
	PS_CHANGE_SETTLING,   /* the new roster counts alone, and the mirrors are told so */
	PS_CHANGE_RELEASING,  /* the mirror that left is told so */
	PS_CHANGE_CANCELLING, /* canceled: the old roster counts, and the mirrors are told so */
};

/* Size of a roster: n and W. */
struct ps_roster_size {
	uint32_t member_count, acks;
};

/* The roster change under way, or the last one (change.c). */
struct ps_change {
	enum ps_change_stage stage;
	/* Id of the order that asked for the change; all zero: this process asked. */
	uint8_t order_id[PS_ID_SIZE];
	struct ps_mirror *leaving; /* the mirror that leaves, or NULL */
	struct ps_mirror *joining; /* the mirror that joins, or NULL */
	bool is_leaving_gone;      /* `leaving` is gone for good: no later open can use it */
	/* A member leaves. It need not be among this handle's mirrors. */
	bool removes_member;
	bool raises_level;                   /* the change only raises the store to level 1 */
	char leaving_address[256];           /* address of the member that leaves */
	struct ps_roster_size before, after; /* sizes before and after the change */
	/* W of the new roster must hold this seq before that roster counts alone. */
	uint64_t seq_next_roster_must_hold;
	struct ps_joining_copy copy;
	bool was_copied_to;     /* the mirror that joins has been copied to, at least for a while */
	bool is_member_address; /* the joining mirror's address leads to a member of the roster */
	/* With is_member_address: that member is the one that leaves, so only its address
	 * changes. If no mirror joins, the member is reached at the address already. */
	bool moves_address;
	/* when the change fails unless the joining mirror is being copied to */
	uint64_t copy_start_deadline;
	/* Until then every mirror that was asked is waited for, even if enough have answered. */
	uint64_t grace_until;
	struct ps_question question; /* used in ASKING and RELEASING */
	int result_code;             /* after the change: 0, or the code that says why it failed */
	char text[256];              /* progress so far, or why the change was refused */
	/* A thread of the application waits for the end of the change, and has not seen it yet. */
	bool has_waiter;
};

/* How far the mirrors have been told the rosters (roster_telling.c). */
struct ps_telling {
	uint64_t roster_versions[5]; /* epoch and version of both rosters, and the mark */
	uint64_t round_number;       /* number of the round: grows when `roster_versions` changes */
	uint32_t recorded_mirrors;   /* mirrors that recorded this round's rosters */
	uint64_t tell_again_at;      /* when to tell the other mirrors again */
};

/* The result of an order, or its progress. */
struct ps_order_result {
	uint8_t id[PS_ID_SIZE]; /* all zero: unused */
	bool is_done;
	int code;
	char text[256];
	struct ps_roster_size before, after;
	struct ps_joining_copy copy;
};

/* The last orders and handovers that were accepted, so that none is carried out twice, and the
 * results of orders before the present one (operator_orders.c). */
enum { PS_ORDERS_SAVED = 16 };
struct ps_orders {
	uint8_t accepted_ids[PS_ORDERS_SAVED][PS_ID_SIZE]; /* a ring of the accepted ids */
	unsigned accepted_id_count;                        /* ids accepted so far */
	struct ps_order_result results[PS_ORDERS_SAVED];   /* a ring of results */
	unsigned saved_result_count;                       /* results saved so far */
	/* The answer that brought an order to carry out next, or NULL. */
	Perseas__Reply *answer_with_waiting_order;
};

/* Renewal: an owner claims its mirrors again (renew.c). */
struct ps_renewal {
	uint64_t
		/* the highest epoch that a mirror promised and that a claim can exceed */
		highest_epoch;
	/* During a renewal: the epoch of the records in the ring, which is the one before. */
	uint64_t ring_epoch;
	uint64_t next_attempt_at; /* no attempt before this time */
	uint64_t attempt_delay_ns;
	/* A sentence on how this owner knows that its own state went back in time
	 * (reverted_owner.c), or "". It is set only while p->is_superseded. */
	char reverted_text[400];
	/* Renew although no mirror is fenced: records in a new format need a new epoch. */
	bool is_wanted;
	bool is_quorum_stuck;   /* ps_quorum_is_stuck in the keeper's last round */
	const char *cause_text; /* why the present or last renewal began, for people */
};

/* The last event about an expiring certificate, CA or revocation list (expiry_watch.c). */
struct ps_expiry_event {
	uint64_t certificate_expires_at_unix_s; /* when the certificate expires; 0: no event yet */
	uint64_t told_at_unix_s;                /* when the application was told */
	enum ps_expiry_stage stage;             /* how urgent it was then */
};

struct ps_expiry_watch {
	uint64_t next_look_at; /* when to look next, by env->ops->now */
	struct ps_expiries
		own_expiries; /* what this process's own files said at own_files_read_at_unix_s */
	uint64_t own_files_read_at_unix_s;
	struct ps_expiry_event last_own_event, last_mirror_events[PS_MIRRORS_MAX];
};

/* Guarded by admin. Members that commits and statistics read change with both admin and the
 * lock. */
struct ps_upkeep {
	uint64_t publish_generation;     /* grows when segments are published or destroyed */
	uint64_t unpublished_generation; /* grows when an unpublished segment is added or removed */
	struct ps_resync resync;
	struct ps_repair repair;
	struct ps_change change;
	struct ps_telling telling;
	struct ps_orders orders;
	struct ps_renewal renewal;
	uint64_t last_question_id;  /* the id of the last question (struct ps_question) */
	uint64_t next_heartbeat_at; /* when the next heartbeat is due */
	struct ps_expiry_watch expiry;
};

#endif
