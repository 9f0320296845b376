/*
 * open.c - perseas_open, perseas_create and perseas_close (PERSEAS_init; recovery as in PERSEAS
 * section 3, from more than one mirror). It repeats attempts (attempt.h) until one succeeds, fails
 * for good, or the time is up.
 */
#include "open.h"

#include "../keeper/attempt.h"
#include "adopt.h"
#include "../core/serialization.h"
#include "choose.h"
#include "claim.h"
#include "examine.h"
#include "../core/commit.h"
#include "create.h"
#include "named_list.h"
#include "../keeper/keeper.h"
#include "probe.h"
#include "../core/mirror.h"
#include "../core/nowait.h"
#include "../core/quorum.h"
#include "../keeper/rpc.h"
#include "../core/shadow.h"
#include "../demand/warm.h"
#include "../keeper/session.h"
#include "../../proto/base/text.h"
#include "../core/cancel.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void probe_mirrors(struct perseas *p)
{
	ps_probe_mirrors(p);
	ps_attempt_record_step(p, PS_ATTEMPT_PROBED, 0);
}

static bool is_store_absent(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_probe_result *f = &p->mirrors[i].probe;

		if (f->code != PERSEAS_ENOSTORE &&
		    (f->code || f->header->state != PERSEAS__STATE__STATE_CREATING))
			return false;
	}
	return true;
}

/* Notes in p->opening.saw_rivals that a mirror promised another owner at least the epoch that the
 * previous attempt claimed. */
static void note_rival_claims(struct perseas *p)
{
	for (unsigned i = 0; p->epoch && i < p->mirror_count; i++) {
		const Perseas__Header *header = p->mirrors[i].probe.header;

		if (!p->mirrors[i].probe.code && header && header->promised_epoch >= p->epoch &&
		    ps_image_is_of_store(header, p->store_id, p->roster) &&
		    !ps_is_same_owner(header->promised_owner, p->owner))
			p->opening.saw_rivals = true;
	}
}

/* Makes one attempt to open the store, starting with the probe. */
static int attempt_open(struct perseas *p)
{
	static const struct ps_attempt_actions from_mirrors = { ps_probe_judge_answers,
		                                                ps_claim_store, ps_choose_state,
		                                                ps_check_claims_still_held,
		                                                ps_adopt_state };
	int rc;

	probe_mirrors(p);
	note_rival_claims(p);
	if (p->options.flags & PERSEAS_CREATE && is_store_absent(p)) {
		rc = ps_attempt_record_step(p, PS_ATTEMPT_CREATED, ps_create_after_probe(p));
		if (rc)
			return rc;
		probe_mirrors(p);
	}
	return ps_attempt_to_own_store(p, &from_mirrors);
}

/* Makes one attempt to create the store, without opening it. */
static int attempt_create(struct perseas *p)
{
	int rc;

	probe_mirrors(p);
	rc = ps_attempt_record_step(p, PS_ATTEMPT_CREATED, ps_create_after_probe(p));
	ps_attempt_end(p);
	return rc;
}

/* Sets the initial state of every mirror of a handle that is about to be open. */
static void set_initial_mirror_states(struct perseas *p, const struct ps_image_position *chosen)
{
	assert(!p->is_open && p->opening.step == PS_ATTEMPT_OPEN);
	assert(p->is_salvage || ps_quorum_is_w(p, ps_probe_sets(p).adopted_set)); /* I7 */
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		bool good = p->is_salvage ? m->probe.is_claimed && ps_candidate_is_at(m, chosen)
		                          : m->probe.is_adopted;

		ps_mirror_note_position(m, m->probe.position.valid_slot, good ? p->commit.seq : 0);
		if (good && (m->has_vote || p->is_salvage)) {
			ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_LIVE, "");
			continue;
		}
		/* A former member, or an address at which the list expects one. */
		if (!m->has_vote)
			ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_REMOVED,
			                        "the store's roster does not list it");
		else if (m->probe.has_broken_session)
			ps_mirror_move_to_state(
				p, m, PERSEAS_MIRROR_STALE,
				"its session broke while it was mended for the open; it "
				"waits to be brought up to date");
		else if (m->probe.is_claimed)
			ps_mirror_move_to_state(
				p, m, PERSEAS_MIRROR_STALE,
				"it lagged when the store was opened; it waits to be "
				"brought up to date");
		/* The keeper must not claim an image of another store. */
		else if (!m->probe.code)
			ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_LOST,
			                        "it has another store of this name");
		else if (m->probe.code == PERSEAS_ENOSTORE || m->probe.code == PERSEAS_EDAMAGED)
			ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_LOST, m->probe.error.text);
		else
			ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_DOWN, m->probe.error.text);
		/* The keeper connects again to mirrors that are DOWN or STALE. A late answer on the
		 * old connection would keep it awake. */
		ps_mirror_disconnect(p, m);
	}
	ps_ring_drop_all(&p->commit.ring, p->commit.seq + 1);
	ps_mirrors_decide_staging(p);
}

