/*
 * text.h - text that is safe to show: printable UTF-8 without control characters or characters that
 * reorder a line. Functions that print or check a peer's text use it, and so do functions that
 * format sentences into buffers, so that none is cut in the middle of a word.
 */
#ifndef PERSEAS_PROTO_TEXT_H
#define PERSEAS_PROTO_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the first UTF-8 character, 1 to 4 bytes, or 0 if it is malformed. The
 * terminating zero counts as a character of one byte. */
unsigned ps_utf8_length(const char *text);
/* Returns the code point of the first character, which must be well formed. */
uint32_t ps_utf8_value(const char *text);
/* Returns how many leading bytes are printable ASCII other than quote and backslash. */
size_t ps_plain_length(const char *text);
/* Returns true if the first character acts on the terminal or the layout instead of being shown:
 * controls (U+0001 to U+001F, U+007F to U+009F), line and paragraph separators (U+2028, U+2029),
 * and marks that change the direction of writing (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066
 * to U+2069). */
bool ps_is_control(const char *text);

/* Returns true if the text is well-formed UTF-8 without control characters. */
bool ps_is_printable(const char *text);
/* Replaces malformed bytes and control characters by question marks, in place. */
void ps_make_printable(char *text);

/* Formats like snprintf(). A text that does not fit ends after a whole word, followed by " …"; only
 * a single overlong word is cut inside. Returns the length of the result. */
size_t ps_text_format(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
size_t ps_text_vformat(char *text, size_t size, const char *format, va_list args);
/* Shortens a text in place to fit into `size` bytes, as ps_text_format() does: after a whole word,
 * with " …" at the end. */
void ps_text_truncate(char *text, size_t size);

enum { PS_HEX_TEXT = 33 };

/* Formats 16 bytes as 32 hexadecimal digits. Returns text. */
const char *ps_hex_text(char text[PS_HEX_TEXT], const uint8_t *id);

#endif
