/*
 * text.h - what bytes may be shown to a person: printable characters of UTF-8, and nothing that a
 * terminal obeys or that makes a line read otherwise than it is written. Whoever prints what a peer
 * sent, or checks it, does it by these; and whoever writes a sentence into a buffer, so that none
 * ends in the middle of a word.
 */
#ifndef PERSEAS_PROTO_TEXT_H
#define PERSEAS_PROTO_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 character that the text begins with, 1 to 4, or 0: it is none. The
 * terminating zero counts as one, and nothing after it is looked at. */
unsigned ps_utf8_length(const char *text);
/* The character's number; it is one. */
uint32_t ps_utf8_value(const char *text);
/* How many bytes of printable ASCII it begins with that are neither quote nor backslash. */
size_t ps_plain_length(const char *text);
/* Does the text begin with a character that is not shown but obeyed? These are controls (U+0001 to
 * U+001F, U+007F to U+009F), ends of lines and paragraphs (U+2028, U+2029), and what changes the
 * direction of writing (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069). */
bool ps_is_control(const char *text);

/* Nothing but characters that are shown. */
bool ps_printable(const char *text);
/* In place: what is no character, or is obeyed, becomes a question mark. */
void ps_make_printable(char *text);

/* As snprintf; but what does not fit loses whole words at its end, and " …" stands for them: of one
 * word that is too long, characters. Returns the length that is there. */
size_t ps_text_format(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
size_t ps_text_vformat(char *text, size_t size, const char *format, va_list args);
/* The same of a text that is there and may be too long for so many bytes. */
void ps_text_cut(char *text, size_t size);

enum { PS_HEX_TEXT = 33 };

/* 16 bytes as 32 digits. Returns text. */
const char *ps_hex_text(char text[PS_HEX_TEXT], const uint8_t *id);

#endif
