/*
 * image_files.c - writes and compares the notes of image_files.h. memory_lasts.c calls it. It must
 * never mistake an image for a copy because a version without notes created or replaced its files.
 *
 * A note has a line for each fact: a name, and the values that it may have. "-" stands for what the
 * kernel did not tell, and agrees with everything. A line that is missing agrees, too.
 *
 *	perseasd origin 1
 *	image 0f3c...             the image that the note is about; of another one it says nothing
 *	boot 52a1...              of this host; "-" on a file system that outlasts it
 *	device 0:1c               of the file system; the same
 *	folder 412@1764379077.993382186    inode and birth time
 *	header 413@... 414@...    of the header and its spare, which change names with each header
 *	log.0 415@...             of the log of this generation
 *
 * A version without notes makes a log of another generation, and leaves the folder and both headers
 * where they are. It may make segments again under a name that they had, so these are not noted.
 */
#include "image_files.h"

#include "memory_place.h"
#include "small_file.h"
#include "../../proto/image/layout.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTE_MAX = 1024, FACT_MAX = 80, NAME_ROOM = 40 };

static const char note_name[] = ".origin", new_name[] = ".origin.new",
		  first_line[] = "perseasd origin 1\n";

/* --- facts --- */

static void format_id(char text[FACT_MAX], const uint8_t *id)
{
	char *to = text;

	if (!id) {
		strcpy(text, "-");
		return;
	}
	for (unsigned i = 0; i < PS_ID_SIZE; i++)
		to += sprintf(to, "%02x", id[i]);
}

static bool get_inode_and_birth_time(int folder, const char *name, struct statx *st)
{
	const int flags = AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH);

	return statx(folder, name, flags, STATX_INO | STATX_BTIME, st) == 0;
}

/* Formats the inode and birth time of a file, or of the folder if the name is empty. The birth time
 * is 0 if the file system has none; then only the inode number counts. */
static void format_inode_and_birth_time(char text[FACT_MAX], int folder, const char *name)
{
	struct statx st;

	if (!get_inode_and_birth_time(folder, name, &st)) {
		strcpy(text, "-");
		return;
	}
	if (!(st.stx_mask & STATX_BTIME))
		memset(&st.stx_btime, 0, sizeof(st.stx_btime));
	sprintf(text, "%llu@%lld.%09u", (unsigned long long)st.stx_ino,
	        (long long)st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
}

/* Formats the number of the folder's device, or "-" if the files may outlast a boot: the number may
 * change with a reboot. */
static void format_device(char text[FACT_MAX], int folder, const struct image_files *image)
{
	struct statx st;

	if (image->boot && get_inode_and_birth_time(folder, "", &st))
		sprintf(text, "%x:%x", st.stx_dev_major, st.stx_dev_minor);
	else
		strcpy(text, "-");
}

/* --- notes --- */

struct fact {
	char name[NAME_ROOM];
	char value[FACT_MAX];
	char second[FACT_MAX]; /* alternative value, or "" */
};

enum { FACTS = 6 };

/* Finds out the facts about the files in the folder. The first one says which image they are
 * about. */
static void gather_facts(struct fact facts[FACTS], int folder, const struct image_files *image)
{
	memset(facts, 0, FACTS * sizeof(*facts));
	strcpy(facts[0].name, "image");
	format_id(facts[0].value, image->image_id);
	strcpy(facts[1].name, "boot");
	format_id(facts[1].value, image->boot);
	strcpy(facts[2].name, "device");
	format_device(facts[2].value, folder, image);
	strcpy(facts[3].name, "folder");
	format_inode_and_birth_time(facts[3].value, folder, "");
	strcpy(facts[4].name, "header");
	format_inode_and_birth_time(facts[4].value, folder, "header");
	format_inode_and_birth_time(facts[4].second, folder, ".header.spare");
	snprintf(facts[5].name, NAME_ROOM, "log.%llu", (unsigned long long)image->generation);
	format_inode_and_birth_time(facts[5].value, folder, facts[5].name);
}

static void compose_note(char text[NOTE_MAX], const struct fact facts[FACTS])
{
	size_t length = (size_t)sprintf(text, "%s", first_line);

	for (unsigned i = 0; i < FACTS; i++) {
		const struct fact *fact = &facts[i];
		const bool swapped = strcmp(fact->value, fact->second) > 0 && fact->second[0];

		length += (size_t)snprintf(text + length, NOTE_MAX - length, "%s %s%s%s\n",
		                           fact->name, swapped ? fact->second : fact->value,
		                           fact->second[0] ? " " : "",
		                           swapped ? fact->value : fact->second);
	}
}

/* Reads the folder's note. Returns false if it has none that this version understands. */
static bool read_note(int folder, char text[NOTE_MAX])
{
	uint8_t *bytes;
	size_t length;
	bool known;

	if (small_file_load(folder, note_name, &bytes, &length))
		return false;
	known = length < NOTE_MAX && length >= sizeof(first_line) - 1 &&
	        !memcmp(bytes, first_line, sizeof(first_line) - 1) && !memchr(bytes, 0, length);
	if (known) {
		memcpy(text, bytes, length);
		text[length] = '\0';
	}
	free(bytes);
	return known;
}

static int write_note(int folder, const char *text)
{
	const size_t length = strlen(text);
	const int fd = openat(folder, new_name,
	                      O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool whole = fd >= 0 && write(fd, text, length) == (ssize_t)length && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	whole = whole && renameat(folder, new_name, folder, note_name) == 0;
	if (!whole)
		(void)unlinkat(folder, new_name, 0);
	return whole ? fsync(folder) : -1;
}

void image_files_record(int folder, const struct image_files *image)
{
	char noted[NOTE_MAX], text[NOTE_MAX];
	struct fact facts[FACTS];

	gather_facts(facts, folder, image);
	compose_note(text, facts);
	if (read_note(folder, noted) && strcmp(noted, text) == 0)
		return;
	assert(strlen(text) < NOTE_MAX - 1);
	(void)write_note(folder, text);
}

/* Returns the values of the fact in the note, up to the end of the line, or NULL. */
static const char *find_fact(const char *note, const char *name)
{
	const size_t length = strlen(name);

	for (const char *line = note; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, length) && line[length] == ' ')
			return line + length + 1;
	}
	return NULL;
}

static bool has_value(const char *values, const char *value)
{
	const size_t length = strlen(value);

	for (;;) {
		const size_t word = strcspn(values, " \n");

		if ((word == length && !memcmp(values, value, length)) ||
		    (word == 1 && *values == '-'))
			return true;
		if (values[word] != ' ')
			return false;
		values += word + 1;
	}
}

static bool fact_matches(const char *note, const struct fact *fact)
{
	const char *values = find_fact(note, fact->name);

	return !values || strcmp(fact->value, "-") == 0 || has_value(values, fact->value);
}

bool image_files_differ(int folder, const struct image_files *image)
{
	struct fact facts[FACTS];
	char note[NOTE_MAX];

	if (!read_note(folder, note))
		return false;
	gather_facts(facts, folder, image);
	if (!fact_matches(note, &facts[0]))
		return false;
	for (unsigned i = 1; i < FACTS; i++)
		if (!fact_matches(note, &facts[i]))
			return true;
	return false;
}

void image_files_remove_note(int folder)
{
	(void)unlinkat(folder, note_name, 0);
	(void)unlinkat(folder, new_name, 0);
}
