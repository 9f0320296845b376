/*
 * page.h - page.html, as the build puts it into the daemon.
 */
#ifndef PERSEAS_SERVER_PAGE_H
#define PERSEAS_SERVER_PAGE_H

extern const unsigned char page_html[];
extern const unsigned long page_html_size;

#endif
