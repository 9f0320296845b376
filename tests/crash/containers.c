/*
 * containers.c - the containers of doc/examples/ at every instant. The same keys come to a hash
 * table and to an ordered map, change and go, in one transaction each: so the two must agree,
 * whenever their owner died, and the heap must have the objects of these keys and no others.
 */
#include "crash.h"

#include "../../doc/examples/hash.h"
#include "../../doc/examples/tree.h"

enum { STEPS = 14, KEYS = 400, VALUE = 40 };

struct both {
	struct hash hash;
	struct tree tree;
};

/* --- the workload --- */

static void wrong(struct work *w, const char *what)
{
	printf("    fault: %s: %s: %s\n", w->name, what, perseas_message(w->p));
	w->broken++;
}

/* The segments as they are, for the model: transactions are open one at a time. */
static void note_all(struct work *w, struct change *change)
{
	for (unsigned i = 0; i < w->p->segment_count; i++) {
		change->ranges[i].id = w->p->segments[i].id;
		change->ranges[i].offset = 0;
		change->ranges[i].length = (uint32_t)w->p->segments[i].size;
	}
	change->count = w->p->segment_count;
}

/* A container that is made takes a transaction of its own, or none if it was there. */
static void made(struct work *w, uint64_t seq)
{
	static struct change change;

	if (w->p->commit.seq == seq)
		return;
	note_all(w, &change);
	work_made(w, &change, seq);
}

static struct both open_both(struct work *w)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	uint64_t seq = w->p->commit.seq;
	struct both both = { 0 };
	perseas_heap_t *heap;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 8 * 65536; /* enough: how a heap grows heap.c tries */
	if (perseas_heap_open(w->p, "c", &options, &heap))
		wrong(w, "heap");
	if (w->p->commit.seq > seq)
		work_born(w, seq);
	seq = w->p->commit.seq;
	if (hash_open(w->p, heap, "hash", &both.hash))
		wrong(w, "hash");
	made(w, seq);
	seq = w->p->commit.seq;
	if (tree_open(w->p, heap, "tree", &both.tree))
		wrong(w, "tree");
	made(w, seq);
	return both;
}

static int store(struct work *w, const struct both *both, const struct change *change, uint32_t key)
{
	uint8_t bytes[VALUE];
	const size_t size = work_draw(w, 2) ? VALUE : 8;
	int rc;

	memset(bytes, (int)work_draw(w, 256), sizeof(bytes));
	rc = hash_put(change->tx, &both->hash, (struct hash_bytes){ &key, sizeof(key) },
	              (struct hash_bytes){ bytes, size });
	if (!rc)
		rc = tree_put(change->tx, &both->tree, (struct tree_bytes){ &key, sizeof(key) },
		              (struct tree_bytes){ bytes, size });
	return rc;
}

static int remove_key(const struct both *both, const struct change *change, uint32_t key)
{
	int rc = hash_remove(change->tx, &both->hash, (struct hash_bytes){ &key, sizeof(key) });
	int other = tree_remove(change->tx, &both->tree, (struct tree_bytes){ &key, sizeof(key) });

	return rc == other ? 0 : -1;
}

static void transact(struct work *w, const struct both *both, struct change *change, uint32_t first)
{
	int rc = 0;

	work_begin(w, change);
	for (uint32_t i = 0; i < 12 && !rc; i++)
		rc = store(w, both, change, first + i);
	for (uint32_t i = 0; i < 3 && !rc; i++)
		rc = remove_key(both, change, (uint32_t)work_draw(w, first + 12));
	if (rc)
		wrong(w, "change");
}

static void change_both(struct work *w, unsigned steps, uint32_t *first)
{
	static struct change change;
	const struct both both = open_both(w);

	for (unsigned i = 0; i < steps && !w->broken; i++, *first += 8) {
		transact(w, &both, &change, *first);
		if (work_draw(w, 5) == 0) {
			work_abort(w, &change);
			continue;
		}
		note_all(w, &change);
		work_commit(w, &change);
	}
}

