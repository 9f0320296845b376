/*
 * rds.c - a heap of RDS at every instant. A list knows how many nodes it has, and each of its
 * transactions allocates and frees: so a block that the heap has, and not the list, was lost, and
 * one that the list has, and not the heap, would be given away. RVM's library is given the owner's
 * handle and segment as if it had opened them, since these are of a world of the tests'.
 */
#include "crash.h"

#include "../../client/rds/heap.h"
#include "../../client/rvm/state.h"

enum { SEGMENT = 0, HEAP = 2 * 4096, SIZE = HEAP + 4096, STEPS = 60 };

/* Behind the heap. Nodes lie at other addresses in each world: so places are kept. A node has the
 * place of the next one, a number, and what can be computed of that. */
struct list {
	uint64_t first; /* from the heap's beginning; 0: none */
	uint64_t nodes;
};

static _Atomic uint64_t dirty[1];

static void attach(perseas_t *p, char *base)
{
	ps_rvm.pieces[0].dirty = dirty;
	ps_rvm.pieces[0].length = SIZE;
	ps_rvm.pieces[0].base = base;
	ps_rvm.phase = PS_RVM_PHASE_READY;
	ps_rvm.store = p;
}

static void detach(void)
{
	ps_rvm.store = NULL;
	ps_rvm.phase = PS_RVM_PHASE_NEW;
	ps_rvm.pieces[0].base = NULL;
	ps_rvm.pieces[0].dirty = NULL;
	ps_rds.base = NULL;
}

static struct list *list_at(char *base)
{
	return (struct list *)(base + HEAP);
}

/* --- the workload --- */

static void wrong_at(struct work *w, const char *what)
{
	printf("    fault: %s: %s: %s, %s\n", w->name, what, rds_message(), rvm_message());
	w->broken++;
}

static char *base_of_heap(const struct work *w)
{
	return (char *)ps_segment_by_id(w->p, SEGMENT)->base;
}

/* Ends a transaction, and has the model know what it stored: somewhere in the segment. */
static void finish(struct work *w, rvm_tid_t *tid, bool goes_well)
{
	static struct change change;
	const uint64_t seq = w->p->commit.seq;

	if (!goes_well) {
		if (rvm_abort_transaction(tid) != RVM_SUCCESS)
			wrong_at(w, "abort");
		return;
	}
	if (rvm_end_transaction(tid, flush) != RVM_SUCCESS)
		wrong_at(w, "commit");
	change.count = 1;
	change.ranges[0].id = SEGMENT;
	change.ranges[0].offset = 0;
	change.ranges[0].length = SIZE;
	work_made(w, &change, seq);
}

static void push(struct work *w, rvm_tid_t *tid, char *base)
{
	struct list *list = list_at(base);
	int err;
	char *addr = rds_malloc(24 + work_draw(w, 900), tid, &err);
	const uint64_t words[3] = { list->first, list->nodes, (list->nodes * 31) ^ 7 };

	if (!addr && err == ENO_ROOM)
		return;
	if (!addr || rvm_modify_bytes(tid, addr, words, sizeof(words)) != RVM_SUCCESS) {
		wrong_at(w, "malloc");
		return;
	}
	list->first = (uint64_t)(addr - base);
	list->nodes++;
}

static void pop(struct work *w, rvm_tid_t *tid, char *base)
{
	struct list *list = list_at(base);
	char *addr = base + list->first;
	int err;

	memcpy(&list->first, addr, sizeof(list->first));
	list->nodes--;
	if (rds_free(addr, tid, &err))
		wrong_at(w, "free");
}

static void change_list(struct work *w)
{
	char *base = base_of_heap(w);
	struct list *list = list_at(base);
	rvm_tid_t tid;

	rvm_init_tid(&tid);
	if (rvm_begin_transaction(&tid, restore) != RVM_SUCCESS ||
	    rvm_set_range(&tid, list, sizeof(*list)) != RVM_SUCCESS)
		wrong_at(w, "begin");
	for (unsigned i = 0; i < 3 && !w->broken; i++) {
		if (list->nodes && work_draw(w, 9) < 4)
			pop(w, &tid, base);
		else
			push(w, &tid, base);
	}
	finish(w, &tid, work_draw(w, 5) != 0);
}

