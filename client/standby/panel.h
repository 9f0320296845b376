/*
 * panel.h - the mirrors of a list, asked at the same time, outside of any claim. A census is taken
 * with it, and the command asks what else it wants to know. It must never claim a store.
 */
#ifndef PERSEAS_CLIENT_PANEL_H
#define PERSEAS_CLIENT_PANEL_H

#include "../core/address.h"
#include "../core/env.h"

struct ps_panel {
	struct ps_env *env;
	uint32_t timeout_ms; /* of one round */
	/* While a round waits: would the answers that are here do? Then the others get ten times
	 * as long as these took, and half a second at least. NULL: all are waited for. */
	bool (*enough)(void *arg, const struct ps_panel *panel);
	void *enough_arg;
	unsigned count;
	unsigned given; /* of these, by the list; the others are as a roster has them */
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_control *controls[PS_MIRRORS_MAX]; /* NULL: of no more use */
	/* The identities of the daemons that answered; all zero: none was told. */
	uint8_t daemons[PS_MIRRORS_MAX][PS_ID_SIZE];
	/* Of the last round; each has the body that was asked for. */
	Perseas__Reply *replies[PS_MIRRORS_MAX];
	/* Why there is no reply: ENOSTORE, EDAMAGED, or another PERSEAS_E… that a mirror's refusal
	 * or the network brought. code 0: not asked, or there is one. */
	struct ps_error errors[PS_MIRRORS_MAX];
};

/* Begins to connect to every mirror of the list, or of the list that is named, over the env, which
 * is the caller's and must outlive the panel. 0, or an error of ps_env_list with *error: then there
 * is nothing to end. */
int ps_panel_begin(struct ps_panel *panel, struct ps_env *env, const char *mirrors,
                   uint32_t timeout_ms, struct ps_error *error);

/* The same with ps_env_list_known, whose *lookup the caller must drop. */
int ps_panel_begin_known(struct ps_panel *panel, struct ps_env *env, const char *mirrors,
                         uint32_t timeout_ms, struct ps_list_lookup **lookup,
                         struct ps_error *error);

/* The identity of the daemon at address `i`; NULL: none was told. */
const uint8_t *ps_panel_daemon(const struct ps_panel *panel, unsigned i);

/* Asks each mirror whose request is not NULL, and waits for all, or for enough of them. What the
 * round before brought is freed. A mirror that failed to answer stays failed. */
void ps_panel_ask(struct ps_panel *panel, const Perseas__Request *const requests[PS_MIRRORS_MAX]);

/* The same request to all. */
void ps_panel_ask_all(struct ps_panel *panel, const Perseas__Request *request);

/*
 * One mirror, with several requests under way: answers come in the order of the requests. False,
 * or NULL: errors[i] says why. A refusal leaves the answers behind it good; a connection that
 * broke (ps_panel_answered says so) has none.
 */
bool ps_panel_send(struct ps_panel *panel, unsigned i, const Perseas__Request *request);
Perseas__Reply *ps_panel_receive(struct ps_panel *panel, unsigned i);

/* Begins to connect anew to a mirror that failed; nothing where it has a connection. */
void ps_panel_connect(struct ps_panel *panel, unsigned i);

/* Forgets one that no list gave. Those behind it move up. Between two rounds only: replies are
 * taken. */
void ps_panel_forget(struct ps_panel *panel, unsigned i);

/* Ends every connection. */
void ps_panel_end(struct ps_panel *panel);

/* Did it answer, be it with a refusal? */
bool ps_panel_answered(const struct ps_panel *panel, unsigned i);

#endif
