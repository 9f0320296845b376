/*
 * follow.c - see follow.h. There are two connections to each mirror. On one it is asked for its
 * status, from which the store is judged as perseas_open judges it. On the other a Watch request
 * waits; its answer only says that another look is worthwhile.
 */
#include "follow.h"

#include "forks.h"
#include "list_refresh.h"
#include "../core/quorum.h"
#include "../../proto/base/text.h"
#include "../../proto/control/envelope.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS_NS ((uint64_t)1000000)

enum {
	RETRY_MS = 1000,    /* until a mirror that is down, or reports no change, is asked again */
	SILENT_FACTOR = 10, /* a silent mirror may cost at most 1/SILENT_FACTOR of the time */
	REPORT_MS = 5000,   /* how often a mirror is told how warm the copy is */
	FIRST_REPORT_MS = 1000, /* how often it is told that there is no copy yet */
};

uint64_t ps_follow_now_ns(const struct ps_follow *follow)
{
	return follow->status_peers.env->ops->now(follow->status_peers.env);
}

/* --- judging the answers --- */

static bool has_own_mark(const struct ps_follow *follow, const Perseas__StoreStatus *status)
{
	const ProtobufCBinaryData *owner = &status->header->promised_owner;

	return follow->mark && owner->len == PS_ID_SIZE &&
	       memcmp(owner->data, follow->mark, PS_OWNER_MARK) == 0;
}

/* Returns true if a live owner without follow->mark has this member's image. */
static bool is_held_by_others(const struct ps_follow *follow, const struct ps_images *images,
                              const Perseas__Member *member)
{
	const Perseas__StoreStatus *status = ps_images_find_member(images, member);

	return status && status->live && !has_own_mark(follow, status);
}

/* Returns true if other owners have so many members of the roster that an owner with follow->mark
 * has fewer than W. */
static bool is_fenced_in_roster(const struct ps_follow *follow, const struct ps_images *images,
                                const Perseas__Roster *roster)
{
	unsigned lost = 0;

	for (size_t k = 0; roster && k < roster->n_members; k++)
		lost += is_held_by_others(follow, images, roster->members[k]);
	return roster && lost + roster->acks > roster->n_members;
}

/* Returns a peer with a live owner, or -1. ours: whether the owner's id must begin with
 * follow->mark. As in perseas_open, a live owner at any peer counts. */
static int find_live_owner(const struct ps_follow *follow, const struct ps_images *images,
                           bool ours)
{
	for (unsigned i = 0; i < images->peers->count; i++)
		if (ps_images_is_of_store(images, i) && images->told[i]->live &&
		    has_own_mark(follow, images->told[i]) == ours)
			return (int)i;
	return -1;
}

/* Returns true if the answers so far suffice, so that silent mirrors delay nobody: an open would
 * succeed with them, and they show no live owner. An owner that R answers do not show cannot commit
 * (I6, I7). If an owner lives, waiting longer does no harm. */
static bool is_enough(void *arg, const struct ps_peers *peers)
{
	const struct ps_follow *follow = arg;
	struct ps_images images = { .peers = peers };

	for (unsigned i = 0; i < peers->count; i++) {
		images.errors[i] = peers->errors[i];
		if (peers->replies[i])
			images.told[i] = peers->replies[i]->store->status;
	}
	ps_images_judge(&images);
	return images.judged.outlook == PS_OUTLOOK_OPENS &&
	       find_live_owner(follow, &images, false) < 0 &&
	       find_live_owner(follow, &images, true) < 0 &&
	       !ps_forks_is_other_store(follow, &images);
}

static void describe_owner(const struct ps_images *images, int at, struct ps_follow_result *now)
{
	const Perseas__StoreStatus *status = images->told[at];

	snprintf(now->text, sizeof(now->text), "its owner lives (from %.100s, epoch %" PRIu64 ")",
	         status->owner_address, status->header->promised_epoch);
}

