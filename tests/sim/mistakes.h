/*
 * mistakes.h - faults that the checks must find, made on purpose where the simulator stands
 * between the library and the mirrors. Each function does nothing unless the schedule runs with
 * its mistake.
 */
#ifndef PERSEAS_SIM_MISTAKES_H
#define PERSEAS_SIM_MISTAKES_H

#include "../../client/core/env.h"
#include "net.h"

struct ps_control;
struct ps_link;
struct perseas_tx;

/*
 * The table of mistakes: X(NAME, word on the command line, seeds to search at most, noted seed,
 * what is wrong). The noted seed finds the mistake without a search. If it no longer does, `sim
 * --mistakes` searches, and prints the row with another seed; `sim --note` prints rows with the
 * cheapest of several seeds.
 *
 * Every mistake that the model (proto/model) seeds names its counterpart here, or the unit test
 * that fails with it: check.py --mistakes prints the table. Two of the model's mistakes name a
 * larger one here, because alone they do no harm to this implementation. "unconfirmed": the data
 * path is connected after all claims are answered, and granted only where the claim still stands,
 * so an owner that adopts without asking again has asked all the same; the larger mistake also
 * skips the checks that follow. "unasked": a mirror without an image is made anew after others
 * confirmed, and filled after they confirmed again; the larger mistake skips both. A joining mirror
 * that answers perseas_confirm does harm only if too few mirrors confirmed before it was made anew,
 * so "confirmed-joining" lets one be enough, which alone does no harm either.
 */
