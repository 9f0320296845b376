/*
 * make_top.c - writes the seed of fuzz_top: two looks at a store that runs, as the first of three
 * mirrors tells it; the others say nothing.
 */
#include "../support/messages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One answer, and two that are empty. */
static void write_look(FILE *file, const Perseas__Reply *reply)
{
	static const uint8_t nothing[8];
	uint8_t *bytes;
	size_t len;

	if (ps_reply_pack(reply, &bytes, &len) != 0 || fwrite(bytes, 1, len, file) != len ||
	    fwrite(nothing, 1, sizeof(nothing), file) != sizeof(nothing))
		exit(1);
	free(bytes);
}

static void write_looks(FILE *file)
{
	struct message_header *h = message_header_new();
	uint64_t counts[] = { 3, 0, 128 };
	Perseas__Slot slot = PERSEAS__SLOT__INIT;
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT, *reports[1] = { &report };
	Perseas__Latencies commit = PERSEAS__LATENCIES__INIT;
	Perseas__OwnerFigures figures = PERSEAS__OWNER_FIGURES__INIT;
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT, *stores[1] = { &status };
	Perseas__ListReply list = PERSEAS__LIST_REPLY__INIT;
	const Perseas__Reply reply = MESSAGE_REPLY(list, LIST, &list);

	slot.epoch = 9;
	slot.seq = 100;
	slot.next = 4096;
	report.address = message_address[1];
	report.state = message_ledger;
	report.seq = 90;
	report.done = 5;
	report.total = 1000;
	commit.first = 16;
	commit.n_counts = 3;
	commit.counts = counts;
	commit.max_ns = 18;
	figures.commit = &commit;
	figures.missing = 24 << 20;
	status.header = &h->header;
	status.slot = &slot;
	status.live = 1;
	status.owner_address = message_address[1];
	status.n_mirrors = 1;
	status.mirrors = reports;
	status.figures = &figures;
	list.n_stores = 1;
	list.stores = stores;
	write_look(file, &reply);
	slot.seq += 7;
	counts[0]++;
	write_look(file, &reply);
	free(h);
}

int main(int argc, char **argv)
{
	char path[512];
	FILE *file;

	if (argc != 2) {
		fprintf(stderr, "usage: make_top FOLDER\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/top", argv[1]);
	if (mkdir(path, 0777) < 0 && errno != EEXIST) {
		perror(path);
		return 1;
	}
	snprintf(path, sizeof(path), "%s/top/looks", argv[1]);
	file = fopen(path, "wb");
	if (!file) {
		perror(path);
		return 1;
	}
	write_looks(file);
	return fclose(file) ? 1 : 0;
}
