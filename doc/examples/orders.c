/*
 * orders.c - an order of several items in one transaction: if an item is out of stock, its part is
 * rolled back, and the rest is ordered.
 *
 *     orders LIST
 */
#include <perseas.h>

#include <stdio.h>

enum { ITEMS = 3 };

struct shop {
	int stock[ITEMS];
	int ordered[ITEMS];
	char note[80];
};

/* begin item */
/* Takes an item out of stock. After an error the caller undoes the changes. */
static int take_item(perseas_tx_t *tx, struct shop *shop, int item, int pieces)
{
	int rc = perseas_set_range(tx, shop, sizeof(*shop));

	if (rc)
		return rc;
	shop->ordered[item] += pieces;
	snprintf(shop->note, sizeof(shop->note), "last: item %d", item);
	if (shop->stock[item] < pieces)
		return PERSEAS_ELIMIT;
	shop->stock[item] -= pieces;
	return 0;
}

static int order(perseas_t *p, struct shop *shop, const int *pieces)
{
	perseas_tx_t *tx;
	uint64_t before;
	int rc = perseas_begin(p, 0, &tx);

	if (rc)
		return rc;
	for (int item = 0; item < ITEMS && !rc; item++) {
		rc = perseas_savepoint(tx, &before);
		if (!rc)
			rc = take_item(tx, shop, item, pieces[item]);
		if (rc == PERSEAS_ELIMIT)
			rc = perseas_rollback_to(tx, before); /* undoes this item only */
	}
	if (rc) {
		perseas_abort(tx);
		return rc;
	}
	rc = perseas_commit(tx, 0);
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}
/* end item */

int main(int argc, char **argv)
{
	static const int pieces[ITEMS] = { 1, 9, 2 };
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct perseas_segment_info info;
	struct shop *shop;
	void *memory;
	perseas_t *p;
	int rc;

	if (argc != 2)
		return 2;
	options.flags = PERSEAS_CREATE | PERSEAS_CHECK_WRITES;
	options.log_size = 1 << 20; /* the transactions are small */
	if (perseas_open("shop", argv[1], &options, &p)) {
		fprintf(stderr, "orders: %s\n", perseas_message(NULL));
		return 1;
	}
	rc = perseas_map(p, "shop", sizeof(*shop), &memory);
	if (!rc)
		rc = perseas_segment(p, "shop", &info);
	shop = (struct shop *)memory;
	if (!rc && !info.published) {
		for (int item = 0; item < ITEMS; item++)
			shop->stock[item] = 5;
		rc = perseas_publish(p);
	}
	if (!rc)
		rc = order(p, shop, pieces);
	if (rc) {
		fprintf(stderr, "orders: %s: %s\n", perseas_error_name(rc), perseas_message(p));
		return 1;
	}
	for (int item = 0; item < ITEMS; item++)
		printf("item %d: %d ordered, %d left\n", item, shop->ordered[item],
		       shop->stock[item]);
	printf("%s\n", shop->note);
	return perseas_close(p);
}
