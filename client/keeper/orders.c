/*
 * orders.c - keeps an order until the keeper can obey it, and tells what became of it. pulse.c
 * brings orders in. One is carried out at a time, and none twice: others wait at their mirrors.
 */
#include "orders.h"

#include "change.h"

#include <string.h>

void ps_orders_note(struct perseas *p, Perseas__Reply **reply)
{
	if (p->upkeep.orders.waiting)
		return;
	p->upkeep.orders.waiting = *reply;
	*reply = NULL;
	p->env->ops->wake(p->env, PS_KEEPER);
}

/* A mirror that was stopped may tell anew of an order that was carried out before others were. */
static bool was_taken_up(const struct perseas *p, const Perseas__Order *order)
{
	for (unsigned i = 0; i < PS_ORDERS_KEPT; i++)
		if (ps_id_equal(order->id, p->upkeep.orders.ids[i]))
			return true;
	return false;
}

/* One that takes a change back may bear the id of the order that it takes back. */
static void note_taken_up(struct perseas *p, const Perseas__Order *order)
{
	struct ps_orders *orders = &p->upkeep.orders;

	if (!was_taken_up(p, order))
		memcpy(orders->ids[orders->count++ % PS_ORDERS_KEPT], order->id.data, PS_ID_SIZE);
}

static void obey(struct perseas *p, const Perseas__Order *order)
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
		ps_change_obey_cancel(p, order->id.data);
		/* Else it is for another change than this one, and waits. */
		if (ps_id_equal(order->id, p->upkeep.change.id))
			note_taken_up(p, order);
		return;
	}
	if (p->upkeep.change.stage != PS_CHANGE_NONE || was_taken_up(p, order))
		return;
	note_taken_up(p, order);
	if (cancels)
		ps_change_obey_cancel(p, order->id.data);
	else
		ps_change_begin(p, &wanted, order->id.data);
}

void ps_orders_obey(struct perseas *p)
{
	Perseas__Reply *reply = p->upkeep.orders.waiting;

	ps_assert_admin(p);
	p->upkeep.orders.waiting = NULL;
	if (!reply)
		return;
	obey(p, reply->confirm->order);
	perseas__reply__free_unpacked(reply, NULL);
}

bool ps_orders_result(struct perseas *p, Perseas__OrderResult *result)
{
	static const uint8_t none[PS_ID_SIZE];
	struct ps_change *c = &p->upkeep.change;

	if (!memcmp(c->id, none, PS_ID_SIZE))
		return false;
	perseas__order_result__init(result);
	result->id = (ProtobufCBinaryData){ PS_ID_SIZE, c->id };
	result->done = c->stage == PS_CHANGE_NONE;
	result->code = result->done ? c->code : 0;
	result->text = c->text;
	return true;
}