#define SIM_MISTAKES(X)                                                                            \
	X(WHOLE, "whole", 2000, 200, "an image that is not whole is taken for the state")          \
	X(FEW, "few", 2000, 126, "fewer than R are claimed")                                       \
	X(IN_PLACE, "in-place", 2000, 37, "a needed copy is overwritten in place")                 \
	X(FORGETS, "forgets", 4000, 23, "a mirror that lost its promises serves a fenced owner")   \
	X(UNADOPTED, "unadopted", 100, 10, "open returns before W have adopted")                   \
	X(UNEXAMINED, "unexamined", 1000, 19, "not all R that are claimed are examined")           \
	X(UNCONFIRMED, "unconfirmed", 8000, 222, "R are not counted when open returns")            \
	X(CHANGED, "changed", 8000, 2, "the choice changes after the first adoption")              \
	X(KEPT, "kept", 8000, 222, "a candidate from a session that broke is kept")                \
	X(JUMP, "jump", 100, 18, "a mirror grants an epoch that owners cannot follow")             \
	X(BY_KIND, "by-kind", 8000, 1436, "a late answer is taken for that to a newer request")    \
	X(SIGN, "sign", 2000, 7, "a sign of progress is taken for the answer")                     \
	X(NO_ROOM, "no-room", 1000, 172, "a full mirror has no room for a header")                 \
	X(OTHER_BOOT, "other-boot", 4000, 59, "an image of another boot is taken for memory")      \
	X(PUT_BACK, "put-back", 4000, 59, "an image that was put back is taken for memory")        \
	X(LANDS, "lands", 2000, 48, "a fenced owner's write lands")                                \
	X(SLOT_FIRST, "slot-first", 100, 6, "the slot is sent before the data")                    \
	X(UNDO_LAST, "undo-last", 100, 6, "the undo record is sent after the data")                \
	X(STALE, "stale", 1000, 22, "an old record is taken for the unfinished one")               \
	X(UNTERMINATED, "no-terminator", 1000, 5, "a record is sent without the zeros behind it")  \
	X(DISGUISED, "disguised", 1000, 64, "a mirror takes a roster out of stored bytes")         \
	X(UNLINKED, "unlinked", 1000, 6, "an image stays in files that were removed")              \
	X(EARLY, "early", 100, 6, "completions are told before the ring is read")                  \
	X(BLIND, "blind", 4000, 37, "shared memory: the promise is not looked at after the slot")  \
	X(NOT_UNDONE, "not-undone", 1000, 67, "a claim does not roll back")                        \
	X(AGAIN, "again", 1000, 14, "replayed from what had completed")                            \
	X(REUSED, "reused", 2000, 18, "the ring is overwritten where a mirror needs it")           \
	X(DROPPED, "dropped", 4000, 579, "a link that was dropped still sends from the ring")      \
	X(FOREIGN, "foreign", 2000, 1, "another owner's image is replayed onto")                   \
	X(REDONE, "redone", 2000, 2, "what timed out is taken for not applied")                    \
	X(LAPPED, "lapped", 2000, 57, "replayed from what the ring no longer holds")               \
	X(TURN, "turn", 2000, 13, "a turn passes on before the transaction is posted")             \
	X(READER, "reader", 2000, 9, "who only read is not held up until W have that")             \
	X(COVERED, "covered", 100, 2, "behind a savepoint nothing is kept of what was declared")   \
	X(LEAKS, "leaks", 200, 8, "what an aborted transaction allocated stays reserved")          \
	X(TWICE, "twice", 200, 2, "the bits of a transaction are applied to the heap twice")       \
	X(BEFORE_POST, "before-post", 1000, 2, "what is freed is given out before it is posted")   \
	X(TAKEN_EARLY, "taken-early", 200, 2, "what is freed is given out before its commit")      \
	X(HALVES, "halves", 1000, 104, "what a heap gives back ends by two transactions")          \
	X(CONNECTED, "connected", 8000, 275,                                                       \
	  "overwritten in place: others are connected, no more")                                   \
	X(UNJOINED, "unjoined", 2000, 139, "a delta without joining first")                        \
	X(BETWEEN, "between", 1000, 138, "what is posted between two chunks is not sent")          \
	X(TOGETHER, "together", 1000, 24, "a missed transaction is sent with what came later")     \
	X(PARTED, "parted", 1000, 49, "what another owner did is sent as missed")                  \
	X(MISLED, "misled", 2000, 5, "a mirror is the member that is listed at its address")       \
	X(OWN, "own", 8000, 222, "the state's own mirror need not confirm")                        \
	X(UNASKED, "unasked", 8000, 2808, "made anew by an owner that does not ask the others")    \
	X(ALONE, "alone", 8000, 15, "a roster counts alone before mirrors record it")              \
	X(OLD_CLAIMS, "old-claims", 8000, 189, "R of the old roster only, while it is joint")      \
	X(OLD_ACKS, "old-acks", 2000, 17, "W of the old roster only, while it is joint")           \
	X(LATE, "late-roster", 8000, 374, "a newer roster that a claim shows is ignored")          \
	X(UNMARKED, "unmarked", 8000, 6539, "what has the mark is taken back")                     \
	X(VERSIONS, "versions", 8000, 974, "rosters are compared by version only")                 \
	X(FEW_SEE, "few-see", 8000, 17, "a change is settled when one of the old roster has it")   \
	X(BEHIND, "behind", 8000, 3, "a change is settled, and W do not hold everything")          \
	X(UNTOUCHED, "untouched", 32000, 1328, "adopted by an open that touches fewer than T")     \
	X(JOINT_ANEW, "joint-anew", 4000, 30, "made anew, and the joint roster does not list it")  \
	X(JOINT_UNASKED, "joint-unasked", 100, 2, ".. listed, and nobody is asked before")         \
	X(PARENT_BACK, "parent-back", 8000, 4901, "a copy gets its parent's id back")              \
	X(GONE, "gone", 8000, 59, "a member that is called gone comes back")                       \
	X(FORKED, "forked", 100, 5, "an image of a fork is copied over")                           \
	X(PAST, "past", 200, 2, "an owner copies its past over what it has forgotten")             \
	X(UNNOTICED, "unnoticed", 200, 1, "an image that went back is replayed onto as it was")    \
	X(MADE_UP, "made-up", 100, 5, "a mirror takes any roster from who creates a store")        \
	X(KEYLESS, "keyless", 2000, 113, "nobody looks whether who makes an image has the key")    \
	X(MARKED, "marked", 1000, 159, "a store whose image has a filler's mark is removed")       \
	X(VOTES, "votes", 1000, 8, "a new mirror votes before it is whole")                        \
	X(UNFINISHED, "unfinished", 1000, 9, "a resync is finished before its chunks are there")   \
	X(UNAWAITED, "unawaited", 2000, 24, ".. before the transactions of its last chunk are")    \
	X(UNCOMMITTED, "uncommitted", 2000, 9, "a chunk holds bytes that are not committed")       \
	X(OLD_SPILL, "old-spill", 8000, 57, "an old spill comes back as new")                      \
	X(TWO_LOADS, "two-loads", 8000, 3, "two loads of one spill both count")                    \
	X(SPILLED_EARLY, "spilled-early", 2000, 9, "spilled before the sessions are cut")          \
	X(KEPT_ID, "kept-id", 100, 5, "an image whose spill may be copied keeps its id")           \
	X(SPILL_WINS, "spill-wins", 8000, 18, "an old spill wins over the memory")                 \
	X(STAYS, "stays", 100, 15, "a detour has no end")                                          \
	X(INSISTS, "insists", 100, 5, "a fabric that does not work is the only one tried")         \
	X(WORN, "worn", 200, 6, "a fabric whose links all break is taken again and again")         \
	X(RESTARTS, "restarts", 200, 6, "an open begins again since a copy breaks")                \
	X(TOLD_EARLY, "told-early", 200, 3, "what is posted is said to be held by W")              \
	X(ANY_EPOCH, "any-epoch", 1000, 2, "a token of the owner before is taken for one's own")   \
	X(UNBOUNDED, "unbounded", 1000, 41, "flush_within_ms is not kept")                         \
	X(CLOSES, "closes", 2000, 27, "close does not wait for what nobody waited for")            \
	X(HELD_LIVE, "held-live", 1000, 7, "what is held back is sent as memory has it by then")   \
	X(HELD_COPIED, "held-copied", 4000, 11, "a chunk has what is held back in it")             \
	X(HELD_PASSED, "held-passed", 100, 4, "a commit that waits passes what is held back")      \
	X(HELD_TOLD, "held-told", 200, 6, "what is held back is said to be held by W")             \
	X(HELD_READ, "held-read", 2000, 2, "who read what is held back need not wait for it")      \
	X(FORGOTTEN, "forgotten", 2000, 3, "a commit that is refused forgets what was written")    \
	X(SHADOW_EARLY, "shadow-early", 2000, 3, "a commit that is refused changed the shadow")    \
	X(UNDECLARED, "undeclared", 2000, 3, "a chunk holds what a tracked transaction changed")   \
	X(DEATH_KEPT, "death-kept", 4000, 21, "a claim leaves a death above its slot to others")   \
	X(BURIED, "buried", 1000, 2, "what is to die is gone before the slot says so")             \
	X(SAME_ID, "same-id", 8000, 4276, "an id given again is taken for the segment before")     \
	X(ANY_NAME, "any-name", 2000, 109, "segments are compared by id, birth and size only")     \
	X(ANY_PUBLISH, "any-publish", 2000, 54, "segments are compared without their random ids")  \
	X(GROWN_EARLY, "grown-early", 2000, 294, "a growth is told before W hold it")              \
	X(NOT_ZEROS, "not-zeros", 1000, 6, "what a segment grows by is not zeros on mirrors")      \
	X(CONFIRMED_EARLY, "confirmed-early", 4000, 65,                                            \
	  "an owner counts answers to earlier calls")                                              \
	X(CONFIRMED_UNASKED, "confirmed-unasked", 2000, 42, ".. sessions that it did not ask")     \
	X(CONFIRMED_LOST, "confirmed-lost", 2000, 1, ".. and does not wait for its own commits")   \
	X(CONFIRMED_JOINING, "confirmed-joining", 100, 2, ".. and those of joining mirrors")       \
	X(UNPACED, "unpaced", 100, 1, "no commit waits for a copy that broke twice")               \
	X(PACED_STUCK, "paced-stuck", 100, 1, ".. and they wait although it makes no progress")    \
	X(UNRENEWED, "unrenewed", 100, 1, "an owner that lacks W does not claim again")            \
	X(COPIED_ANYHOW, "copied-anyhow", 100, 1, ".. and copies what cannot count")               \
	X(SUCCEEDED, "succeeded", 1000, 96, "an owner that has a successor claims again")          \
	X(UNMARKED_SPAN, "unmarked-span", 100, 6, "what a transaction changed is not noted")       \
	X(MARKED_EARLY, "marked-early", 1000, 6, ".. is noted as of when it began")                \
	X(ANY_SLOT, "any-slot", 1000, 75, "another owner's slot is taken for one's own")           \
	X(HALF_IS_BASE, "half-is-base", 1000, 3, "a half-made copy is taken for a state")          \
	X(LISTED_EARLY, "listed-early", 1000, 6, "what to send is chosen before the stream")       \
	X(DUE_DROPPED, "due-dropped", 1000, 12, "what was posted is not sent again after a break") \
	X(DIGEST_STALE, "digest-stale", 1000, 47, "what changed since a digest is not sent")       \
	X(REPAIR_UNSETTLED, "repair-unsettled", 1000, 2,                                           \
	  "what changes while mirrors are compared is judged")                                     \
	X(REPLACED, "replaced", 1000, 9, "a create replaces another; one that settles is enough")  \
	X(NOT_FIRST, "not-first", 4000, 3, "a making is withdrawn, but not at its first mirror")   \
	X(UNDECIDED, "undecided", 4000, 12, "settled elsewhere before the first mirror has")       \
	X(UNANSWERED, "unanswered", 4000, 2889, "abandoned elsewhere after a Settle unanswered")   \
	X(LATER, "later", 2000, 107, "memory on demand: another owner's state is taken")           \
	X(LATER_WAITED, "later-waited", 8000, 519, ".. for who waits")                             \
	X(FILLED_AGAIN, "filled-again", 4000, 8, ".. over what the other lane has brought")        \
	X(DISCARDED, "discarded", 8000, 1, ".. and is looked for before, and filled later")        \
	X(LAGS, "lags", 8000, 92, ".. of a mirror that lags behind the map")                       \
	X(HALF, "half", 4000, 1340, ".. of an image that is not whole")                            \
	X(OUTLIVES, "outlives", 4000, 8, ".. that was asked for an earlier mapping")               \
	X(UNFETCHED, "unfetched", 2000, 34, "a chunk is copied from memory that is missing")       \
	X(UNSETTLED, "unsettled", 2000, 17, "a commit overlooks what came while it was stored to") \
	X(TORN_MISSED, "torn-missed", 2000, 16, ".. what was stored to a part of a granule")       \
	X(TORN_WHOLE, "torn-whole", 1000, 2, "a granule counts as here when a part has come")      \
	X(TORN_AGAIN, "torn-again", 2000, 80, "what has come of a granule gets older bytes again") \
	X(RENEWED, "renewed", 8000, 633, ".. and so is an image, by a renewal")                    \
	X(PROMISED_BEFORE, "promised-before", 4000, 574, "a promise is read before the bytes")     \
	X(SLOT_BEHIND, "slot-behind", 32000, 1286, "a slot is looked at behind the bytes")         \
	X(NOT_PARTED, "not-parted", 1000, 3, "memory is read by a link that has ended")

