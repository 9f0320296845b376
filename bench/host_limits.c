/*
 * host-limits - measures what this host can do at best in the parts of a mirrored transaction:
 * copying memory, passing a cache line from one processor to another, and writing a page to disk.
 */
#include "area.h"
#include "clock.h"
#include "measure.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096, FILE_PAGES = 16384, AREA = 64 << 20, CONTENDERS_MAX = 8 };

/* Number of reads of an unchanged cache line before the helper thread sleeps: about a
 * millisecond. */
enum { IDLE_LOOKS = 1000000 };

static struct options {
	const char *dir;
	uint32_t round_ms;
	uint64_t rounds, cpu;
	bool json;
} options;

static const char about[] =
	"Copies of 4 KiB, 64 KiB, 1 MiB and 64 MiB between random places of memory, a cache line\n"
	"there and back between two processors that spin, and, with --dir, 4 KiB written to a\n"
	"file and brought to the disk with fdatasync.\n";

static const struct ps_option rows[] = {
	{ "dir", PS_OPTION_TEXT, AT(dir), "FOLDER",
	  .help = "Folder on a disk, for a file of up to 64 MiB." },
	{ "cpu", PS_OPTION_NUMBER, AT(cpu), "N", "0", .high = 1023,
	  .help = "Processor of this process." },
	ROUND_OPTION_ROWS,
	JSON_OPTION_ROW,
};

/* --- copying ------------------------------------------------------------------------ */

struct copier {
	uint8_t *from, *to;
	size_t size;
	uint64_t number;
};

/* Copies between places in a scrambled order, so that no cache holds them. */
static int copy_step(void *ctx)
{
	struct copier *copier = ctx;
	size_t places = AREA / copier->size;
	size_t at = copier->number++ * 0x9e3779b97f4a7c15u % places * copier->size;

	memcpy(copier->to + at, copier->from + at, copier->size);
	atomic_signal_fence(memory_order_seq_cst);
	return 0;
}

/* --- a cache line ------------------------------------------------------------------- */

struct handover {
	_Alignas(128) _Atomic uint64_t there;
	_Alignas(128) _Atomic uint64_t back;
	int cpu;
	pthread_t thread;
};

/* Answers each change of the line. Sleeps between reads when nothing changes, so that it does not
 * disturb the other measurements. */
static void *hand_back(void *arg)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	struct handover *line = arg;
	uint64_t seen = 0, next, idle = 0;

	cpu_pin(line->cpu);
	while ((next = atomic_load_explicit(&line->there, memory_order_acquire)) != UINT64_MAX) {
		if (next != seen) {
			atomic_store_explicit(&line->back, seen = next, memory_order_release);
			idle = 0;
		} else if (++idle > IDLE_LOOKS) {
			nanosleep(&pause, NULL);
		}
	}
	return NULL;
}

static int handover_step(void *ctx)
{
	struct handover *line = ctx;
	uint64_t next = atomic_load_explicit(&line->there, memory_order_relaxed) + 1;

	atomic_store_explicit(&line->there, next, memory_order_release);
	while (atomic_load_explicit(&line->back, memory_order_acquire) != next)
		;
	return 0;
}

/* --- the disk ----------------------------------------------------------------------- */

struct disk {
	int fd;
	uint64_t number;
	uint8_t page[PAGE];
};

/* Creates a file without a name, with all blocks allocated. Returns an exit status. */
static int disk_open(struct disk *disk)
{
	disk->fd = open(options.dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (disk->fd < 0)
		return program_fail(options.dir, strerror(errno));
	for (unsigned i = 0; i < FILE_PAGES; i++)
		if (pwrite(disk->fd, disk->page, PAGE, (off_t)i * PAGE) != PAGE)
			return program_fail(options.dir, strerror(errno));
	return fsync(disk->fd) ? program_fail(options.dir, strerror(errno)) : 0;
}

static int disk_step(void *ctx)
{
	struct disk *disk = ctx;
	off_t at = (off_t)(disk->number++ % FILE_PAGES) * PAGE;

	memcpy(disk->page, &disk->number, sizeof(disk->number));
	if (pwrite(disk->fd, disk->page, PAGE, at) != PAGE || fdatasync(disk->fd))
		return -1;
	return 0;
}

/* --- the program --------------------------------------------------------------------- */

static int measure_all(uint8_t *memory, struct handover *line, struct disk *disk)
{
	static struct copier copiers[] = {
		{ .size = 4 << 10 }, { .size = 64 << 10 }, { .size = 1 << 20 }, { .size = AREA }
	};
	static const char *const names[] = { "memcpy_4k", "memcpy_64k", "memcpy_1m", "memcpy_64m" };
	const struct measure_plan plan = { .rounds = options.rounds,
		                           .seconds = options.round_ms / 1000.0 };
	struct measured *m[CONTENDERS_MAX] = { NULL };
	const struct measured *failed;
	unsigned count = 0;
	struct ps_json json = { .out = stdout };
	int status = 0;

	for (unsigned i = 0; i < sizeof(copiers) / sizeof(*copiers); i++) {
		copiers[i].from = memory;
		copiers[i].to = memory + AREA;
		m[count++] = measured_new(names[i], copy_step, &copiers[i]);
	}
	m[count++] = measured_new("handover", handover_step, line);
	if (disk)
		m[count++] = measured_new("fdatasync", disk_step, disk);
	failed = measure_in_turn(m, count, &plan);
	if (failed) {
		status = program_fail(failed->name, strerror(errno));
	} else if (options.json) {
		ps_json_begin(&json, NULL, '{');
		measured_json_all(&json, m, count);
		ps_json_end(&json, '}');
	} else {
		measured_print(stdout, m, count);
	}
	measured_free_all(m, count);
	return status;
}

int main(int argc, char **argv)
{
	static struct handover line;
	struct disk disk = { .fd = -1 };
	uint8_t *memory;
	int status;

	OPTIONS_PARSE(argc, argv);
	if (cpu_other((int)options.cpu) == (int)options.cpu)
		return program_fail("--cpu", "another processor must be there");
	if (options.dir && disk_open(&disk))
		return 2;
	line.cpu = cpu_other((int)options.cpu);
	memory = area_filled(2 * AREA, 1);
	if (!memory || pthread_create(&line.thread, NULL, hand_back, &line))
		return program_fail("memory", strerror(errno));
	program_pin(options.cpu);
	status = measure_all(memory, &line, options.dir ? &disk : NULL);
	atomic_store(&line.there, UINT64_MAX);
	pthread_join(line.thread, NULL);
	return status;
}
