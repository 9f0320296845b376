/*
 * test_text.c - sentences that do not fit end with a whole word and a sign of it.
 */
#include "../../proto/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MORE " \xe2\x80\xa6"

static const char sentence[] =
	"rdma://192.0.2.1:7170 offers no RDMA: its host has no RDMA (No such device); set "
	"soft-RoCE up with perseas-rxe, or load the driver of its device. Without RDMA it is "
	"tcp://192.0.2.1:7170";

/* At every size: what is there begins the sentence, ends where a word does, and says that there
 * was more; as many words are there as have room. */
static void a_sentence_is_cut_between_words(void **state)
{
	(void)state;
	for (size_t size = 40; size < sizeof(sentence); size++) {
		char *text = malloc(size); /* a sanitizer sees what is written behind it */
		size_t len = ps_text_format(text, size, "%s", sentence), kept = len - strlen(MORE);
		const char *next;

		assert_int_equal(len, strlen(text));
		assert_true(len < size);
		assert_string_equal(text + kept, MORE);
		assert_memory_equal(text, sentence, kept);
		assert_int_equal(sentence[kept], ' ');
		next = strchr(sentence + kept + 1, ' ');
		if (next)
			assert_true((size_t)(next - sentence) + sizeof(MORE) > size);
		free(text);
	}
}

static void a_sentence_that_fits_is_left_as_it_is(void **state)
{
	char text[sizeof(sentence)];

	(void)state;
	assert_int_equal(ps_text_format(text, sizeof(text), "%s", sentence), sizeof(text) - 1);
	assert_string_equal(text, sentence);
	ps_text_cut(text, sizeof(text));
	assert_string_equal(text, sentence);
}

/* A text of another's that is longer than what it is handed on in. */
static void a_text_that_is_there_is_cut_in_the_same_way(void **state)
{
	char text[sizeof(sentence)], expected[100];

	(void)state;
	memcpy(text, sentence, sizeof(text));
	ps_text_format(expected, sizeof(expected), "%s", sentence);
	ps_text_cut(text, sizeof(expected));
	assert_string_equal(text, expected);
}

/* A path, say: as much of it as has room, and no half of a character. */
static void a_word_that_is_too_long_is_cut_between_characters(void **state)
{
	char word[301], text[200];

	(void)state;
	for (size_t i = 0; i < 300; i += 2)
		memcpy(word + i, "\xc3\xa9", 2);
	word[300] = '\0';
	for (size_t size = 100; size < sizeof(text); size++) {
		size_t len = ps_text_format(text, size, "file %s", word);

		assert_true(len + 3 > size && len < size);
		assert_true(ps_printable(text));
	}
}

/* There is room for nothing: what snprintf leaves. */
static void the_smallest_buffers_are_kept_to(void **state)
{
	char text[12];

	(void)state;
	for (size_t size = 1; size < sizeof(text); size++) {
		size_t len;

		memset(text, '#', sizeof(text));
		len = ps_text_format(text, size, "%s", sentence);
		assert_int_equal(len, strlen(text));
		assert_true(len < size);
		assert_int_equal(text[size], '#');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sentence_is_cut_between_words),
		cmocka_unit_test(a_sentence_that_fits_is_left_as_it_is),
		cmocka_unit_test(a_text_that_is_there_is_cut_in_the_same_way),
		cmocka_unit_test(a_word_that_is_too_long_is_cut_between_characters),
		cmocka_unit_test(the_smallest_buffers_are_kept_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
