/*
 * order_entry.c - the order-entry workload: new orders, payments and deliveries.
 */
#include "order_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Constants of the non-uniform distribution, within TPC-C's limits. */
enum { SPREAD_CUSTOMERS = 1023, SPREAD_ITEMS = 8191, SHIFT_CUSTOMERS = 259, SHIFT_ITEMS = 7911 };

/* Indexes of the plan's sums. Amounts are cents. */
enum {
	ORDERS,
	PAYMENTS,
	DELIVERIES, /* delivered orders */
	PAID,
	DELIVERED,
	SOLD,   /* pieces sold */
	BILLED, /* with discounts and taxes */
};

static uint32_t warehouses_of(const struct work_plan *plan)
{
	return (uint32_t)plan->size;
}

/* TPC-C's NURand. Returns a number from 0 to count - 1. */
static uint32_t draw_skewed(struct work_plan *plan, uint32_t spread, uint32_t shift, uint32_t count)
{
	uint32_t a = work_below(&plan->state, spread + 1), b = work_below(&plan->state, count);

	return ((a | b) + shift) % count;
}

static uint32_t draw_customer(struct work_plan *plan)
{
	return draw_skewed(plan, SPREAD_CUSTOMERS, SHIFT_CUSTOMERS, ORDER_CUSTOMERS);
}

/* --- delivery ----------------------------------------------------------------------- */

/* Marks the lines of the order in `slot` as delivered. Returns their total amount. */
static int64_t deliver_lines(struct rows *rows, uint64_t slot, uint32_t lines, uint64_t now)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < lines && i < ORDER_LINES; i++) {
		uint64_t id = slot * ORDER_LINES + i;
		struct order_line *line = rows_write(rows, ORDER_LINE, id,
		                                     offsetof(struct order_line, delivered),
		                                     sizeof(line->delivered));

		line->delivered = now;
		sum += line->amount;
		rows_put(rows, ORDER_LINE, id, line);
	}
	return sum;
}

/* Marks the order in `slot` as delivered. Sets *lines to its number of lines and returns its
 * customer. */
static uint32_t deliver_order(struct rows *rows, uint64_t slot, uint32_t carrier, uint32_t *lines)
{
	struct order_new *waiting = rows_write(rows, ORDER_NEW, slot, 0, sizeof(*waiting));
	struct order_order *order;
	uint32_t customer;

	waiting->waiting = 0;
	rows_put(rows, ORDER_NEW, slot, waiting);
	order = rows_write(rows, ORDER_ORDER, slot, offsetof(struct order_order, carrier),
	                   sizeof(order->carrier));
	order->carrier = carrier;
	customer = order->customer;
	*lines = order->lines;
	rows_put(rows, ORDER_ORDER, slot, order);
	return customer;
}

/* Delivers the oldest undelivered order of a district, if there is one. */
static void deliver_district(struct rows *rows, struct work_plan *plan, uint64_t id,
                             uint32_t carrier)
{
	const struct order_district *seen = rows_read(rows, ORDER_DISTRICT, id);
	uint32_t number = seen->next_delivery, lines, customer_number;
	uint64_t slot = id * ORDER_RING + (number - 1) % ORDER_RING;
	struct order_district *district;
	struct order_customer *customer;
	int64_t sum;

	if (number == seen->next_order)
		return;
	district = rows_change(rows, seen, offsetof(struct order_district, next_delivery),
	                       sizeof(district->next_delivery));
	district->next_delivery = number + 1;
	rows_put(rows, ORDER_DISTRICT, id, district);
	customer_number = deliver_order(rows, slot, carrier, &lines);
	sum = deliver_lines(rows, slot, lines, plan->done);
	id = id * ORDER_CUSTOMERS + customer_number % ORDER_CUSTOMERS;
	customer = rows_write(rows, ORDER_CUSTOMER, id, 0,
	                      offsetof(struct order_customer, discount));
	customer->balance += sum;
	customer->deliveries++;
	rows_put(rows, ORDER_CUSTOMER, id, customer);
	plan->sums[DELIVERED] += sum;
	plan->sums[DELIVERIES]++;
}

static void deliver_warehouse(struct rows *rows, struct work_plan *plan)
{
	uint64_t first = (uint64_t)work_below(&plan->state, warehouses_of(plan)) * ORDER_DISTRICTS;
	uint32_t carrier = 1 + work_below(&plan->state, 10);

	for (unsigned i = 0; i < ORDER_DISTRICTS; i++)
		deliver_district(rows, plan, first + i, carrier);
}

/* --- new order ---------------------------------------------------------------------- */

