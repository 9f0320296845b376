/*
 * json.h - writes JSON as it goes. Keys are given for members of objects, and NULL for elements
 * of arrays and the outermost value, after which the line ends.
 */
#ifndef PERSEAS_PROTO_JSON_H
#define PERSEAS_PROTO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ps_json {
	FILE *out;
	unsigned depth;
	bool filled;   /* something stands before, on this level */
	bool one_line; /* no line ends but the last */
};

void ps_json_begin(struct ps_json *json, const char *key, char bracket); /* '{' or '[' */
void ps_json_end(struct ps_json *json, char bracket);                    /* '}' or ']' */
/* Any bytes: what is not UTF-8 is replaced by U+FFFD, controls are escaped. NULL is null. */
void ps_json_text(struct ps_json *json, const char *key, const char *text);
void ps_json_number(struct ps_json *json, const char *key, uint64_t number);
/* null where it is not known. */
void ps_json_number_if(struct ps_json *json, const char *key, bool known, uint64_t number);
/* Begins an object where there is one, else writes null. Returns `there`. */
bool ps_json_begin_if(struct ps_json *json, const char *key, bool there);
/* With three decimals; one that is not finite is null. */
void ps_json_real(struct ps_json *json, const char *key, double number);
/* The entries of a list that has commas between them, as an array. */
void ps_json_list(struct ps_json *json, const char *key, const char *list);
void ps_json_bool(struct ps_json *json, const char *key, bool value);

#endif
