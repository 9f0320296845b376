/*
 * replay.c - main of the replayers: runs one fuzz target on recorded inputs, without libFuzzer.
 *
 *   replay_NAME FILE|FOLDER...
 *
 * Runs the empty input first, as libFuzzer does, then each file in sorted order. Prints
 * "N passed, 0 failed", and exits with 0. If an input ends the process, or needs more than
 * LIMIT_S seconds of processor time, the last lines name that input and the process fails.
 * The replayer never writes to the corpus.
 *
 * An input ends where an unmapped page begins, and is read-only: a target that reads past the
 * end or writes to its input crashes even without a sanitizer.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { LIMIT_S = 60, PATH_SIZE = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

/* The two lines to print if the input that runs ends the process; empty between inputs. */
static char verdict[PATH_SIZE + 64];
static size_t passed;

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
	passed++;
}

static void read_all(int fd, uint8_t *to, size_t size, const char *path)
{
	while (size > 0) {
		ssize_t n = read(fd, to, size);

		if (n <= 0)
			give_up(path);
		to += n;
		size -= (size_t)n;
	}
}

static void run_file(const char *path, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t mapped = (size + page - 1) / page * page;
	uint8_t *base = mmap(NULL, mapped + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (base == MAP_FAILED || fd < 0)
		give_up(path);
	if (mapped > 0 && mprotect(base, mapped, PROT_READ | PROT_WRITE))
		give_up(path);
	read_all(fd, base + mapped - size, size, path);
	close(fd);
	if (mapped > 0 && mprotect(base, mapped, PROT_READ))
		give_up(path);
	run_input(path, base + mapped - size, size);
	munmap(base, mapped + page);
}

/* --- all inputs --- */

static void run_path(const char *path);

static void run_folder(const char *folder)
{
	struct dirent **entries;
	char path[PATH_SIZE];
	int count = scandir(folder, &entries, NULL, alphasort);

	if (count < 0)
		give_up(folder);
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
			run_path(path);
		}
		free(entries[i]);
	}
	free(entries);
}

static void run_path(const char *path)
{
	struct stat info;

	if (stat(path, &info))
		give_up(path);
	if (S_ISDIR(info.st_mode))
		run_folder(path);
	else
		run_file(path, (size_t)info.st_size);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "%s FILE|FOLDER...: runs the fuzz target on these inputs\n",
		        argv[0]);
		return 2;
	}
	handle_endings();
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	run_input("the empty input", (const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		run_path(argv[i]);
	if (passed < 2) {
		fprintf(stderr, "%s: no inputs in %s\n", argv[0], argv[1]);
		return 1;
	}
	printf("%zu passed, 0 failed\n", passed);
	return 0;
}
