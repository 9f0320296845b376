/*
 * page.h - page.html, embedded by the build.
 */
#ifndef PERSEAS_SERVER_PAGE_H
#define PERSEAS_SERVER_PAGE_H

extern const unsigned char page_html[];
extern const unsigned long page_html_size;

#endif
