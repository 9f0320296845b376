/*
 * json.h - writes JSON as it goes. Keys are given for members of objects, and NULL for elements
 * of arrays and the outermost value.
 */
#ifndef PERSEAS_COMMAND_JSON_H
#define PERSEAS_COMMAND_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ps_json {
	FILE *out;
	unsigned depth;
	bool filled;               /* something stands before, on this level */
};

void ps_json_begin(struct ps_json *json, const char *key, char bracket);   /* '{' or '[' */
void ps_json_end(struct ps_json *json, char bracket);                      /* '}' or ']' */
/* Any bytes: what is not UTF-8 is replaced by U+FFFD. NULL is null. */
void ps_json_text(struct ps_json *json, const char *key, const char *text);
void ps_json_number(struct ps_json *json, const char *key, uint64_t number);
void ps_json_bool(struct ps_json *json, const char *key, bool value);

#endif
