/*
 * test_text.c - sentences that do not fit end with a whole word and a sign of it.
 */
#include "../../proto/base/text.h"
#include "../support/unit.h"

#define MORE " \xe2\x80\xa6"

static const char sentence[] =
	"rdma://192.0.2.1:7170 offers no RDMA: its host has no RDMA (No such device); set "
	"soft-RoCE up with perseas-rxe, or load the driver of its device. Without RDMA it is "
	"tcp://192.0.2.1:7170";

/* At every size: what is there begins the sentence, ends where a word does, and says that there
 * was more; as many words are there as have room. */
TEST(a_sentence_is_cut_between_words)
{
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

TEST(a_sentence_that_fits_is_left_as_it_is)
{
	char text[sizeof(sentence)];

	assert_int_equal(ps_text_format(text, sizeof(text), "%s", sentence), sizeof(text) - 1);
	assert_string_equal(text, sentence);
	ps_text_truncate(text, sizeof(text));
	assert_string_equal(text, sentence);
}

/* A text of another's that is longer than what it is handed on in. */
TEST(a_text_that_is_there_is_cut_in_the_same_way)
{
	char text[sizeof(sentence)], expected[100];

	memcpy(text, sentence, sizeof(text));
	ps_text_format(expected, sizeof(expected), "%s", sentence);
	ps_text_truncate(text, sizeof(expected));
	assert_string_equal(text, expected);
}

/* A path, say: as much of it as has room, and no half of a character. */
TEST(a_word_that_is_too_long_is_cut_between_characters)
{
	char word[301], text[200];

	for (size_t i = 0; i < 300; i += 2)
		memcpy(word + i, "\xc3\xa9", 2);
	word[300] = '\0';
	for (size_t size = 100; size < sizeof(text); size++) {
		size_t len = ps_text_format(text, size, "file %s", word);

		assert_true(len + 3 > size && len < size);
		assert_true(ps_is_printable(text));
	}
}

/* There is room for nothing: what snprintf leaves. */
TEST(the_smallest_buffers_are_kept_to)
{
	char text[12];

	for (size_t size = 1; size < sizeof(text); size++) {
		size_t len;

		memset(text, '#', sizeof(text));
		len = ps_text_format(text, size, "%s", sentence);
		assert_int_equal(len, strlen(text));
		assert_true(len < size);
		assert_int_equal(text[size], '#');
	}
}
