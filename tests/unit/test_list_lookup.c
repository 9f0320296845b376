/*
 * test_list_lookup.c - a list of mirrors whose name nobody answers for: a file of clusters that is
 * a pipe, which says nothing until a test writes to it. Name servers are asked on the same thread.
 */
#include "../../client/host/list_lookup.h"
#include "../../client/host/list_by_name.h"
#include "../../client/perseas.h"
#include "../../client/perseas_standby.h"
#include "../support/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

enum { LIMIT_MS = 20 };

static char folder[] = "/tmp/perseas-lookup-XXXXXX";
static char path[64];

static int make_pipe(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/clusters", folder);
	if (setenv(PS_CLUSTERS_VARIABLE, path, 1))
		return -1;
	return mkfifo(path, 0600);
}

static int remove_pipe(void **state)
{
	(void)state;
	return unlink(path) || rmdir(folder) ? -1 : 0;
}

struct unit_fixture unit_group = { make_pipe, remove_pipe };

/* Answers the one lookup in flight, for which it waits. */
static void answer(const char *line)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	close(fd);
}

TEST(an_answer_wakes_who_waits_for_it)
{
	struct ps_list_lookup *lookup;
	char list[PS_LIST_TEXT];
	struct ps_error error;
	struct pollfd fd;

	assert_int_equal(ps_list_lookup_begin(NULL, "@bank", &lookup, &error), 0);
	assert_non_null(lookup);
	fd = (struct pollfd){ .fd = ps_list_lookup_fd(lookup), .events = POLLIN };
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_false(ps_list_lookup_wait(lookup, 0, list, &error));
	answer("bank m1,m2\n");
	assert_int_equal(poll(&fd, 1, -1), 1);
	assert_true(ps_list_lookup_wait(lookup, 0, list, &error));
	assert_int_equal(error.code, 0);
	assert_string_equal(list, "m1,m2");
	ps_list_lookup_drop(lookup);
}

TEST(a_fault_of_the_answer_is_told)
{
	struct ps_list_lookup *lookup;
	char list[PS_LIST_TEXT];
	struct ps_error error;

	assert_int_equal(ps_list_lookup_begin(NULL, "@bank", &lookup, &error), 0);
	answer("shop m1\n");
	assert_true(ps_list_lookup_wait(lookup, PS_NEVER, list, &error));
	assert_int_equal(error.code, PERSEAS_EINVAL);
	assert_non_null(strstr(error.text, "no cluster is named @bank"));
	ps_list_lookup_drop(lookup);
}

TEST(a_list_itself_is_not_looked_up)
{
	struct ps_list_lookup *lookup;
	struct ps_error error;

	assert_int_equal(ps_list_lookup_begin(NULL, "m1,m2", &lookup, &error), 0);
	assert_null(lookup);
}

/* The thread that looks it up ends later, and uses nothing of the caller. */
TEST(a_lookup_may_outlive_its_caller)
{
	struct ps_list_lookup *lookup;
	struct ps_error error;

	assert_int_equal(ps_list_lookup_begin(NULL, "@bank", &lookup, &error), 0);
	ps_list_lookup_drop(lookup);
	answer("bank m1\n");
}

static const struct perseas_options hurried = { .size = sizeof(hurried),
	                                        .connect_timeout_ms = LIMIT_MS };

TEST(an_open_fails_within_its_limit)
{
	char text[PS_ERROR_TEXT];
	perseas_t *p;
	int code;

	assert_int_equal(perseas_open("bank", "@bank", &hurried, &p), PERSEAS_EUNREACHABLE);
	perseas_error(NULL, text, sizeof(text), &code);
	assert_non_null(strstr(text, "the mirrors of @bank: the lookup took more than 20 ms"));
	answer("bank m1\n");
}

TEST(a_standby_that_cannot_begin_fails_within_its_limit)
{
	perseas_standby_t *s;

	assert_int_equal(perseas_standby("bank", "@bank", &hurried, &s), PERSEAS_EUNREACHABLE);
	answer("bank m1\n");
}
