/*
 * panel.h - the mirrors of a list, asked at the same time, outside of any claim.
 */
#ifndef PERSEAS_COMMAND_PANEL_H
#define PERSEAS_COMMAND_PANEL_H

#include "../ui/ui.h"
#include "../../core/address.h"
#include "../../core/env.h"

struct ps_panel {
	struct ps_env *env;
	uint32_t timeout_ms; /* of one round */
	unsigned count;
	unsigned given; /* of these, by the list; the others are as a roster has them */
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_control *controls[PS_MIRRORS_MAX]; /* NULL: of no more use */
	/* Of the last round; each has the body that was asked for. */
	Perseas__Reply *replies[PS_MIRRORS_MAX];
	/* Why there is no reply: ENOSTORE, EDAMAGED, or another PERSEAS_E… that a mirror's refusal
	 * or the network brought. code 0: not asked, or there is one. */
	struct ps_error errors[PS_MIRRORS_MAX];
};

/* Begins to connect to every mirror of the list, by the options' certificates and within their
 * connect_timeout_ms. After an error, which is complained about, there is nothing to close. */
enum ps_exit ps_panel_open(struct ps_panel *panel, const char *mirrors,
                           const struct perseas_options *options);

/* The same, of one mirror: a list of several is refused. */
enum ps_exit ps_panel_open_one(struct ps_panel *panel, const char *mirror,
                               const struct perseas_options *options);

/* Asks each mirror whose request is not NULL, and waits for all. What the round before brought is
 * freed. A mirror that failed to answer stays failed. */
void ps_panel_ask(struct ps_panel *panel, const Perseas__Request *const requests[PS_MIRRORS_MAX]);

/* The same request to all. */
void ps_panel_ask_all(struct ps_panel *panel, const Perseas__Request *request);

/* What a mirror is, and which stores it has. */
const Perseas__Request *ps_panel_list_request(void);

/* Complains with errors[i]. */
enum ps_exit ps_panel_failed(const struct ps_panel *panel, unsigned i);

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

void ps_panel_close(struct ps_panel *panel);

/* Did it answer, be it with a refusal? */
bool ps_panel_answered(const struct ps_panel *panel, unsigned i);

/* Why there is no reply, in a word or two for a table; errors[i] has the sentence. */
const char *ps_panel_absence(const struct ps_panel *panel, unsigned i);

#endif
