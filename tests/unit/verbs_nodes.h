/*
 * verbs_nodes.h - real daemons, each in a thread of this process and on an RDMA device of its own,
 * and the real library, over fake devices.
 */
#ifndef PERSEAS_TESTS_VERBS_NODES_H
#define PERSEAS_TESTS_VERBS_NODES_H

#include "../support/memory_folder.h"
#include "../support/patient_daemon.h"
#include "../support/unit.h"
#include "../support/verbs_fake.h"

#include "../../client/core/env.h"
#include "../../client/core/handle.h"
#include "../../proto/image/image.h"

#include <event2/event.h>
#include <sys/eventfd.h>

enum { NODES_MAX = 3 };

struct node {
	unsigned index;
	struct verbs_fake_device *device;
	char directory[64];
	struct memory *memory;
	struct stores *stores;
	struct daemon *daemon; /* NULL: it does not run */
	unsigned port;         /* the same one each time that it starts */
	struct event *ordered;
	int order; /* an eventfd: stop */
	pthread_t thread;
};

struct nodes {
	char directory[48];
	struct node nodes[NODES_MAX];
	unsigned count;
	struct rdma_options rdma;
	struct verbs_fake_device *far; /* the owners' */
	char list[200];
	struct ps_error error;
};

/* The daemons' calls. */
static const struct ps_verbs *node_verbs = &verbs_fake_table;

static void on_order(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	daemon_stop(arg);
}

static void *run_node(void *arg)
{
	daemon_run(((struct node *)arg)->daemon);
	return NULL;
}

static void complain(void *arg, const char *text)
{
	(void)arg;
	fail_msg("%s", text);
}

static void read_port(struct node *node)
{
	char path[128], why[400];
	FILE *file;

	snprintf(path, sizeof(path), "%s.port", node->directory);
	assert_int_equal(daemon_write_ports(node->daemon, path, why, sizeof(why)), 0);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%u", &node->port), 1);
	fclose(file);
}

static void node_start(struct nodes *n, unsigned index)
{
	struct node *node = &n->nodes[index];
	struct endpoint at = { .local = false };
	const char *text;
	char why[400];

	snprintf(at.host, sizeof(at.host), "127.0.0.%u", index + 1);
	snprintf(at.port, sizeof(at.port), "%u", node->port);
	node->memory = memory_file_new(node->directory, 0, false, &text);
	assert_non_null(node->memory);
	node->stores = stores_new(node->memory);
	node->daemon = patient_daemon_new(node->stores);
	assert_non_null(node->daemon);
	assert_int_equal(rdma_start(node->daemon, node_verbs, &n->rdma), 0);
	stores_load(node->stores, complain, NULL);
	if (daemon_listen(node->daemon, &at, why, sizeof(why)))
		fail_msg("%s", why);
	read_port(node);
	node->order = eventfd(0, EFD_CLOEXEC);
	node->ordered = event_new(node->daemon->base, node->order, EV_READ, on_order, node->daemon);
	event_add(node->ordered, NULL);
	assert_int_equal(pthread_create(&node->thread, NULL, run_node, node), 0);
}

static void node_stop(struct nodes *n, unsigned index)
{
	struct node *node = &n->nodes[index];
	const uint64_t one = 1;

	if (!node->daemon)
		return;
	assert_int_equal(write(node->order, &one, sizeof(one)), sizeof(one));
	pthread_join(node->thread, NULL);
	event_free(node->ordered);
	close(node->order);
	daemon_free(node->daemon);
	stores_free(node->stores);
	memory_file_free(node->memory);
	node->daemon = NULL;
}

/* Those of the test, which its teardown frees. */
static struct nodes *nodes_of_test;

/* So many mirrors, whose devices have the addresses 127.0.0.1 and so on. */
static struct nodes *nodes_new(unsigned count, const struct rdma_options *rdma, const char *scheme)
{
	struct nodes *n = calloc(1, sizeof(*n));

