/*
 * runner.c - see runner.h.
 *
 *     SEEKING --found--> STANDBY --no owner, its turn--> RUNNING --fenced--> ENDING
 *                           ^                               |                  |
 *                           +------------lost it------------+------------------+
 *                           +--after a while-- RESTING <----+ failed
 *
 * A COMMAND that must hand the store over is in state ENDING, too.
 *
 * One function waits for all events: a signal, news of the store, the end of a time limit. Each
 * state has one function that handles them. A look takes up to a mirror's time limit.
 */
#include "runner.h"

#include "../../../proto/base/notify.h"
#include "../../../proto/control/envelope.h"
#include "../../host/secure.h"
#include "../../standby/turn.h"
#include "../../standby/warmth.h"
#include "../ask/standbys.h"
#include "child.h"
#include "copy_told.h"
#include "tell_command.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define MS_NS ((uint64_t)1000000)

enum {
	REST_MS = 100,       /* rest before the first restart, doubled before each further one */
	REST_MAX_MS = 10000, /* longest rest */
	STEADY_MS = 60000,   /* COMMAND's restarts count from zero after running this long */
	STATUS_TEXT = PS_SENTENCE + 128,
	NO_EXIT = -1, /* perseas run goes on: returned instead of an exit status */
};

enum state { SEEKING, STANDBY, RUNNING, ENDING, RESTING, STATES };

#define TO(state) (1u << (state))

/* The states that may follow each state. */
static const unsigned moves[STATES] = {
	[SEEKING] = TO(STANDBY),
	[STANDBY] = TO(RUNNING),
	[RUNNING] = TO(ENDING) | TO(STANDBY) | TO(RESTING),
	[ENDING] = TO(STANDBY),
	[RESTING] = TO(STANDBY),
};

struct runner {
	const struct ps_run *run;
	struct ps_env *env;
	struct ps_follow follow;
	struct ps_follow_result now; /* result of the last look */
	struct ps_turn turn;
	struct ps_child child;
	struct ps_warm_thread *warmth; /* keeps a copy for COMMAND, or is ending; NULL: none */
	bool copy_taken;               /* COMMAND got the copy of `warmth` */
	struct ps_warm_copy_report copy_report;
	enum state state;
	uint64_t since_ns;   /* when this state began */
	uint64_t until_ns;   /* when this state must act without news; PS_NEVER: it need not */
	bool told_to_end;    /* a signal said that perseas run must end */
	bool owned;          /* since COMMAND was started, it was seen to own the store */
	bool killed;         /* in ENDING: SIGKILL was sent */
	bool can_named_open; /* a handover names a standby that at least R mirrors know */
	uint32_t command_failure_count; /* failures of COMMAND in succession */
	uint64_t own_epoch;             /* epoch of COMMAND's last owner */
	uint64_t open_epoch; /* epoch of the last owner of any host that had the store open */
	uint8_t mark[PS_OWNER_MARK];
	sigset_t signals;
	int signal_fd;
	char last[STATUS_TEXT]; /* the text that was reported last */
};

/* Reports the text to people and to the service manager, once. */
static void report_state_text(struct runner *r, const char *text)
{
	char status[STATUS_TEXT + 16];

	if (strcmp(text, r->last) == 0)
		return;
	snprintf(r->last, sizeof(r->last), "%s", text);
	ps_complain(PS_EXIT_OK, "store '%s': %s", r->run->store, text);
	snprintf(status, sizeof(status), "STATUS=%s", text);
	ps_notify_service_manager(status);
	ps_warm_copy_report_mark_unsent(&r->copy_report);
}

static void report_state_with_look(struct runner *r, const char *before)
{
	char text[STATUS_TEXT];

	snprintf(text, sizeof(text), "%s: %s", before, r->now.text);
	report_state_text(r, text);
}

/* Moves to another state. for_ms: time until the state must act even without news; 0: no limit. */
static void enter_state(struct runner *r, enum state state, uint64_t for_ms)
{
	assert(moves[r->state] & TO(state));
	assert((r->child.pid > 0) == (state == RUNNING || state == ENDING));
	r->state = state;
	r->since_ns = ps_follow_now_ns(&r->follow);
	r->until_ns = for_ms ? r->since_ns + for_ms * MS_NS : PS_NEVER;
	r->killed = false;
}

