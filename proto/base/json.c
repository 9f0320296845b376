/*
 * json.c - writes JSON with correct commas and indentation. Commands with --json and the daemon's
 * status page call it. It must never write text that was not escaped.
 */
#include "json.h"

#include "text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void write_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	while (*text) {
		size_t plain = ps_plain_length(text);
		unsigned length = ps_utf8_length(text += plain);
		const unsigned char *at = (const unsigned char *)text;

		fwrite(text - plain, 1, plain, out);
		if (!*text)
			break;
		if (length == 0) {
			fputs("\\ufffd", out);
			length = 1;
		} else if (*at == '"' || *at == '\\') {
			fprintf(out, "\\%c", *at);
		} else if (ps_is_control(text)) {
			fprintf(out, "\\u%04x", ps_utf8_value(text));
		} else {
			fwrite(at, 1, length, out);
		}
		text += length;
	}
	fputc('"', out);
}

static void indent_line(struct ps_json *json)
{
	if (json->one_line)
		return;
	fputc('\n', json->out);
	for (unsigned i = 0; i < json->depth; i++)
		fputs("  ", json->out);
}

/* Writes what precedes a value: a comma, the indentation and the key. */
static void begin_value(struct ps_json *json, const char *key)
{
	if (json->filled)
		fputc(',', json->out);
	if (json->depth > 0)
		indent_line(json);
	json->filled = true;
	if (key) {
		write_quoted(json->out, key);
		fputs(json->one_line ? ":" : ": ", json->out);
	}
}

void ps_json_begin(struct ps_json *json, const char *key, char bracket)
{
	begin_value(json, key);
	fputc(bracket, json->out);
	json->depth++;
	json->filled = false;
}

void ps_json_end(struct ps_json *json, char bracket)
{
	assert(json->depth > 0);
	json->depth--;
	if (json->filled)
		indent_line(json);
	fputc(bracket, json->out);
	json->filled = true;
	if (json->depth == 0)
		fputc('\n', json->out);
}

void ps_json_text(struct ps_json *json, const char *key, const char *text)
{
	begin_value(json, key);
	if (text)
		write_quoted(json->out, text);
	else
		fputs("null", json->out);
}

void ps_json_number(struct ps_json *json, const char *key, uint64_t number)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRIu64, number);
}

void ps_json_number_if(struct ps_json *json, const char *key, bool known, uint64_t number)
{
	if (known)
		ps_json_number(json, key, number);
	else
		ps_json_text(json, key, NULL);
}

bool ps_json_begin_if(struct ps_json *json, const char *key, bool there)
{
	if (there)
		ps_json_begin(json, key, '{');
	else
		ps_json_text(json, key, NULL);
	return there;
}

void ps_json_real(struct ps_json *json, const char *key, double number)
{
	begin_value(json, key);
	if (isfinite(number))
		fprintf(json->out, "%.3f", number);
	else
		fputs("null", json->out);
}

void ps_json_bool(struct ps_json *json, const char *key, bool value)
{
	begin_value(json, key);
	fputs(value ? "true" : "false", json->out);
}

void ps_json_list(struct ps_json *json, const char *key, const char *list)
{
	ps_json_begin(json, key, '[');
	for (size_t len; *list; list += len + (list[len] == ',')) {
		char *entry;

		len = strcspn(list, ",");
		entry = strndup(list, len);
		ps_json_text(json, NULL, entry);
		free(entry);
	}
	ps_json_end(json, ']');
}
