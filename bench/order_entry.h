/*
 * order_entry.h - the order-entry workload: the three transactions of TPC-C that write (new-order,
 * payment, delivery; 45 : 43 : 4), the variant that Vista and PERSEAS were measured with.
 *
 * Rows have TPC-C's sizes, rounded up to 8 bytes, customers and items are taken by its non-uniform
 * distribution, and one in ten customers has bad credit, so that a payment rewrites 500 bytes. It
 * differs from TPC-C in this: customers are found by number, never by name; no order is rolled
 * back; terminals do not think; the rows of orders are rings of 1024 a district, and a new order
 * that finds its ring full delivers instead.
 */
#ifndef PERSEAS_BENCH_ORDER_ENTRY_H
#define PERSEAS_BENCH_ORDER_ENTRY_H

#include "work.h"

#include <assert.h>

enum {
	ORDER_DISTRICTS = 10,   /* of a warehouse */
	ORDER_CUSTOMERS = 3000, /* of a district */
	ORDER_ITEMS = 100000,
	ORDER_RING = 1024, /* orders of a district */
	ORDER_LINES = 15,  /* of an order, at most */
	ORDER_HISTORY = 32768,
	ORDER_WAREHOUSES_MAX = 256,
};

enum {
	ORDER_WAREHOUSE,
	ORDER_DISTRICT,
	ORDER_CUSTOMER,
	ORDER_STOCK,
	ORDER_ITEM,
	ORDER_ORDER,
	ORDER_NEW,
	ORDER_LINE,
	ORDER_PAYMENT,
	ORDER_TABLES,
};

struct order_warehouse {
	int64_t paid; /* this year; amounts are cents */
	uint32_t tax; /* of 10000 */
	uint8_t rest[84];
};
static_assert(sizeof(struct order_warehouse) == 96, "89 bytes in TPC-C");

struct order_district {
	int64_t paid;
	uint32_t next_order;    /* number of the next order, from 1 */
	uint32_t next_delivery; /* of the oldest that is not delivered */
	uint32_t tax;
	uint8_t rest[76];
};
static_assert(sizeof(struct order_district) == 96, "95 bytes in TPC-C");

struct order_customer {
	int64_t balance;
	int64_t paid;
	uint32_t payments;
	uint32_t deliveries;
	uint32_t discount; /* of 10000 */
	uint32_t bad_credit;
	uint8_t rest[116];
	uint8_t notes[508]; /* of the payments, when credit is bad: the newest first */
};
static_assert(sizeof(struct order_customer) == 656, "655 bytes in TPC-C");

struct order_stock {
	int32_t quantity;
	uint32_t orders;
	uint32_t remote; /* orders from other warehouses */
	uint32_t zero;
	int64_t sold;
	uint8_t district[ORDER_DISTRICTS][24];
	uint8_t rest[48];
};
static_assert(sizeof(struct order_stock) == 312, "306 bytes in TPC-C");

struct order_item {
	int64_t price;
	uint8_t rest[80];
};
static_assert(sizeof(struct order_item) == 88, "82 bytes in TPC-C");

struct order_order {
	uint32_t number;
	uint32_t customer;
	uint32_t lines;
	uint32_t carrier; /* 0: not delivered */
	uint64_t entered; /* number of the transaction */
};
static_assert(sizeof(struct order_order) == 24, "order layout");

struct order_new {
	uint32_t number;
	uint32_t waiting; /* 1: for its delivery */
};
static_assert(sizeof(struct order_new) == 8, "new-order layout");

struct order_line {
	uint32_t item;
	uint32_t warehouse; /* that supplies it */
	uint32_t quantity;
	uint32_t zero;
	int64_t amount;
	uint64_t delivered; /* number of the transaction; 0: not yet */
	uint8_t district[24];
};
static_assert(sizeof(struct order_line) == 56, "54 bytes in TPC-C");

struct order_payment {
	uint64_t number; /* of the payment, from 1 */
	int64_t amount;
	uint32_t customer, district, warehouse, zero;
	uint8_t rest[16];
};
static_assert(sizeof(struct order_payment) == 48, "46 bytes in TPC-C");

/* "order-entry"; its size is the warehouses'. */
extern const struct work order_entry_work;

#endif