/* A supervisor may start the next owner in the same moment in which the last one died. Mirrors can
 * see the dead owner until its node has closed its connections, so an open does not fail with
 * PERSEAS_EBUSY before BUSY_WAIT_NS has passed. */
#define BUSY_WAIT_NS ps_ms(500)  /* how long a live owner is waited for */
#define BUSY_PAUSE_NS ps_ms(20)  /* pause between attempts while a live owner is seen */
#define CLOSE_WAIT_NS ps_ms(500) /* how long a close waits for mirrors that lag */

static bool pause_while_owner_lives(struct perseas *p, uint64_t since)
{
	uint64_t now = ps_now(p);

	/* A standby opens only after it has seen that there is no owner, so a live owner is a new
	 * one. */
	if (p->opening.is_known_ownerless || now >= since + BUSY_WAIT_NS)
		return false;
	p->env->ops->pause(p->env, PS_COMMITTER, NULL, 0, now + BUSY_PAUSE_NS);
	return true;
}

/* Pauses for a random time, so that one of several processes that claim the same mirrors gets
 * through (I5). */
static void back_off_randomly(struct perseas *p, unsigned tries)
{
	uint64_t bits, most = ps_ms(5) << (tries < 6 ? tries : 6);

	p->env->ops->random(p->env, &bits, sizeof(bits));
	p->env->ops->pause(p->env, PS_COMMITTER, NULL, 0, ps_now(p) + bits % most);
}

static int fail_open_timeout(struct perseas *p)
{
	return ps_fail(p, p->opening.saw_rivals ? PERSEAS_EFENCED : PERSEAS_EUNREACHABLE,
	               "store '%s' could not be opened within %u ms: %s, again and again. What was "
	               "seen:\n%s",
	               p->store, p->options.open_timeout_ms,
	               p->opening.saw_rivals
	                       ? "others claimed it"
	                       : "sessions with mirrors broke, and nobody else claimed it",
	               perseas_report(p));
}

/* Fails with rc, and warns that a claim without an answer may have fenced the previous owner. */
static int fail_with_unanswered_claim(struct perseas *p, int rc)
{
	char text[PS_ERROR_TEXT - 256]; /* leaves room for the advice */

	ps_text_format(text, sizeof(text), "%s", perseas_message(p));
	return ps_fail(p, rc,
	               "%s. A claim that was not answered may have fenced the owner before, or "
	               "still do so: open the store again, with a longer open_timeout_ms (%u ms "
	               "now) where a mirror is busy",
	               text, p->options.open_timeout_ms);
}

/* Marks the mirrors that did not answer the process that started this one, so that the first probe
 * skips them: waiting for them again would keep the store without an owner for as long. An open
 * that fences an owner, or accepts fewer than R, asks all mirrors. */
static void skip_mirrors_that_parent_found_silent(struct perseas *p)
{
	const uint32_t by_force = PERSEAS_TAKEOVER | PERSEAS_SALVAGE | PERSEAS_CANCEL;

	if (p->options.flags & by_force || p->options.accept_epoch)
		return;
	for (unsigned i = 0; i < p->mirror_count; i++)
		p->mirrors[i].was_silent = ps_inherited_is_silent(p->env->told_by_run,
		                                                  p->mirrors[i].address.text,
		                                                  ps_now(p) / 1000000);
}

static bool has_skipped_mirrors(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].probe.was_skipped)
			return true;
	return false;
}

/* Returns true if an attempt that failed with rc skipped silent mirrors and may succeed with them.
 * The next attempt asks them. PERSEAS_EROSTER is not among these codes: the attempt has asked all
 * mirrors, and must not forget a fork that it saw. */
static bool should_ask_skipped_mirrors(const struct perseas *p, int rc)
{
	return has_skipped_mirrors(p) && !p->opening.is_known_ownerless &&
	       (rc == PERSEAS_EQUORUM || rc == PERSEAS_EUNREACHABLE || rc == PERSEAS_ENOSTORE);
}

/* Called after an attempt failed with rc before it claimed a mirror. If the handle's mirrors may
 * differ from those of the named list, returns PS_AGAIN for an attempt with the list's mirrors.
 * Otherwise returns rc, or an error of the list if only the list could tell that no mirror has the
 * store. */
