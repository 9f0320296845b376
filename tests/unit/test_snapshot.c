/*
 * test_snapshot.c - which files the command takes for snapshots: none whose table of segments has a
 * part of a segment that is gone, which would be left out of the store that is made of it.
 */
#include "../support/messages.h"

#include "../../client/command/live/snapshot.h"
#include "../support/unit.h"

enum { SIZE = 4096, SEQ = 7, PARTS = 3 };

struct file {
	struct ps_archive_sink sink;
	int fd;
	char path[32];
};

static int put(struct ps_archive_sink *sink, const void *bytes, size_t len)
{
	return write(((struct file *)sink)->fd, bytes, len) == (ssize_t)len ? 0 : -1;
}

/* A segment that has grown twice; `dead` has a bit for each part that was destroyed. */
static struct message_header *grown(unsigned dead)
{
	static char names[PARTS][16] = { "t", "t.grown.1", "t.grown.2" };
	struct message_header *message = message_header_new();

	message->header.log_size = SIZE;
	message->header.n_segments = PARTS;
	for (unsigned i = 0; i < PARTS; i++) {
		Perseas__Segment *segment = &message->segments[i];

		segment->name = names[i];
		segment->size = SIZE;
		segment->address = 0x200000000000 + (uint64_t)SIZE * i;
		segment->born = i + 1;
		segment->died = dead >> i & 1 ? SEQ : 0;
		segment->died_epoch = segment->died ? 3 : 0;
	}
	return message;
}

static void write_snapshot(struct file *file, unsigned dead)
{
	struct message_header *message = grown(dead);
	struct ps_archive_writer writer;
	struct ps_slot slot;

	*file = (struct file){ .sink.write = put, .path = "/tmp/perseas-snapshot-XXXXXX" };
	file->fd = mkstemp(file->path);
	assert_true(file->fd >= 0);
	ps_slot_encode(&slot, 3, SEQ, 128, 64);
	assert_int_equal(ps_archive_begin(&writer, &file->sink, &message->header, &slot), 0);
	assert_int_equal(ps_archive_end(&writer), 0);
	ps_archive_close(&writer);
	close(file->fd);
	free(message);
}

/* Returns the message about the file on stderr, or "" if it was accepted. */
static const char *said_of(const struct file *file)
{
	static char said[1024];
	const int before = dup(STDERR_FILENO);
	FILE *told = tmpfile();
	struct ps_snapshot snapshot;
	enum ps_exit status;
	ssize_t length;

	assert_non_null(told);
	assert_int_equal(dup2(fileno(told), STDERR_FILENO), STDERR_FILENO);
	status = ps_snapshot_open(&snapshot, file->path);
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	close(before);
	if (!status)
		ps_snapshot_close(&snapshot);
	length = pread(fileno(told), said, sizeof(said) - 1, 0);
	assert_true(length >= 0);
	said[length] = '\0';
	fclose(told);
	assert_int_equal(status, length ? PS_EXIT_NO : PS_EXIT_OK);
	return said;
}

/* Each of the parts may be there or not. What is there must be the first ones. */
TEST(a_part_without_what_it_is_behind_is_named)
{
	static const char *const missing[1 << PARTS] = {
		[1] = "'t.grown.1' is there, and 't', which",
		[2] = "'t.grown.2' is there, and 't.grown.1', which",
		[3] = "'t.grown.2' is there, and 't.grown.1', which",
		[5] = "'t.grown.1' is there, and 't', which",
	};

	for (unsigned dead = 0; dead < 1 << PARTS; dead++) {
		struct file file;
		const char *said;

		write_snapshot(&file, dead);
		said = said_of(&file);
		unlink(file.path);
		if (missing[dead])
			assert_non_null(strstr(said, missing[dead]));
		else
			assert_string_equal(said, "");
	}
}