/* --- what became of COMMAND --- */

static uint64_t restart_delay_ms(const struct runner *r)
{
	uint64_t ms = REST_MS;

	for (uint32_t i = 1; i < r->command_failure_count && ms < REST_MAX_MS; i++)
		ms *= 2;
	return ms < REST_MAX_MS ? ms : REST_MAX_MS;
}

/* Handles an end of COMMAND that no other owner caused. Returns NO_EXIT, to restart COMMAND after a
 * rest, or an exit status. */
static int handle_command_failure(struct runner *r, int status)
{
	char text[STATUS_TEXT];

	if (ps_follow_now_ns(&r->follow) - r->since_ns >= STEADY_MS * MS_NS)
		r->command_failure_count = 0;
	/* COMMAND cannot work without its mirrors, so this is no failure of its own. */
	if (r->now.ownership == PS_OWNER_UNKNOWN) {
		enter_state(r, RESTING, restart_delay_ms(r));
		return NO_EXIT;
	}
	if (r->command_failure_count == r->run->restarts) {
		ps_complain(PS_EXIT_OK, "COMMAND ended with status %d, and is not restarted",
		            status);
		return status;
	}
	r->command_failure_count++;
	snprintf(text, sizeof(text), "COMMAND ended with status %d; it may be restarted in %llu ms",
	         status, (unsigned long long)restart_delay_ms(r));
	report_state_text(r, text);
	enter_state(r, RESTING, restart_delay_ms(r));
	return NO_EXIT;
}

/* Returns true if the last look shows that another owner has had the store since COMMAND had it.
 * That owner may have ended. */
static bool had_another_owner(const struct runner *r)
{
	return (r->now.ownership == PS_OWNER_LIVES && !r->now.is_ours) ||
	       (r->owned && r->open_epoch > r->own_epoch);
}

/* Reports the end of a COMMAND that lost the store before this runner saw that. */
static void report_unseen_loss(const struct runner *r, int status)
{
	ps_complain(PS_EXIT_OK,
	            "store '%s': COMMAND ended with status %d after another owner had the store%s: "
	            "%s",
	            r->run->store, status, status ? "" : ", and is not started again", r->now.text);
}

/* Handles the end of COMMAND. Returns NO_EXIT or an exit status. */
static int handle_command_end(struct runner *r, int status)
{
	const bool is_ended_by_run = r->state == ENDING;
	bool is_lost_unseen;

	if (r->told_to_end || (status == 0 && !is_ended_by_run && !r->owned))
		return status;
	ps_follow_look_at_store(&r->follow, &r->now);
	is_lost_unseen = !is_ended_by_run && had_another_owner(r);
	if (is_lost_unseen)
		report_unseen_loss(r, status);
	/* COMMAND says that it is done. It may have closed the store, and another owner came. */
	if (status == 0 && !is_ended_by_run)
		return status;
	if (is_ended_by_run || is_lost_unseen) {
		r->command_failure_count = 0;
		enter_state(r, STANDBY, 0);
		report_state_with_look(r, "standby");
		/* Looks again at once: if the store has no owner already, no mirror will report
		 * that as news. */
		r->until_ns = r->since_ns;
		return NO_EXIT;
	}
	return handle_command_failure(r, status);
}

/* --- signals --- */

static bool is_end_signal(int signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGQUIT;
}

/* Returns true if the terminal sent the signal, so that COMMAND got it, too. A hang-up goes to the
 * session's leader only. */
static bool is_sent_by_terminal(const struct signalfd_siginfo *info)
{
	return info->ssi_code == SI_KERNEL && info->ssi_signo != SIGHUP;
}

static int handle_signal(struct runner *r, const struct signalfd_siginfo *info)
{
	const int signal = (int)info->ssi_signo;
	int status;

	if (signal == SIGCHLD)
		return ps_child_reap(&r->child, &status) ? handle_command_end(r, status) : NO_EXIT;
	if (is_end_signal(signal)) {
		if (!r->told_to_end)
			ps_notify_service_manager("STOPPING=1");
		r->told_to_end = true;
	}
	if (r->child.pid == 0)
		return r->told_to_end ? PS_RUN_STOPPED : NO_EXIT;
	if (!is_sent_by_terminal(info))
		ps_child_signal(&r->child, signal);
	return NO_EXIT;
}