static void describe_ambiguous(const struct ps_judgement *j, struct ps_follow_result *now)
{
	char id[PS_HEX_TEXT], rival[PS_HEX_TEXT];

	snprintf(now->text, sizeof(now->text),
	         "two stores of its name were seen, ids %s and %s%s: name the mirrors of one",
	         ps_hex_text(id, j->store_id), ps_hex_text(rival, j->rival_id),
	         ps_judge_rival_note(j));
}

/* Describes why the store cannot be opened, with one mirror's error. perseas status lists them
 * all. */
static void describe_trouble(const struct ps_follow *follow, const struct ps_images *images,
                             struct ps_follow_result *now)
{
	const char *trouble = "perseas status says more";

	for (unsigned i = 0; i < images->peers->count; i++)
		if (!images->told[i] && images->errors[i].code)
			trouble = images->errors[i].text;
	snprintf(now->text, sizeof(now->text),
	         "%u of %u mirrors answer, and do not let it be opened (%s%.300s)",
	         images->answered, images->peers->count,
	         follow->is_forked ? "a fork of it, or another store of its name, was seen; " : "",
	         trouble);
}

/* Fills in the planned handover, and the highest order among the standbys. */
static void judge_standbys(const struct ps_images *images, struct ps_follow_result *now)
{
	const Perseas__Handover *handover = ps_images_handover(images);
	struct ps_handover_state *handing = &now->handover;

	if (handover) {
		handing->exists = true;
		memcpy(handing->id, handover->id.data, PS_ID_SIZE);
		memcpy(handing->to, handover->to.data, PS_OWNER_MARK);
		snprintf(handing->name, sizeof(handing->name), "%s", handover->name);
	}
	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__StoreStatus *status = images->told[i];

		for (size_t k = 0; status && k < status->n_standbys; k++) {
			const Perseas__Standby *standby = status->standbys[k];

			if (standby->order > now->last_order)
				now->last_order = standby->order;
			if (handover && !memcmp(standby->mark.data, handing->to, PS_OWNER_MARK))
				handing->is_present = true;
		}
	}
}

/* Returns true if every mirror answered that it has no good image. A mirror that refuses to
 * answer may have one: its access rules may change, or it may have been downgraded from a later
 * version. */
static bool has_no_good_image(const struct ps_images *images)
{
	for (unsigned i = 0; i < images->peers->count; i++) {
		const int code = images->errors[i].code;

		if (images->told[i] || (code != PERSEAS_ENOSTORE && code != PERSEAS_EDAMAGED))
			return false;
	}
	return true;
}

static void judge_images(const struct ps_follow *follow, const struct ps_images *images,
                         struct ps_follow_result *now)
{
	const int other = find_live_owner(follow, images, false),
		  own = find_live_owner(follow, images, true);

	memset(now, 0, sizeof(*now));
	now->is_found = images->have > 0;
	now->has_no_image = !follow->is_list_uncertain && has_no_good_image(images);
	now->is_uncreated = !follow->is_list_uncertain && ps_images_is_uncreated(images);
	now->is_ours = own >= 0;
	now->is_fenced = is_fenced_in_roster(follow, images, images->judged.settled) ||
	                 is_fenced_in_roster(follow, images, images->judged.next);
	if (other >= 0 || own >= 0) {
		now->ownership = PS_OWNER_LIVES;
		describe_owner(images, other >= 0 ? other : own, now);
	} else if (images->judged.outlook == PS_OUTLOOK_OPENS && !follow->is_forked) {
		now->ownership = PS_OWNER_NONE;
		snprintf(now->text, sizeof(now->text), "it has no owner");
	} else if (images->judged.outlook == PS_OUTLOOK_AMBIGUOUS) {
		describe_ambiguous(&images->judged, now);
	} else {
		describe_trouble(follow, images, now);
	}
	judge_standbys(images, now);
}

/* --- opening and closing --- */

