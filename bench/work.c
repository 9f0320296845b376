/*
 * work.c - runs workloads on engines: fills tables and checks every byte.
 */
#include "work.h"

#include "bank.h"
#include "order_entry.h"
#include "tpca.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Folder for files that take the place of memory. It is on disk on most hosts. */
#define KEPT_IN "/var/tmp"

const struct work *work_by_name(const char *name)
{
	static const struct work *const works[] = {
		&bank_work,           &order_entry_work,     &synthetic_work,
		&ranges_work,         &tpca_sequential_work, &tpca_random_work,
		&tpca_localized_work, &tpca_layered_work,
	};

	for (unsigned i = 0; i < sizeof(works) / sizeof(*works); i++)
		if (!strcmp(works[i]->name, name))
			return works[i];
	return NULL;
}

uint64_t work_bytes(const struct work *work, uint64_t size)
{
	struct engine_table tables[ROWS_TABLES_MAX];
	uint64_t offsets[ROWS_TABLES_MAX + 1];

	return rows_lay_out(tables, work->tables(size, tables), offsets);
}

struct rows work_view(const struct work *work, uint64_t size, const void *image)
{
	struct rows view = { .memory = (uint8_t *)image };

	view.table_count = work->tables(size, view.tables);
	rows_lay_out(view.tables, view.table_count, view.offsets);
	return view;
}

/* Returns true if all bytes are zero. A store that was used before has others, and filling it would
 * not reset them all. */
static bool all_zero(const uint8_t *bytes, uint64_t count)
{
	return !count || (!*bytes && !memcmp(bytes, bytes + 1, count - 1));
}

static int fill_tables(struct work_run *run, char *why)
{
	uint64_t bytes = work_bytes(run->work, run->plan.size);
	void *image;
	int code;

	if (run->rows.memory && !all_zero(run->rows.memory, bytes)) {
		snprintf(why, WORK_WHY, "it holds something already; give another store");
		return -1;
	}

	/* Row engines need every row written before it can be changed; memory is zero already. */
	if (!run->work->fill && run->rows.memory)
		return 0;
	image = calloc(1, bytes);
	if (!image) {
		snprintf(why, WORK_WHY, "%s", strerror(errno));
		return -1;
	}
	if (run->work->fill)
		run->work->fill(image, run->plan.size);
	code = rows_load(&run->rows, image);
	if (code)
		snprintf(why, WORK_WHY, "%s", rows_why(&run->rows));
	free(image);
	return code;
}

int work_attach(struct work_run *run, const struct work *work, uint64_t size,
                const struct engine_ops *ops, const struct engine_options *options, char *why)
{
	struct engine_table tables[ROWS_TABLES_MAX];
	unsigned count = work->tables(size, tables);

	memset(run, 0, sizeof(*run));
	run->name = ops->name;
	run->work = work;
	run->plan = WORK_PLAN(size);
	return rows_open(&run->rows, ops, options, tables, count, why);
}

int work_open(struct work_run *run, const struct work *work, uint64_t size,
              const struct engine_ops *ops, const struct engine_options *options, char *why)
{
	if (work_attach(run, work, size, ops, options, why))
		return -1;
	if (!fill_tables(run, why))
		return 0;
	work_close(run);
	return -1;
}

void work_close(struct work_run *run)
{
	rows_close(&run->rows);
	if (run->kept)
		munmap(run->kept, work_bytes(run->work, run->plan.size));
	memset(run, 0, sizeof(*run));
}

/* --- checking ----------------------------------------------------------------------- */

/* Adds up a column. Unsigned, because wrong bytes may make the sum wrap around. */
static uint64_t add_up(const struct rows *view, const struct work_column *column)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < view->tables[column->table].count; i++) {
		const uint8_t *at = rows_at(view, column->table, i);
		uint64_t number = 0;

		memcpy(&number, at + column->offset, column->width);
		sum += number - column->first;
	}
	return sum;
}

bool work_check_columns(const struct work *work, const struct work_plan *plan, const void *image,
                        const struct work_column *columns, unsigned count, char *why,
                        unsigned why_size)
{
	const struct rows view = work_view(work, plan->size, image);

	for (unsigned i = 0; i < count; i++) {
		int64_t less = columns[i].less == WORK_NO_SUM ? 0 : plan->sums[columns[i].less];
		int64_t wanted = plan->sums[columns[i].sum] - less;
		int64_t sum = (int64_t)add_up(&view, &columns[i]);

		if (sum == wanted)
			continue;
		snprintf(why, why_size, "the %s add up to %" PRId64 ", not to %" PRId64,
		         columns[i].name, sum, wanted);
		return false;
	}
	return true;
}

/* Returns true if the run's image is equal to the memory of `plain`. Otherwise returns false and
 * reports how many bytes differ and the first of them. */
