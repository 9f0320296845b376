/*
 * hashmap.c - a hash map that lies in a segment, made of plain pointers.
 *
 *     hashmap LIST put KEY VALUE | get KEY | remove KEY | show
 */
#include <perseas.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256, NODES = 4096, KEY = 32 };

/* begin types */
/* Pointers among these are good in every process that opens the store: segments always lie at the
 * same address. */
struct node {
	struct node *next; /* in its bucket, or in the list of free nodes */
	char key[KEY];
	long value;
};

struct map {
	struct node *buckets[BUCKETS];
	struct node *unused; /* nodes that were removed */
	size_t used;         /* nodes[used] and those behind it were never taken */
	struct node nodes[NODES];
};
/* end types */

static struct node **bucket_of(struct map *map, const char *key)
{
	unsigned hash = 5381;

	while (*key)
		hash = hash * 33 + (unsigned char)*key++;
	return &map->buckets[hash % BUCKETS];
}

/* The pointer that points to the key's node, or the one at the end of its bucket. */
static struct node **find(struct map *map, const char *key)
{
	struct node **at = bucket_of(map, key);

	while (*at && strcmp((*at)->key, key) != 0)
		at = &(*at)->next;
	return at;
}

/* begin put */
/* A free node, taken by the transaction: an abort, or a crash, gives it back. */
static int take_node(perseas_tx_t *tx, struct map *map, struct node **node)
{
	int rc;

	if (map->unused) {
		*node = map->unused;
		rc = perseas_set_range(tx, &map->unused, sizeof(map->unused));
		if (!rc)
			map->unused = (*node)->next;
	} else if (map->used < NODES) {
		*node = &map->nodes[map->used];
		rc = perseas_set_range(tx, &map->used, sizeof(map->used));
		if (!rc)
			map->used++;
	} else {
		return PERSEAS_ELIMIT;
	}
	return rc ? rc : perseas_set_range(tx, *node, sizeof(**node));
}

static int put(perseas_tx_t *tx, struct map *map, const char *key, long value)
{
	struct node **at = find(map, key), *node;
	int rc;

	if (*at) {
		rc = perseas_set_range(tx, &(*at)->value, sizeof((*at)->value));
		if (!rc)
			(*at)->value = value;
		return rc;
	}
	rc = take_node(tx, map, &node);
	if (!rc)
		rc = perseas_set_range(tx, at, sizeof(*at));
	if (rc)
		return rc;
	memset(node, 0, sizeof(*node));
	snprintf(node->key, sizeof(node->key), "%s", key);
	node->value = value;
	*at = node;
	return 0;
}
/* end put */

static int take_out(perseas_tx_t *tx, struct map *map, const char *key)
{
	struct node **at = find(map, key), *node = *at;
	int rc;

	if (!node)
		return 0;
	rc = perseas_set_range(tx, at, sizeof(*at));
	if (!rc)
		rc = perseas_set_range(tx, &node->next, sizeof(node->next));
	if (!rc)
		rc = perseas_set_range(tx, &map->unused, sizeof(map->unused));
	if (rc)
		return rc;
	*at = node->next;
	node->next = map->unused;
	map->unused = node;
	return 0;
}

static void show(const struct map *map)
{
	printf("the map lies at %p\n", (const void *)map);
	for (int i = 0; i < BUCKETS; i++)
		for (const struct node *node = map->buckets[i]; node; node = node->next)
			printf("%s = %ld\n", node->key, node->value);
}

/* What the words ask for. Reading needs no transaction. */
static int obey(perseas_t *p, struct map *map, char **words)
{
	const struct node *found;
	perseas_tx_t *tx;
	int rc;

	if (strcmp(words[0], "show") == 0) {
		show(map);
		return 0;
	}
	if (strcmp(words[0], "get") == 0) {
		found = *find(map, words[1]);
		if (found)
			printf("%ld\n", found->value);
		else
			printf("not there\n");
		return 0;
	}
	rc = perseas_begin(p, 0, &tx);
	if (rc)
		return rc;
	if (strcmp(words[0], "put") == 0)
		rc = put(tx, map, words[1], atol(words[2]));
	else
		rc = take_out(tx, map, words[1]);
	if (!rc)
		rc = perseas_commit(tx, 0);
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}

static int may_be(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[2] : "";

	if (argc > 3 && strlen(argv[3]) >= KEY)
		return 0;
	return (argc == 5 && strcmp(verb, "put") == 0) ||
	       (argc == 4 && (strcmp(verb, "get") == 0 || strcmp(verb, "remove") == 0)) ||
	       (argc == 3 && strcmp(verb, "show") == 0);
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	void *memory;
	perseas_t *p;
	int rc;

	if (!may_be(argc, argv)) {
		fprintf(stderr,
		        "hashmap LIST put KEY VALUE | get KEY | remove KEY | show; KEY is "
		        "shorter than %d\n",
		        KEY);
		return 2;
	}
	options.flags = PERSEAS_CREATE;
	rc = perseas_open("map", argv[1], &options, &p);
	if (rc) {
		fprintf(stderr, "hashmap: %s\n", perseas_message(NULL));
		return 1;
	}
	rc = perseas_map(p, "map", sizeof(struct map), &memory);
	if (!rc)
		rc = perseas_publish(p); /* zeros: an empty map */
	if (!rc)
		rc = obey(p, (struct map *)memory, argv + 2);
	if (rc)
		fprintf(stderr, "hashmap: %s: %s\n", perseas_error_name(rc), perseas_message(p));
	perseas_close(p);
	return rc != 0;
}
