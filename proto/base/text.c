/*
 * text.c - decodes UTF-8 and replaces characters that must not be shown. Functions that print or
 * log a peer's text call it first. It trusts no byte except the terminating zero.
 */
#include "text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Follows RFC 3629: refuses overlong forms, surrogates and values above U+10FFFF. */
unsigned ps_utf8_length(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf;
	unsigned length;

	if (at[0] < 0x80)
		return 1;
	if (at[0] < 0xc2 || at[0] > 0xf4)
		return 0;
	length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	if (at[0] == 0xe0)
		low = 0xa0;
	else if (at[0] == 0xed)
		high = 0x9f;
	else if (at[0] == 0xf0)
		low = 0x90;
	else if (at[0] == 0xf4)
		high = 0x8f;
	for (unsigned i = 1; i < length; i++) {
		if (at[i] < low || at[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return length;
}

size_t ps_plain_length(const char *text)
{
	const char *at = text;

	while (*at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\')
		at++;
	return (size_t)(at - text);
}

uint32_t ps_utf8_value(const char *text)
{
	static const uint8_t masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	const unsigned char *at = (const unsigned char *)text;
	unsigned length = ps_utf8_length(text);
	uint32_t value = at[0] & masks[length];

	assert(length > 0);
	for (unsigned i = 1; i < length; i++)
		value = value << 6 | (at[i] & 0x3f);
	return value;
}

bool ps_is_control(const char *text)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 1, 0x1f },        { 0x7f, 0x9f },     { 0x61c, 0x61c },
		{ 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
	};
	uint32_t value = ps_utf8_value(text);

	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (value >= ranges[i].first && value <= ranges[i].last)
			return true;
	return false;
}

bool ps_is_printable(const char *text)
{
	while (*text) {
		unsigned length = ps_utf8_length(text);

		if (length == 0 || ps_is_control(text))
			return false;
		text += length;
	}
	return true;
}

void ps_make_printable(char *text)
{
	char *to = text;

	while (*text) {
		unsigned length = ps_utf8_length(text), step = length ? length : 1;

		if (length == 0 || ps_is_control(text)) {
			*to++ = '?';
		} else {
			memmove(to, text, length);
			to += length;
		}
		text += step;
	}
	*to = '\0';
}

/* Replaces the last words of a text that fills its buffer by " …". */
static size_t drop_words(char *text, size_t size)
{
	enum { LONG_WORD = 64 };
	static const char more[] = " \xe2\x80\xa6";
	size_t end = size - sizeof(more), word = end;

	assert(size >= sizeof(more));
	while (word > 0 && text[word] != ' ' && end - word < LONG_WORD)
		word--;
	if (word > 0 && text[word] == ' ')
		end = word;
	else
		while (end > 0 && (text[end] & 0xc0) == 0x80)
			end--;
	memcpy(text + end, more, sizeof(more));
	return end + sizeof(more) - 1;
}

size_t ps_text_vformat(char *text, size_t size, const char *format, va_list args)
{
	enum { SIZE_MIN = 8 }; /* bytes that hold one character and the ellipsis */
	const int len = vsnprintf(text, size, format, args);

	if (len < 0 || (size_t)len < size || size < SIZE_MIN)
		return size ? strlen(text) : 0;
	return drop_words(text, size);
}

size_t ps_text_format(char *text, size_t size, const char *format, ...)
{
	va_list args;
	size_t len;

	va_start(args, format);
	len = ps_text_vformat(text, size, format, args);
	va_end(args);
	return len;
}

void ps_text_truncate(char *text, size_t size)
{
	if (strlen(text) >= size)
		drop_words(text, size);
}

const char *ps_hex_text(char text[PS_HEX_TEXT], const uint8_t *id)
{
	for (unsigned i = 0; i < PS_HEX_TEXT / 2; i++)
		snprintf(text + (size_t)2 * i, 3, "%02x", id[i]);
	return text;
}
