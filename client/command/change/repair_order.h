/*
 * repair_order.h - has the live owner of a store repair its mirrors, for perseas verify --repair.
 */
#ifndef PERSEAS_COMMAND_REPAIR_ORDER_H
#define PERSEAS_COMMAND_REPAIR_ORDER_H

#include "../ui/args.h"

/* Orders the repair, and follows it for at most args->wait_ms. If the store has no owner, says what
 * to do instead, or nothing unless its mirrors `differ`. */
enum ps_exit ps_repair_by_owner(const struct ps_args *args, bool differ);

#endif
