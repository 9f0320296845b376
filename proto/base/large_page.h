/*
 * large_page.h - chooses addresses at which the kernel can map files with large pages. Owners and
 * mirrors both use it. Large pages make a mapping much faster to create and, above all, to remove:
 * a killed process keeps its store until the kernel has removed all of its mappings.
 */
#ifndef PERSEAS_PROTO_LARGE_PAGE_H
#define PERSEAS_PROTO_LARGE_PAGE_H

#include <stdint.h>

#define PS_LARGE_PAGE ((uint64_t)2 << 20)

/* For madvise(2), since Linux 6.1. The C library's headers may be older. */
enum { PS_MADV_COLLAPSE = 25 };

/* Returns a hint for mmap(2): a free address, aligned to PS_LARGE_PAGE, for a mapping of `length`
 * bytes that begins at a multiple of PS_LARGE_PAGE in its file. Returns NULL if alignment does not
 * matter or no address is free. */
void *ps_large_page_hint(uint64_t length);

#endif