static void make_heap(struct work *w)
{
	char *base = base_of_heap(w);
	rvm_tid_t tid;
	int err;

	rvm_init_tid(&tid);
	if (rvm_begin_transaction(&tid, restore) != RVM_SUCCESS ||
	    rvm_set_range(&tid, list_at(base), sizeof(struct list)) != RVM_SUCCESS ||
	    rds_init_heap(base, HEAP, 32, 6, &tid, &err))
		wrong_at(w, "init");
	memset(list_at(base), 0, sizeof(struct list));
	finish(w, &tid, true);
}

static bool start(struct work *w)
{
	int err;

	attach(w->p, base_of_heap(w));
	if (!rds_start_heap(base_of_heap(w), &err))
		return true;
	wrong_at(w, "start");
	return false;
}

void run_rds(struct work *w)
{
	static struct change change;
	const uint32_t id = SEGMENT;
	const uint64_t size = SIZE;

	work_create(w);
	if (!work_open(w) || work_publish(w, &id, &size, 1))
		return;
	attach(w->p, base_of_heap(w));
	make_heap(w);
	for (unsigned i = 0; i < STEPS / 2 && !w->broken; i++)
		change_list(w);
	detach();
	work_begin(w, &change);
	work_die(w);
	if (!work_open(w))
		return;
	if (start(w))
		for (unsigned i = 0; i < STEPS / 2 && !w->broken; i++)
			change_list(w);
	detach();
	work_close(w);
}

/* --- the check --- */

/* Every block is whole, and free ones are in their lists. How many are allocated. */
static uint64_t count_blocks(struct checker *checker)
{
	const struct ps_rds_change none = { 0 };
	uint64_t used = 0, unused = 0, listed = 0;

	for (uint64_t place = ps_rds.first, chunks; place < ps_rds.end;
	     place += chunks * ps_rds.chunk) {
		const uint64_t is_free = ps_rds_block_length(&none, place, PS_RDS_FREED);

		chunks = is_free ? is_free : ps_rds_block_length(&none, place, PS_RDS_USED);
		if (!chunks) {
			fault(checker, "rds: a block is none");
			return 0;
		}
		used += !is_free;
		unused += is_free;
	}
	for (uint64_t i = 1; i <= ps_rds.nlists + 1; i++)
		for (uint64_t at = *ps_rds_word_at(ps_rds_list_place(i)); at && listed <= unused;
		     at = *ps_rds_word_at(at + sizeof(uint64_t)))
			listed += ps_rds_block_length(&none, at, PS_RDS_FREED);
	if (listed != unused || ps_rds_head()->counts[PS_RDS_FREE_BYTES] != unused * ps_rds.chunk)
		fault(checker, "rds: %llu chunks are free, and lists have %llu",
		      (unsigned long long)unused, (unsigned long long)listed);
	return used;
}

static uint64_t count_nodes(struct checker *checker, char *base)
{
	const struct list *list = list_at(base);
	const struct ps_rds_change none = { 0 };
	uint64_t nodes = 0;

	for (uint64_t at = list->first, words[3]; at && nodes <= list->nodes; at = words[0]) {
		if (!ps_rds_block_length(&none, at - sizeof(uint64_t), PS_RDS_USED)) {
			fault(checker, "rds: a node is no block that is allocated");
			return 0;
		}
		memcpy(words, base + at, sizeof(words));
		if (words[2] != ((words[1] * 31) ^ 7))
			fault(checker, "rds: a node was written by another");
		nodes++;
	}
	if (nodes != list->nodes)
		fault(checker, "rds: the list has not as many nodes as it says");
	return nodes;
}

void check_rds(struct checker *checker, perseas_t *p)
{
	const struct ps_segment *segment = ps_segment_by_id(p, SEGMENT);
	uint64_t blocks, nodes;
	int err;

	if (!segment || segment->size != SIZE || !segment->base ||
	    memcmp(segment->base, PS_RDS_MAGIC, 8) != 0)
		return;
	attach(p, (char *)segment->base);
	if (rds_start_heap((char *)segment->base, &err)) {
		fault(checker, "rds: %s", rds_message());
	} else {
		blocks = count_blocks(checker);
		nodes = count_nodes(checker, (char *)segment->base);
		if (blocks != nodes)
			fault(checker, "rds: %llu blocks are allocated, and the list has %llu",
			      (unsigned long long)blocks, (unsigned long long)nodes);
	}
	detach();
}
