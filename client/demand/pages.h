/*
 * pages.h - calls of the kernel about pages: filling or refusing missing ones through a
 * userfaultfd, and asking how large others are. The fault lane calls them (pager_uffd.c), and none
 * waits for a thread that touches missing memory. One call of the kernel stays within one of its
 * mappings. If the application has split a segment (mlock, mprotect), pages are handled one by one.
 * Pages that the application has mapped anew are left out, and threads that waited for them go on.
 */
#ifndef PERSEAS_CLIENT_PAGES_H
#define PERSEAS_CLIENT_PAGES_H

#include <stdbool.h>
#include <stdint.h>

/* Opens a descriptor for asking the kernel about pages. Returns -1 if the kernel has none. */
int ps_pages_open(void);

/* Returns true if the memory consists of large pages only; false also if that is not known. `at`
 * and `length` are multiples of a large page, and no page is missing. Changes and marks no page. */
bool ps_pages_are_large(int pages, const uint8_t *at, uint64_t length);

/* Moves pages to missing memory (Linux 6.8) without copying; large pages stay large. Returns the
 * number of bytes moved, which may be less than `length`, or 0. */
uint64_t ps_pages_move(int uffd, const uint8_t *to, const uint8_t *from, uint64_t length);

/* Copies whole pages to missing memory, write-protected if `watched`. A page that is here keeps its
 * contents. Returns the number of bytes that are here or not ours; fewer than `length` if the host
 * has no memory for the next page. */
uint64_t ps_pages_copy(int uffd, const uint8_t *to, const uint8_t *from, uint64_t length,
                       bool watched);

/* Makes every access to a missing page of this memory end in SIGBUS; threads that wait for one go
 * on. `watches`: the pages may have been registered for write protection, too. */
void ps_pages_poison(int uffd, const uint8_t *at, uint64_t length, bool watches);

#endif