struct basket {
	uint32_t warehouse, district, customer, lines;
	uint64_t slot; /* of the order */
	struct {
		uint32_t item, warehouse, quantity;
	} line[ORDER_LINES];
};

static bool in_basket(const struct basket *basket, uint32_t lines, uint32_t item)
{
	for (uint32_t i = 0; i < lines; i++)
		if (basket->line[i].item == item)
			return true;
	return false;
}

static void draw_basket(struct work_plan *plan, struct basket *basket)
{
	basket->warehouse = work_below(&plan->state, warehouses_of(plan));
	basket->district = work_below(&plan->state, ORDER_DISTRICTS);
	basket->customer = draw_customer(plan);
	basket->lines = 5 + work_below(&plan->state, 11);
	for (uint32_t i = 0; i < basket->lines; i++) {
		uint32_t item;

		do
			item = draw_skewed(plan, SPREAD_ITEMS, SHIFT_ITEMS, ORDER_ITEMS);
		while (in_basket(basket, i, item));
		basket->line[i].item = item;
		basket->line[i].quantity = 1 + work_below(&plan->state, 10);
		basket->line[i].warehouse = basket->warehouse;
		/* Another warehouse supplies one line in a hundred. */
		if (!work_below(&plan->state, 100))
			basket->line[i].warehouse = (basket->warehouse + 1) % warehouses_of(plan);
	}
}

/* Takes a line's pieces from the stock, and copies the stock's text about the district. */
static void take_stock(struct rows *rows, const struct basket *basket, uint32_t i,
                       uint8_t district[24])
{
	uint64_t id = (uint64_t)basket->line[i].warehouse * ORDER_ITEMS + basket->line[i].item;
	struct order_stock *stock = rows_write(rows, ORDER_STOCK, id, 0,
	                                       offsetof(struct order_stock, district));
	int32_t quantity = (int32_t)basket->line[i].quantity;

	stock->quantity -= quantity;
	if (stock->quantity < 10)
		stock->quantity += 91;
	stock->sold += quantity;
	stock->orders++;
	stock->remote += basket->line[i].warehouse != basket->warehouse;
	memcpy(district, stock->district[basket->district], 24);
	rows_put(rows, ORDER_STOCK, id, stock);
}

/* Writes line `i` of the order. Returns its amount. */
static int64_t order_line(struct rows *rows, const struct basket *basket, uint32_t i)
{
	const struct order_item *item = rows_read(rows, ORDER_ITEM, basket->line[i].item);
	struct order_line made = {
		.item = basket->line[i].item,
		.warehouse = basket->line[i].warehouse,
		.quantity = basket->line[i].quantity,
		.amount = basket->line[i].quantity * item->price,
	};
	uint64_t id = basket->slot * ORDER_LINES + i;
	struct order_line *line;

	take_stock(rows, basket, i, made.district);
	line = rows_new(rows, ORDER_LINE, id);
	*line = made;
	rows_put(rows, ORDER_LINE, id, line);
	return made.amount;
}

/* Writes the order's rows in the order and new-order tables. */
static void enter_order(struct rows *rows, const struct work_plan *plan,
                        const struct basket *basket, uint32_t number)
{
	struct order_order *order = rows_new(rows, ORDER_ORDER, basket->slot);
	struct order_new *waiting;

	*order = (struct order_order){
		.number = number,
		.customer = basket->customer,
		.lines = basket->lines,
		.entered = plan->done,
	};
	rows_put(rows, ORDER_ORDER, basket->slot, order);
	waiting = rows_new(rows, ORDER_NEW, basket->slot);
	*waiting = (struct order_new){ .number = number, .waiting = 1 };
	rows_put(rows, ORDER_NEW, basket->slot, waiting);
}

/* Makes the order with a number that the district has assigned. */
static void make_order(struct rows *rows, struct work_plan *plan, const struct basket *basket,
                       uint32_t number, uint32_t tax)
{
	const struct order_customer *customer;
	uint64_t district = (uint64_t)basket->warehouse * ORDER_DISTRICTS + basket->district;
	const struct order_warehouse *warehouse = rows_read(rows, ORDER_WAREHOUSE,
	                                                    basket->warehouse);
	int64_t sum = 0;
	uint32_t discount;

	tax += warehouse->tax;
	customer = rows_read(rows, ORDER_CUSTOMER, district * ORDER_CUSTOMERS + basket->customer);
	discount = customer->discount;
	enter_order(rows, plan, basket, number);
	for (uint32_t i = 0; i < basket->lines; i++) {
		sum += order_line(rows, basket, i);
		plan->sums[SOLD] += basket->line[i].quantity;
	}
	plan->sums[BILLED] += sum * (10000 - discount) / 10000 * (10000 + tax) / 10000;
	plan->sums[ORDERS]++;
}

