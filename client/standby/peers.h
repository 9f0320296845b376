/*
 * peers.h - connections to the mirrors of a list, which are asked in parallel and without a claim.
 * struct ps_images is taken over them, and the command asks other questions. They must never claim
 * a store.
 */
#ifndef PERSEAS_CLIENT_PEERS_H
#define PERSEAS_CLIENT_PEERS_H

#include "../core/address.h"
#include "../core/env.h"

struct ps_peers {
	struct ps_env *env;
	uint32_t timeout_ms; /* time limit of one round of requests */
	/* Returns true if the answers so far suffice. The other peers then get ten times as long as
	 * these took, but at least half a second. NULL: a round waits for all peers. */
	bool (*enough)(void *arg, const struct ps_peers *peers);
	void *enough_arg;
	unsigned count;
	/* Peers that the list names. Those behind them were added from rosters. */
	unsigned listed_count;
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_control *controls[PS_MIRRORS_MAX]; /* NULL: the connection failed */
	/* The identities of the daemons that answered; all zero: the daemon reported none. */
	uint8_t daemons[PS_MIRRORS_MAX][PS_ID_SIZE];
	/* The answers of the last round; each has the body for its request. */
	Perseas__Reply *replies[PS_MIRRORS_MAX];
	/* Why a peer did not answer: PERSEAS_ENOSTORE, PERSEAS_EDAMAGED, or another code of a
	 * refusal or of the network. code 0: the peer answered, or was not asked. */
	struct ps_error errors[PS_MIRRORS_MAX];
};

/* Begins to connect to every mirror of the list, which may be given by its name. The caller owns
 * the env, which must outlive the peers. Returns 0, or an error of ps_env_resolve_list with *error,
 * after which there is nothing to end. */
int ps_peers_begin(struct ps_peers *peers, struct ps_env *env, const char *mirrors,
                   uint32_t timeout_ms, struct ps_error *error);

/* Does the same with ps_env_resolve_list_quickly. The caller must drop *lookup. */
int ps_peers_begin_known(struct ps_peers *peers, struct ps_env *env, const char *mirrors,
                         uint32_t timeout_ms, struct ps_list_lookup **lookup,
                         struct ps_error *error);

/* Returns the identity of the daemon at address `i`, or NULL if it told none. */
const uint8_t *ps_peers_daemon_id(const struct ps_peers *peers, unsigned i);

/* Asks each peer whose request is not NULL, and waits for all answers, or for enough of them. Frees
 * the replies of the round before. A peer that failed to answer is not asked again before
 * ps_peers_connect. */
void ps_peers_ask(struct ps_peers *peers, const Perseas__Request *const requests[PS_MIRRORS_MAX]);

/* Sends the same request to all peers. */
void ps_peers_ask_all(struct ps_peers *peers, const Perseas__Request *request);

/*
 * Ask one peer, with several requests in flight: answers come in the order of the requests. If they
 * return false or NULL, errors[i] says why. After a refusal the next answers are good; after a
 * connection that broke (ps_peers_answered returns false) there are none.
 */
bool ps_peers_send(struct ps_peers *peers, unsigned i, const Perseas__Request *request);
Perseas__Reply *ps_peers_receive(struct ps_peers *peers, unsigned i);

/* Begins to connect again to a peer that failed. Does nothing if the peer has a connection. */
void ps_peers_connect(struct ps_peers *peers, unsigned i);

/* Removes a peer that the list does not name; later peers move up. The caller must be between two
 * rounds, and have taken the replies. */
void ps_peers_remove(struct ps_peers *peers, unsigned i);

/* Ends every connection. */
void ps_peers_end(struct ps_peers *peers);

/* Returns true if the peer answered, even with a refusal. */
bool ps_peers_answered(const struct ps_peers *peers, unsigned i);

#endif