static int try_looked_up_mirrors(struct perseas *p, int rc)
{
	struct ps_error error = { 0 };
	int code;

	if (!p->opening.named_list.lookup || p->epoch || rc == PS_AGAIN || rc == PERSEAS_EBUSY)
		return rc;
	code = ps_mirror_list_await_name_lookup(p, &error);
	if (code && code != PS_AGAIN && rc == PERSEAS_ENOSTORE)
		return ps_fail_error(p, &error);
	return code == PS_AGAIN ? code : rc;
}

static int attempt_open_until_timeout(struct perseas *p)
{
	uint64_t start = ps_now(p);
	int rc;

	p->opening.deadline = start + ps_ms(p->options.open_timeout_ms);
	for (unsigned tries = 0;; tries++) {
		p->report.length = 0;
		rc = attempt_open(p);
		if (should_ask_skipped_mirrors(p, rc))
			continue;
		if (rc == PERSEAS_EBUSY && pause_while_owner_lives(p, start))
			continue;
		if (rc)
			rc = try_looked_up_mirrors(p, rc);
		if (rc != PS_AGAIN)
			break;
		if (ps_now(p) >= p->opening.deadline)
			return fail_open_timeout(p);
		back_off_randomly(p, tries);
	}
	if (rc)
		return rc == PERSEAS_EQUORUM && p->opening.has_unanswered_claim
		               ? fail_with_unanswered_claim(p, rc)
		               : rc;
	p->opening.deadline = 0;
	ps_mirror_list_drop_name_lookup(p);
	p->opened_epoch = p->epoch;
	ps_tokens_set_epoch(p);
	set_initial_mirror_states(p, &p->opening.chosen_position);
	rc = ps_layout_refresh(p);
	if (rc)
		return rc;
	/* The gate lets this thread read from mirrors. The keeper takes care of a mirror that
	 * breaks now. */
	p->is_admin_taken = p->is_gate_raised = p->is_open = true;
	ps_sessions_move_to_up(p);
	ps_warm_prove(p);
	ps_demand_begin(p);
	ps_shadow_begin_tracking(p);
	p->is_admin_taken = p->is_gate_raised = false;
	p->has_keeper = !p->env->ops->spawn(p->env, PS_KEEPER, ps_keeper_run, p);
	if (!p->has_keeper)
		return ps_fail(p, PERSEAS_ESYSTEM,
		               "the thread that watches the mirrors did not start");
	return 0;
}

/* Tells the mirrors that this owner has ended, so that the next open does not have to wait for
 * it. */
static void send_release_to_mirrors(struct perseas *p)
{
	Perseas__ReleaseRequest ask = PERSEAS__RELEASE_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(release, RELEASE, &ask);
	struct ps_round round;

	memset(round.errors, 0, sizeof(round.errors));
	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		round.requests[i] = &request;
		round.is_asked[i] = i < p->mirror_count && p->mirrors[i].control;
		/* A release promises that this process no longer maps the mirror's memory. */
		ps_link_end(p, &p->mirrors[i]);
	}
	pthread_mutex_unlock(&p->lock);
	ps_round_run(p, &round, ps_now(p) + ps_ms(p->options.connect_timeout_ms) / 3);
	ps_round_free(&round);
}

static bool have_mirrors_caught_up(struct perseas *p)
{
	bool all = true;

	ps_mirrors_poll(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active && (m->chains_in_flight || m->posted_seq < p->commit.seq))
			all = false;
	}
	return all;
}

/* Waits a moment until all mirrors have every commit. W of them have it already; if the others do
 * too, the next open has nothing to mend. */
static void await_lagging_mirrors(struct perseas *p)
{
	uint64_t until = ps_now(p) + CLOSE_WAIT_NS;

	pthread_mutex_lock(&p->lock);
	while (!have_mirrors_caught_up(p) && ps_now(p) < until)
		ps_commit_sleep_on_links(p, until);
	pthread_mutex_unlock(&p->lock);
}

/* Waits for commits that nobody has waited for. Returns 0, or the error that perseas_close
 * returns. */
static int await_unwaited_commits(struct perseas *p)
{
	char text[PS_ERROR_TEXT];
	int rc;

	if (!p->is_open || p->is_salvage)
		return 0;
	rc = ps_unwaited_await_all(p);
	if (rc) {
		/* Keep the message: the handle is about to be freed. */
		ps_text_format(text, sizeof(text), "%s", perseas_message(p));
		ps_fail(NULL, rc, "%s", text);
	}
	await_lagging_mirrors(p);
	return rc;
}

