/*
 * order_entry.h - the order-entry workload: the three transactions of TPC-C that write (new-order,
 * payment, delivery; 45 : 43 : 4), the variant that Vista and PERSEAS were measured with.
 *
 * Rows have TPC-C's sizes, rounded up to 8 bytes. Customers and items are drawn from TPC-C's
 * non-uniform distribution. One customer in ten has bad credit, whose payments rewrite 500 bytes.
 * The workload differs from TPC-C in these points: customers are found by number, never by name; no
 * order is rolled back; terminals have no think time; each district stores its orders in a ring of
 * 1024 rows, and a new order that finds the ring full delivers orders instead.
 */
#ifndef PERSEAS_BENCH_ORDER_ENTRY_H
#define PERSEAS_BENCH_ORDER_ENTRY_H

#include "work.h"

#include <assert.h>

enum {
	ORDER_DISTRICTS = 10,   /* per warehouse */
	ORDER_CUSTOMERS = 3000, /* per district */
	ORDER_ITEMS = 100000,
	ORDER_RING = 1024, /* orders per district */
	ORDER_LINES = 15,  /* per order, at most */
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
	int64_t paid; /* this year, in cents; all amounts are in cents */
	uint32_t tax; /* in units of 1/10000 */
	uint8_t rest[84];
};
static_assert(sizeof(struct order_warehouse) == 96, "89 bytes in TPC-C");

struct order_district {
	int64_t paid;
	uint32_t next_order;    /* number of the next order, from 1 */
	uint32_t next_delivery; /* number of the oldest order that is not delivered */
	uint32_t tax;
	uint8_t rest[76];
};
static_assert(sizeof(struct order_district) == 96, "95 bytes in TPC-C");

struct order_customer {
	int64_t balance;
	int64_t paid;
	uint32_t payments;
	uint32_t deliveries;
	uint32_t discount; /* in units of 1/10000 */
	uint32_t bad_credit;
	uint8_t rest[116];
	uint8_t notes[508]; /* the last payments, newest first, if credit is bad */
};
static_assert(sizeof(struct order_customer) == 656, "655 bytes in TPC-C");

struct order_stock {
	int32_t quantity;
	uint32_t orders;
	uint32_t remote; /* orders placed at other warehouses */
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
	uint32_t waiting; /* 1: not delivered yet */
};
static_assert(sizeof(struct order_new) == 8, "new-order layout");

struct order_line {
	uint32_t item;
	uint32_t warehouse; /* the supplier */
	uint32_t quantity;
	uint32_t zero;
	int64_t amount;
	uint64_t delivered; /* number of the delivering transaction; 0: not delivered */
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

/* The workload "order-entry"; its size is the number of warehouses. */
extern const struct work order_entry_work;

#endif
