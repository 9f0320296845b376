/*
 * orders.h - what operators ask of this owner: mirrors tell it with their answers to signs of life.
 * Admin.
 */
#ifndef PERSEAS_CLIENT_ORDERS_H
#define PERSEAS_CLIENT_ORDERS_H

#include "../core/handle.h"

/* An order came with this answer, which is taken over unless another one waits: then it is told
 * again. Nothing is done yet: whoever takes answers may be in the middle of something. */
void ps_orders_note(struct perseas *p, Perseas__Reply **reply);

/* This owner is asked to let go: the application is told, once. */
void ps_orders_handover(struct perseas *p, const Perseas__Handover *handover);

/* Begins what is ordered, or takes it back. The keeper calls it. */
void ps_orders_obey(struct perseas *p);

/* How far the order is that was taken up last. False: there was none. */
bool ps_orders_result(struct perseas *p, Perseas__OrderResult *result);

#endif
