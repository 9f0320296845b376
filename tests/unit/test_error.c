/*
 * test_error.c - codes, names, texts, and sentences handed up through the layers.
 */
#include "../../client/core/error.h"
#include "../support/unit.h"

/* Every code of the list, in its order. */
static const struct {
	int code;
	const char *name;
	const char *text;
} errors[] = {
#define ENTRY(name, code, text) { code, #name, text },
	PERSEAS_ERRORS(ENTRY)
#undef ENTRY
};

enum { ERRORS = sizeof(errors) / sizeof(errors[0]) };

/* A program looks up the name and text of each code. */
TEST(every_code_has_its_own_name_and_text)
{
	int i, j;

	for (i = 0; i < ERRORS; i++) {
		assert_true(errors[i].code < 0);
		assert_string_equal(perseas_error_name(errors[i].code), errors[i].name);
		assert_string_equal(perseas_strerror(errors[i].code), errors[i].text);
		for (j = 0; j < i; j++)
			assert_int_not_equal(errors[i].code, errors[j].code);
	}
	assert_string_equal(perseas_error_name(0), "PERSEAS_OK");
	assert_string_equal(perseas_strerror(0), "success");
}

/* A program asks about a number that is no code. */
TEST(a_number_that_is_no_code_still_has_a_text)
{
	const int strange[] = { 1, -1000, INT32_MAX, INT32_MIN };
	size_t i;

	for (i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		assert_non_null(perseas_strerror(strange[i]));
		assert_string_not_equal(perseas_strerror(strange[i]), "success");
		assert_string_equal(perseas_error_name(strange[i]), "PERSEAS_E?");
	}
}

/* The states of mirrors are printed by name. */
TEST(every_mirror_state_has_its_own_name)
{
	int i, j;

	for (i = PERSEAS_MIRROR_DOWN; i <= PERSEAS_MIRROR_REMOVED; i++)
		for (j = PERSEAS_MIRROR_DOWN; j < i; j++)
			assert_string_not_equal(
				perseas_mirror_state_name((enum perseas_mirror_state)i),
				perseas_mirror_state_name((enum perseas_mirror_state)j));
	assert_string_equal(perseas_mirror_state_name(PERSEAS_MIRROR_LIVE), "live");
	assert_string_equal(perseas_mirror_state_name((enum perseas_mirror_state)99), "unknown");
}

/* A program logs which version it runs with. */
TEST(the_version_is_three_numbers)
{
	const char *at = perseas_version();
	int dots = 0;

	for (; *at; at++) {
		dots += *at == '.';
		assert_non_null(strchr("0123456789.", *at));
	}
	assert_int_equal(dots, 2);
}

/* A layer says what went wrong and its caller adds where. */
TEST(a_prefix_comes_before_the_text_and_keeps_the_code)
{
	struct ps_error error;

	assert_int_equal(ps_error_set(&error, PERSEAS_EBUSY, "owned by %d", 7), PERSEAS_EBUSY);
	assert_int_equal(ps_error_prefix(&error, "mirror %s", "a:1"), PERSEAS_EBUSY);
	assert_int_equal(error.code, PERSEAS_EBUSY);
	assert_string_equal(error.text, "mirror a:1: owned by 7");
}

/* A caller does not want the sentence. */
TEST(no_place_for_a_text_is_no_failure)
{
	assert_int_equal(ps_error_set(NULL, PERSEAS_EINVAL, "%s", "unheard"), PERSEAS_EINVAL);
}

/* Sentences longer than an error holds are cut, text and prefix alike. */
TEST(long_texts_are_cut_inside_their_bounds)
{
	char long_text[2 * PS_ERROR_TEXT];
	struct ps_error error;

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	ps_error_set(&error, PERSEAS_EINVAL, "%s", long_text);
	assert_int_equal(strlen(error.text), PS_ERROR_TEXT - 1);
	ps_error_prefix(&error, "here");
	assert_int_equal(strlen(error.text), PS_ERROR_TEXT - 1);
	assert_memory_equal(error.text, "here: xxx", 9);
	ps_error_prefix(&error, "%s", long_text);
	assert_int_equal(strlen(error.text), PS_ERROR_TEXT - 1);
}