static int handle_pending_signals(struct runner *r)
{
	struct signalfd_siginfo info;
	int status = NO_EXIT;

	while (status == NO_EXIT && read(r->signal_fd, &info, sizeof(info)) == sizeof(info))
		status = handle_signal(r, &info);
	return status;
}

static bool catch_signals(struct runner *r)
{
	static const int caught[] = { SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 };

	sigemptyset(&r->signals);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaddset(&r->signals, caught[i]);
	/* A process that ignores SIGCHLD is not told that its children end. */
	signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_BLOCK, &r->signals, NULL) == 0)
		r->signal_fd = signalfd(-1, &r->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signal_fd >= 0)
		return true;
	ps_complain(PS_EXIT_FAILURE, "no signals can be waited for: %s", strerror(errno));
	return false;
}

/* --- acting on a look, by state --- */

static int act_while_seeking(struct runner *r)
{
	if (r->now.has_no_image)
		return PS_RUN_NO_STORE;
	if (r->now.is_found) {
		ps_notify_service_manager("READY=1");
		enter_state(r, STANDBY, 0);
		return NO_EXIT;
	}
	if (ps_follow_now_ns(&r->follow) < r->until_ns) {
		report_state_with_look(r, "waits for its mirrors");
		return NO_EXIT;
	}
	ps_complain(PS_EXIT_OK,
	            "%s; see whether the mirrors run, and whether the list is right, or wait "
	            "longer (--patience)",
	            r->now.text);
	return PS_RUN_UNREACHED;
}

/* Returns the copy for COMMAND to inherit, or NULL if there is none. */
static struct ps_warm_copy *take_warm_copy(struct runner *r)
{
	struct ps_warm_copy *copy = r->warmth && !r->copy_taken ? ps_warm_thread_take(r->warmth)
	                                                        : NULL;

	r->copy_taken = true;
	if (copy && ps_warm_hand_on(copy)) {
		ps_warm_free(copy);
		copy = NULL;
	}
	return copy;
}

static int start_child(struct runner *r)
{
	struct ps_warm_copy *copy = take_warm_copy(r);
	const int warm_fd = copy ? copy->fd : -1;
	int status;

	ps_set_inherited_variable(&r->follow, warm_fd);
	status = ps_child_start(&r->child, r->run->command, &r->signals, warm_fd);
	ps_warm_free(copy);
	return status;
}

static int start_command(struct runner *r)
{
	/* A look can take seconds, so signals that came meanwhile are taken first. */
	int status = handle_pending_signals(r);

	if (status != NO_EXIT)
		return status;
	status = start_child(r);
	if (status)
		return status;
	r->owned = false;
	enter_state(r, RUNNING, 0);
	report_state_text(r, "COMMAND runs");
	return NO_EXIT;
}

static bool is_named_by_handover(const struct runner *r)
{
	return r->now.handover.exists && !memcmp(r->now.handover.to, r->mark, PS_OWNER_MARK);
}

/* Returns true if this standby may take over now. The standby that a handover names goes at once;
 * of the others, those with lower orders go first. */
static bool may_take_over_now(struct runner *r)
{
	const uint64_t now_ns = ps_follow_now_ns(&r->follow);

	if (ps_turn_must_yield(&r->turn, &r->now, r->mark, now_ns, &r->until_ns))
		return false;
	return ps_turn_is_named(&r->turn, &r->now, r->mark, now_ns) ||
	       ps_turn_is_due(&r->turn, r->now.ownership, now_ns, &r->until_ns);
}

static int act_as_standby(struct runner *r)
{
	if (r->now.has_no_image)
		return PS_RUN_NO_STORE;
	report_state_with_look(r, "standby");
	/* With another owner, earlier failures of COMMAND say nothing about its next start. */
	if (r->now.ownership == PS_OWNER_LIVES && !r->now.is_ours)
		r->command_failure_count = 0;
	/* An open_epoch above own_epoch shows another owner that had the store open. A live owner
	 * alone does not: it may be this runner's own, whose end a mirror has not seen, or one that
	 * claims and never opens. */
	if (r->open_epoch > r->own_epoch)
		r->turn.order = r->run->order;
	if (!may_take_over_now(r))
		return NO_EXIT;
	ps_turn_reset(&r->turn);
	return start_command(r);
}

