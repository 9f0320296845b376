/*
 * oracle.c - the page of acknowledged transactions.
 */
#include "oracle.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ORACLE_SIZE = 4096 };

struct oracle *oracle_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *page = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, ORACLE_SIZE))
		page = mmap(NULL, ORACLE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return page == MAP_FAILED ? NULL : page;
}

void oracle_close(struct oracle *oracle)
{
	if (oracle)
		munmap(oracle, ORACLE_SIZE);
}