static bool compare_image(const struct work_run *run, const struct work_run *plain,
                          const uint8_t *image, char *why)
{
	uint64_t bytes = plain->rows.offsets[plain->rows.table_count], first = bytes, count = 0;

	if (!memcmp(image, plain->rows.memory, bytes))
		return true;
	for (uint64_t i = bytes; i-- > 0;) {
		if (image[i] != plain->rows.memory[i]) {
			first = i;
			count++;
		}
	}
	snprintf(why, WORK_WHY,
	         "%s: %" PRIu64 " bytes are not what %" PRIu64 " transactions make, the first at "
	         "offset %" PRIu64,
	         run->name, count, plain->plan.done, first);
	return false;
}

/* Runs transactions until `done` are done. */
static void run_until(struct work_run *run, uint64_t done)
{
	while (run->plan.done < done)
		run->work->step(run);
}

/* Returns an image of the run's tables if their sums are right. Otherwise returns NULL, with
 * *status set and a sentence in `why`. */
static const void *summed_image(struct work_run *run, void *room, int *status, char *why)
{
	const void *image = rows_image(&run->rows, room);
	char sentence[256];

	if (!image) {
		snprintf(why, WORK_WHY, "%s: %s", run->name, rows_why(&run->rows));
		*status = 2;
		return NULL;
	}
	if (run->work->check(&run->plan, image, sentence, sizeof(sentence)))
		return image;
	snprintf(why, WORK_WHY, "%s: %s", run->name, sentence);
	*status = 1;
	return NULL;
}

/* Maps a file without a name, with all blocks allocated. Returns NULL with errno set on failure. */
static void *map_file(uint64_t bytes)
{
	int fd = open(KEPT_IN, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	void *room = MAP_FAILED;

	if (fd < 0)
		return NULL;
	errno = posix_fallocate(fd, 0, (off_t)bytes);
	if (!errno)
		room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return room == MAP_FAILED ? NULL : room;
}

int work_let_go(struct work_run *run, char *why)
{
	uint64_t bytes = work_bytes(run->work, run->plan.size);
	const void *image;
	int status = 2;

	run->kept = map_file(bytes);
	if (!run->kept) {
		snprintf(why, WORK_WHY, "%s: %s", KEPT_IN, strerror(errno));
		return status;
	}
	image = summed_image(run, run->kept, &status, why);
	if (!image)
		return status;
	if (image != run->kept)
		memcpy(run->kept, image, bytes);
	/* Frees the memory for the next engine, and writes now what would otherwise be written
	 * while it is measured. */
	if (msync(run->kept, bytes, MS_SYNC)) {
		snprintf(why, WORK_WHY, "%s: %s", KEPT_IN, strerror(errno));
		return status;
	}
	rows_close(&run->rows);
	return 0;
}

/* Checks one run against `plain`, which has done as many transactions. Returns an exit status. */
static int check_run(struct work_run *run, const struct work_run *plain, char *why)
{
	void *room = NULL;
	const void *image = run->kept;
	int status = 2;

	snprintf(why, WORK_WHY, "out of memory");
	if (!image && !run->rows.memory)
		room = malloc(work_bytes(run->work, run->plan.size));
	if (!image && (room || run->rows.memory))
		image = summed_image(run, room, &status, why);
	if (image)
		status = !compare_image(run, plain, image, why);
	free(room);
	return status;
}

/* Returns the unchecked run with the fewest transactions, or NULL. */
static struct work_run *next_run(struct work_run *runs, unsigned count, const bool *checked)
{
	struct work_run *least = NULL;

	for (unsigned i = 0; i < count; i++)
		if (!checked[i] && (!least || runs[i].plan.done < least->plan.done))
			least = &runs[i];
	return least;
}

int work_check(struct work_run *runs, unsigned count, char *why)
{
	const struct engine_options none = { .store = "check" };
	bool *checked = calloc(count, sizeof(*checked));
	struct work_run plain, *run;
	int status = 0;

	if (!checked) {
		snprintf(why, WORK_WHY, "out of memory");
		return 2;
	}
	if (work_open(&plain, runs[0].work, runs[0].plan.size, &engine_none, &none, why))
		status = 2;
	/* All runs have the same sequence of transactions, so the plain run continues from one
	 * run's end to the next's. */
	while (!status && (run = next_run(runs, count, checked))) {
		run_until(&plain, run->plan.done);
		checked[run - runs] = true;
		status = check_run(run, &plain, why);
	}
	work_close(&plain);
	free(checked);
	return status;
}

bool work_compare(const struct work *work, uint64_t size, const void *image, uint64_t done,
                  char *why)
{
	struct work_run run = { .name = work->name, .work = work, .kept = (uint8_t *)image };

	run.plan = (struct work_plan){ .size = size, .done = done };
	return !work_check(&run, 1, why);
}