	verbs_fake_begin();
	verbs_fake_mode.automatic = true;
	log_init(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	n->far = verbs_fake_device("far", "10.9.0.9");
	verbs_fake_source(n->far);
	n->rdma = *rdma;
	n->count = count;
	memory_folder(n->directory, sizeof(n->directory), "nodes");
	for (unsigned i = 0; i < count; i++) {
		struct node *node = &n->nodes[i];
		char address[24], name[24];
		size_t have = strlen(n->list);

		snprintf(address, sizeof(address), "127.0.0.%u", i + 1);
		snprintf(name, sizeof(name), "rxe%u", i);
		node->index = i;
		node->device = verbs_fake_device(name, address);
		snprintf(node->directory, sizeof(node->directory), "%s/%u", n->directory, i);
		node_start(n, i);
		snprintf(n->list + have, sizeof(n->list) - have, "%s%s%s:%u", i ? "," : "", scheme,
		         address, node->port);
	}
	nodes_of_test = n;
	return n;
}

static void nodes_free(struct nodes *n)
{
	char command[80];

	for (unsigned i = 0; i < n->count; i++)
		node_stop(n, i);
	snprintf(command, sizeof(command), "rm -rf '%s'", n->directory);
	assert_int_equal(system(command), 0);
	if (verbs_fake_end())
		fail_msg("%s", verbs_fake_trouble());
	free(n);
}

static inline int nodes_teardown(void **state)
{
	(void)state;
	if (nodes_of_test)
		nodes_free(nodes_of_test);
	nodes_of_test = NULL;
	return 0;
}

/* perseas_open over fake devices. verbs: NULL for a process without RDMA. */
static int nodes_open(struct nodes *n, const struct ps_verbs *verbs, uint32_t flags, perseas_t **p)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_env *env = ps_env_posix(NULL, &n->error);

	assert_non_null(env);
	env->verbs = verbs;
	options.log_size = 64 * 1024;
	options.ring_size = 256 * 1024;
	options.flags = flags;
	return ps_open(env, "bank", n->list, &options, p, &n->error);
}

static inline perseas_t *nodes_open_well(struct nodes *n, uint32_t flags)
{
	perseas_t *p;

	if (nodes_open(n, &verbs_fake_table, flags, &p))
		fail_msg("%s", n->error.text);
	return p;
}

static inline uint8_t *map(perseas_t *p, size_t size)
{
	void *addr;

	if (perseas_map(p, "accounts", size, &addr))
		fail_msg("%s", perseas_message(p));
	return addr;
}

static inline int put(perseas_t *p, uint8_t *at, size_t length, uint8_t value)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(p, 0, &tx);

	if (rc)
		return rc;
	assert_int_equal(perseas_set_range(tx, at, length), 0);
	memset(at, value, length);
	rc = perseas_commit(tx, 0);
	if (rc == PERSEAS_EBLOCKED)
		perseas_abort(tx);
	return rc;
}

static inline void put_well(perseas_t *p, uint8_t *at, size_t length, uint8_t value)
{
	int rc = put(p, at, length, value);

	if (rc)
		fail_msg("%d: %s", rc, perseas_message(p));
}

static inline struct perseas_mirror_stat mirror_stat(perseas_t *p, unsigned index)
{
	struct perseas_mirror_stat stat;

	assert_int_equal(perseas_mirror_stat(p, index, &stat), 0);
	return stat;
}

/* Waits a little for other threads. Fails with `what` when it has been called 20,000 times. */
static inline void wait_a_little(unsigned *times, const char *what)
{
	if (++*times == 20000)
		fail_msg("it does not come: %s", what);
	poll(NULL, 0, 1);
}

/* Waits, for the keeper's work, until the mirror is live; tens of seconds at most. */
static inline void await_live(perseas_t *p, unsigned index)
{
	for (unsigned i = 0; mirror_stat(p, index).state != PERSEAS_MIRROR_LIVE;)
		wait_a_little(&i, mirror_stat(p, index).trouble);
}

#endif