/* Gives every mirror in `looks` a connection for watches under the same index, including mirrors
 * that only rosters name. */
static void add_watches(struct ps_follow *follow)
{
	struct ps_peers *looks = &follow->status_peers, *watches = &follow->watch_peers;

	for (; watches->count < looks->count; watches->count++)
		watches->addresses[watches->count] = looks->addresses[watches->count];
}

/* Returns false if a newer roster than this one was seen. Otherwise notes this one as the
 * newest. */
static bool note_roster_if_newest(struct ps_follow *follow, uint64_t epoch, uint64_t version)
{
	if (epoch < follow->roster_epoch ||
	    (epoch == follow->roster_epoch && version < follow->roster_version))
		return false;
	follow->roster_epoch = epoch;
	follow->roster_version = version;
	return true;
}

void ps_follow_add_mirrors(struct ps_follow *follow, const struct ps_roster_places *places)
{
	for (unsigned i = 0; i < places->count; i++)
		ps_peers_add_address(&follow->status_peers, places->addresses[i].text);
	add_watches(follow);
	note_roster_if_newest(follow, places->epoch, places->version);
}

/* Follows the mirrors that `perseas run` has seen: the mirrors on the list may have left the store
 * meanwhile. */
static void add_inherited_mirrors(struct ps_follow *follow)
{
	struct ps_roster_places places;

	ps_inherited_unlisted_mirrors(follow->status_peers.env->told_by_run, follow->store,
	                              follow->list, &places);
	ps_follow_add_mirrors(follow, &places);
}

int ps_follow_open(struct ps_follow *follow, const char *store, const char *mirrors,
                   const uint8_t *mark, struct ps_env *looks, struct ps_env *watches,
                   uint32_t timeout_ms, struct ps_error *error)
{
	memset(follow, 0, sizeof(*follow));
	follow->store = store;
	follow->mark = mark;
	follow->list = mirrors;
	if (ps_peers_begin_known(&follow->status_peers, looks, mirrors, timeout_ms, &follow->lookup,
	                         error))
		return error->code;
	follow->is_list_uncertain = follow->lookup;
	follow->status_peers.enough = is_enough;
	follow->status_peers.enough_arg = follow;
	follow->name_looked_up_ns = ps_follow_now_ns(follow);
	add_inherited_mirrors(follow);
	/* A second lookup of the list's name might find other mirrors, so the watches copy the
	 * addresses. */
	follow->watch_peers.env = watches;
	follow->watch_peers.timeout_ms = timeout_ms;
	follow->watch_peers.listed_count = follow->status_peers.listed_count;
	add_watches(follow);
	for (unsigned i = 0; i < follow->watch_peers.count; i++)
		ps_peers_connect(&follow->watch_peers, i);
	return 0;
}

void ps_follow_close_look_connections(struct ps_follow *follow)
{
	ps_list_refresh_drop(follow);
	ps_peers_end(&follow->status_peers);
}

void ps_follow_close(struct ps_follow *follow)
{
	ps_peers_end(&follow->watch_peers);
	ps_follow_close_look_connections(follow);
	ps_roster_free(&follow->settled.roster);
}

/* --- watches --- */

static void end_watch(struct ps_follow *follow, unsigned i, uint64_t again_ns)
{
	follow->mirrors[i].asked = false;
	follow->mirrors[i].watch_at_ns = again_ns;
}

/* Returns true if these values differ from those of the last Watch to the mirror. */
static bool differs_from_watch(const struct ps_followed *mirror, uint64_t epoch, bool live,
                               const ProtobufCBinaryData *handover)
{
	static const uint8_t none[PS_ID_SIZE];

	return epoch != mirror->watched_epoch || live != mirror->watched_live ||
	       memcmp(handover && handover->len ? handover->data : none, mirror->watched_handover,
	              PS_ID_SIZE) != 0;
}

/* Returns true if the mirror answered the last Watch at once with news that its status does not
 * show. It would do so again. */
