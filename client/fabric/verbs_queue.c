/*
 * verbs_queue.c - the send queue of a connection (verbs_queue.h). fabric_verbs.c pushes requests
 * and collects completions. The queue must never post more than the device's queue holds, nor past
 * a barrier.
 */
#include "verbs_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROOM_FIRST = 1024,
	COMPLETIONS_PER_CALL = 16, /* most completions that one call polls */
	PAD_ROOM = PS_PAD - PS_PAD_LANDING,
};

static uint32_t round_to_power(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

int ps_queue_init(struct ps_queue *q, struct ps_connection *c)
{
	memset(q, 0, sizeof(*q));
	q->c = c;
	q->room = ROOM_FIRST;
	q->marks_room = round_to_power(c->capacity);
	q->waiting = malloc(q->room * sizeof(*q->waiting));
	q->marks = malloc(q->marks_room * sizeof(*q->marks));
	q->wrs = calloc(c->capacity, sizeof(*q->wrs));
	q->sges = calloc(c->capacity, sizeof(*q->sges));
	if (!q->waiting || !q->marks || !q->wrs || !q->sges)
		return -1;
	for (uint32_t i = 0; i < c->capacity; i++) {
		q->wrs[i].next = i + 1 < c->capacity ? &q->wrs[i + 1] : NULL;
		q->wrs[i].sg_list = &q->sges[i];
		q->wrs[i].num_sge = 1;
	}
	return 0;
}

void ps_queue_free(struct ps_queue *q)
{
	free(q->waiting);
	free(q->marks);
	free(q->wrs);
	free(q->sges);
}

/* --- waiting --- */

static bool grow_waiting(struct ps_queue *q)
{
	uint32_t count = q->tail - q->head;
	struct ps_request *grown = q->room > UINT32_MAX / 4
	                                   ? NULL
	                                   : malloc(2 * (size_t)q->room * sizeof(*grown));

	if (!grown)
		return false;
	for (uint32_t i = 0; i < count; i++)
		grown[i] = q->waiting[(q->head + i) & (q->room - 1)];
	free(q->waiting);
	q->waiting = grown;
	q->room *= 2;
	q->head = 0;
	q->tail = count;
	return true;
}

bool ps_queue_push(struct ps_queue *q, const struct ps_request *request)
{
	if (q->tail - q->head == q->room && !grow_waiting(q))
		return false;
	q->waiting[q->tail++ & (q->room - 1)] = *request;
	if (request->flags & PS_REQUEST_HEARTBEAT)
		q->heartbeat_pending = true;
	return true;
}

uint8_t *ps_queue_reserve_pad(struct ps_queue *q, uint32_t length, uint16_t *taken)
{
	uint32_t need, at, skipped = 0;

	if (length > PAD_ROOM)
		return NULL;
	if (!q->pad_used)
		q->pad_start = 0;
	need = (uint32_t)ps_align64(length);
	at = (q->pad_start + q->pad_used) % PAD_ROOM;
	if (need > PAD_ROOM - at) {
		skipped = PAD_ROOM - at;
		at = 0;
	}
	if (q->pad_used + skipped + need > PAD_ROOM)
		return NULL;
	q->pad_used += skipped + need;
	*taken = (uint16_t)(skipped + need);
	return q->c->pad + PS_PAD_LANDING + at;
}

/* --- posting --- */

/* Fills in a work request, except for its links, which never change. */
static void build_work_request(const struct ps_queue *q, const struct ps_request *r,
                               struct ibv_send_wr *wr)
{
	struct ibv_sge *sge = wr->sg_list;
	bool reads = r->flags & PS_REQUEST_READ;

	sge->addr = r->local;
	sge->length = r->length;
	sge->lkey = r->lkey;
	wr->opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	wr->send_flags = !reads && r->length <= q->c->inline_max ? IBV_SEND_INLINE : 0;
	wr->wr.rdma.remote_addr = r->remote;
	wr->wr.rdma.rkey = r->rkey;
}

/* Makes the device report the request's completion, and stores what that completion means. */
static void signal_request(struct ps_queue *q, struct ibv_send_wr *wr,
                           const struct ps_completion_mark *mark)
{
	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->wr_id = q->next_mark;
	q->marks[q->next_mark++ & (q->marks_room - 1)] = *mark;
}

/* Builds work requests for all that may be posted now, and signals the last one. Returns their
 * number. */
static uint32_t build_batch(struct ps_queue *q)
{
	uint32_t space = q->c->capacity - q->in_flight, count = 0;
	struct ps_completion_mark mark = { 0 };

	while (!q->is_blocked && q->head != q->tail && count < space) {
		const struct ps_request *r = &q->waiting[q->head++ & (q->room - 1)];
		struct ibv_send_wr *wr = &q->wrs[count++];

		build_work_request(q, r, wr);
		mark.requests++;
		mark.pad_bytes = (uint16_t)(mark.pad_bytes + r->pad_bytes);
		q->is_blocked = r->flags & PS_REQUEST_BARRIER;
		if (r->flags & PS_REQUEST_SIGNALLED) {
			mark.flags = r->flags;
			signal_request(q, wr, &mark);
			mark = (struct ps_completion_mark){ 0 };
		}
	}
	if (mark.requests)
		signal_request(q, &q->wrs[count - 1], &mark);
	return count;
}

void ps_queue_post(struct ps_queue *q)
{
	struct ibv_send_wr *last, *bad;
	uint32_t count;
	int failed;

	if (q->broken || q->is_blocked || q->head == q->tail)
		return;
	count = build_batch(q);
	if (count == 0)
		return;
	last = &q->wrs[count - 1];
	last->next = NULL;
	failed = q->c->verbs->post_send(q->c->qp, q->wrs, &bad);
	if (count < q->c->capacity)
		last->next = last + 1;
	q->in_flight += count;
	q->counts.requests += count;
	q->counts.doorbells++;
	/* It does not matter which requests were posted, because the session is claimed again. */
	if (failed)
		q->broken = true;
}

/* --- completing --- */

static void complete_mark(struct ps_queue *q)
{
	const struct ps_completion_mark *mark = &q->marks[q->first_mark++ & (q->marks_room - 1)];

	assert(mark->requests <= q->in_flight && mark->pad_bytes <= q->pad_used);
	q->in_flight -= mark->requests;
	q->pad_start = (q->pad_start + mark->pad_bytes) % PAD_ROOM;
	q->pad_used -= mark->pad_bytes;
	if (mark->flags & PS_REQUEST_BARRIER)
		q->is_blocked = false;
	if (mark->flags & PS_REQUEST_CHAIN)
		q->chains++;
	if (mark->flags & PS_REQUEST_PIECE)
		q->pieces++;
	if (mark->flags & PS_REQUEST_HEARTBEAT)
		q->heartbeat_pending = false;
	q->counts.completions++;
}

void ps_queue_collect(struct ps_queue *q)
{
	struct ibv_wc done[COMPLETIONS_PER_CALL];
	int count = COMPLETIONS_PER_CALL;
	bool good = true;

	while (good && count == COMPLETIONS_PER_CALL && q->in_flight) {
		count = q->c->verbs->poll_cq(q->c->cq, COMPLETIONS_PER_CALL, done);
		good = count >= 0;
		for (int i = 0; i < count && good; i++) {
			/* After an error it is unknown whether the writes were applied. The owner
			 * learns it from the mirror when it claims the session again. */
			good = done[i].status == IBV_WC_SUCCESS && done[i].wr_id == q->first_mark &&
			       q->first_mark != q->next_mark;
			if (good)
				complete_mark(q);
		}
	}
	if (!good)
		q->broken = true;
	ps_queue_post(q);
}
