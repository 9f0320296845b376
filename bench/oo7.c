/*
 * oo7 - measures traversals of OO7's database (Carey, DeWitt and Naughton, SIGMOD'93), each in one
 * transaction. The database is a tree of assemblies whose leaves share composite parts; each
 * composite part is a graph of atomic parts. Objects are allocated one by one. Several systems take
 * turns (graph.h).
 *
 * It differs from OO7 in two points: an update increments x and decrements y instead of swapping
 * them, because an even number of swaps would change nothing; and there are no indexes, because
 * these traversals do not use any.
 */
#include "clock.h"
#include "graph.h"
#include "measure.h"
#include "options.h"
#include "work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	COMPOSITES = 500,
	LEVELS = 7, /* of assemblies; those of the last level have composite parts */
	FAN = 3,
	PARTS_MOST = 200,
	CONNECTIONS_MOST = 9,
	TYPE_NAME = 16,
	UPDATES = 4, /* of each part, in T2c */
	STORES_MOST = 6,
	TRAVERSALS = 3,
};

static struct options {
	const char *mirrors, *store, *dir, *stores, *config;
	uint64_t rounds, repeat, cpu;
	bool json, spoil;
} options = { .cpu = UINT64_MAX };

static const char about[] =
	"Traverses OO7's database: T1 reads every part that the assemblies lead to, T2a also\n"
	"updates one part of each composite part, T2c each part four times. Stores:\n\n"
	"  perseas          objects in the library's heap, ranges that are declared\n"
	"  perseas-tracked  the same, and nothing is declared: PERSEAS_TRACK\n"
	"  pmemobj          libpmemobj, in the folder of --dir\n"
	"  lmdb             records of LMDB, in the same folder\n"
	"  plain            memory, and no transactions\n\n"
	"In the end every object must be what the same traversals of plain memory make of it.\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(mirrors), "LIST", .help = "Where the stores are." },
	{ "store", PS_OPTION_TEXT, AT(store), "NAME", "oo7",
	  .help = "With what the stores' names begin." },
	{ "dir", PS_OPTION_TEXT, AT(dir), "DIR", .help = "An empty folder, for other systems." },
	{ "stores", PS_OPTION_TEXT, AT(stores), "LIST", "perseas,perseas-tracked,plain",
	  .help = "What is measured." },
	{ "config", PS_OPTION_TEXT, AT(config), "NAME", "small",
	  .help = "small, medium-3 or medium-9." },
	ROUNDS_OPTION_ROW,
	{ "repeat", PS_OPTION_NUMBER, AT(repeat), "N", "1", 1, 1000,
	  .help = "Traversals of each kind in a round." },
	{ "spoil", PS_OPTION_FLAG, AT(spoil),
	  .help = "Expects something else than was made: the check must fail." },
	CPU_OPTION_ROW,
	JSON_OPTION_ROW,
};

static const struct config {
	const char *name;
	uint32_t parts, connections, document, manual;
	uint64_t bytes;
} configs[] = {
	{ "small", 20, 3, 2000, 100000, 32 << 20 },
	{ "medium-3", 200, 3, 20000, 1000000, 128 << 20 },
	{ "medium-9", 200, 9, 20000, 1000000, 256 << 20 },
};
static const struct config *config;

/* --- the objects --- */

struct part {
	uint64_t id; /* from 0 */
	char type[TYPE_NAME];
	int64_t date, x, y;
	uint64_t document;
	uint64_t to[CONNECTIONS_MOST];
};

struct connection {
	char type[TYPE_NAME];
	int64_t length;
	uint64_t from, to;
};

struct composite {
	uint64_t id;
	char type[TYPE_NAME];
	int64_t date;
	uint64_t document, root;
	uint64_t parts[PARTS_MOST];
};

struct assembly {
	uint64_t id;
	char type[TYPE_NAME];
	int64_t date;
	uint64_t children[FAN]; /* references to assemblies, or to composite parts on the last
	                           level */
};

struct module {
	uint64_t manual, root;
	uint64_t composites[COMPOSITES];
};

/* A system with the database in it, and the state of the traversal. */
struct base {
	struct graph *graph;
	uint64_t module;
	uint64_t state, assemblies;
	uint32_t *seen; /* by part id: the last visit that reached the part */
	uint32_t visit;
	uint64_t visited;
};

static struct base bases[STORES_MOST + 1];
static struct measured *measured[STORES_MOST * TRAVERSALS];
static unsigned base_count;

