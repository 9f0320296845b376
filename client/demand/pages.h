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

/* A descriptor by which the kernel is asked, to be closed; -1: there is none. */
int ps_pages_open(void);

/* Is all of this one large page, or several? False also where nobody can say. `at` and `length` are
 * multiples of a large page, and it is all there. No page is changed by it, nor marked. */
bool ps_pages_large(int pages, const uint8_t *at, uint64_t length);

/* Moves pages to what is missing (Linux 6.8): nothing is copied, and large pages stay large. How
 * many bytes: it may be fewer, or none. */
uint64_t ps_pages_move(int uffd, const uint8_t *to, const uint8_t *from, uint64_t length);

/* Copies whole pages to what is missing; `watched`: they come protected. A page that is here keeps
 * what it has. Returns how many bytes are here, or left out: there is no memory for the next. */
uint64_t ps_pages_copy(int uffd, const uint8_t *to, const uint8_t *from, uint64_t length,
                       bool watched);

/* Who touches one of these whole pages that is missing gets SIGBUS; who waits goes on. `watches`:
 * they may have been covered so that they come protected. */
void ps_pages_refuse(int uffd, const uint8_t *at, uint64_t length, bool watches);

#endif
