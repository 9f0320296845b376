/*
 * pages.h - pages of this process: those that are missing are filled or refused, by a userfaultfd,
 * and others are asked how large they are. The fault lane calls it (pager_uffd.c): nothing
 * of it waits for a thread that touches missing memory. The kernel fills and refuses one mapping at
 * a time, and has several where the application locked a part of a segment, or changed its rights:
 * there it is done page by page. What the application mapped anew is not missing, and is left out;
 * who waited for it goes on.
 */
#ifndef PERSEAS_CLIENT_PAGES_H
#define PERSEAS_CLIENT_PAGES_H

#include <stdbool.h>
#include <stdint.h>

/* Opens a descriptor for asking the kernel about pages. Returns -1 if the kernel has none. */
int ps_pages_open(void);

/* Returns true if the memory consists of large pages only; false also if that is not known. `at`
 * and `length` are multiples of a large page, and no page is missing. Changes and marks no page. */
bool ps_pages_large(int pages, const uint8_t *at, uint64_t length);

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
void ps_pages_refuse(int uffd, const uint8_t *at, uint64_t length, bool watches);

#endif
