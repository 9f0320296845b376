/*
 * test_tree.c - the ordered map of doc/examples/tree.h.
 */
#include "container_locks.h"

#include <endian.h>

#include "../../doc/examples/tree.c"

static struct tree tree;

static struct tree_bytes bytes(struct text text)
{
	return (struct tree_bytes){ text.at, text.size };
}

static int open_tree(perseas_t *p, perseas_heap_t *heap)
{
	return tree_open(p, heap, "tree", &tree);
}

static int insert(perseas_tx_t *tx, struct text key, struct text value)
{
	return tree_insert(tx, &tree, bytes(key), bytes(value));
}

static int put(perseas_tx_t *tx, struct text key, struct text value)
{
	return tree_put(tx, &tree, bytes(key), bytes(value));
}

static int get(perseas_tx_t *tx, struct text key, struct text *value)
{
	struct tree_bytes found = { NULL, 0 };
	int rc = tree_get(tx, &tree, bytes(key), &found);

	*value = (struct text){ found.at, found.size };
	return rc;
}

static int take_out(perseas_tx_t *tx, struct text key)
{
	return tree_remove(tx, &tree, bytes(key));
}

static int walk(perseas_tx_t *tx, visit_fn *visit, void *arg)
{
	struct tree_bytes key = { NULL, 0 }, value;
	int rc = tree_next(tx, &tree, TREE_FROM, &key, &value);

	while (!rc) {
		rc = visit(arg, (struct text){ key.at, key.size },
		           (struct text){ value.at, value.size });
		if (!rc)
			rc = tree_next(tx, &tree, TREE_AFTER, &key, &value);
	}
	return rc == 1 ? 0 : rc;
}

static int count(perseas_tx_t *tx, uint64_t *number)
{
	return tree_count(tx, &tree, number);
}

static bool follows(struct text before, struct text key)
{
	const size_t size = before.size < key.size ? before.size : key.size;
	const int order = size ? memcmp(before.at, key.at, size) : 0;

	return order < 0 || (order == 0 && before.size < key.size);
}

static const struct container map = { TREE_NODE, open_tree, insert, put,    get,
	                              take_out,  walk,      count,  follows };
static const struct container *const container = &map;

/* No node weighs more than the one above it. How many nodes are below, and how high that is. */
static unsigned check_weights(const struct node *node, unsigned *height)
{
	unsigned left = 0, right = 0, below;

	*height = 0;
	if (!node)
		return 0;
	assert_true(!node->left || node->left->weight <= node->weight);
	assert_true(!node->right || node->right->weight <= node->weight);
	below = check_weights(node->left, &left) + check_weights(node->right, &right);
	*height = 1 + (left > right ? left : right);
	return below + 1;
}

/* Keys that come in their order make no list of it, and keys that go leave no hole. */
TEST(test_a_map_stays_low, struct owner *o)
{
	enum { KEYS = 5000 };
	perseas_tx_t *tx;
	unsigned height;

	open_container(o, 0);
	for (unsigned i = 0; i < KEYS; i += 10) {
		tx = owner_tx(o);
		for (unsigned k = i; k < i + 10; k++) {
			const uint32_t key = htobe32(k);
			const struct text text = { &key, sizeof(key) };

			assert_int_equal(insert(tx, text, text), 0);
			if (k % 3 == 0)
				assert_int_equal(take_out(tx, text), 0);
		}
		assert_int_equal(perseas_commit(tx, 0), 0);
	}
	assert_int_equal(check_weights(tree.top->root, &height), tree.top->count);
	assert_int_equal(tree.top->count, KEYS - (KEYS + 2) / 3);
	assert_in_range(height, 12, 40);
}

/* The next key from one that is there, from one that is not, and behind the last. */
TEST(test_the_next_key_from_any, struct owner *o)
{
	struct tree_bytes key, value;
	perseas_tx_t *tx;

	open_container(o, 0);
	tx = owner_tx(o);
	for (const char *at = "bdf"; *at; at++)
		assert_int_equal(insert(tx, (struct text){ at, 1 }, (struct text){ at, 1 }), 0);
	for (unsigned from = TREE_FROM; from <= TREE_AFTER; from++) {
		for (char c = 'a'; c < 'h'; c++) {
			const char *next = from == TREE_FROM ? "bbddff" : "bddff";
			const size_t left = strlen(next), at = (size_t)(c - 'a');

			key = (struct tree_bytes){ &c, 1 };
			assert_int_equal(tree_next(tx, &tree, from, &key, &value),
			                 at < left ? 0 : 1);
			if (at < left)
				assert_int_equal(*(const char *)key.at, next[at]);
			else
				assert_ptr_equal(key.at, &c);
		}
	}
	assert_int_equal(perseas_commit(tx, 0), 0);
}
