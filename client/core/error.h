/*
 * error.h - a code and a sentence, handed up through the layers.
 */
#ifndef PERSEAS_CLIENT_ERROR_H
#define PERSEAS_CLIENT_ERROR_H

#include "../perseas.h"

/* Longer than any sentence that is not a list of mirrors, and lists share it out. */
enum { PS_ERROR_TEXT = 2048 };

struct ps_error {
	int code; /* PERSEAS_E…, 0: none */
	char text[PS_ERROR_TEXT];
};

/* Sets *error (which may be NULL) and returns code. */
int ps_error_set(struct ps_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text. Returns the code. */
int ps_error_prefix(struct ps_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
