/*
 * test_image_files.c - whether an image consists of the files in which a daemon served it last:
 * copies of a folder, or of files in it, are told from what daemons themselves do with these files.
 */
#include "../../server/memory/memory_place.h"
#include "../../server/memory/image_files.h"
#include "../../server/memory/small_file.h"
#include "../../server/store/store_private.h"
#include "../support/memory_folder.h"
#include "../support/mirror.h"
#include "../support/unit.h"

struct place {
	char directory[64];
	int folder;
	struct image_files image;
};

static const uint8_t one[16] = "the first image", other[16] = "the other image";
static const uint8_t boot[16] = "this boot", later_boot[16] = "a later boot";

static void run(struct place *place, const char *format, const char *a, const char *b)
{
	char command[400], with[200];

	snprintf(with, sizeof(with), format, a, b);
	snprintf(command, sizeof(command), "cd '%s' && %s", place->directory, with);
	assert_int_equal(system(command), 0);
}

static void commit_header(struct place *place, const char *text)
{
	assert_int_equal(small_file_replace(place->folder, "header", text, strlen(text)), 0);
}

static void open_folder(struct place *place, const char *name)
{
	char path[128];

	if (place->folder >= 0)
		close(place->folder);
	snprintf(path, sizeof(path), "%s/%s", place->directory, name);
	place->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->folder >= 0);
}

static int setup(void **state)
{
	static struct place place;

	memory_folder(place.directory, sizeof(place.directory), "origin");
	place.folder = -1;
	place.image = (struct image_files){ one, 0, boot };
	run(&place, "mkdir bank && truncate -s 8192 bank/log.0 bank/segment-0.0", "", "");
	open_folder(&place, "bank");
	commit_header(&place, "first");
	image_files_record(place.folder, &place.image);
	*state = &place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;
	char command[128];

	close(place->folder);
	snprintf(command, sizeof(command), "rm -rf '%s'", place->directory);
	return system(command);
}

struct unit_fixture unit_fixture = { setup, teardown };

#define assert_copy(place) assert_true(image_files_differ((place)->folder, &(place)->image))
#define assert_own(place) assert_false(image_files_differ((place)->folder, &(place)->image))

/* Does what daemons do: headers are replaced by their spares, and pieces are written. */
TEST(headers_that_follow_are_its_own, struct place *place)
{
	assert_own(place);
	for (unsigned i = 0; i < 3; i++) {
		commit_header(place, "next");
		assert_own(place);
	}
	run(place, "echo more >> bank/log.0 && rm bank/segment-0.0 && touch bank/segment-0.0", "",
	    "");
	assert_own(place);
}

/* The directory is renamed, or reached by another path: the files are the same. */
TEST(a_folder_that_was_moved_is_its_own, struct place *place)
{
	run(place, "mkdir elsewhere && mv bank elsewhere/store", "", "");
	open_folder(place, "elsewhere/store");
	assert_own(place);
}

/* cp -a keeps names, times, owners and contents, the note included. */
TEST(a_folder_that_was_copied_is_a_copy, struct place *place)
{
	run(place, "cp -a bank copy", "", "");
	open_folder(place, "copy");
	assert_copy(place);
	/* A copy stays one, however often it is looked at. */
	assert_copy(place);
}

/* The original is gone, and the copy has its name: a backup that was put back. */
TEST(a_backup_that_was_put_back_is_a_copy, struct place *place)
{
	run(place, "cp -a bank backup && rm -r bank && cp -a backup bank", "", "");
	open_folder(place, "bank");
	assert_copy(place);
}

/* rsync and tar put back a file by a new file in the place of the old one. */
TEST(a_file_that_was_put_back_is_a_copy, struct place *place)
{
	static const char *const names[] = { "log.0", "header" };

	for (unsigned i = 0; i < 2; i++) {
		run(place, "cp -a bank/%s bank/%s.put && sync", names[i], names[i]);
		run(place, "mv bank/%s.put bank/%s", names[i], names[i]);
		assert_copy(place);
		image_files_record(place->folder, &place->image);
		assert_own(place);
	}
}

/* A version without notes made another image in the same folder, or another generation of it. */
TEST(what_a_version_without_notes_made_is_its_own, struct place *place)
{
	run(place, "rm bank/log.0 && truncate -s 8192 bank/log.1", "", "");
	place->image.generation = 1;
	assert_own(place);
	place->image = (struct image_files){ other, 0, boot };
	run(place, "rm bank/header bank/.header.spare && truncate -s 8192 bank/log.0", "", "");
	commit_header(place, "another image");
	assert_own(place);
	/* And from now on this one is known. */
	image_files_record(place->folder, &place->image);
	run(place, "cp -a bank copy", "", "");
	open_folder(place, "copy");
	assert_copy(place);
}

