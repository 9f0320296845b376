/*
 * ordered.c - texts in the order of their keys, in an ordered map (tree.h).
 *
 *     ordered LIST put KEY VALUE | remove KEY | from KEY | show | work COUNT
 */
#include "tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 100 };

static perseas_t *p;
static perseas_heap_t *heap;
static struct tree tree;

static struct tree_bytes bytes_of(const char *text)
{
	struct tree_bytes bytes = { text, strlen(text) + 1 };

	return bytes;
}

/* Runs `change` in a transaction. Returns its result (0 or 1), or an error. This program has one
 * thread, so no other transaction can hold the lock, and nothing must be retried. */
static int transact(int (*change)(perseas_tx_t *tx, void *arg), void *arg)
{
	perseas_tx_t *tx;
	int code, rc = perseas_begin(p, 0, &tx);

	if (rc)
		return rc;
	code = change(tx, arg);
	if (code < 0) {
		perseas_abort(tx);
		return code;
	}
	rc = perseas_commit(tx, 0);
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc ? rc : code;
}

static int put(perseas_tx_t *tx, void *arg)
{
	char **words = (char **)arg;

	return tree_put(tx, &tree, bytes_of(words[0]), bytes_of(words[1]));
}

static int remove_key(perseas_tx_t *tx, void *arg)
{
	return tree_remove(tx, &tree, bytes_of((const char *)arg));
}

/* begin from */
/* Prints all keys from this key on, in order. This key need not exist. */
static int print_from(perseas_tx_t *tx, void *arg)
{
	struct tree_bytes key = bytes_of((const char *)arg), value;
	int rc = tree_next(tx, &tree, TREE_FROM, &key, &value);

	while (!rc) {
		printf("%s = %.40s\n", (const char *)key.at, (const char *)value.at);
		rc = tree_next(tx, &tree, TREE_AFTER, &key, &value);
	}
	return rc < 0 ? rc : 0; /* 1: there is no next key */
}
/* end from */

static int show(perseas_tx_t *tx, void *arg)
{
	struct perseas_heap_stat stat;
	uint64_t count;
	int rc = perseas_heap_check(heap);

	if (!rc)
		rc = perseas_heap_stat(heap, &stat);
	if (!rc)
		rc = print_from(tx, arg);
	if (!rc)
		rc = tree_count(tx, &tree, &count);
	if (!rc)
		printf("%" PRIu64 " keys, %" PRIu64 " objects\n", count, stat.objects);
	return rc;
}

/* Appends the next number, and removes the first if there are many. */
static int count_on(perseas_tx_t *tx, void *arg)
{
	struct tree_bytes first = { NULL, 0 }, key = { NULL, 0 }, value;
	char name[16], text[320];
	uint64_t count;
	long next = 0;
	int rc = tree_next(tx, &tree, TREE_FROM, &first, &value);

	if (!rc) {
		next = atol((const char *)first.at);
		rc = tree_count(tx, &tree, &count);
		next += (long)count;
	}
	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "%08ld", next);
	/* Each text has another length: */
	snprintf(text, sizeof(text), "%ld %*s", next, (int)(next % 300), "");
	if (!rc && count >= KEPT)
		rc = tree_remove(tx, &tree, first);
	key = bytes_of(name);
	rc = rc < 0 ? rc : tree_insert(tx, &tree, key, bytes_of(text));
	*(long *)arg = next;
	return rc;
}

static int work(long count)
{
	long number;
	int rc = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (; count > 0 && !rc; count--) {
		rc = transact(count_on, &number);
		if (!rc)
			printf("%ld\n", number);
	}
	return rc;
}

/* --- the program --- */

static int obey(char **words)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	char none[] = "";
	int rc;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 1 << 20; /* bytes; the heap grows when they are used up */
	rc = perseas_heap_open(p, "ordered", &options, &heap);
	if (!rc)
		rc = tree_open(p, heap, "ordered", &tree);
	if (rc)
		return rc;
	if (strcmp(words[0], "show") == 0)
		return transact(show, none);
	if (strcmp(words[0], "work") == 0)
		return work(atol(words[1]));
	if (strcmp(words[0], "from") == 0)
		return transact(print_from, words[1]);
	if (strcmp(words[0], "put") == 0)
		return transact(put, words + 1);
	rc = transact(remove_key, words[1]);
	if (rc == 1)
		printf("not there\n");
	return rc < 0 ? rc : 0;
}

static int is_known(int argc, char **argv)
{
	static const char *const verbs[] = { "show", "from", "remove", "work", "put" };
	static const int words[] = { 3, 4, 4, 4, 5 };
	int known = 0;

	for (int i = 0; i < 5 && argc > 2; i++)
		known |= strcmp(argv[2], verbs[i]) == 0 && argc == words[i];
	return known;
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	int rc;

	if (!is_known(argc, argv)) {
		fprintf(stderr, "ordered LIST put KEY VALUE | remove KEY | from KEY | show | "
		                "work COUNT\n");
		return 2;
	}
	options.flags = PERSEAS_CREATE;
	rc = perseas_open("ordered", argv[1], &options, &p);
	if (rc) {
		fprintf(stderr, "ordered: %s\n", perseas_message(NULL));
		return 1;
	}
	rc = obey(argv + 2);
	if (rc)
		fprintf(stderr, "ordered: %s: %s\n", perseas_error_name(rc), perseas_message(p));
	perseas_close(p);
	return rc != 0;
}