static uint64_t make(struct base *base, const void *object, size_t size)
{
	uint64_t ref = 0;

	if (!base->graph->failed)
		ref = base->graph->ops->alloc(base->graph, size);
	graph_write(base->graph, ref, object, size);
	return ref;
}

static void name_type(struct base *base, char *type)
{
	snprintf(type, TYPE_NAME, "type%03u", work_below(&base->state, 10));
}

/* --- building the database --- */

static uint64_t make_text(struct base *base, uint32_t size)
{
	uint64_t ref = 0;
	char *text = calloc(1, size);

	if (!text)
		graph_fail(base->graph, "text", "out of memory");
	if (text) {
		memset(text, 'I', size - 1);
		ref = make(base, text, size);
	}
	free(text);
	return ref;
}

/* Connects a part to the next one, so that all parts form a ring, and to random parts of the same
 * composite part. */
static void connect_part(struct base *base, const struct composite *whole, uint32_t number)
{
	struct part room, part;

	part = *(const struct part *)graph_read(base->graph, whole->parts[number], &room,
	                                        sizeof(room));
	for (uint32_t i = 0; i < config->connections; i++) {
		uint32_t to = i ? work_below(&base->state, config->parts)
		                : (number + 1) % config->parts;
		struct connection connection = { .from = whole->parts[number],
			                         .to = whole->parts[to] };

		name_type(base, connection.type);
		connection.length = work_below(&base->state, 1000);
		part.to[i] = make(base, &connection, sizeof(connection));
	}
	graph_write(base->graph, whole->parts[number], &part, sizeof(part));
}

static uint64_t make_composite(struct base *base, uint64_t id)
{
	struct composite whole = { .id = id };

	base->graph->failed = base->graph->ops->begin(base->graph, true);
	whole.date = work_below(&base->state, 3000);
	name_type(base, whole.type);
	whole.document = make_text(base, config->document);
	for (uint32_t i = 0; i < config->parts; i++) {
		struct part part = { .id = id * config->parts + i, .document = id };

		part.date = work_below(&base->state, 3000);
		part.x = work_below(&base->state, 100000);
		part.y = work_below(&base->state, 100000);
		name_type(base, part.type);
		whole.parts[i] = make(base, &part, sizeof(part));
	}
	for (uint32_t i = 0; i < config->parts && !base->graph->failed; i++)
		connect_part(base, &whole, i);
	whole.root = whole.parts[0];
	id = make(base, &whole, sizeof(whole));
	if (!base->graph->failed)
		base->graph->failed = base->graph->ops->commit(base->graph);
	return id;
}

static uint64_t make_assembly(struct base *base, const struct module *module, int level)
{
	struct assembly assembly = { .id = base->assemblies++ };

	assembly.date = work_below(&base->state, 3000);
	name_type(base, assembly.type);
	for (int i = 0; i < FAN; i++)
		assembly.children[i] =
			level < LEVELS ? make_assembly(base, module, level + 1)
				       : module->composites[work_below(&base->state, COMPOSITES)];
	return make(base, &assembly, sizeof(assembly));
}

static int build(struct base *base)
{
	struct graph *graph = base->graph;
	struct module module = { 0 };

	base->state = WORK_SEED;
	base->seen = calloc((size_t)COMPOSITES * config->parts, sizeof(*base->seen));
	if (!base->seen)
		return program_fail(graph->ops->name, "out of memory");
	for (uint64_t i = 0; i < COMPOSITES && !graph->failed; i++)
		module.composites[i] = make_composite(base, i);
	if (!graph->failed)
		graph->failed = graph->ops->begin(graph, true);
	if (!graph->failed) {
		module.manual = make_text(base, config->manual);
		module.root = make_assembly(base, &module, 1);
		base->module = make(base, &module, sizeof(module));
	}
	if (!graph->failed)
		graph->failed = graph->ops->commit(graph);
	return graph->failed ? program_fail(graph->ops->name, graph->why) : 0;
}

/* --- traversals --- */

enum traversal { T1, T2A, T2C };
static const char *const traversals[TRAVERSALS] = { "T1", "T2a", "T2c" };

static void update(struct base *base, uint64_t ref)
{
	struct graph *graph = base->graph;
	struct part *part, room;

	if (graph->failed)
		return;
	if (graph->ops->get) {
		graph_read(graph, ref, &room, sizeof(room));
		room.x++;
		room.y--;
		graph_write(graph, ref, &room, sizeof(room));
		return;
	}
	part = (struct part *)(graph->base + ref);
	graph->failed = graph->ops->range(graph, &part->x, sizeof(part->x) + sizeof(part->y));
	if (graph->failed)
		return;
	part->x++;
	part->y--;
}

