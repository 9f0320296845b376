/*
 * forgotten.c - two mistakes that stay hidden until a mirror is needed, and how the checked modes
 * find them.
 *
 *     forgotten LIST
 */
#include <perseas.h>

#include <stddef.h>
#include <stdio.h>

struct order {
	long number;
	long pieces;
};

static void say(const perseas_t *p, const char *what, int rc)
{
	printf("%s: %s%s%s\n", what, perseas_error_name(rc), rc ? ": " : "",
	       rc ? perseas_message(p) : "");
}

/* begin mistakes */
/* Declares one field, and changes two. */
static void forgets_a_field(perseas_t *p, struct order *order)
{
	perseas_tx_t *tx;

	if (perseas_begin(p, 0, &tx) ||
	    perseas_set_range(tx, &order->number, sizeof(order->number)))
		return;
	order->number = 1;
	order->pieces = 10;
	say(p, "forgets", perseas_commit(tx, 0));
	/* The transaction is still open. Abort restores declared bytes only, so a program that gets
	 * here should end, and be corrected. */
	perseas_abort(tx);
	order->pieces = 0;
}

/* Opens two transactions on the same bytes at the same time, as two threads might. */
static void overlaps(perseas_t *p, struct order *order)
{
	perseas_tx_t *one, *other;

	if (perseas_begin(p, 0, &one) || perseas_begin(p, 0, &other))
		return;
	say(p, "one", perseas_set_range(one, order, sizeof(*order)));
	say(p, "other", perseas_set_range(other, &order->pieces, sizeof(order->pieces)));
	perseas_abort(other);
	perseas_abort(one);
}
/* end mistakes */

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	void *memory;
	perseas_t *p;

	if (argc != 2)
		return 2;
	options.flags = PERSEAS_CREATE | PERSEAS_CHECK_WRITES | PERSEAS_CHECK_OVERLAP;
	if (perseas_open("orders", argv[1], &options, &p)) {
		fprintf(stderr, "forgotten: %s\n", perseas_message(NULL));
		return 1;
	}
	if (perseas_map(p, "orders", sizeof(struct order), &memory) || perseas_publish(p)) {
		fprintf(stderr, "forgotten: %s\n", perseas_message(p));
		return 1;
	}
	forgets_a_field(p, (struct order *)memory);
	overlaps(p, (struct order *)memory);
	printf("the field that was forgotten begins at byte %zu\n", offsetof(struct order, pieces));
	return perseas_close(p);
}
