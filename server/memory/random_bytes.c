/*
 * random_bytes.c - see random_bytes.h.
 */
#include "random_bytes.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

void random_bytes_draw(void *bytes, size_t len)
{
	uint8_t *to = bytes;

	while (len > 0) {
		ssize_t n = getrandom(to, len, 0);

		if (n < 0 && errno != EINTR)
			abort();
		if (n <= 0)
			continue;
		to += n;
		len -= (size_t)n;
	}
}