static void visit_part(struct base *base, uint64_t ref, enum traversal kind, bool root)
{
	const unsigned times = kind == T2C ? UPDATES : kind == T2A && root;
	struct part room;
	const struct part *part = graph_read(base->graph, ref, &room, sizeof(room));

	if (base->graph->failed || base->seen[part->id] == base->visit)
		return;
	base->seen[part->id] = base->visit;
	base->visited++;
	for (unsigned i = 0; i < times; i++)
		update(base, ref);
	for (uint32_t i = 0; i < config->connections; i++) {
		struct connection copy;
		const struct connection *connection = graph_read(base->graph, part->to[i], &copy,
		                                                 sizeof(copy));

		if (!base->graph->failed)
			visit_part(base, connection->to, kind, false);
	}
}

static void visit_composite(struct base *base, uint64_t ref, enum traversal kind)
{
	struct composite room;
	const struct composite *whole = graph_read(base->graph, ref, &room,
	                                           offsetof(struct composite, parts));

	base->visit++;
	if (!base->graph->failed)
		visit_part(base, whole->root, kind, true);
}

static void visit_assembly(struct base *base, uint64_t ref, int level, enum traversal kind)
{
	struct assembly room;
	const struct assembly *assembly = graph_read(base->graph, ref, &room, sizeof(room));

	for (int i = 0; i < FAN && !base->graph->failed; i++)
		if (level < LEVELS)
			visit_assembly(base, assembly->children[i], level + 1, kind);
		else
			visit_composite(base, assembly->children[i], kind);
}

static int traverse(struct base *base, enum traversal kind)
{
	struct graph *graph = base->graph;
	struct module room;
	const struct module *module;

	base->visited = 0;
	graph->failed = graph->ops->begin(graph, false);
	if (graph->failed)
		return -1;
	module = graph_read(graph, base->module, &room, offsetof(struct module, composites));
	visit_assembly(base, module->root, 1, kind);
	if (!graph->failed)
		graph->failed = graph->ops->commit(graph);
	return graph->failed;
}

/* --- the check --- */

/* Adds a number to a digest that depends on the order of numbers. */
static void mix(uint64_t *digest, uint64_t number)
{
	*digest = (*digest ^ number) * 0x100000001b3u;
	*digest ^= *digest >> 29;
}

static void mix_part(struct base *base, uint64_t ref, uint64_t *digest)
{
	struct part room, there;
	const struct part *part = graph_read(base->graph, ref, &room, sizeof(room));

	mix(digest, part->id);
	mix(digest, (uint64_t)part->x);
	mix(digest, (uint64_t)part->y);
	mix(digest, (uint64_t)part->date);
	mix(digest, part->document);
	for (uint32_t i = 0; i < config->connections && !base->graph->failed; i++) {
		struct connection copy;
		const struct connection *connection = graph_read(base->graph, part->to[i], &copy,
		                                                 sizeof(copy));
		const struct part *to;

		mix(digest, (uint64_t)connection->length);
		mix(digest, connection->from == ref);
		to = graph_read(base->graph, connection->to, &there, sizeof(there));
		mix(digest, to->id);
	}
}

/* Computes a digest of all parts and connections. Returns 0, or the code of a failure. */
static int read_digest(struct base *base, uint64_t *digest)
{
	struct graph *graph = base->graph;
	struct module room, module;

	graph->failed = graph->ops->begin(graph, false);
	if (graph->failed)
		return -1;
	module = *(const struct module *)graph_read(graph, base->module, &room, sizeof(room));
	*digest = 0;
	for (uint32_t i = 0; i < COMPOSITES && !graph->failed; i++) {
		struct composite copy;
		const struct composite *whole = graph_read(graph, module.composites[i], &copy,
		                                           sizeof(copy));

		mix(digest, whole->id);
		mix(digest, (uint64_t)whole->date);
		for (uint32_t k = 0; k < config->parts && !graph->failed; k++)
			mix_part(base, whole->parts[k], digest);
	}
	return graph->failed ? graph->failed : graph->ops->commit(graph);
}

/* --- all systems --- */

static int open_base(struct base *base, const struct graph_ops *ops)
{
	const struct graph_place place = { options.mirrors, options.store, options.dir,
		                           config->bytes };

	base->graph = calloc(1, ops->size);
	if (!base->graph)
		return program_fail(ops->name, "out of memory");
	base->graph->ops = ops;
	if (ops->open(base->graph, &place))
		return program_fail(ops->name, base->graph->why);
	return build(base);
}