static void new_order(struct rows *rows, struct work_plan *plan)
{
	const struct order_district *seen;
	struct order_district *district;
	struct basket basket;
	uint32_t number, tax;
	uint64_t id;

	draw_basket(plan, &basket);
	id = (uint64_t)basket.warehouse * ORDER_DISTRICTS + basket.district;
	seen = rows_read(rows, ORDER_DISTRICT, id);
	if (seen->next_order - seen->next_delivery == ORDER_RING) {
		deliver_warehouse(rows, plan);
		return;
	}
	district = rows_change(rows, seen, offsetof(struct order_district, next_order),
	                       sizeof(district->next_order));
	number = district->next_order++;
	tax = district->tax;
	rows_put(rows, ORDER_DISTRICT, id, district);
	basket.slot = id * ORDER_RING + (number - 1) % ORDER_RING;
	make_order(rows, plan, &basket, number, tax);
}

/* --- payment ------------------------------------------------------------------------ */

static void pay_district(struct rows *rows, uint32_t warehouse_id, uint64_t id, int64_t amount)
{
	rows_add_i64(rows, ORDER_WAREHOUSE, warehouse_id, offsetof(struct order_warehouse, paid),
	             amount);
	rows_add_i64(rows, ORDER_DISTRICT, id, offsetof(struct order_district, paid), amount);
}

/* Inserts the payment at the front of the customer's notes and drops the oldest bytes. */
static void note_payment(struct order_customer *customer, const struct order_payment *payment)
{
	memmove(customer->notes + sizeof(*payment), customer->notes,
	        sizeof(customer->notes) - sizeof(*payment));
	memcpy(customer->notes, payment, sizeof(*payment));
}

static void pay_customer(struct rows *rows, uint64_t id, const struct order_payment *payment)
{
	const struct order_customer *seen = rows_read(rows, ORDER_CUSTOMER, id);
	size_t len = seen->bad_credit ? sizeof(*seen) : offsetof(struct order_customer, discount);
	struct order_customer *customer = rows_change(rows, seen, 0, len);

	customer->balance -= payment->amount;
	customer->paid += payment->amount;
	customer->payments++;
	if (customer->bad_credit)
		note_payment(customer, payment);
	rows_put(rows, ORDER_CUSTOMER, id, customer);
}

static void make_payment(struct rows *rows, struct work_plan *plan)
{
	struct order_payment made = { .number = (uint64_t)++plan->sums[PAYMENTS] }, *payment;
	uint64_t place = (made.number - 1) % ORDER_HISTORY;
	uint32_t home, of;

	made.warehouse = work_below(&plan->state, warehouses_of(plan));
	made.district = work_below(&plan->state, ORDER_DISTRICTS);
	made.customer = draw_customer(plan);
	made.amount = 100 + (int64_t)work_below(&plan->state, 499901);
	home = made.warehouse * ORDER_DISTRICTS + made.district;
	of = home;
	/* 15 of a hundred customers pay at another warehouse. */
	if (work_below(&plan->state, 100) < 15)
		of = (made.warehouse + 1) % warehouses_of(plan) * ORDER_DISTRICTS +
		     work_below(&plan->state, ORDER_DISTRICTS);
	pay_district(rows, made.warehouse, home, made.amount);
	pay_customer(rows, (uint64_t)of * ORDER_CUSTOMERS + made.customer, &made);
	payment = rows_new(rows, ORDER_PAYMENT, place);
	*payment = made;
	rows_put(rows, ORDER_PAYMENT, place, payment);
	plan->sums[PAID] += made.amount;
}

/* --- the workload -------------------------------------------------------------------- */

static int order_step(void *ctx)
{
	struct work_run *run = ctx;
	struct rows *rows = &run->rows;
	struct work_plan *plan = &run->plan;
	uint32_t kind = work_below(&plan->state, 92);

	plan->done++;
	if (rows_begin(rows))
		return rows->code;
	if (kind < 45)
		new_order(rows, plan);
	else if (kind < 88)
		make_payment(rows, plan);
	else
		deliver_warehouse(rows, plan);
	return rows_commit(rows);
}