static bool is_repeated_news(struct ps_followed *mirror, const Perseas__StoreStatus *status)
{
	const bool idle = mirror->answered_early &&
	                  !differs_from_watch(mirror, status->header->promised_epoch, status->live,
	                                      status->handover ? &status->handover->id : NULL);

	mirror->answered_early = false;
	return idle;
}

/* Fills in what a Watch tells the mirror about this standby. */
static void fill_standby(const struct ps_follow *follow, struct ps_followed *mirror,
                         Perseas__Standby *who, Perseas__WatchRequest *ask)
{
	mirror->tells_warmth = follow->name && follow->has_copy;
	/* Messages have no const, but packing does not change them. */
	who->name = (char *)(uintptr_t)follow->name;
	who->order = follow->order;
	who->mark = (ProtobufCBinaryData){ PS_OWNER_MARK, (uint8_t *)(uintptr_t)follow->mark };
	if (follow->name)
		ask->standby = who;
	if (!mirror->tells_warmth)
		return;
	who->memory = follow->store_bytes;
	who->warm = follow->copied_bytes;
	ask->within_ms = follow->store_bytes ? REPORT_MS : FIRST_REPORT_MS;
}

/* Asks the mirror to report when its state differs from `status`. */
static void begin_watch(struct ps_follow *follow, unsigned i, const Perseas__StoreStatus *status)
{
	Perseas__WatchRequest ask = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__Standby who = PERSEAS__STANDBY__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_followed *mirror = &follow->mirrors[i];
	const uint64_t now_ns = ps_follow_now_ns(follow);

	if (mirror->asked || now_ns < mirror->watch_at_ns)
		return;
	if (is_repeated_news(mirror, status)) {
		end_watch(follow, i, now_ns + RETRY_MS * MS_NS);
		return;
	}
	ask.store = (char *)(uintptr_t)follow->store;
	fill_standby(follow, mirror, &who, &ask);
	memset(mirror->watched_handover, 0, PS_ID_SIZE);
	if (status->handover) {
		memcpy(mirror->watched_handover, status->handover->id.data, PS_ID_SIZE);
		ask.handover = (ProtobufCBinaryData){ PS_ID_SIZE, mirror->watched_handover };
	}
	ask.epoch = mirror->watched_epoch = status->header->promised_epoch;
	ask.live = mirror->watched_live = status->live;
	request.body_case = PERSEAS__REQUEST__BODY_WATCH;
	request.watch = &ask;
	ps_peers_connect(&follow->watch_peers, i);
	mirror->asked = ps_peers_send(&follow->watch_peers, i, &request);
	mirror->asked_ns = now_ns;
	mirror->until_ns = now_ns + (PS_WATCH_MS + follow->watch_peers.timeout_ms) * MS_NS;
	if (!mirror->asked)
		end_watch(follow, i, now_ns + RETRY_MS * MS_NS);
}

/* Takes the answer to a Watch that was answered or timed out. */
static void take_watch_answer(struct ps_follow *follow, unsigned i)
{
	struct ps_followed *mirror = &follow->mirrors[i];
	const uint64_t now_ns = ps_follow_now_ns(follow);
	const uint32_t timeout_ms = follow->watch_peers.timeout_ms;
	Perseas__Reply *reply;
	bool soon, news;

	follow->watch_peers.timeout_ms = 0;
	reply = ps_peers_receive(&follow->watch_peers, i);
	follow->watch_peers.timeout_ms = timeout_ms;
	soon = now_ns - mirror->asked_ns < RETRY_MS * MS_NS;
	news = reply && differs_from_watch(mirror, reply->watch->epoch, reply->watch->live,
	                                   &reply->watch->handover);
	mirror->answered_early = soon && news;
	/* An early answer without news comes from a mirror that too many clients watch: pause, as
	 * it would do so again. */
	end_watch(follow, i, soon && !news ? now_ns + RETRY_MS * MS_NS : 0);
	if (reply)
		perseas__reply__free_unpacked(reply, NULL);
}