/* Ends COMMAND, to leave the store to the standby that a handover names. Afterwards this standby
 * comes last until another owner has come. */
static void end_command_for_handover(struct runner *r)
{
	char text[STATUS_TEXT];

	snprintf(text, sizeof(text), "COMMAND is ended, to hand the store over to %s",
	         r->now.handover.name);
	report_state_text(r, text);
	r->turn.order = r->now.last_order + 1;
	ps_child_signal(&r->child, SIGTERM);
	enter_state(r, ENDING, r->run->stop_ms);
}

static void end_command_if_due(struct runner *r)
{
	if (r->now.is_ours)
		report_state_text(r, "COMMAND runs, and owns the store");
	r->owned |= r->now.is_ours;
	/* COMMAND is only ended for a standby that can open the store. */
	if (r->now.is_ours && !r->now.is_fenced && r->can_named_open && !is_named_by_handover(r)) {
		end_command_for_handover(r);
		return;
	}
	/* A COMMAND that was never seen as the owner learns by its open that it was fenced. */
	if (!r->owned || !r->now.is_fenced)
		return;
	report_state_with_look(r, "COMMAND was fenced, and is ended");
	ps_child_signal(&r->child, SIGTERM);
	enter_state(r, ENDING, r->run->stop_ms);
}

static void kill_command_if_overdue(struct runner *r)
{
	if (r->killed || ps_follow_now_ns(&r->follow) < r->until_ns)
		return;
	report_state_text(r, "COMMAND did not end in time, and is killed");
	ps_child_signal(&r->child, SIGKILL);
	r->killed = true;
	r->until_ns = PS_NEVER;
}

/* Acts on the last look, as the state says. Returns NO_EXIT or an exit status. */
static int act_on_look(struct runner *r)
{
	switch (r->state) {
	case SEEKING:
		return act_while_seeking(r);
	case STANDBY:
		return act_as_standby(r);
	case RUNNING:
		end_command_if_due(r);
		return NO_EXIT;
	case ENDING:
		kill_command_if_overdue(r);
		return NO_EXIT;
	case RESTING:
		if (ps_follow_now_ns(&r->follow) < r->until_ns)
			return NO_EXIT;
		enter_state(r, STANDBY, 0);
		return act_as_standby(r);
	case STATES:
		break;
	}
	return NO_EXIT;
}

/* Has the next Watch requests report the size of the copy to the mirrors, until COMMAND has the
 * copy. */
static void set_reported_copy(struct runner *r)
{
	struct ps_warm_thread_figures figures = { 0 };

	if (r->warmth && !r->copy_taken)
		ps_warm_thread_read_figures(r->warmth, &figures);
	r->follow.has_copy = r->run->options->warm;
	r->follow.store_bytes = figures.total;
	r->follow.copied_bytes = figures.here;
}

static int look_and_act(struct runner *r)
{
	int status = NO_EXIT;
	enum state before;

	set_reported_copy(r);
	ps_follow_look_at_store(&r->follow, &r->now);
	/* Steps until the state stays the same, since a look may matter to the next state, too. */
	do {
		before = r->state;
		status = act_on_look(r);
	} while (status == NO_EXIT && r->state != before);
	return status;
}

/* --- all of it --- */

/* Reports the copy's progress to people. Returns the time of the next report. */
static uint64_t report_warm_copy(struct runner *r)
{
	if (r->state != STANDBY || !r->warmth || r->copy_taken)
		return PS_NEVER;
	return ps_warm_copy_report_send(&r->copy_report, r->warmth, r->run->store, r->last,
	                                ps_follow_now_ns(&r->follow));
}

/* Waits for a signal, news of the store, or a time limit, and handles it. Returns NO_EXIT or an
 * exit status. */