void run_containers(struct work *w)
{
	static struct change change;
	struct both both;
	uint32_t first = 0;

	work_create(w);
	if (!work_open(w))
		return;
	change_both(w, STEPS / 2, &first);
	both = open_both(w);
	transact(w, &both, &change, first);
	work_die(w);
	if (!work_open(w))
		return;
	change_both(w, STEPS / 2, &first);
	work_close(w);
}

/* --- the check --- */

struct looking {
	struct checker *checker;
	const struct both *both;
	perseas_tx_t *tx;
	uint64_t keys;
};

static int look(void *arg, struct hash_bytes key, struct hash_bytes value)
{
	struct looking *looking = arg;
	struct tree_bytes other = { NULL, 0 };

	looking->keys++;
	if (tree_get(looking->tx, &looking->both->tree, (struct tree_bytes){ key.at, key.size },
	             &other) ||
	    other.size != value.size || memcmp(other.at, value.at, value.size) != 0)
		fault(looking->checker, "the map lacks a key of the table, or has another value");
	return 0;
}

static int count_object(void *arg, const struct perseas_object *object)
{
	(void)object;
	++*(uint64_t *)arg;
	return 0;
}

/* Returns true if the container was made before the crash. */
static bool is_made(perseas_heap_t *heap, const char *root, uint64_t type)
{
	void *object = NULL;

	return !perseas_root(heap, root, type, &object) && object;
}

static void check_keys(struct checker *checker, perseas_heap_t *heap, const struct looking *looking)
{
	struct tree_bytes key = { NULL, 0 }, value;
	uint64_t hash_keys, tree_keys, entries = 0, nodes = 0, walked = 0;

	hash_count(looking->tx, &looking->both->hash, &hash_keys);
	tree_count(looking->tx, &looking->both->tree, &tree_keys);
	for (int rc = tree_next(looking->tx, &looking->both->tree, TREE_FROM, &key, &value);
	     !rc && walked <= KEYS;
	     rc = tree_next(looking->tx, &looking->both->tree, TREE_AFTER, &key, &value))
		walked++;
	perseas_heap_walk(heap, HASH_ENTRY, count_object, &entries);
	perseas_heap_walk(heap, TREE_NODE, count_object, &nodes);
	if (hash_keys != looking->keys || tree_keys != looking->keys || walked != looking->keys ||
	    entries != looking->keys || nodes != looking->keys)
		fault(checker,
		      "keys: %llu in the table, which says %llu, %llu in the map, which "
		      "says %llu; the heap has %llu and %llu",
		      (unsigned long long)looking->keys, (unsigned long long)hash_keys,
		      (unsigned long long)walked, (unsigned long long)tree_keys,
		      (unsigned long long)entries, (unsigned long long)nodes);
}

void check_containers(struct checker *checker, perseas_t *p)
{
	struct perseas_segment_info info;
	perseas_heap_t *heap;
	struct both both;
	struct looking looking = { .checker = checker, .both = &both };

	if (perseas_segment(p, "c.meta.0", &info))
		return;
	if (perseas_heap_open(p, "c", NULL, &heap) || perseas_heap_check(heap)) {
		fault(checker, "heap: %s", perseas_message(p));
		return;
	}
	if (!is_made(heap, "hash", HASH_TABLE) || !is_made(heap, "tree", TREE_TOP))
		return;
	if (hash_open(p, heap, "hash", &both.hash) || tree_open(p, heap, "tree", &both.tree) ||
	    perseas_begin(p, 0, &looking.tx)) {
		fault(checker, "containers: %s", perseas_message(p));
		return;
	}
	if (hash_walk(looking.tx, &both.hash, look, &looking))
		fault(checker, "walk: %s", perseas_message(p));
	check_keys(checker, heap, &looking);
	perseas_abort(looking.tx);
}
