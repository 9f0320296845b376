/*
 * pages.h - pages of this process: moved from one place to another, and asked how large they are.
 * The thread that fetches calls it (pager_uffd.c): nothing of it waits for a thread that touches
 * missing memory.
 */
#ifndef PERSEAS_CLIENT_PAGES_H
#define PERSEAS_CLIENT_PAGES_H

#include <stdbool.h>
#include <stdint.h>

/* A descriptor by which ps_pages_large asks the kernel, to be closed; -1: there is none. */
int ps_pages_open(void);

/* Is all of this one large page, or several? False also where nobody can say. `at` and `length` are
 * multiples of a large page, and it is all there. No page is changed by it, nor marked. */
bool ps_pages_large(int pages, const uint8_t *at, uint64_t length);

/* Moves pages to what is missing, by a userfaultfd (Linux 6.8): nothing is copied, and large pages
 * stay large. How many bytes: it may be fewer, or none. */
uint64_t ps_pages_move(int uffd, const uint8_t *to, const uint8_t *from, uint64_t length);

#endif