enum sim_mistake {
	SIM_NO_MISTAKE,
#define SIM_MISTAKE_ENUM(name, ...) SIM_MISTAKE_##name,
	SIM_MISTAKES(SIM_MISTAKE_ENUM)
#undef SIM_MISTAKE_ENUM
		SIM_MISTAKES_END,
	/* Up to here neither the roster changes nor mirrors stop on purpose. */
	SIM_MISTAKE_PLAIN = SIM_MISTAKE_OWN,
	/* With every mistake after this one owners recover on demand. */
	SIM_MISTAKE_DEMANDS = SIM_MISTAKE_UNANSWERED,
	/* With every mistake after this one they read live mirrors over their links. */
	SIM_MISTAKE_STRAIGHT = SIM_MISTAKE_RENEWED,
};

struct sim_mistake_about {
	const char *name, *word, *text;
	unsigned seeds; /* to search, at most */
	unsigned noted; /* a seed that finds it */
};

extern const struct sim_mistake_about sim_mistakes[SIM_MISTAKES_END];

/* Some can do harm only with so many mirrors, and W, or show sooner when more goes wrong. */
void sim_mistake_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);

/* Returns true if the schedule makes this mistake. */
bool sim_mistake_is(const struct sim_world *w, enum sim_mistake mistake);

