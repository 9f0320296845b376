/*
 * large_page.h - where files in memory are mapped, so that the kernel can map their large pages as
 * such. Mirrors and owners on their hosts do it alike: a mapping of large pages is made, used and,
 * above all, undone in a small part of the time, and who is killed keeps a store until all of its
 * mappings are undone.
 */
#ifndef PERSEAS_PROTO_LARGE_PAGE_H
#define PERSEAS_PROTO_LARGE_PAGE_H

#include <stdint.h>

#define PS_LARGE_PAGE ((uint64_t)2 << 20)

/* madvise(2): Linux 6.1; the C library may be older. */
enum { PS_MADV_COLLAPSE = 25 };

/* An address for a mapping of so many bytes, from a multiple of PS_LARGE_PAGE in its file on, as a
 * hint for mmap(2); NULL: any will do. */
void *ps_large_place(uint64_t length);

#endif