unsigned ps_follow_fill_pollfds(struct ps_follow *follow, struct pollfd fds[PS_FOLLOW_FDS],
                                uint64_t *until_ns)
{
	struct ps_peers *peers = &follow->watch_peers;
	unsigned count = 0;

	if (follow->lookup)
		fds[count++] = ps_list_refresh_fd(follow);
	for (unsigned i = 0; i < peers->count; i++) {
		const struct ps_followed *mirror = &follow->mirrors[i];
		const uint64_t due_ns = mirror->asked ? mirror->until_ns : mirror->watch_at_ns;

		if (due_ns < *until_ns)
			*until_ns = due_ns;
		if (!mirror->asked)
			continue;
		if (peers->env->ops->fill_control_pollfd(peers->controls[i], &fds[count]))
			count++;
		else
			*until_ns = 0; /* the connection ended */
	}
	return count;
}

bool ps_follow_is_look_due(struct ps_follow *follow)
{
	struct ps_peers *peers = &follow->watch_peers;
	const uint64_t now_ns = ps_follow_now_ns(follow);
	bool stirred = ps_list_refresh_has_ended(follow);

	for (unsigned i = 0; i < peers->count; i++) {
		struct ps_followed *mirror = &follow->mirrors[i];

		if (!mirror->asked) {
			stirred |= now_ns >= mirror->watch_at_ns;
		} else if (peers->env->ops->answered(peers->controls[i]) ||
		           now_ns >= mirror->until_ns) {
			take_watch_answer(follow, i);
			stirred = true;
		}
	}
	return stirred;
}

/* --- looks --- */

/* Returns the mirrors that only an older roster named. Returns none if no mirror shows the newest
 * roster that was ever seen, or while a fork or another store of the name is seen: silent mirrors
 * may be members of the followed store. The roster of an unfinished creation does not count. */
static uint32_t find_mirrors_of_older_rosters(struct ps_follow *follow,
                                              const struct ps_images *images)
{
	uint32_t set = 0;

	if (!images->roster || images->judged.creation_unfinished || follow->is_forked ||
	    !note_roster_if_newest(follow, images->roster->epoch, images->roster->version))
		return 0;
	for (unsigned i = images->peers->listed_count; i < images->peers->count; i++)
		if (!ps_images_is_peer_named(images, i))
			set |= 1u << i;
	return set;
}

/* Forgets these mirrors, to make room for others. */
static void remove_mirrors(struct ps_follow *follow, uint32_t set)
{
	for (unsigned i = follow->status_peers.count; i-- > 0;) {
		if (!(set >> i & 1))
			continue;
		ps_peers_remove(&follow->status_peers, i);
		ps_peers_remove(&follow->watch_peers, i);
		memmove(&follow->mirrors[i], &follow->mirrors[i + 1],
		        (follow->status_peers.count - i) * sizeof(follow->mirrors[0]));
		memset(&follow->mirrors[follow->status_peers.count], 0, sizeof(follow->mirrors[0]));
	}
}

/* Drops a connection that ended since the last look, for example because the mirror was
 * restarted. */
static void drop_ended_connection(struct ps_peers *peers, unsigned i)
{
	if (!peers->controls[i] || !peers->env->ops->ended(peers->controls[i]))
		return;
	peers->env->ops->disconnect(peers->controls[i]);
	peers->controls[i] = NULL;
}

/* Connects again to mirrors that did not answer, after a pause: a mirror that is down fails at
 * once, but a silent one delays every look. */
static void connect_looks(struct ps_follow *follow)
{
	const uint64_t now_ns = ps_follow_now_ns(follow);

	for (unsigned i = 0; i < follow->status_peers.count; i++) {
		drop_ended_connection(&follow->status_peers, i);
		if (now_ns >= follow->mirrors[i].look_at_ns)
			ps_peers_connect(&follow->status_peers, i);
	}
}

