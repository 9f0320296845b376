/*
 * operator_orders.h - the orders that operators give this owner. Mirrors pass them on in their
 * answers to heartbeats. Callers hold admin, or close the handle.
 */
#ifndef PERSEAS_CLIENT_OPERATOR_ORDERS_H
#define PERSEAS_CLIENT_OPERATOR_ORDERS_H

#include "../core/handle.h"

/* Takes over the order in this mirror's answer, unless another order waits; then the mirror will
 * pass it on again. Only notes the order: the caller may be in the middle of other work. */
void ps_orders_keep_answer_with_order(struct perseas *p, struct ps_mirror *m,
                                      Perseas__Reply **reply);

/* Tells the application, once, that this owner is asked to hand the store over. */
void ps_orders_tell_application_of_handover(struct perseas *p, const Perseas__Handover *handover);

/* Carries out the waiting order: begins the change or the repair that it asks for, or takes a
 * change back. The keeper calls this. */
void ps_orders_carry_out_waiting_order(struct perseas *p);

/* Returns where the result of the order with this id is saved, and makes room for it if it has none
 * yet. */
struct ps_order_result *ps_orders_find_or_make_result(struct perseas *p, const uint8_t *id);

/* Saves the result of the finished change, if it was ordered, before the next change replaces it.
 * Mirrors that have not been told of the result still get it. */
void ps_orders_save_change_result(struct perseas *p);

/* Sets the result that mirror `m` is told: the end of the order that `m` passed on, if the owner
 * carried that order out before the last one, and otherwise the progress of the last order. Returns
 * false if there was no order. */
bool ps_orders_fill_result_for_mirror(struct perseas *p, struct ps_mirror *m,
                                      Perseas__OrderResult *result);

#endif
