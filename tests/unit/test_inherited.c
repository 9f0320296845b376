/*
 * test_inherited.c - the block that `perseas run` hands to COMMAND: what is written is read, and
 * nothing that is malformed is taken.
 */
#include "../../client/core/inherited.h"
#include "../support/unit.h"

static struct ps_inherited read_text(const char *text)
{
	struct ps_inherited inherited;

	ps_inherited_read(&inherited, text);
	return inherited;
}

TEST(what_is_written_is_read)
{
	struct ps_inherited told = {
		.has_mark = true,
		.mark = { 0, 0x11, 0xaa, 0xbb },
		.warm_fd = 7,
		.answered_addresses = "m1 7170 10.0.0.1 00,m2 1 ::1 00",
		.store = "bank",
		.list = "m1:7170, m2:7170",
		.list_mirrors = "m1:7170,m2:7170",
		.unlisted_mirrors = { .epoch = 3, .version = UINT64_MAX, .count = 2 },
		.mirrors_silent_to_run = "m2:7170,m3:7170",
		.silent_at_ms = 123456
	};
	struct ps_inherited read;
	char text[PS_INHERITED_TEXT];

	assert_int_equal(ps_address_parse("m4:7170", &told.unlisted_mirrors.addresses[0], NULL), 0);
	assert_int_equal(ps_address_parse("unix:///x y", &told.unlisted_mirrors.addresses[1], NULL),
	                 0);
	ps_inherited_write(&told, text);
	read = read_text(text);
	assert_memory_equal(&read, &told, sizeof(told));
}

TEST(what_is_not_known_is_not_written)
{
	const struct ps_inherited none = { .warm_fd = -1 };
	struct ps_inherited read = read_text(""), zero = { 0 };
	char text[PS_INHERITED_TEXT];

	assert_memory_equal(&read, &zero, sizeof(zero));
	ps_inherited_write(&none, text);
	assert_string_equal(text, "");
}

/* As much as a writer ever has. */
TEST(the_longest_block_fits)
{
	static struct ps_inherited told = { .has_mark = true, .warm_fd = INT32_MAX };
	struct ps_inherited read;
	char text[PS_INHERITED_TEXT];

	memset(told.answered_addresses, 'a', sizeof(told.answered_addresses) - 1);
	memset(told.store, 's', sizeof(told.store) - 1);
	memset(told.list, 'l', sizeof(told.list) - 1);
	memset(told.list_mirrors, 'n', sizeof(told.list_mirrors) - 1);
	memset(told.mirrors_silent_to_run, 'm', sizeof(told.mirrors_silent_to_run) - 1);
	told.silent_at_ms = told.unlisted_mirrors.epoch = told.unlisted_mirrors.version =
		UINT64_MAX;
	told.unlisted_mirrors.count = PS_MIRRORS_MAX;
	for (int i = 0; i < PS_MIRRORS_MAX; i++) {
		char path[256];

		snprintf(path, sizeof(path), "unix:///%099d", i);
		assert_int_equal(ps_address_parse(path, &told.unlisted_mirrors.addresses[i], NULL),
		                 0);
	}
	ps_inherited_write(&told, text);
	read = read_text(text);
	assert_memory_equal(&read, &told, sizeof(told));
}

/* A list that a program gave may have any characters: none begins a line of the block. */
TEST(no_value_has_lines_of_its_own)
{
	const struct ps_inherited told = { .store = "bank", .list = "@bank\nwarm 7" };
	char text[PS_INHERITED_TEXT];

	ps_inherited_write(&told, text);
	assert_string_equal(text, "store bank\n");
}

TEST(a_mark_is_so_many_digits)
{
	static const char *const wrong[] = { "mark ",         "mark 0011aabb0", "mark 0011aab",
		                             "mark 0011AABB", "mark 0x11aabb",  "mark 0011aab ",
		                             "mark  011aabb", "mark",           " mark 0011aabb" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(read_text(wrong[i]).has_mark);
	assert_true(read_text("mark 0011aabb").has_mark);
}

TEST(a_copy_is_behind_no_standard_descriptor)
{
	static const char *const wrong[] = { "warm ",           "warm 2",
		                             "warm -7",         "warm 7x",
		                             "warm 2147483648", "warm 99999999999999999999" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(read_text(wrong[i]).warm_fd, 0);
	assert_int_equal(read_text("warm 3\n").warm_fd, 3);
}

TEST(a_silent_mirror_has_a_time)
{
	static const char *const wrong[] = { "silent ",       "silent a:1",     "silent -1 a:1",
		                             "silent  1 a:1", "silent now a:1", "silent 1",
		                             "silent 1:a:1" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_string_equal(read_text(wrong[i]).mirrors_silent_to_run, "");
	assert_string_equal(read_text("silent 1 a:1,b:2").mirrors_silent_to_run, "a:1,b:2");
}

/* A later version may write more. */
TEST(lines_that_are_not_known_are_ignored)
{
	static char text[2 * PS_INHERITED_TEXT] = "list @bank\n\nnonsense\nages 7\n";
	const size_t used = strlen(text);

	memset(text + used, 'x', sizeof(text) - used - 1);
	memcpy(text + used, "addresses ", strlen("addresses "));
	memcpy(text + sizeof(text) - strlen("\nstore bank\n") - 1, "\nstore bank\n",
	       strlen("\nstore bank\n"));
	assert_string_equal(read_text(text).list, "@bank");
	assert_string_equal(read_text(text).store, "bank");
	assert_string_equal(read_text(text).answered_addresses, "");
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "store ", strlen("store "));
	assert_string_equal(read_text(text).store, "");
}

/* The addresses of one name say nothing about another name. */
TEST(what_a_name_stood_for_is_of_that_list)
{
	const struct ps_inherited told = read_text("list @bank\nnamed m1:7170\n");

	assert_string_equal(ps_inherited_mirrors_of_list(&told, "@bank"), "m1:7170");
	assert_string_equal(ps_inherited_mirrors_of_list(&told, "@bank2"), "");
	assert_string_equal(ps_inherited_mirrors_of_list(NULL, "@bank"), "");
}