static void close_base(struct base *base)
{
	if (base->graph)
		base->graph->ops->close(base->graph);
	free(base->graph);
	free(base->seen);
}

static int run_traversals(struct base *base, enum traversal kind, struct measured *m)
{
	const uint64_t start = clock_ns(), busy = clock_thread_ns();
	uint64_t took;

	for (uint64_t i = 0; i < options.repeat; i++)
		if (traverse(base, kind))
			return program_fail(base->graph->ops->name, base->graph->why);
	took = clock_ns() - start;
	m->rates[m->rounds] = (double)options.repeat * 1e9 / (double)(took + !took);
	m->busy_rates[m->rounds] = (double)options.repeat * 1e9 /
	                           (double)(clock_thread_ns() - busy + 1);
	ps_histogram_add(&m->latency, took / options.repeat);
	m->medians[m->rounds++] = took / options.repeat;
	return 0;
}

static int measure_all(void)
{
	for (uint64_t round = 0; round < options.rounds; round++)
		for (unsigned kind = 0; kind < TRAVERSALS; kind++)
			for (unsigned i = 0; i < base_count; i++)
				if (run_traversals(&bases[i], (enum traversal)kind,
				                   measured[i * TRAVERSALS + kind]))
					return 2;
	return 0;
}

/* Checks every system against plain memory, on which it now runs the same traversals. Returns an
 * exit status. */
static int check_all(void)
{
	struct base *plain = &bases[base_count];
	uint64_t wanted, found;
	int status = open_base(plain, &graph_plain);

	for (uint64_t round = 0; round < options.rounds * options.repeat && !status; round++)
		for (unsigned kind = 0; kind < TRAVERSALS && !status; kind++)
			status = traverse(plain, (enum traversal)kind);
	if (status || read_digest(plain, &wanted))
		return program_fail("plain", plain->graph->why);
	wanted ^= options.spoil;
	for (unsigned i = 0; i < base_count; i++) {
		if (read_digest(&bases[i], &found))
			return program_fail(bases[i].graph->ops->name, bases[i].graph->why);
		if (found != wanted || bases[i].visited != plain->visited)
			return program_refute(bases[i].graph->ops->name,
			                      "its parts are not what the traversals make");
	}
	return 0;
}

static int open_all(void)
{
	const struct graph_ops *const known[] = { &graph_perseas, &graph_perseas_tracked,
		                                  &graph_pmemobj, &graph_lmdb, &graph_plain };
	char name[64];

	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (!known[i] || !list_has(options.stores, known[i]->name))
			continue;
		for (unsigned kind = 0; kind < TRAVERSALS; kind++) {
			snprintf(name, sizeof(name), "%s %s", known[i]->name, traversals[kind]);
			measured[base_count * TRAVERSALS + kind] = measured_new(strdup(name), NULL,
			                                                        NULL);
		}
		if (open_base(&bases[base_count++], known[i]))
			return 2;
	}
	return base_count ? 0 : program_fail("--stores", "names none that is built in");
}

static int choose(void)
{
	for (size_t i = 0; i < sizeof(configs) / sizeof(*configs); i++)
		if (!strcmp(configs[i].name, options.config))
			config = &configs[i];
	if (!config)
		return program_fail(options.config, "is no configuration (see --help)");
	if (!options.mirrors)
		return program_fail("--mirrors", "is missing; it lists the mirrors");
	return program_pin(options.cpu) ? 2 : 0;
}

static void print(void)
{
	struct ps_json json = { .out = stdout };

	if (!options.json) {
		measured_print(stdout, measured, base_count * TRAVERSALS);
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "config", config->name);
	ps_json_number(&json, "visited", bases[0].visited);
	ps_json_begin(&json, "ways", '{');
	measured_json_all(&json, measured, base_count * TRAVERSALS);
	ps_json_end(&json, '}');
	ps_json_end(&json, '}');
}

int main(int argc, char **argv)
{
	int status;

	OPTIONS_PARSE(argc, argv);
	status = choose();
	if (!status)
		status = open_all();
	if (!status)
		status = measure_all();
	if (!status)
		status = check_all();
	if (!status)
		print();
	for (unsigned i = 0; i <= base_count; i++)
		close_base(&bases[i]);
	for (unsigned i = 0; i < base_count * TRAVERSALS; i++)
		free((char *)measured[i]->name);
	measured_free_all(measured, base_count * TRAVERSALS);
	return status;
}
