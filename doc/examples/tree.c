/*
 * tree.c - a treap in a heap (tree.h): a search tree by keys, in which no node weighs more than its
 * parent. A node's weight is a hash of its key, so the tree is about as low as a random one, and
 * its shape does not depend on the order of insertions. A change stores to a few pointers. The code
 * declares every object before it changes it, or has allocated it in the same transaction.
 */
#include "tree.h"

#include <string.h>

/* begin types */
struct node {
	struct node *left, *right; /* smaller keys, larger keys */
	uint64_t weight;
	uint32_t key_size, value_size;
	/* The key follows, then the value, each at a multiple of 8. */
};

struct tree_top {
	struct node *root;
	uint64_t count;
};
/* end types */

static size_t round_up(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

static char *key_of(struct node *node)
{
	return (char *)(node + 1);
}

static char *value_of(struct node *node)
{
	return key_of(node) + round_up(node->key_size);
}

/* An attacker who can choose the keys can make the tree high. A program that strangers use needs a
 * hash function with a secret instead. */
static uint64_t weight_of(struct tree_bytes key)
{
	const unsigned char *bytes = (const unsigned char *)key.at;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < key.size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
	return hash ^ hash >> 32;
}

/* Returns a number below, equal to or above 0 if the key is less than, equal to or greater than the
 * node's key. */
static int compare(struct tree_bytes key, struct node *node)
{
	size_t size = key.size < node->key_size ? key.size : node->key_size;
	int order = size ? memcmp(key.at, key_of(node), size) : 0;

	return order ? order : (key.size > node->key_size) - (key.size < node->key_size);
}

/* Returns the pointer that leads to the key's node, or the NULL pointer where it would be. */
static struct node **find(struct node **at, struct tree_bytes key)
{
	int order;

	while (*at && (order = compare(key, *at)) != 0)
		at = order < 0 ? &(*at)->left : &(*at)->right;
	return at;
}

/* Sets a pointer of the tree to another node. */
static int set_link(perseas_tx_t *tx, struct node **at, struct node *to)
{
	int rc = 0;

	if (*at != to)
		rc = perseas_set_range(tx, at, sizeof(*at));
	if (!rc)
		*at = to;
	return rc;
}

/* Inserts a node above all nodes that weigh less, and splits these by its key. */
static int link_node(perseas_tx_t *tx, struct node **at, struct node *node, struct tree_bytes key)
{
	struct node *rest, **left = &node->left, **right = &node->right;
	int rc;

	while (*at && (*at)->weight > node->weight)
		at = compare(key, *at) < 0 ? &(*at)->left : &(*at)->right;
	rest = *at;
	rc = set_link(tx, at, node);
	while (rest && !rc) {
		if (compare(key, rest) < 0) {
			rc = set_link(tx, right, rest);
			right = &rest->left;
			rest = rest->left;
		} else {
			rc = set_link(tx, left, rest);
			left = &rest->right;
			rest = rest->right;
		}
	}
	if (!rc)
		rc = set_link(tx, left, NULL);
	return rc ? rc : set_link(tx, right, NULL);
}

/* Removes a node: its children take its place, ordered by weight. */
static int unlink_node(perseas_tx_t *tx, struct node **at, const struct node *node)
{
	struct node *left = node->left, *right = node->right;
	int rc = 0;

	while (left && right && !rc) {
		if (left->weight > right->weight) {
			rc = set_link(tx, at, left);
			at = &left->right;
			left = left->right;
		} else {
			rc = set_link(tx, at, right);
			at = &right->left;
			right = right->left;
		}
	}
	return rc ? rc : set_link(tx, at, left ? left : right);
}

/* Two objects have different addresses, so no other container uses this number for a lock. */
static int lock(perseas_tx_t *tx, const struct tree *tree, int mode)
{
	return perseas_lock(tx, (uint64_t)(uintptr_t)tree->top, mode);
}

/* Allocates a node, which is not in the tree yet. */
static int make_node(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
                     struct tree_bytes value, struct node **node)
{
	size_t size = sizeof(**node) + round_up(key.size) + value.size;
	void *object;
	int rc;

	if (key.size > UINT32_MAX || value.size > UINT32_MAX)
		return PERSEAS_ETOOBIG;
	rc = perseas_alloc(tx, tree->heap, size, TREE_NODE, &object);
	if (rc)
		return rc;
	*node = (struct node *)object;
	(*node)->left = (*node)->right = NULL;
	(*node)->weight = weight_of(key);
	(*node)->key_size = (uint32_t)key.size;
	(*node)->value_size = (uint32_t)value.size;
	if (key.size)
		memcpy(key_of(*node), key.at, key.size);
	if (value.size)
		memcpy(value_of(*node), value.at, value.size);
	return 0;
}

/* Overwrites a value of the same size. A value of another size needs a new node in its place. */
static int replace(perseas_tx_t *tx, const struct tree *tree, struct node **at,
                   struct tree_bytes key, struct tree_bytes value)
{
	struct node *old = *at, *node;
	int rc;

	if (old->value_size == value.size) {
		rc = perseas_set_range(tx, value_of(old), value.size);
		if (!rc && value.size)
			memmove(value_of(old), value.at, value.size);
		return rc;
	}
	rc = make_node(tx, tree, key, value, &node);
	if (!rc)
		rc = perseas_free(tx, tree->heap, old);
	if (rc)
		return rc;
	node->left = old->left;
	node->right = old->right;
	return set_link(tx, at, node);
}

static int store(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
                 struct tree_bytes value, int replaces)
{
	struct tree_top *top = tree->top;
	struct node **at, *node;
	int rc = lock(tx, tree, PERSEAS_LOCK_EXCLUSIVE);

	if (rc)
		return rc;
	at = find(&top->root, key);
	if (*at)
		return replaces ? replace(tx, tree, at, key, value) : 1;
	rc = make_node(tx, tree, key, value, &node);
	if (!rc)
		rc = link_node(tx, &top->root, node, key);
	if (!rc)
		rc = perseas_set_range(tx, &top->count, sizeof(top->count));
	if (!rc)
		top->count++;
	return rc;
}

int tree_insert(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
                struct tree_bytes value)
{
	return store(tx, tree, key, value, 0);
}

int tree_put(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
             struct tree_bytes value)
{
	return store(tx, tree, key, value, 1);
}

static void tell(struct node *node, struct tree_bytes *key, struct tree_bytes *value)
{
	key->at = key_of(node);
	key->size = node->key_size;
	value->at = value_of(node);
	value->size = node->value_size;
}

int tree_get(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
             struct tree_bytes *value)
{
	struct node *node;
	int rc = lock(tx, tree, PERSEAS_LOCK_SHARED);

	if (rc)
		return rc;
	node = *find(&tree->top->root, key);
	if (!node)
		return 1;
	tell(node, &key, value);
	return 0;
}

int tree_remove(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key)
{
	struct tree_top *top = tree->top;
	struct node **at, *node;
	int rc = lock(tx, tree, PERSEAS_LOCK_EXCLUSIVE);

	if (rc)
		return rc;
	at = find(&top->root, key);
	if (!*at)
		return 1;
	node = *at;
	rc = unlink_node(tx, at, node);
	if (!rc)
		rc = perseas_free(tx, tree->heap, node);
	if (!rc)
		rc = perseas_set_range(tx, &top->count, sizeof(top->count));
	if (!rc)
		top->count--;
	return rc;
}

/* begin next */
int tree_next(perseas_tx_t *tx, const struct tree *tree, enum tree_from from,
              struct tree_bytes *key, struct tree_bytes *value)
{
	struct node *node, *next = NULL;
	int rc = lock(tx, tree, PERSEAS_LOCK_SHARED);

	if (rc)
		return rc;
	for (node = tree->top->root; node;) {
		int order = compare(*key, node);

		if (order < 0 || (order == 0 && from == TREE_FROM)) {
			next = node;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	if (!next)
		return 1;
	tell(next, key, value);
	return 0;
}
/* end next */

int tree_count(perseas_tx_t *tx, const struct tree *tree, uint64_t *count)
{
	int rc = lock(tx, tree, PERSEAS_LOCK_SHARED);

	*count = rc ? 0 : tree->top->count;
	return rc;
}

/* Commits, or aborts after an error. Only an error of the commit can have ended the transaction. */
static int end(perseas_tx_t *tx, int rc)
{
	if (!rc) {
		rc = perseas_commit(tx, 0);
		if (rc == PERSEAS_EINDOUBT || rc == PERSEAS_EFENCED)
			return rc;
	}
	if (rc)
		perseas_abort(tx);
	return rc;
}

int tree_open(perseas_t *p, perseas_heap_t *heap, const char *root, struct tree *tree)
{
	void *object;
	perseas_tx_t *tx;
	int rc = perseas_root(heap, root, TREE_TOP, &object);

	if (!rc && !object) {
		rc = perseas_begin(p, 0, &tx);
		if (rc)
			return rc;
		rc = perseas_zalloc(tx, heap, sizeof(struct tree_top), TREE_TOP, &object);
		if (!rc)
			rc = perseas_root_set(tx, heap, root, TREE_TOP, object);
		rc = end(tx, rc);
	}
	tree->heap = heap;
	tree->top = rc ? NULL : (struct tree_top *)object;
	return rc;
}
