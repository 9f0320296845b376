/*
 * seed_file.h - how the make_* programs write seeds of fuzz targets: a file CORPUS/TARGET/NAME for
 * each. A program that cannot write one ends with the system's reason.
 */
#ifndef PERSEAS_TESTS_SEED_FILE_H
#define PERSEAS_TESTS_SEED_FILE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The folder of all targets, from the command line. */
static const char *corpus;

static inline void corpus_take(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
		exit(2);
	}
	corpus = argv[1];
}

static inline void seed_make_folder(const char *path)
{
	if (mkdir(path, 0777) && errno != EEXIST) {
		perror(path);
		exit(1);
	}
}

static inline FILE *seed_open(const char *target, const char *name)
{
	char path[512];
	FILE *file;

	seed_make_folder(corpus);
	snprintf(path, sizeof(path), "%s/%s", corpus, target);
	seed_make_folder(path);
	snprintf(path, sizeof(path), "%s/%s/%s", corpus, target, name);
	file = fopen(path, "wb");
	if (!file) {
		perror(path);
		exit(1);
	}
	return file;
}

static inline void seed_add(FILE *file, const void *bytes, size_t length)
{
	if (fwrite(bytes, 1, length, file) != length) {
		perror(corpus);
		exit(1);
	}
}

static inline void seed_close(FILE *file)
{
	if (fclose(file)) {
		perror(corpus);
		exit(1);
	}
}

#endif
