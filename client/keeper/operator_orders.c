/*
 * operator_orders.c - keeps an order until the keeper can obey it, and reports its result.
 * heartbeat.c brings the orders. The owner carries out one order at a time, and none twice; other
 * orders wait at their mirrors.
 */
#include "operator_orders.h"

#include "change.h"
#include "pending_answers.h"
#include "repair.h"
#include "../core/event.h"
#include "../core/gather.h"

#include "../../proto/base/text.h"

#include <assert.h>
#include <string.h>

/* The first protocol version with the sizes of rosters, and what was sent, in a result. */
enum { RESULT_VERSION = 9 };

/* Returns true if the id is all zero. */
static bool is_zero_id(const uint8_t *id)
{
	static const uint8_t none[PS_ID_SIZE];

	return !memcmp(id, none, PS_ID_SIZE);
}

void ps_orders_keep_answer_with_order(struct perseas *p, struct ps_mirror *m,
                                      Perseas__Reply **reply)
{
	memcpy(m->last_order_id, (*reply)->confirm->order->id.data, PS_ID_SIZE);
	if (p->upkeep.orders.answer_with_waiting_order)
		return;
	p->upkeep.orders.answer_with_waiting_order = *reply;
	*reply = NULL;
	p->env->ops->wake(p->env, PS_KEEPER);
}

/* Notes an order or handover as carried out. Returns false if it already was: a mirror that was
 * stopped may pass on an old order again. */
static bool note_order_as_carried_out(struct perseas *p, ProtobufCBinaryData id)
{
	struct ps_orders *orders = &p->upkeep.orders;

	for (unsigned i = 0; i < PS_ORDERS_SAVED; i++)
		if (ps_id_equal(id, orders->accepted_ids[i]))
			return false;
	memcpy(orders->accepted_ids[orders->accepted_id_count++ % PS_ORDERS_SAVED], id.data,
	       PS_ID_SIZE);
	return true;
}

void ps_orders_tell_application_of_handover(struct perseas *p, const Perseas__Handover *handover)
{
	if (!note_order_as_carried_out(p, handover->id))
		return;
	pthread_mutex_lock(&p->lock);
	ps_event(p, PERSEAS_EVENT_HANDOVER, ps_last_committed_seq(p), NULL,
	         "store '%s' must be handed over to %s: close this handle", p->store,
	         handover->name);
	pthread_mutex_unlock(&p->lock);
}

/* Begins the ordered repair, if no other one is under way: then the order waits. */
static void carry_out_repair(struct perseas *p, const Perseas__Order *order)
{
	if (p->upkeep.repair.state == PS_REPAIR_NONE && note_order_as_carried_out(p, order->id))
		ps_repair_begin(p, order->id.data);
}

/* Begins the ordered change, or takes a change back, if that is possible now. */
static void carry_out_order(struct perseas *p, const Perseas__Order *order)
{
	const struct perseas_roster_change wanted = {
		.kind = (int)order->kind,
		.address = order->address,
		.with = order->with,
		.acks = order->acks,
		.gone = order->gone,
	};
	const bool cancels = order->kind == PERSEAS__ORDER_KIND__ORDER_CANCEL;

	if (cancels && p->upkeep.change.stage != PS_CHANGE_NONE) {
		ps_change_cancel_by_order(p, order->id.data);
		/* An order for another change waits. A cancelling order may have the id of the
		 * order that it takes back. */
		if (ps_id_equal(order->id, p->upkeep.change.order_id))
			(void)note_order_as_carried_out(p, order->id);
		return;
	}
	/* The order waits, and its mirror passes it on again. */
	if (p->upkeep.change.stage != PS_CHANGE_NONE || ps_change_has_waiter(p) ||
	    !note_order_as_carried_out(p, order->id))
		return;
	if (cancels)
		ps_change_cancel_by_order(p, order->id.data);
	else
		ps_change_begin(p, &wanted, order->id.data);
}

void ps_orders_carry_out_waiting_order(struct perseas *p)
{
	Perseas__Reply *reply = p->upkeep.orders.answer_with_waiting_order;

	ps_assert_admin(p);
	p->upkeep.orders.answer_with_waiting_order = NULL;
	if (!reply)
		return;
	if (reply->confirm->order->kind == PERSEAS__ORDER_KIND__ORDER_REPAIR)
		carry_out_repair(p, reply->confirm->order);
	else
		carry_out_order(p, reply->confirm->order);
	perseas__reply__free_unpacked(reply, NULL);
}

/* Returns the saved result of the order with this id, or NULL if it was never carried out, is the
 * last change, or was long ago. */
static struct ps_order_result *find_order_result(struct perseas *p, const uint8_t *id)
{
	for (unsigned i = 0; i < PS_ORDERS_SAVED; i++)
		if (!is_zero_id(id) && !memcmp(id, p->upkeep.orders.results[i].id, PS_ID_SIZE))
			return &p->upkeep.orders.results[i];
	return NULL;
}

struct ps_order_result *ps_orders_find_or_make_result(struct perseas *p, const uint8_t *id)
{
	struct ps_orders *orders = &p->upkeep.orders;
	struct ps_order_result *result = find_order_result(p, id);

	ps_assert_admin(p);
	assert(!is_zero_id(id));
	if (!result) {
		result = &orders->results[orders->saved_result_count++ % PS_ORDERS_SAVED];
		memset(result, 0, sizeof(*result));
		memcpy(result->id, id, PS_ID_SIZE);
	}
	return result;
}

void ps_orders_save_change_result(struct perseas *p)
{
	const struct ps_change *c = &p->upkeep.change;
	struct ps_order_result *end;

	ps_assert_admin(p);
	if (is_zero_id(c->order_id))
		return;
	end = ps_orders_find_or_make_result(p, c->order_id);
	end->is_done = true;
	end->code = c->result_code;
	end->before = c->before;
	end->after = c->after;
	end->copy = c->copy;
	ps_text_format(end->text, sizeof(end->text), "%s", c->text);
}

static void set_copy_fields_of_result(Perseas__OrderResult *result,
                                      const struct ps_joining_copy *copy)
{
	result->sent = copy->sent_bytes;
	if (copy->whole_reason)
		result->whole = (char *)copy->whole_reason->name;
}

static void set_roster_sizes_of_result(Perseas__OrderResult *result,
                                       const struct ps_roster_size *before,
                                       const struct ps_roster_size *after)
{
	result->members_before = before->member_count;
	result->acks_before = before->acks;
	result->members = after->member_count;
	result->acks = after->acks;
}

bool ps_orders_fill_result_for_mirror(struct perseas *p, struct ps_mirror *m,
                                      Perseas__OrderResult *result)
{
	struct ps_change *c = &p->upkeep.change;
	struct ps_order_result *end = find_order_result(p, m->last_order_id);

	if (!end && is_zero_id(c->order_id))
		return false;
	perseas__order_result__init(result);
	result->id = (ProtobufCBinaryData){ PS_ID_SIZE, end ? end->id : c->order_id };
	result->done = end ? end->is_done : c->stage == PS_CHANGE_NONE;
	result->code = end ? end->code : result->done ? c->result_code : 0;
	result->text = end ? end->text : c->text;
	if (result->done && !result->code && ps_mirror_has_version(p, m, RESULT_VERSION)) {
		set_roster_sizes_of_result(result, end ? &end->before : &c->before,
		                           end ? &end->after : &c->after);
		set_copy_fields_of_result(result, end ? &end->copy : &c->copy);
	}
	return true;
}
