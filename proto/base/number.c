/*
 * number.c - strict parsers for numbers and sizes. Options and access rules use them on both sides.
 * Text with any character that is not part of the number is refused.
 */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool ps_number_read(const char *text, const char **end, uint64_t *number)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoull(text, &stop, 10);
	*end = stop;
	return errno == 0;
}

bool ps_size_read(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *end, *unit;
	uint64_t number;
	unsigned shift = 0;

	if (!ps_number_read(text, &end, &number))
		return false;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return false;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (number > UINT64_MAX >> shift)
		return false;
	*bytes = number << shift;
	return true;
}
