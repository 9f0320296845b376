/*
 * mappings.h - names what is mapped in this process, for error messages about addresses in use.
 */
#ifndef PERSEAS_CLIENT_MAPPINGS_H
#define PERSEAS_CLIENT_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

/* Writes the name of the first mapping that overlaps [start, end), with its addresses, as a noun
 * phrase: "the file /usr/lib/x.so", "[stack]", "other memory of this process", or "something else"
 * if the kernel does not tell. */
void ps_mapping_name(uint64_t start, uint64_t end, char *text, size_t size);

#endif