static int close_handle(struct perseas *p)
{
	const int rc = await_unwaited_commits(p);

	ps_collector_end(p);
	if (p->has_keeper) {
		pthread_mutex_lock(&p->lock);
		p->is_stopping = true;
		pthread_mutex_unlock(&p->lock);
		p->env->ops->wake(p->env, PS_KEEPER);
		p->env->ops->join(p->env, PS_KEEPER);
		p->has_keeper = false;
	}
	ps_attempt_end(p);
	ps_demand_end(p);
	ps_warm_free(p->warm_copy);
	p->warm_copy = NULL;
	ps_sessions_close(p);
	send_release_to_mirrors(p);
	for (unsigned i = 0; i < p->mirror_count; i++)
		ps_mirror_disconnect(p, &p->mirrors[i]);
	ps_handle_free(p);
	return rc;
}

int perseas_close(perseas_t *p)
{
	PS_UNCANCELLED;
	/* In a child of fork, closing would end the parent's sessions. */
	const int rc = p ? ps_check_same_process(p) : 0;

	return p && !rc ? close_handle(p) : rc;
}

int ps_open(struct ps_env *env, const char *store, const char *mirrors,
            const struct perseas_options *options, perseas_t **out, struct ps_error *error)
{
	struct perseas *p = ps_handle_new(env, store, mirrors, options, error);

	*out = NULL;
	if (!p)
		return error->code;
	skip_mirrors_that_parent_found_silent(p);
	return ps_open_handle(p, out, error);
}

int ps_open_handle(struct perseas *p, perseas_t **out, struct ps_error *error)
{
	int rc;

	p->is_salvage = (p->options.flags & PERSEAS_SALVAGE) != 0;
	rc = attempt_open_until_timeout(p);
	if (rc) {
		ps_error_set(error, rc, "%s", perseas_message(p));
		close_handle(p);
		return rc;
	}
	*out = p;
	return 0;
}

int ps_open_abort(struct perseas *p, int rc, struct ps_error *error)
{
	if (rc)
		ps_error_set(error, rc, "%s", perseas_message(p));
	for (unsigned i = 0; i < p->mirror_count; i++)
		ps_mirror_disconnect(p, &p->mirrors[i]);
	ps_handle_free(p);
	return rc;
}

/* Creates the store. Backs off while other processes create the same store at the same time. */
static int attempt_create_until_timeout(struct perseas *p)
{
	uint64_t start = ps_now(p);

	for (unsigned tries = 0;; tries++) {
		int rc = attempt_create(p);

		if (rc != PS_AGAIN)
			return rc;
		if (ps_now(p) >= start + ps_ms(p->options.open_timeout_ms))
			return ps_fail(p, PERSEAS_EEXIST,
			               "others create store '%s' at the same time, again and "
			               "again: see what they made, or try again. What was "
			               "seen:\n%s",
			               p->store, perseas_report(p));
		back_off_randomly(p, tries);
	}
}

int ps_create(struct ps_env *env, const char *store, const char *mirrors,
              const struct perseas_options *options, struct ps_error *error)
{
	struct perseas *p = ps_handle_new(env, store, mirrors, options, error);

	if (!p)
		return error->code;
	return ps_open_abort(p, attempt_create_until_timeout(p), error);
}

int ps_open_filling(struct ps_env *env, const char *store, const char *mirrors,
                    const struct perseas_options *options, uint8_t store_id[PS_ID_SIZE],
                    perseas_t **out, struct ps_error *error)
{
	struct perseas *p = ps_handle_new(env, store, mirrors, options, error);
	int rc;

	*out = NULL;
	memset(store_id, 0, PS_ID_SIZE);
	if (!p)
		return error->code;
	p->fills_new_store = true;
	rc = attempt_create_until_timeout(p);
	if (rc) {
		ps_error_set(error, rc, "%s", perseas_message(p));
		close_handle(p);
		return rc;
	}
	memcpy(store_id, p->store_id, PS_ID_SIZE);
	return ps_open_handle(p, out, error);
}

int perseas_open(const char *store, const char *mirrors, const struct perseas_options *options,
                 perseas_t **p)
{
	PS_UNCANCELLED;
	struct ps_error error = { 0 };
	struct ps_env *env;
	int rc;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "open needs a place for the handle");
	*p = NULL;
	env = ps_env_posix(options, &error);
	rc = env ? ps_open(env, store, mirrors, options, p, &error) : error.code;
	return rc ? ps_fail_error(NULL, &error) : 0;
}

int perseas_create(const char *store, const char *mirrors, const struct perseas_options *options)
{
	PS_UNCANCELLED;
	struct ps_error error = { 0 };
	struct ps_env *env = ps_env_posix(options, &error);
	int rc = env ? ps_create(env, store, mirrors, options, &error) : error.code;

	return rc ? ps_fail_error(NULL, &error) : 0;
}
