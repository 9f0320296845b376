/*
 * store_copy_turn.c - the line of copies to this daemon's images, so that the owners of many stores
 * copy one after the other. control.c calls it. A turn is advice for owners: a copy without one is
 * served, too, and no copy is ever ended here.
 */
#include "store_private.h"

#include <stdlib.h>
#include <string.h>

/* A copy without progress for this long no longer keeps others waiting. */
#define STALLED_NS ((uint64_t)10000000000)
/* An owner that has not asked for this long loses its place: it is gone, or copies elsewhere. One
 * that waits asks each second, or more often. */
#define FORGOTTEN_NS ((uint64_t)3000000000)

enum { STORES_IN_LINE = 1024 /* so that owners cannot fill the memory */ };

/* A store whose copy has its turn, or waits for it. The list is in the order of arrival. */
struct copy_turn {
	struct copy_turn *next;
	struct stores *stores;
	char store[PS_NAME_MAX + 1];
	bool is_urgent;         /* commits wait for the copy */
	struct session *holder; /* connection of the owner whose turn it is; NULL: it waits */
	uint64_t sent;          /* bytes that the holder's owner reported last */
	uint64_t at;            /* when the copy last progressed, or its owner last asked */
};

static uint64_t now_ns(const struct stores *stores)
{
	return stores->now_ns ? stores->now_ns() : 0;
}

/* Removes the turn that *at points to. */
static void remove_turn(struct copy_turn **at)
{
	struct copy_turn *turn = *at;

	if (turn->holder)
		turn->holder->copy_turn = NULL;
	*at = turn->next;
	free(turn);
}

void copy_turns_free(struct stores *stores)
{
	while (stores->copy_turns)
		remove_turn(&stores->copy_turns);
}

void copy_turn_end(struct session *session)
{
	struct copy_turn **at;

	if (!session->copy_turn)
		return;
	at = &session->copy_turn->stores->copy_turns;
	while (*at != session->copy_turn)
		at = &(*at)->next;
	remove_turn(at);
}

void copy_turn_note_progress(struct session *session)
{
	if (session->copy_turn)
		session->copy_turn->at = now_ns(session->copy_turn->stores);
}

void copy_turn_take_report(struct session *session, const Perseas__ConfirmRequest *request)
{
	struct copy_turn *turn = session->copy_turn;
	uint64_t sent = 0;

	/* An owner copies to one mirror at a time, so what it sends goes to this one. */
	for (size_t i = 0; i < request->n_mirrors; i++)
		sent += request->mirrors[i]->done;
	if (!turn || sent <= turn->sent)
		return;
	turn->sent = sent;
	copy_turn_note_progress(session);
}

/* Removes copies that stalled, and waiting ones whose owners do not ask any more. */
static void remove_stalled(struct stores *stores)
{
	const uint64_t now = now_ns(stores);
	struct copy_turn **at = &stores->copy_turns;

	while (*at)
		if (now - (*at)->at >= ((*at)->holder ? STALLED_NS : FORGOTTEN_NS))
			remove_turn(at);
		else
			at = &(*at)->next;
}

/* Returns the store's turn, which is added to the end of the line if it is not there. Returns NULL
 * if the line is full or memory is out. */
static struct copy_turn *find_or_add(struct stores *stores, const char *store)
{
	struct copy_turn **at = &stores->copy_turns;
	unsigned count = 0;

	for (; *at; at = &(*at)->next, count++)
		if (strcmp((*at)->store, store) == 0)
			return *at;
	*at = count < STORES_IN_LINE ? calloc(1, sizeof(**at)) : NULL;
	if (*at) {
		(*at)->stores = stores;
		strcpy((*at)->store, store);
	}
	return *at;
}

/* Returns the place of a waiting store in the line, from 1. Returns 0 if its copy may begin: it is
 * the first one, and few enough copies go on. An urgent one waits for urgent ones alone. */
static uint32_t place_of(const struct copy_turn *turn)
{
	const uint32_t max = turn->stores->copies_max;
	bool is_before = true;
	uint32_t copies = 0, place = 1;

	for (const struct copy_turn *each = turn->stores->copy_turns; each; each = each->next) {
		if (each == turn)
			is_before = false;
		else if (each->holder)
			copies += each->is_urgent || !turn->is_urgent;
		else if (each->is_urgent == turn->is_urgent)
			place += is_before;
		else
			place += each->is_urgent;
	}
	return !max || (place == 1 && copies < max) ? 0 : place;
}

/* Moves the turn to this session, away from an earlier one of the same store. */
static void give_turn(struct copy_turn *turn, struct session *session)
{
	if (turn->holder)
		turn->holder->copy_turn = NULL;
	turn->holder = session;
	turn->sent = 0;
	session->copy_turn = turn;
}

int store_copy_turn(struct stores *stores, struct session *session,
                    const Perseas__CopyTurnRequest *request, Perseas__CopyTurnReply *reply,
                    struct why *why)
{
	struct copy_turn *turn;

	if (session->copy_turn && strcmp(session->copy_turn->store, request->store) != 0)
		copy_turn_end(session);
	remove_stalled(stores);
	turn = find_or_add(stores, request->store);
	if (!turn)
		return refuse(why, STATUS(NO_MEMORY),
		              "too many stores wait to be copied to this mirror");
	turn->is_urgent = request->urgent;
	turn->at = now_ns(stores);
	if (!turn->holder)
		reply->place = place_of(turn);
	if (!reply->place)
		give_turn(turn, session);
	return 0;
}

void stores_set_copies(struct stores *stores, uint32_t count)
{
	stores->copies_max = count;
}
