/*
 * replay.c - main of the replayers: runs one fuzz target on recorded inputs, without libFuzzer.
 *
 *   replay_NAME COUNT FILE|FOLDER...
 *
 * Runs the empty input first, as libFuzzer does, then each file in sorted order, then COUNT inputs
 * that derive.h makes of these files in turn. Nothing is drawn at random. Prints
 * "N passed, 0 failed", where N does not count derived inputs, and exits with 0. If an input ends
 * the process, or needs more than LIMIT_S seconds of processor time, the last lines name that
 * input, and the process fails.
 *
 * An input ends where an unmapped page begins, and is read-only: a target that reads past the
 * end or writes to its input crashes even without a sanitizer.
 */
#include "derive.h"
#include "target.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { LIMIT_S = 60, PATH_SIZE = 4096 };

int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

/* The two lines to print if the input that runs ends the process; empty between inputs. */
static char verdict[2 * PATH_SIZE];
static size_t passed; /* of the empty input and the files */

/* --- how a failure is reported --- */

static void print_verdict(void)
{
	const char *at = verdict;
	size_t left = strlen(verdict);

	while (left > 0) {
		ssize_t n = write(STDOUT_FILENO, at, left);

		if (n <= 0)
			return;
		at += n;
		left -= (size_t)n;
	}
}

/* SA_RESETHAND restored the default action, which ends the process by the same signal. */
static void on_signal(int number)
{
	print_verdict();
	raise(number);
}

static void on_exit_of_target(void)
{
	if (!verdict[0])
		return;
	print_verdict();
	_exit(1);
}

static void handle_endings(void)
{
	static const int signals[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV };
	static uint8_t stack[64 << 10]; /* a handler needs one of its own if the stack is full */
	const stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_signal,
		                    .sa_flags = SA_ONSTACK | (int)SA_RESETHAND };

	sigaltstack(&other, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	atexit(on_exit_of_target);
}

static void limit_time(long seconds)
{
	setitimer(ITIMER_PROF, &(struct itimerval){ .it_value.tv_sec = seconds }, NULL);
}

static void give_up(const char *path)
{
	verdict[0] = '\0';
	perror(path);
	exit(1);
}

/* --- one input --- */

static void run_input(const char *name, const uint8_t *data, size_t size)
{
	snprintf(verdict, sizeof(verdict), "FAILED %s\n%zu passed, 1 failed\n", name, passed);
	limit_time(LIMIT_S);
	LLVMFuzzerTestOneInput(data, size);
	limit_time(0);
	verdict[0] = '\0';
}

/* The last page of `pages` cannot be touched, and the others are all that an input may need. */
static struct {
	uint8_t *base;
	size_t size; /* without the last page */
} pages;

static void make_pages(size_t largest)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	pages.size = (largest + page - 1) / page * page;
	pages.base = mmap(NULL, pages.size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages.base == MAP_FAILED)
		give_up("mmap");
}

static void protect(int how)
{
	if (mprotect(pages.base, pages.size, how))
		give_up("mprotect");
}

static void run_copy(const char *name, const uint8_t *bytes, size_t size)
{
	uint8_t *at = pages.base + pages.size - size;

	protect(PROT_READ | PROT_WRITE);
	memcpy(at, bytes, size);
	protect(PROT_READ);
	run_input(name, at, size);
}

/* --- all inputs --- */

struct file {
	char *path;
	uint8_t *bytes;
	size_t size;
};

static struct {
	struct file *all;
	size_t count, largest;
} files;

static void add_file(const char *path, size_t size)
{
	struct file file = { strdup(path), malloc(size + 1), size };
	FILE *from = fopen(path, "rb");

	files.all = realloc(files.all, (files.count + 1) * sizeof(file));
	if (!from || !file.path || !file.bytes || !files.all ||
	    fread(file.bytes, 1, size, from) != size)
		give_up(path);
	fclose(from);
	files.all[files.count++] = file;
	if (size > files.largest)
		files.largest = size;
}

static void add_path(const char *path);

static void add_folder(const char *folder)
{
	struct dirent **entries;
	char path[PATH_SIZE];
	int count = scandir(folder, &entries, NULL, alphasort);

	if (count < 0)
		give_up(folder);
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
			add_path(path);
		}
		free(entries[i]);
	}
	free(entries);
}

static void add_path(const char *path)
{
	struct stat info;

	if (stat(path, &info))
		give_up(path);
	if (S_ISDIR(info.st_mode))
		add_folder(path);
	else
		add_file(path, (size_t)info.st_size);
}

static void run_derived(uint64_t count)
{
	uint8_t *bytes = malloc(files.largest + DERIVED_GROWTH);
	char name[PATH_SIZE];

	if (!bytes)
		give_up("malloc");
	for (uint64_t i = 0; i < count; i++) {
		const struct file *parent = &files.all[i % files.count];

		memcpy(bytes, parent->bytes, parent->size);
		snprintf(name, sizeof(name), "derived input %" PRIu64 ", of %s", i, parent->path);
		run_copy(name, bytes, derive(bytes, parent->size, i));
	}
	free(bytes);
}

int main(int argc, char **argv)
{
	const uint64_t derived = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	if (argc < 3) {
		fprintf(stderr,
		        "%s COUNT FILE|FOLDER...: runs the fuzz target on these inputs,\n"
		        "and on COUNT others that are derived from them\n",
		        argv[0]);
		return 2;
	}
	handle_endings();
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 2; i < argc; i++)
		add_path(argv[i]);
	if (files.count == 0) {
		fprintf(stderr, "%s: no inputs in %s\n", argv[0], argv[2]);
		return 1;
	}
	make_pages(files.largest + DERIVED_GROWTH);
	run_input("the empty input", (const uint8_t *)"", 0);
	passed++;
	for (size_t i = 0; i < files.count; i++) {
		run_copy(files.all[i].path, files.all[i].bytes, files.all[i].size);
		passed++;
	}
	run_derived(derived);
	printf("%zu passed, 0 failed; and %" PRIu64 " derived inputs\n", passed, derived);
	return 0;
}
