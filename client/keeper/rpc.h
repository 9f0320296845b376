/*
 * rpc.h - sends control requests to one mirror or to several at the same time, and attaches the
 * data path that a grant describes. Callers hold admin and not p->lock. A request sleeps until its
 * answer has come, or until the time that the caller names.
 */
#ifndef PERSEAS_CLIENT_RPC_H
#define PERSEAS_CLIENT_RPC_H

#include "../core/handle.h"

/* Sends one request to mirror `m`, and waits for its answer. Returns 0 if the answer's status is
 * OK, else a code with *error set. The caller frees *reply. Descriptors that come with a grant go
 * into fds[], which the caller owns; if fds is NULL they are closed. */
int ps_ask_mirror_and_wait(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                           uint64_t until_ns, Perseas__Reply **reply, int *fds,
                           struct ps_error *error);

/* Waits for the answer to the oldest request that was sent to mirror `m` by a caller that waits.
 * Earlier answers that no caller waits for (pending_answers.h) are taken first. Returns as
 * ps_ask_mirror_and_wait does. */
int ps_await_answer(struct perseas *p, struct ps_mirror *m, uint64_t until_ns,
                    Perseas__Reply **reply, int *fds, struct ps_error *error);

/* A round sends a request to each of several mirrors at the same time: to mirror i if is_asked[i].
 * replies[i] is NULL for a mirror that was not asked, and for one that failed, which has errors[i]
 * set. */
struct ps_round {
	bool is_asked[PS_MIRRORS_MAX]; /* the caller zeroes this, `requests` and `errors` first */
	const Perseas__Request *requests[PS_MIRRORS_MAX];
	Perseas__Reply *replies[PS_MIRRORS_MAX];
	struct ps_error errors[PS_MIRRORS_MAX];
	int fds[PS_MIRRORS_MAX]
	       [PS_REGIONS_MAX];   /* descriptors that came with each grant; -1: none */
	uint64_t sent_at;          /* when the requests were sent */
	uint32_t answered_mirrors; /* mirrors whose answers ps_round_await has taken, a bit each */
};

/* Sends the requests of a round, and waits until until_ns for the answers. */
void ps_round_run(struct perseas *p, struct ps_round *round, uint64_t until_ns);

/* The steps of a round, for claims: a mirror that granted its claim must hear from this owner while
 * other mirrors still work on theirs. ps_round_await takes answers as they come, returns the set of
 * mirrors that have answered as soon as all have, or at until_ns, and gives up on none of them.
 * `extends_on_progress`: signs of progress extend the wait. ps_round_receive waits for the
 * remaining answers and fails the mirrors that do not send theirs. */
void ps_round_send(struct perseas *p, struct ps_round *round);
uint32_t ps_round_await(struct perseas *p, struct ps_round *round, uint64_t until_ns,
                        bool extends_on_progress);
void ps_round_receive(struct perseas *p, struct ps_round *round, uint64_t until_ns);

/* Asks each mirror of `set` for its status of the store, and connects to those that are not
 * connected. Sets up all of *round. `to_open`: a mirror whose address asks for RDMA, and that
 * offers none, counts as refusing. */
void ps_round_ask_status(struct perseas *p, uint32_t set, bool to_open, struct ps_round *round,
                         uint64_t until_ns);

/* Frees the replies of a round, and closes the descriptors that no caller took. */
void ps_round_free(struct ps_round *round);

/* Sends the same request to each mirror of `set`, and drops the answers. Returns the mirrors that
 * granted it. */
uint32_t ps_ask_mirrors_and_wait(struct perseas *p, uint32_t set, const Perseas__Request *request);

/* Asks each mirror of `set` whether this owner's claim stands. Returns the mirrors that confirm
 * it. */
uint32_t ps_await_claim_confirmations(struct perseas *p, uint32_t set);

/* Returns the deadline of the answer to a request that is sent at this moment. */
static inline uint64_t ps_answer_deadline(struct perseas *p)
{
	return ps_now(p) + ps_ms(p->options.connect_timeout_ms);
}

/* Returns when to give up on an answer of mirror `m` whose deadline is until_ns: each sign of
 * progress extends the deadline by the same time again. */
uint64_t ps_answer_extended_deadline(const struct perseas *p, const struct ps_mirror *m,
                                     uint64_t until_ns);

/* Fills in a request that claims the store on mirror `m`. The request points into *claim, the
 * handle and the mirror. It names the daemon and the image that this connection told of. The claim
 * of an open handle says that the handle has ended its data path to the mirror (quiesced), and
 * never fences a living owner, even if the handle was opened by a takeover. */
void ps_claim_fill_request(struct perseas *p, struct ps_mirror *m, Perseas__ClaimRequest *claim,
                           Perseas__Request *request);

/* Returns true if a claim asks mirror `m` for keys to its memory, which RDMA needs. */
bool ps_claim_wants_rdma(const struct perseas *p, const struct ps_mirror *m);

/* Attaches the data path of a grant over the best fabric that works, and waits until it is up.
 * Returns 0 or an error code. */
int ps_mirror_attach(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                     const int *fds, struct ps_error *error);

/* Begins to attach the data path of a grant, without waiting if the fabric can. Returns 0 with
 * m->link set, or an error code. */
int ps_attach_begin(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                    const int *fds, struct ps_error *error);

/* Continues an attachment that ps_attach_begin began. Returns 1 if the data path is up, or 0 if it
 * is not up yet: m->link says what to poll, and m->attaching.deadline when it times out. Returns an
 * error code if it failed, and the link is gone. */
int ps_attach_continue(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                       struct ps_error *error);

/* Gives the link the regions of a newer grant. Returns 0 or an error code. */
int ps_mirror_regrant(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                      const int *fds, struct ps_error *error);

#endif