/* Called by env_sim.c whenever an owner looks at the clock. */
void sim_mistake_poke(struct sim_owner *o);
/* Returns true if the request is answered here, and must not be sent. */
bool sim_mistake_request(struct ps_control *control, const Perseas__Request *request);
/* Called when a claim was granted and has a slot. */
void sim_mistake_claimed(struct ps_control *control, Perseas__ClaimReply *claim);
/* Called when a reply told the header and the slot of an image. */
void sim_mistake_succeeded(struct ps_control *control, Perseas__Header *header,
                           Perseas__Slot *slot);
/* Called when a reply arrived. */
void sim_mistake_reply(struct ps_control *control, Perseas__Reply *reply);
/* Returns a made-up reply instead of one that did not arrive, or NULL. */
Perseas__Reply *sim_mistake_no_reply(struct ps_control *control);
/* Return true if replies are matched by kind only, so that late replies meet newer requests; and
 * whether this reply matches. */
bool sim_mistake_by_kind(const struct ps_control *control);
bool sim_mistake_matches(const struct ps_control *control, const Perseas__Reply *reply);

/* Returns true if a sign of progress that arrives now is taken for the answer, which it then is. */
bool sim_mistake_sign(const struct ps_control *control);
bool sim_mistake_signed(struct ps_control *control, Perseas__Reply *reply);

