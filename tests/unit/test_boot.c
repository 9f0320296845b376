/*
 * test_boot.c - what is memory: a directory on a disk is none, and neither is an image that another
 * boot of the host left.
 */
#include "spill_rig.h"

#include "../../proto/base/boot.h"
#include "../../server/memory/memory_place.h"

#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

static bool on_dax; /* files lie on a file system with DAX, as the kernel would tell it */

int fstatfs(int fd, struct statfs *fs)
{
	int ret = (int)syscall(SYS_fstatfs, fd, fs);

	if (on_dax)
		fs->f_type = EXT4_SUPER_MAGIC;
	return ret;
}

int statx(int fd, const char *path, int flags, unsigned mask, struct statx *st)
{
	int ret = (int)syscall(SYS_statx, fd, path, flags, mask, st);

	if (on_dax) {
		st->stx_attributes_mask |= STATX_ATTR_DAX;
		st->stx_attributes |= STATX_ATTR_DAX;
	}
	return ret;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* The host starts again, and what was memory is there, as a disk may have it. */
static void reboot(struct rig *rig)
{
	stop(rig);
	memory_heap_reboot(rig->mirror.memory, 2);
	start(rig, rig->mirror.memory, rig->spill);
}

/* The bank, whose owner is gone. */
static void make_bank(struct rig *rig)
{
	mirror_bank(&rig->mirror, &rig->owner, false);
	store_session_ended(&rig->owner.session);
}

static void assert_complaint(struct rig *rig, const char *words)
{
	if (!strstr(rig->complaint, words))
		fail_msg("'%s' does not say '%s'", rig->complaint, words);
}

static unsigned stores_of(struct rig *rig)
{
	Perseas__ListReply reply = PERSEAS__LIST_REPLY__INIT;

	assert_int_equal(store_list(rig->mirror.stores, NULL, &reply, &rig->mirror.why), 0);
	return (unsigned)reply.n_stores;
}

/* A power cut: the image came back as some of it was written to a disk. It counts for nothing. */
TEST(an_image_of_another_boot_is_set_aside, struct rig *rig)
{
	make_bank(rig);
	reboot(rig);
	assert_int_equal(rig->complaints, 1);
	assert_complaint(rig, "another boot of this host");
	assert_complaint(rig, ".bank.aside");
	assert_int_equal(stores_of(rig), 0);
	/* The image is never found again, and a new one can be made. */
	reboot(rig);
	assert_int_equal(rig->complaints, 0);
	assert_int_equal(mirror_create(&rig->mirror, "bank", 1), 0);
}

/* A host shut down, and wrote its images to the spill directory; then the memory directory, which
 * was on a disk, comes back with an image from before that. */
TEST(a_spill_wins_over_an_image_of_another_boot, struct rig *rig)
{
	struct writer writer;
	struct memory *before;

	mirror_bank(&rig->mirror, &rig->owner, false);
	writer_init(&writer, &rig->owner.session);
	writer_adopt(&writer, BANK_EPOCH);
	before = memory_heap_copy(rig->mirror.memory);
	writer_write(&writer, 0, 0, "newer", 5, WRITE_ALL);
	assert_int_equal(end(rig).stores, 1);
	stop(rig);
	memory_heap_free(rig->mirror.memory);
	memory_heap_reboot(before, 2);
	start(rig, before, rig->spill);
	assert_int_equal(rig->loaded, 1);
	assert_bank(rig, writer.slot.seq, "newe");
}

/* A daemon that only ended: the same boot, and so memory wins. */
TEST(an_image_of_this_boot_is_served, struct rig *rig)
{
	make_bank(rig);
	stop(rig);
	start(rig, rig->mirror.memory, rig->spill);
	assert_int_equal(rig->complaints, 0);
	assert_int_equal(stores_of(rig), 1);
	assert_int_equal(mirror_header(&rig->mirror, "bank")->boot.len, PS_ID_SIZE);
}

/* An image that cannot be set aside is not served either. */
TEST(what_cannot_be_set_aside_is_damaged, struct rig *rig)
{
	struct peer peer;

	make_bank(rig);
	stop(rig);
	memory_heap_reboot(rig->mirror.memory, 2);
	memory_heap_fail(rig->mirror.memory, 0, 1);
	start(rig, rig->mirror.memory, rig->spill);
	peer_init(&peer);
	assert_int_equal(mirror_claim(&rig->mirror, &peer, "bank", 9, 2, NULL), -STATUS(DAMAGED));
}

/* A version that knew no boots left the image, in memory, and this one takes over. */
TEST(an_image_without_a_boot_gets_this_one, struct rig *rig)
{
	struct memory *memory = rig->mirror.memory;
	Perseas__Header *header;
	uint8_t *bytes;
	size_t len;

	make_bank(rig);
	header = ps_header_copy(mirror_header(&rig->mirror, "bank"));
	stop(rig);
	free(header->boot.data);
	header->boot = (ProtobufCBinaryData){ 0, NULL };
	assert_int_equal(ps_header_pack(header, &bytes, &len), 0);
	assert_int_equal(memory->ops->replace(memory, "bank", "header", bytes, len), 0);
	free(bytes);
	perseas__header__free_unpacked(header, NULL);
	start(rig, memory, rig->spill);
	assert_int_equal(rig->complaints, 0);
	assert_int_equal(mirror_header(&rig->mirror, "bank")->boot.len, PS_ID_SIZE);
	reboot(rig);
	assert_int_equal(stores_of(rig), 0);
}

/* --- files --- */

/* The kernel tells what a directory lies on. */
TEST_WITH(a_directory_on_a_disk_is_refused, NULL, NULL)
{
	char path[] = "/var/tmp/perseas-boot-XXXXXX";
	const char *why = NULL;
	struct memory *memory;
	int fd;

	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (memory_place_find(fd) != PLACE_DISK) {
		close(fd);
		unit_remove_folder(path);
		skip();
	}
	close(fd);
	assert_null(memory_file_new(path, 0, false, &why));
	assert_non_null(strstr(why, "is not in memory"));
	assert_non_null(strstr(why, "--memory-dir /dev/shm/perseas"));
	memory = memory_file_new(path, 0, true, &why);
	assert_non_null(memory);
	/* An image that a version without boot ids left cannot be told from an old one. */
	assert_false(memory->ops->data_survives(memory, NULL));
	memory_file_free(memory);
	unit_remove_folder(path);
}

/* Nothing flushes the processor's caches: a power cut may leave a slot without its data. */
TEST_WITH(a_directory_in_persistent_memory_is_refused, NULL, NULL)
{
	char path[] = "/dev/shm/perseas-boot-XXXXXX";
	const char *why = NULL;
	struct memory *memory;

	assert_non_null(mkdtemp(path));
	on_dax = true;
	memory = memory_file_new(path, 0, false, &why);
	on_dax = false;
	assert_null(memory);
	assert_non_null(strstr(why, "persistent memory (DAX)"));
	unit_remove_folder(path);
}

TEST_WITH(a_directory_in_memory_knows_its_boot, NULL, NULL)
{
	char path[] = "/dev/shm/perseas-boot-XXXXXX";
	const char *why = NULL;
	uint8_t id[PS_BOOT_ID_SIZE], again[PS_BOOT_ID_SIZE];
	struct memory *memory;

	assert_non_null(mkdtemp(path));
	memory = memory_file_new(path, 0, false, &why);
	assert_non_null(memory);
	assert_true(ps_boot_id(id) && ps_boot_id(again));
	assert_memory_equal(id, again, PS_BOOT_ID_SIZE);
	assert_memory_equal(memory->ops->boot(memory), id, PS_BOOT_ID_SIZE);
	assert_true(memory->ops->data_survives(memory, id));
	assert_true(memory->ops->data_survives(memory, NULL));
	id[15] ^= 1;
	assert_false(memory->ops->data_survives(memory, id));
	memory_file_set_boot_id(memory, id);
	assert_true(memory->ops->data_survives(memory, id));
	memory_file_free(memory);
	unit_remove_folder(path);
}

/* The folder keeps what it has, under a name that no store has. */
TEST_WITH(a_folder_that_is_set_aside_keeps_its_files, NULL, NULL)
{
	char path[] = "/dev/shm/perseas-boot-XXXXXX", where[64], at[256];
	const char *why = NULL;
	struct memory *memory;

	assert_non_null(mkdtemp(path));
	memory = memory_file_new(path, 0, false, &why);
	assert_non_null(memory);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(memory->ops->replace(memory, "bank", "header", "x", 1), 0);
		assert_int_equal(memory->ops->set_aside(memory, "bank", where, sizeof(where)), 0);
		snprintf(at, sizeof(at), "%s/%s/header", path, where);
		assert_int_equal(access(at, R_OK), 0);
	}
	assert_string_equal(where, ".bank.aside-2");
	memory_file_free(memory);
	unit_remove_folder(path);
}
