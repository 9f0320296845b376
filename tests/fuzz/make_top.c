/*
 * make_top.c - writes the seed of fuzz_top: two looks at a store that runs, as the first of three
 * mirrors tells it; the others say nothing.
 */
#include "../support/messages.h"
#include "seed_file.h"

/* Writes one answer, and two empty ones. */
static void add_look(FILE *file, Perseas__ListReply *list)
{
	static const uint8_t nothing[8];
	const Perseas__Reply reply = message_reply(list);
	uint8_t *bytes;
	size_t len;

	if (ps_reply_pack(&reply, &bytes, &len) != 0)
		exit(1);
	seed_add(file, bytes, len);
	seed_add(file, nothing, sizeof(nothing));
	free(bytes);
}

static void add_looks(FILE *file)
{
	struct message_header *h = message_header_new();
	uint64_t counts[] = { 3, 0, 128 };
	Perseas__Slot slot = MESSAGE_OF(Slot, slot, .epoch = 9, .seq = 100, .next = 4096);
	Perseas__MirrorReport report = MESSAGE_OF(MirrorReport, mirror_report,
	                                          .address = message_address[1],
	                                          .state = message_ledger, .seq = 90, .done = 5,
	                                          .total = 1000);
	Perseas__Latencies commit = MESSAGE_OF(Latencies, latencies, .first = 16, .n_counts = 3,
	                                       .counts = counts, .max_ns = 18);
	Perseas__OwnerFigures figures = MESSAGE_OF(OwnerFigures, owner_figures, .commit = &commit,
	                                           .missing = 24 << 20);
	Perseas__MirrorReport *reports[] = { &report };
	Perseas__StoreStatus status = MESSAGE_OF(StoreStatus, store_status, .header = &h->header,
	                                         .slot = &slot, .live = 1,
	                                         .owner_address = message_address[1],
	                                         .n_mirrors = 1, .mirrors = reports,
	                                         .figures = &figures);
	Perseas__StoreStatus *stores[] = { &status };
	Perseas__ListReply list = MESSAGE_OF(ListReply, list_reply, .n_stores = 1,
	                                     .stores = stores);

	add_look(file, &list);
	slot.seq += 7;
	counts[0]++;
	add_look(file, &list);
	free(h);
}

int main(int argc, char **argv)
{
	FILE *file;

	corpus_take(argc, argv);
	file = seed_open("top", "looks");
	add_looks(file);
	seed_close(file);
	return 0;
}