/* Returns how many bytes of a write are sent. */
uint32_t sim_mistake_length(const struct ps_link *link, const struct ps_write *write);

/* stream: completions at once; another order; a link that broke and seems not to have. */
bool sim_mistake_early(const struct ps_link *link);
bool sim_mistake_order(struct ps_link *link, const struct ps_chain *chain,
                       void (*enqueue)(struct ps_link *link, const struct ps_write *write,
                                       bool last));
bool sim_mistake_kept(const struct ps_link *link);
/* both: a slot that is adopted is not sent. */
bool sim_mistake_unadopted(const struct ps_link *link, const struct ps_chain *chain);
/* both: how many chains are told as completed that are not; whether these, which are completed,
 * were told before. */
unsigned sim_mistake_ahead(struct ps_link *link);
bool sim_mistake_told(struct ps_link *link, unsigned chains);
/* both: a detached link sends on (true), until it has nothing left or cannot. */
bool sim_mistake_lingers(struct ps_link *link);
/* both: a resync's chunk, or a transaction between two, is not sent, or is changed. */
bool sim_mistake_chunk(struct ps_link *link, const struct ps_chain *chain);
/* For shm links: returns true if the promise is not looked at. */
bool sim_mistake_blind(const struct ps_link *link);

/* For mirrors: returns true if writes in flight on a connection that is cut still arrive. */
bool sim_mistake_lands(const struct ps_link *link);
void sim_mistake_stray(struct ps_link *link, struct sim_message *message);
/* mirror: before and after it handles a request. */
void sim_mistake_before(struct ps_control *control, const struct sim_message *message);
void sim_mistake_after(struct ps_control *control, const struct sim_message *message);
/* mirror: after it lost its memory, an old one is there again. */
void sim_mistake_remember(struct sim_mirror *m);
/* mirror: before its first start. */
void sim_mistake_begin(struct sim_mirror *m);
/* stranger: before this claim; the promise is such that it is granted. */
void sim_mistake_jump(struct sim_mirror *m, uint64_t epoch);
/* For creators: returns true if the mistake needs several of them. */
bool sim_mistake_creates(const struct sim_world *w);
/* creating: before a Create; a request that is made up; a refusal that is taken for a yes. */
void sim_mistake_replace(struct ps_control *control, const struct sim_message *message);
bool sim_mistake_create_request(struct ps_control *control, const Perseas__Request *request);
bool sim_mistake_settled(const struct ps_control *control, const Perseas__Reply *reply);
/* For recovery on demand: whether such a mistake is made, or a step left out. An answer is changed
 * before it is read. */
