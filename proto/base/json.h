/*
 * json.h - a streaming JSON writer. The key is given for members of objects, and is NULL for
 * elements of arrays and for the outermost value. A newline follows the outermost value.
 */
#ifndef PERSEAS_PROTO_JSON_H
#define PERSEAS_PROTO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ps_json {
	FILE *out;
	unsigned depth; /* number of open objects and arrays */
	bool filled;    /* the current object or array has an element already */
	bool one_line;  /* no newlines or indentation inside the value */
};

/* `bracket` is '{' or '[' */
void ps_json_begin(struct ps_json *json, const char *key, char bracket);
/* `bracket` is '}' or ']' */
void ps_json_end(struct ps_json *json, char bracket);
/* Writes a string, or null if text is NULL. Escapes control characters, and replaces bytes that are
 * not UTF-8 by U+FFFD. */
void ps_json_text(struct ps_json *json, const char *key, const char *text);
void ps_json_number(struct ps_json *json, const char *key, uint64_t number);
/* Writes the number if it is known, else null. */
void ps_json_number_if(struct ps_json *json, const char *key, bool known, uint64_t number);
/* Begins an object if `there` is true, else writes null as the value. Returns `there`. */
bool ps_json_begin_if(struct ps_json *json, const char *key, bool there);
/* Writes a number with three decimals, or null if it is not finite. */
void ps_json_real(struct ps_json *json, const char *key, double number);
/* Writes a comma-separated list as an array of strings. */
void ps_json_list(struct ps_json *json, const char *key, const char *list);
void ps_json_bool(struct ps_json *json, const char *key, bool value);

#endif
