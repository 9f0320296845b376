/*
 * token_wait.c - the calls by which an application learns how far W mirrors are: perseas_wait,
 * perseas_posted, perseas_durable and perseas_fd. Of commits it knows only what nowait.h declares.
 */
#include "commit.h"
#include "flag_fd.h"
#include "gather.h"
#include "mirror.h"
#include "nowait.h"
#include "cancel.h"

static int await_token(struct perseas *p, uint64_t seq, int64_t timeout_ms)
{
	const uint64_t start = ps_now(p), most = (PS_NEVER - start) / 1000000;
	const struct ps_wait_limits rest = {
		.seq = seq,
		.spin_until = start + (uint64_t)p->options.spin_us * 1000,
		.give_up_at = timeout_ms < 0 || (uint64_t)timeout_ms >= most
		                      ? PS_NEVER
		                      : start + ps_ms((uint64_t)timeout_ms),
	};
	bool late = false;

	if (seq > p->commit.seq)
		ps_gather_send_if_any(p);
	while (p->commit.durable_seq < seq) {
		const bool looks = late || ps_commit_should_poll(p);
		uint64_t now;

		if (looks)
			ps_wait_line_poll(p);
		if (ps_update_durable_seq(p) >= seq)
			break;
		if (ps_is_fenced(p))
			return ps_fail_fenced(p);
		now = ps_now(p);
		late = now >= rest.give_up_at;
		if (!late) {
			ps_commit_wait_once(p, &rest, now);
		} else if (looks) {
			ps_fail_in_doubt(p, seq);
			return PERSEAS_ETIMEOUT;
		}
	}
	return 0;
}

int perseas_wait(perseas_t *p, const struct perseas_token *token, int64_t timeout_ms)
{
	int rc;

	if (!p || !token)
		return ps_fail(p, PERSEAS_EINVAL, "wait needs a handle and a token");
	pthread_mutex_lock(&p->lock);
	rc = p->is_salvage ? ps_check_may_transact(p) : ps_token_check(p, token);
	if (!rc) {
		rc = await_token(p, token->seq, timeout_ms);
		ps_wait_line_leave(p);
	}
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int perseas_posted(perseas_t *p, struct perseas_token *token)
{
	if (!p || !token)
		return ps_fail(p, PERSEAS_EINVAL,
		               "posted needs a handle and a place for the token");
	pthread_mutex_lock(&p->lock);
	*token = ps_last_token(p);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

int perseas_durable(perseas_t *p, struct perseas_token *token)
{
	PS_UNCANCELLED;
	struct ps_unwaited *u;
	int rc = 0;

	if (!p || !token)
		return ps_fail(p, PERSEAS_EINVAL,
		               "durable needs a handle and a place for the token");
	u = &p->commit.unwaited;
	pthread_mutex_lock(&p->lock);
	if (!p->is_salvage)
		ps_mirrors_poll(p);
	*token = (struct perseas_token){ u->token_epoch,
		                         p->is_salvage ? p->commit.seq : ps_update_durable_seq(p) };
	if (ps_is_fenced(p)) {
		/* The flag stays raised, so that the descriptor stays readable: nothing is left to
		 * wait for. */
		rc = ps_fail_fenced(p);
	} else {
		/* The flag is raised under the lock only, so no change is missed here. */
		if (u->flag_fd >= 0 && u->is_flag_raised)
			ps_flag_fd_lower(u->flag_fd);
		u->is_flag_raised = false;
	}
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int perseas_fd(perseas_t *p)
{
	PS_UNCANCELLED;
	struct ps_error error = { 0 };
	struct ps_unwaited *u;
	int rc;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	u = &p->commit.unwaited;
	pthread_mutex_lock(&p->lock);
	rc = ps_collector_start(p);
	if (!rc && u->flag_fd < 0) {
		rc = ps_flag_fd_new(&error);
		u->flag_fd = rc;
		/* ps_unwaited_raise_flag raises the flag below, so that the application looks once
		 * at what happened before. It raises only a flag that is not noted as raised. */
		u->is_flag_raised = false;
		if (rc >= 0)
			ps_unwaited_raise_flag(p);
		u->updates_durable_seq_at_completions = u->last_unawaited_seq || rc >= 0;
	}
	rc = rc < 0 ? rc : u->flag_fd;
	if (error.code)
		rc = ps_fail_error(p, &error);
	pthread_mutex_unlock(&p->lock);
	if (rc >= 0)
		p->env->ops->wake(p->env, PS_COLLECTOR);
	return rc;
}
