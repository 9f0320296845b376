/*
 * segment_parts.c - see segment_parts.h. The library and the command call it with segment tables
 * from mirrors, so names and addresses may be anything that a header may have.
 */
#include "segment_parts.h"

#include "envelope.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char INFIX[] = ".grown.";

/* Returns the number at the end of the name, and in *stem the length of the name before INFIX.
 * Returns 0 if it is not the name of a part. */
static unsigned part_number(const char *name, size_t *stem)
{
	const char *dot = strrchr(name, '.');
	const size_t infix = sizeof(INFIX) - 1;
	unsigned number = 0;

	*stem = dot ? (size_t)(dot + 1 - name) : 0;
	if (*stem <= infix || strncmp(dot + 1 - infix, INFIX, infix) != 0)
		return 0;
	*stem -= infix;
	/* Refuses leading zeros, so that each number has one form, and more digits than a table has
	 * segments. */
	if (dot[1] == '0' || strlen(dot + 1) > 3)
		return 0;
	for (const char *digit = dot + 1; *digit; digit++) {
		if (*digit < '0' || *digit > '9')
			return 0;
		number = 10 * number + (unsigned)(*digit - '0');
	}
	return number;
}

bool ps_segment_part_is_name(const char *name)
{
	size_t stem;

	return part_number(name, &stem) > 0;
}

bool ps_segment_part_name(char *to, size_t size, const char *segment, unsigned number)
{
	char name[2 * PS_NAME_MAX];
	const int length = snprintf(name, sizeof(name), "%s%s%u", segment, INFIX, number);

	assert(number >= 1);
	if (length < 0 || length > PS_NAME_MAX || (size_t)length >= size)
		return false;
	memcpy(to, name, (size_t)length + 1);
	return true;
}

bool ps_segment_part_follows(const char *name, uint64_t address, const char *before, uint64_t end)
{
	size_t stem, stem_before;
	const unsigned number = part_number(name, &stem);
	const unsigned number_before = part_number(before, &stem_before);

	if (!number || address != end || number != number_before + 1)
		return false;
	if (!number_before)
		stem_before = strlen(before);
	return stem == stem_before && !strncmp(name, before, stem);
}

static bool is_next_part(const Perseas__Segment *segment, const Perseas__Segment *before)
{
	return ps_segment_part_follows(segment->name, segment->address, before->name,
	                               before->address + before->size);
}

const Perseas__Segment *ps_segment_part_next(const Perseas__Header *header,
                                             const Perseas__Segment *segment)
{
	for (size_t k = 0; k < header->n_segments; k++)
		if (is_next_part(header->segments[k], segment))
			return header->segments[k];
	return NULL;
}

const Perseas__Segment *ps_segment_part_before(const Perseas__Header *header,
                                               const Perseas__Segment *segment)
{
	for (size_t k = 0; k < header->n_segments; k++)
		if (is_next_part(segment, header->segments[k]))
			return header->segments[k];
	return NULL;
}

size_t ps_count_segments_without_parts(const Perseas__Header *header)
{
	size_t count = 0;

	for (size_t k = 0; k < header->n_segments; k++)
		count += !ps_segment_part_before(header, header->segments[k]);
	return count;
}