static void note_images(struct ps_follow *follow, const struct ps_images *images, uint64_t began_ns)
{
	const uint64_t now_ns = ps_follow_now_ns(follow);
	const uint64_t wait_ns = RETRY_MS * MS_NS + SILENT_FACTOR * (now_ns - began_ns);

	for (unsigned i = 0; i < follow->status_peers.count; i++) {
		struct ps_followed *mirror = &follow->mirrors[i];

		mirror->is_unlisted_member = i >= images->peers->listed_count &&
		                             ps_images_is_listed(images, i);
		if (images->told[i])
			begin_watch(follow, i, images->told[i]);
		else if (!mirror->asked)
			end_watch(follow, i, now_ns + wait_ns);
		if (!ps_peers_answered(&follow->status_peers, i) && mirror->look_at_ns <= now_ns)
			mirror->look_at_ns = now_ns + wait_ns;
	}
}

/* Returns true if a mirror has more than an unfinished creation. */
static bool has_settled_image(const struct ps_images *images)
{
	for (unsigned i = 0; i < images->peers->count; i++)
		if (images->told[i] &&
		    images->told[i]->header->state != PERSEAS__STATE__STATE_CREATING)
			return true;
	return false;
}

/* Looks the list's name up again if no mirror has a settled image. Then there is no roster to go
 * by, and the name may stand for other mirrors now. New mirrors are asked within this look; their
 * answers decide whether they stay. A slow name server delays nothing. */
static void look_up_list_again(struct ps_follow *follow, struct ps_images *images)
{
	struct ps_address found[PS_MIRRORS_MAX];
	unsigned count;
	bool any = false;

	if (has_settled_image(images)) {
		ps_list_refresh_drop(follow);
		return;
	}
	count = ps_list_refresh_poll(follow, found);
	for (unsigned i = 0; i < count; i++)
		any |= ps_peers_add_address(&follow->status_peers, found[i].text);
	if (!any)
		return;
	ps_images_free(images);
	ps_images_fetch(images, &follow->status_peers, follow->store);
	add_watches(follow);
}

void ps_follow_look_at_store(struct ps_follow *follow, struct ps_follow_result *now)
{
	uint64_t began_ns = ps_follow_now_ns(follow);
	struct ps_images images;
	uint32_t left;

	connect_looks(follow);
	ps_images_fetch(&images, &follow->status_peers, follow->store);
	look_up_list_again(follow, &images);
	if (ps_images_fetch_more(&images, &follow->status_peers, follow->store))
		add_watches(follow);
	ps_forks_note_images(follow, &images);
	note_images(follow, &images, began_ns);
	judge_images(follow, &images, now);
	if (follow->on_result)
		follow->on_result(follow->on_result_arg, &images, now);
	left = find_mirrors_of_older_rosters(follow, &images);
	ps_images_free(&images);
	remove_mirrors(follow, left);
}

bool ps_follow_is_unlisted_member(const struct ps_follow *follow, unsigned i)
{
	return follow->mirrors[i].is_unlisted_member;
}

struct ps_control *ps_follow_take_connection(struct ps_follow *follow, const char *address)
{
	struct ps_peers *looks = &follow->status_peers;

	for (unsigned i = 0; i < looks->count; i++) {
		struct ps_control *control;

		if (strcmp(looks->addresses[i].text, address) != 0)
			continue;
		drop_ended_connection(looks, i);
		control = looks->controls[i];
		looks->controls[i] = NULL;
		return control;
	}
	return NULL;
}

bool ps_follow_is_silent(const struct ps_follow *follow, const char *address)
{
	for (unsigned i = 0; i < follow->status_peers.count; i++)
		if (!strcmp(follow->status_peers.addresses[i].text, address))
			return follow->mirrors[i].look_at_ns > ps_follow_now_ns(follow);
	return false;
}