bool sim_mistake_demands(const struct sim_world *w);
struct ps_wanted;
struct ps_fetch_answer;
void sim_mistake_fetched(struct sim_owner *o, enum ps_lane lane, const struct ps_wanted *wanted,
                         struct ps_fetch_answer *fetched);
/* For reads over links: whether such a mistake is made; called when bytes were read, with what was
 * seen of the mirror. */
bool sim_mistake_straight(const struct sim_world *w);
struct ps_fetch_request;
struct ps_direct_read_result;
void sim_mistake_peeked(struct sim_owner *o, const struct ps_fetch_request *fetch,
                        struct ps_direct_read_result *seen);
struct ps_demand;
struct ps_mapping;
/* For granules that memory suffices for only in part: whether such a mistake is made; called when
 * such a granule gets its rest. */
bool sim_mistake_poor(const struct sim_world *w);
void sim_mistake_rest(struct sim_owner *o, struct ps_mapping *mapping, uint64_t offset,
                      const uint8_t *bytes);
void sim_mistake_late(struct sim_owner *o, struct ps_demand *d, unsigned which,
                      const struct ps_fetch_request *missing,
                      const struct ps_fetch_answer *fetched);
/* Called when an answer has arrived: copies its bytes over memory that is here already. */
void sim_mistake_twice(struct sim_owner *o, const struct ps_demand *d, unsigned which,
                       const struct ps_fetch_answer *fetched);
/* The bulk lane fills in its answers itself, some time after it looked for missing granules, which
 * the application may have filled and discarded since. */
void sim_mistake_discarded(struct sim_owner *o, struct ps_demand *d, unsigned which,
                           const struct ps_fetch_answer *fetched);
/* For applications: returns true if the library keeps transactions apart; called when one of them
 * is about to commit. */
bool sim_mistake_apart(const struct sim_world *w);
void sim_mistake_apart_commits(struct sim_owner *o, struct perseas_tx *tx);
/* For heaps: whether such a mistake is made; called when a transaction freed an object, and when it
 * is about to commit. */
bool sim_mistake_heaps(const struct sim_world *w);
void sim_mistake_heap_freed(struct sim_owner *o, struct perseas_tx *tx);
void sim_mistake_heap_commits(struct sim_owner *o, struct perseas_tx *tx);
/* For tracked transactions: whether such a mistake is made; called when a commit was refused and is
 * not tried again. */
bool sim_mistake_tracks(const struct sim_world *w);
void sim_mistake_refused(struct sim_owner *o);
/* owner: at every look at the clock. When a claim was granted. */
void sim_mistake_worn(struct sim_owner *o);
void sim_mistake_restarts(struct ps_control *control, Perseas__ClaimReply *claim);
/* For segments that end, or are compared: whether such a mistake is made; called before and after a
 * mirror handles a request. */
bool sim_mistake_destroys(const struct sim_world *w);
void sim_mistake_before_end(struct ps_control *control, const struct sim_message *message);
void sim_mistake_after_end(struct ps_control *control, const struct sim_message *message);
/* For segments that grow: whether such a mistake is made; called after a mirror handled a request,
 * and where bytes are not sent. */
bool sim_mistake_grows(const struct sim_world *w);
void sim_mistake_after_growth(struct ps_control *control, const struct sim_message *message);
bool sim_mistake_unsent(const struct ps_link *link, const struct ps_chain *chain);
/* Returns true if a mistake of confirmed.c is made. */
bool sim_mistake_confirms(const struct sim_world *w);
/* For confirmed.c: called whenever an owner looks at the clock, and to ask which answers count for
 * the last call. */
void sim_mistake_confirmed(struct sim_owner *o);
/* Return true if a mistake about unawaited commits is made, or about commits that are held back. */
bool sim_mistake_unwaited(const struct sim_world *w);
bool sim_mistake_gathers(const struct sim_world *w);
/* mirror: it stops on purpose, and this is done here (true); before and after it loads spills. */
bool sim_mistake_stops(struct sim_mirror *m);
void sim_mistake_unspill(struct sim_mirror *m);
void sim_mistake_unspilled(struct sim_mirror *m);
/* mirror: it has started. */
void sim_mistake_disguised(struct sim_mirror *m);

#endif