/* A version before this one left no note, and a later one a note that this version cannot read. */
TEST(an_image_without_a_note_gets_one, struct place *place)
{
	run(place, "rm bank/.origin && cp -a bank copy", "", "");
	open_folder(place, "copy");
	assert_own(place);
	image_files_record(place->folder, &place->image);
	run(place, "cp -a copy again", "", "");
	open_folder(place, "again");
	assert_copy(place);
	run(place, "echo 'perseasd origin 2' > again/.origin", "", "");
	assert_own(place);
}

/* Memory does not last beyond a boot; a file system that does has no boot in its note. */
TEST(memory_of_another_boot_is_a_copy, struct place *place)
{
	place->image.boot = later_boot;
	assert_copy(place);
	place->image.boot = NULL;
	assert_own(place);
	image_files_record(place->folder, &place->image);
	place->image.boot = later_boot;
	assert_own(place);
}

/* --- the store logic --- */

static char complaint[1024];

static void complain(void *arg, const char *text)
{
	(void)arg;
	snprintf(complaint, sizeof(complaint), "%s", text);
}

static void serve(struct place *place, struct mirror *mirror)
{
	const char *why = NULL;
	char path[96];

	complaint[0] = '\0';
	snprintf(path, sizeof(path), "%s/memory", place->directory);
	mirror->memory = memory_file_new(path, 0, true, &why);
	if (!mirror->memory)
		fail_msg("%s", why);
	memory_file_set_boot_id(mirror->memory, boot);
	mirror->stores = stores_new(mirror->memory);
	assert_int_equal(stores_load(mirror->stores, complain, NULL), 0);
}

static void end(struct mirror *mirror)
{
	stores_free(mirror->stores);
	memory_file_free(mirror->memory);
}

static void count_one(void *arg, const char *name)
{
	assert_string_equal(name, ".bank.aside-1");
	++*(unsigned *)arg;
}

static unsigned count_asides(struct mirror *mirror)
{
	unsigned count = 0;

	mirror->memory->ops->list_set_aside(mirror->memory, count_one, &count);
	return count;
}

/* A daemon sets a memory directory aside that was put back, and can make its store anew. */
TEST(an_image_that_was_put_back_is_set_aside, struct place *place)
{
	struct mirror mirror = { 0 };

	serve(place, &mirror);
	assert_int_equal(mirror_create(&mirror, "bank", 1), 0);
	end(&mirror);
	serve(place, &mirror);
	assert_string_equal(complaint, "");
	assert_non_null(store_find(mirror.stores, "bank"));
	end(&mirror);
	run(place, "cp -a memory backup && rm -r memory && cp -a backup memory", "", "");
	serve(place, &mirror);
	assert_non_null(strstr(complaint, "was copied here or put back"));
	assert_non_null(strstr(complaint, ".bank.aside-1"));
	assert_null(store_find(mirror.stores, "bank"));
	assert_int_equal(count_asides(&mirror), 1);
	assert_int_equal(mirror_create(&mirror, "bank", 2), 0);
	end(&mirror);
	serve(place, &mirror);
	assert_string_equal(complaint, "");
	assert_non_null(store_find(mirror.stores, "bank"));
	assert_int_equal(count_asides(&mirror), 1);
	run(place, "cmp backup/bank/header memory/.bank.aside-1/header", "", "");
	end(&mirror);
}

/* A version without notes made the image: this one notes its files when it begins to serve it. */
TEST(an_image_that_is_served_gets_a_note, struct place *place)
{
	struct mirror mirror = { 0 };

	serve(place, &mirror);
	assert_int_equal(mirror_create(&mirror, "bank", 1), 0);
	end(&mirror);
	run(place, "rm memory/bank/.origin", "", "");
	serve(place, &mirror);
	assert_string_equal(complaint, "");
	run(place, "test -e memory/bank/.origin", "", "");
	end(&mirror);
}

/* The last piece of a store goes, and with it the note: the folder must be gone, too. */
TEST(a_store_that_is_dropped_leaves_no_note, struct place *place)
{
	Perseas__AbandonRequest abandon = PERSEAS__ABANDON_REQUEST__INIT;
	struct mirror mirror = { 0 };

	serve(place, &mirror);
	assert_int_equal(mirror_create(&mirror, "bank", 1), 0);
	run(place, "test -e memory/bank/.origin", "", "");
	abandon.store = (char *)"bank";
	abandon.store_id = OWNER(1);
	assert_int_equal(store_abandon(mirror.stores, &abandon, &mirror.why), 0);
	run(place, "test ! -e memory/bank", "", "");
	end(&mirror);
}
