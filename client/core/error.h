/*
 * error.h - an error code with a sentence for people, passed up through the layers.
 */
#ifndef PERSEAS_CLIENT_ERROR_H
#define PERSEAS_CLIENT_ERROR_H

#include "../perseas.h"

/* Longer than any sentence without a list of mirrors. Sentences with a list divide the space among
 * the mirrors. */
enum { PS_ERROR_TEXT = 2048 };

struct ps_error {
	int code; /* a PERSEAS_E code; 0: no error */
	char text[PS_ERROR_TEXT];
};

/* Sets *error and returns code. `error` may be NULL. */
int ps_error_set(struct ps_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts the formatted text and ": " before the error's text. Returns the code. */
int ps_error_prefix(struct ps_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
