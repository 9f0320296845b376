/*
 * unit_main.c - the main() of a program of tests/unit. The linker takes it from the archive for
 * programs that have none of their own. An argument is a pattern of the names of tests to run.
 */
#include "unit.h"

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return unit_run("tests");
}
