/*
 * operator_orders.h - what operators ask of this owner: mirrors tell it with their answers to signs
 * of life. Admin.
 */
#ifndef PERSEAS_CLIENT_OPERATOR_ORDERS_H
#define PERSEAS_CLIENT_OPERATOR_ORDERS_H

#include "../core/handle.h"

/* An order came with this mirror's answer, which is taken over unless another one waits: then it is
 * told again. Nothing is done yet: whoever takes answers may be in the middle of something. */
void ps_orders_note(struct perseas *p, struct ps_mirror *m, Perseas__Reply **reply);

/* This owner is asked to let go: the application is told, once. */
void ps_orders_handover(struct perseas *p, const Perseas__Handover *handover);

/* Begins what is ordered, or takes it back. The keeper calls it. */
void ps_orders_obey(struct perseas *p);

/* The change that is over is about to be forgotten, for the next one: if it was ordered, its end is
 * kept for mirrors that have not been told of it. */
void ps_orders_keep_end(struct perseas *p);

/* Sets the result that mirror `m` is told: the end of the order that `m` passed on, if the owner
 * carried that order out before the last one, and otherwise the progress of the last order. Returns
 * false if there was no order. */
bool ps_orders_result(struct perseas *p, struct ps_mirror *m, Perseas__OrderResult *result);

#endif
