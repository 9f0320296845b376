/*
 * unload.c - a program that loads libperseas as a plugin and unloads it: "unload LIBRARY MIRRORS".
 * It commits, unloads the library while the store is open, commits again through the pointers that
 * it has, closes the store, unloads the library again, and prints "default" if SIGBUS then has its
 * default action.
 */
#include <perseas.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define LOAD(library, name) (__typeof__(&(name)))dlsym(library, #name)

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s failed\n", what);
	exit(1);
}

static void load(void **library, const char *path)
{
	*library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	check(*library != NULL, "dlopen");
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct sigaction now;
	perseas_tx_t *tx;
	perseas_t *p;
	void *library, *memory;
	int *number;

	check(argc == 3, "unload LIBRARY MIRRORS");
	load(&library, argv[1]);
	__typeof__(&perseas_open) open_store = LOAD(library, perseas_open);
	__typeof__(&perseas_map) map = LOAD(library, perseas_map);
	__typeof__(&perseas_publish) publish = LOAD(library, perseas_publish);
	__typeof__(&perseas_begin) begin = LOAD(library, perseas_begin);
	__typeof__(&perseas_set_range) set_range = LOAD(library, perseas_set_range);
	__typeof__(&perseas_commit) commit = LOAD(library, perseas_commit);
	__typeof__(&perseas_close) close_store = LOAD(library, perseas_close);

	options.flags = PERSEAS_CREATE;
	options.connect_timeout_ms = options.commit_timeout_ms = options.mirror_timeout_ms = 18000;
	options.open_timeout_ms = 90000;
	check(open_store("plugin", argv[2], &options, &p) == 0, "perseas_open");
	check(map(p, "number", 4096, &memory) == 0 && publish(p) == 0, "perseas_map");
	number = memory;
	for (int round = 0; round < 2; round++) {
		check(begin(p, 0, &tx) == 0, "perseas_begin");
		check(set_range(tx, number, sizeof(*number)) == 0, "perseas_set_range");
		++*number;
		check(commit(tx, 0) == 0, "perseas_commit");
		if (round == 0)
			check(dlclose(library) == 0, "dlclose");
	}
	close_store(p);
	load(&library, argv[1]);
	check(dlclose(library) == 0, "dlclose");
	check(sigaction(SIGBUS, NULL, &now) == 0, "sigaction");
	puts(now.sa_handler == SIG_DFL ? "default" : "not default");
	return 0;
}