static unsigned order_tables(uint64_t size, struct engine_table *table)
{
	const uint64_t districts = size * ORDER_DISTRICTS;
	const struct engine_table all[ORDER_TABLES] = {
		[ORDER_WAREHOUSE] = { size, sizeof(struct order_warehouse) },
		[ORDER_DISTRICT] = { districts, sizeof(struct order_district) },
		[ORDER_CUSTOMER] = { districts * ORDER_CUSTOMERS, sizeof(struct order_customer) },
		[ORDER_STOCK] = { size * ORDER_ITEMS, sizeof(struct order_stock) },
		[ORDER_ITEM] = { ORDER_ITEMS, sizeof(struct order_item) },
		[ORDER_ORDER] = { districts * ORDER_RING, sizeof(struct order_order) },
		[ORDER_NEW] = { districts * ORDER_RING, sizeof(struct order_new) },
		[ORDER_LINE] = { districts * ORDER_RING * ORDER_LINES, sizeof(struct order_line) },
		[ORDER_PAYMENT] = { ORDER_HISTORY, sizeof(struct order_payment) },
	};

	if (!size || size > ORDER_WAREHOUSES_MAX)
		return 0;
	memcpy(table, all, sizeof(all));
	return ORDER_TABLES;
}

static void fill_stock(const struct rows *view, uint64_t *state)
{
	for (uint64_t i = 0; i < view->tables[ORDER_STOCK].count; i++) {
		struct order_stock *stock = rows_at(view, ORDER_STOCK, i);

		stock->quantity = 10 + (int32_t)work_below(state, 91);
		memset(stock->district, 'a' + (int)(i % 26), sizeof(stock->district));
	}
	for (uint64_t i = 0; i < ORDER_ITEMS; i++) {
		struct order_item *item = rows_at(view, ORDER_ITEM, i);

		item->price = 100 + (int64_t)work_below(state, 9901);
	}
}

static void fill_tables(void *image, uint64_t size)
{
	const struct rows view = work_view(&order_entry_work, size, image);
	uint64_t state = WORK_SEED;

	for (uint64_t i = 0; i < size; i++)
		((struct order_warehouse *)rows_at(&view, ORDER_WAREHOUSE, i))->tax =
			work_below(&state, 2001);
	for (uint64_t i = 0; i < view.tables[ORDER_DISTRICT].count; i++) {
		struct order_district *district = rows_at(&view, ORDER_DISTRICT, i);

		district->tax = work_below(&state, 2001);
		district->next_order = district->next_delivery = 1;
	}
	for (uint64_t i = 0; i < view.tables[ORDER_CUSTOMER].count; i++) {
		struct order_customer *customer = rows_at(&view, ORDER_CUSTOMER, i);

		customer->discount = work_below(&state, 5001);
		customer->bad_credit = !work_below(&state, 10);
	}
	fill_stock(&view, &state);
}

/* The columns that the check adds up. */
static const struct work_column columns[] = {
#define PLAIN WORK_NO_SUM, 0
	{ "payments to warehouses", WORK_COLUMN(ORDER_WAREHOUSE, order_warehouse, paid), PAID,
	  PLAIN },
	{ "payments to districts", WORK_COLUMN(ORDER_DISTRICT, order_district, paid), PAID, PLAIN },
	{ "payments by customers", WORK_COLUMN(ORDER_CUSTOMER, order_customer, paid), PAID, PLAIN },
	{ "numbers of payments", WORK_COLUMN(ORDER_CUSTOMER, order_customer, payments), PAYMENTS,
	  PLAIN },
	{ "customers' balances", WORK_COLUMN(ORDER_CUSTOMER, order_customer, balance), DELIVERED,
	  PAID, 0 },
	{ "pieces sold", WORK_COLUMN(ORDER_STOCK, order_stock, sold), SOLD, PLAIN },
	{ "orders", WORK_COLUMN(ORDER_DISTRICT, order_district, next_order), ORDERS, WORK_NO_SUM,
	  1 },
	{ "deliveries of districts", WORK_COLUMN(ORDER_DISTRICT, order_district, next_delivery),
	  DELIVERIES, WORK_NO_SUM, 1 },
	{ "deliveries to customers", WORK_COLUMN(ORDER_CUSTOMER, order_customer, deliveries),
	  DELIVERIES, PLAIN },
	{ "orders that wait", WORK_COLUMN(ORDER_NEW, order_new, waiting), ORDERS, DELIVERIES, 0 },
};

static bool check_sums(const struct work_plan *plan, const void *image, char *why,
                       unsigned why_size)
{
	return work_check_columns(&order_entry_work, plan, image, columns,
	                          sizeof(columns) / sizeof(*columns), why, why_size);
}

const struct work order_entry_work = {
	.name = "order-entry",
	.sizes = "warehouses, of 65 MB: 1 to 64",
	.size = 1,
	.tables = order_tables,
	.fill = fill_tables,
	.step = order_step,
	.check = check_sums,
};
