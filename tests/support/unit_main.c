/*
 * unit_main.c - the main() of a program of tests/unit. The linker takes it from the archive for
 * programs that have none of their own.
 */
#include "unit.h"

int main(void)
{
	return unit_run("tests");
}