static int await_event(struct runner *r)
{
	struct pollfd fds[PS_FOLLOW_FDS + 1] = { { .fd = r->signal_fd, .events = POLLIN } };
	const uint64_t tell_ns = report_warm_copy(r);
	uint64_t until_ns = r->until_ns < tell_ns ? r->until_ns : tell_ns, now_ns;
	unsigned count = 1 + ps_follow_fill_pollfds(&r->follow, fds + 1, &until_ns);
	int status, wait_ms = -1;

	now_ns = ps_follow_now_ns(&r->follow);
	if (until_ns != PS_NEVER)
		wait_ms = until_ns > now_ns ? (int)((until_ns - now_ns) / MS_NS) + 1 : 0;
	(void)poll(fds, count, wait_ms);
	status = handle_pending_signals(r);
	if (status != NO_EXIT)
		return status;
	if (ps_follow_is_look_due(&r->follow) || ps_follow_now_ns(&r->follow) >= r->until_ns)
		return look_and_act(r);
	return NO_EXIT;
}

static int run_states(struct runner *r)
{
	int status;

	r->state = SEEKING;
	r->since_ns = ps_follow_now_ns(&r->follow);
	r->until_ns = r->since_ns + r->run->patience_ms * MS_NS;
	status = look_and_act(r);
	while (status == NO_EXIT)
		status = await_event(r);
	return status;
}

/* Notes the epochs of COMMAND's last owner and of the last owner that had the store open. The slot
 * has an owner's epoch from the adoption by its open on. */
static void note_epochs(struct runner *r, const struct ps_images *images)
{
	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__StoreStatus *status = images->told[i];

		if (!ps_images_is_of_store(images, i))
			continue;
		if (ps_standby_is_owner(r->mark, status) &&
		    status->header->promised_epoch > r->own_epoch)
			r->own_epoch = status->header->promised_epoch;
		if (status->slot && status->slot->epoch > r->open_epoch)
			r->open_epoch = status->slot->epoch;
	}
}

/* With --warm, keeps a copy of the memory while another owner lives. */
static void keep_warm_copy(struct runner *r, const struct ps_images *images,
                           const struct ps_follow_result *now)
{
	struct ps_error error;

	if (!r->run->options->warm || r->child.pid > 0 || now->ownership != PS_OWNER_LIVES)
		return;
	if (r->copy_taken) {
		ps_warm_thread_end(r->warmth);
		r->warmth = NULL;
		r->copy_taken = false;
		r->copy_report = (struct ps_warm_copy_report){ 0 };
	}
	if (!r->warmth)
		r->warmth = ps_warm_thread_begin(r->run->store, r->run->options,
		                                 r->run->options->connect_timeout_ms, &error);
	if (r->warmth)
		ps_warm_thread_choose_source(r->warmth, images);
	else
		ps_complain(PS_EXIT_OK, "no copy of the memory is kept: %s", error.text);
}

static void note_images(void *arg, const struct ps_images *images,
                        const struct ps_follow_result *now)
{
	struct runner *r = arg;

	note_epochs(r, images);
	r->can_named_open = now->handover.exists && ps_standby_can_open(images, now->handover.to);
	keep_warm_copy(r, images, now);
	if (now->has_no_image)
		ps_images_complain_absent(images, r->run->store);
}

/* Begins to follow the store. Returns 0, or an exit status. */
static int follow_store(struct runner *r)
{
	const struct ps_run *run = r->run;
	struct ps_error error = { 0 };

	r->env = ps_env_posix(run->options, &error);
	if (r->env && !ps_follow_open(&r->follow, run->store, run->mirrors, r->mark, r->env, r->env,
	                              run->options->connect_timeout_ms, &error)) {
		r->follow.name = run->name;
		r->follow.order = run->order;
		r->follow.on_result = note_images;
		r->follow.on_result_arg = r;
		return 0;
	}
	ps_complain(PS_EXIT_OK, "%s", error.text);
	if (!r->env)
		return PS_RUN_FAILED;
	r->env->ops->free(r->env);
	return PS_EXIT_USAGE;
}

int ps_runner_run(const struct ps_run *run)
{
	struct runner r = { .run = run, .signal_fd = -1, .turn.order = run->order };
	int status;

	if (getrandom(r.mark, sizeof(r.mark), 0) != sizeof(r.mark) || !catch_signals(&r))
		return PS_RUN_FAILED;
	status = follow_store(&r);
	if (status)
		return status;
	ps_export_options_to_command(run);
	status = run_states(&r);
	ps_warm_thread_end(r.warmth);
	ps_follow_close(&r.follow);
	r.env->ops->free(r.env);
	close(r.signal_fd);
	return status;
}
