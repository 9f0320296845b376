/*
 * unwaited.c - what an application asks about transactions that it did not wait for. application.c
 * calls it between transactions. It believes no answer that the oracle does not know.
 */
#include "work.h"

#include "../../client/core/handle.h"

#include <poll.h>

/* Some transaction of the handle's, or of an owner before. */
static struct sim_node *some_node(struct sim_application *a)
{
	struct sim_node *node = a->at;

	for (uint64_t back = sim_below(a->world, 6); back > 0 && node->parent; back--)
		node = node->parent;
	return node;
}

static int ask_token(struct sim_application *a)
{
	struct sim_node *node = some_node(a);
	const struct perseas_token token = { node->epoch, node->seq };
	const bool own = token.epoch >= a->p->opened_epoch;
	int rc = perseas_wait(a->p, &token, (int64_t)sim_below(a->world, 50));

	if (a->owner->dead)
		return LEAVE;
	sim_trace(a->world, "owner %u: token %s: %s", a->owner->index,
	          sim_state(a->world, token.epoch, token.seq), perseas_error_name(rc));
	if (!rc && own)
		sim_count(a->world, SIM_UNWAITED_HELD, 1);
	if (!rc)
		sim_oracle_acknowledged(a->world, node);
	else if (rc == PERSEAS_EEPOCH && !own)
		sim_count(a->world, SIM_UNWAITED_FOREIGN, 1);
	else if (rc != PERSEAS_ETIMEOUT && rc != PERSEAS_EFENCED)
		return sim_unexpected(a, "wait", rc);
	if (!rc && !own)
		sim_fail(a->world, "owner %u takes a token of another one for its own",
		         a->owner->index);
	return rc == PERSEAS_EFENCED ? LEAVE : GO_ON;
}

/* Checks that the descriptor reports every commit that reached W mirrors since it was last read. */
static int ask_durable(struct sim_application *a)
{
	struct pollfd look = { .events = POLLIN };
	struct sim_node *node = a->at;
	struct perseas_token token;
	bool readable;
	int rc;

	if (a->fd < 0)
		a->fd = perseas_fd(a->p);
	look.fd = a->fd;
	readable = poll(&look, 1, 0) == 1;
	if (!readable && a->p->commit.durable_seq > a->seen)
		sim_fail(a->world, "owner %u is not told of what W hold", a->owner->index);
	rc = perseas_durable(a->p, &token);
	if (a->owner->dead || rc == PERSEAS_EFENCED)
		return LEAVE;
	if (rc)
		return sim_unexpected(a, "durable", rc);
	a->seen = token.seq;
	while (node->parent && node->seq > token.seq)
		node = node->parent;
	if (node->seq == token.seq)
		sim_oracle_acknowledged(a->world, node);
	return GO_ON;
}

int sim_work_ask(struct sim_application *a)
{
	return sim_chance(a->world, 70) ? ask_token(a) : ask_durable(a);
}

void sim_work_closed(struct sim_application *a, int rc)
{
	struct sim_world *w = a->world;

	if (a->owner->dead)
		return;
	if (rc && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		sim_fail(w, "owner %u: close: %s", a->owner->index, perseas_error_name(rc));
	sim_count(w, SIM_UNWAITED_LOST, rc != 0);
	if (rc || !a->unwaited)
		return;
	sim_count(w, SIM_UNWAITED_CLOSED, 1);
	sim_oracle_acknowledged(w, a->unwaited);
}
