/*
 * recover_to.c - writes a recovered store's segments to files.
 *
 * Each segment is written and synced. When all are written, the files get their names in a folder
 * of the directory, and from there links in the directory, without replacing any file. The manifest
 * comes last. So a directory with a manifest is complete, and a directory without one is not. The
 * folder is removed at the end. If the command was killed, the next one removes the folder, and
 * those files of the directory that are links to its files: no file of somebody else can be one.
 */
#include "recover.h"
#include "../ask/ask.h"
#include "../../../proto/base/json.h"
#include "../ui/new_file.h"
#include "../../../proto/image/crc32c.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST "MANIFEST.json"
#define FOLDER ".unfinished+" /* no segment's name has a plus sign */
#define WRITE_PIECE ((uint64_t)4 << 20)

enum { FILE_NAME = PS_NAME_MAX + 32 };

struct file {
	struct perseas_segment_info segment;
	char name[FILE_NAME];
	char partial[FILE_NAME]; /* as of ps_file_open_new */
	int fd;
	uint32_t crc;
};

struct export
{
	const char *path;
	int dir;
	int folder;
	unsigned count; /* segments */
	unsigned open;  /* segments whose files are open */
	unsigned named; /* of these, files that have their names in the directory by now */
	struct file files[PS_SEGMENTS_MAX];
};

/* Sets the name of a segment's file, which is the segment's. For a segment with the manifest's name
 * adds a plus sign, which no segment's name has. */
static void set_file_name(char name[FILE_NAME], const char *segment)
{
	snprintf(name, FILE_NAME, "%s%s", segment, strcmp(segment, MANIFEST) ? "" : "+");
}

static enum ps_exit export_failed(const struct export *export, const char *name, const char *what)
{
	return ps_file_complain(export->path, name, what);
}

/* --- the folder --- */

/* Opens the folder, and locks it against other commands. Returns -1 with errno set on failure. */
static int open_folder(int dir)
{
	int folder = openat(dir, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder < 0 || !flock(folder, LOCK_EX | LOCK_NB))
		return folder;
	close(folder);
	errno = EBUSY;
	return -1;
}

static bool is_same_file(int dir, int folder, const char *name)
{
	struct stat here, there;

	return !fstatat(dir, name, &here, AT_SYMLINK_NOFOLLOW) &&
	       !fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) && here.st_dev == there.st_dev &&
	       here.st_ino == there.st_ino;
}

/* Removes the folder. Unless the directory has the manifest, removes the links to the folder's
 * files, too. Closes `folder`. */
static void remove_folder(int dir, int folder)
{
	const bool complete = !faccessat(dir, MANIFEST, F_OK, AT_SYMLINK_NOFOLLOW);
	DIR *list = fdopendir(folder);
	struct dirent *entry;

	while (list && (entry = readdir(list))) {
		if (!complete && is_same_file(dir, folder, entry->d_name))
			unlinkat(dir, entry->d_name, 0);
		unlinkat(folder, entry->d_name, 0);
	}
	unlinkat(dir, FOLDER, AT_REMOVEDIR);
	if (list)
		closedir(list);
	else
		close(folder);
}

/* Removes what a command that was killed has left. */
static enum ps_exit remove_remains(int dir, const char *path)
{
	int folder = open_folder(dir);

	if (folder >= 0)
		remove_folder(dir, folder);
	else if (errno != ENOENT)
		return ps_file_complain(path, FOLDER, "cannot be removed");
	return PS_EXIT_OK;
}

static enum ps_exit make_folder(struct export *export)
{
	if (!mkdirat(export->dir, FOLDER, 0700))
		export->folder = open_folder(export->dir);
	return export->folder < 0 ? export_failed(export, FOLDER, "cannot be made") : PS_EXIT_OK;
}

/* Gives a file of the folder its name in the directory. */
static enum ps_exit publish_file(const struct export *export, const char *name)
{
	if (!linkat(export->folder, name, export->dir, name, 0))
		return PS_EXIT_OK;
	/* Some file systems have no links. A command that is killed leaves the name there. */
	if ((errno == EPERM || errno == EOPNOTSUPP) &&
	    !renameat2(export->folder, name, export->dir, name, RENAME_NOREPLACE))
		return PS_EXIT_OK;
	return errno == EEXIST ? ps_file_check_free(export->dir, export->path, name)
	                       : export_failed(export, name, "cannot be given its name");
}

/* --- checks --- */

/* Complains if the directory has the manifest, or a file named like a segment that any mirror
 * knows. */
static enum ps_exit check_files_free(const struct ps_images *images, int dir, const char *path)
{
	enum ps_exit status = ps_file_check_free(dir, path, MANIFEST);

	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__Header *header = ps_images_is_of_store(images, i)
		                                        ? images->told[i]->header
		                                        : NULL;

		for (size_t k = 0; !status && header && k < header->n_segments; k++) {
			char name[FILE_NAME];

			set_file_name(name, header->segments[k]->name);
			status = ps_file_check_free(dir, path, name);
		}
	}
	return status;
}

static enum ps_exit open_directory(const char *path, int *dir)
{
	if (mkdir(path, 0700) && errno != EEXIST)
		return ps_complain(PS_EXIT_FAILURE, "directory %s cannot be made: %s", path,
		                   strerror(errno));
	*dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*dir < 0)
		return ps_complain(PS_EXIT_FAILURE, "directory %s cannot be opened: %s", path,
		                   strerror(errno));
	if (faccessat(*dir, ".", W_OK | X_OK, AT_EACCESS)) {
		int error = errno;

		close(*dir);
		return ps_complain(PS_EXIT_FAILURE, "no file can be made in directory %s: %s", path,
		                   strerror(error));
	}
	return PS_EXIT_OK;
}

enum ps_exit ps_recover_to_files_check(const struct ps_args *args)
{
	struct ps_peers peers;
	struct ps_images images;
	enum ps_exit status = ps_images_open(&images, &peers, args->store, args->mirrors,
	                                     &args->options);
	int dir = -1;

	if (status)
		return status;
	status = images.have ? open_directory(args->to_path, &dir)
	                     : ps_images_complain_absent(&images, args->store);
	if (!status) {
		status = remove_remains(dir, args->to_path);
		if (!status)
			status = check_files_free(&images, dir, args->to_path);
		close(dir);
	}
	ps_images_close(&images, &peers);
	return status;
}

/* --- writing --- */

static bool write_segment(int fd, struct file *file, const uint8_t *base)
{
	uint64_t size = file->segment.size;

	file->crc = 0;
	for (uint64_t done = 0; done < size;) {
		uint64_t length = size - done < WRITE_PIECE ? size - done : WRITE_PIECE;

		if (!ps_file_write(fd, base + done, length))
			return false;
		file->crc = ps_crc32c(file->crc, base + done, length);
		done += length;
		ps_bar_show("writing", done, size);
	}
	return fsync(fd) == 0;
}

static enum ps_exit write_file(struct export *export, struct file *file, const void *base)
{
	file->fd = ps_file_open_new(export->dir, file->partial);
	if (file->fd < 0)
		return export_failed(export, file->name, "cannot be made");
	export->open++;
	return write_segment(file->fd, file, base)
	               ? PS_EXIT_OK
	               : export_failed(export, file->name, "cannot be written");
}

/* Writes the files of all segments. Maps one segment at a time, so that memory for the
 * largest is enough. */
static enum ps_exit write_files(struct export *export, perseas_t *p)
{
	for (unsigned i = 0; i < export->count; i++) {
		struct file *file = &export->files[i];
		enum ps_exit status;
		void *base;
		int rc = perseas_map(p, file->segment.name, 0, &base);

		if (rc)
			return ps_library_complain(p, rc);
		status = write_file(export, file, base);
		perseas_unmap(p, base);
		if (status)
			return status;
	}
	return PS_EXIT_OK;
}

/* --- the manifest --- */

static void file_json(struct ps_json *json, const struct file *file)
{
	char text[PS_SIZE_TEXT];

	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "name", file->segment.name);
	ps_json_text(json, "file", file->name);
	ps_json_number(json, "size", file->segment.size);
	snprintf(text, sizeof(text), "0x%llx",
	         (unsigned long long)(uintptr_t)file->segment.address);
	ps_json_text(json, "address", text);
	snprintf(text, sizeof(text), "%08x", file->crc);
	ps_json_text(json, "crc32c", text);
	ps_json_end(json, '}');
}

static void manifest_json(FILE *out, const struct export *export, const struct ps_args *args,
                          perseas_t *p)
{
	struct ps_json json = { .out = out };
	struct ps_opened opened;
	char id[PS_HEX_TEXT];

	ps_opened_read(p, &opened);
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", args->store);
	ps_json_text(&json, "store_id", ps_hex_text(id, opened.store_id));
	ps_json_number(&json, "epoch", opened.state_epoch);
	ps_json_number(&json, "seq", opened.state_seq);
	ps_json_text(&json, "perseas", perseas_version());
	ps_json_begin(&json, "segments", '[');
	for (unsigned i = 0; i < export->count; i++)
		file_json(&json, &export->files[i]);
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}

static enum ps_exit write_manifest(const struct export *export, const struct ps_args *args,
                                   perseas_t *p)
{
	enum ps_exit status = PS_EXIT_OK;
	FILE *out;
	int fd;

	fd = openat(export->folder, MANIFEST, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return export_failed(export, MANIFEST, "cannot be made");
	out = ps_exit_if_null(fdopen(fd, "w"));
	manifest_json(out, export, args, p);
	/* Checks each step: fflush reports nothing for bytes whose write failed before. */
	if (fflush(out) || ferror(out) || fsync(fd))
		status = export_failed(export, MANIFEST, "cannot be written");
	if (fclose(out) && !status)
		status = export_failed(export, MANIFEST, "cannot be written");
	return status ? status : publish_file(export, MANIFEST);
}

/* --- all of it --- */

static enum ps_exit export_collect(struct export *export, perseas_t *p)
{
	struct perseas_segment_info info;

	while (export->count < PS_SEGMENTS_MAX && !perseas_segment_at(p, export->count, &info)) {
		struct file *file = &export->files[export->count++];
		enum ps_exit status;

		file->segment = info;
		set_file_name(file->name, info.name);
		snprintf(file->partial, sizeof(file->partial), ".%s.%d.partial", info.name,
		         (int)getpid());
		status = ps_file_check_free(export->dir, export->path, file->name);
		if (status)
			return status;
	}
	return PS_EXIT_OK;
}

static enum ps_exit name_in_folder(const struct export *export, const struct file *file)
{
	if (!*file->partial)
		return ps_file_give_name(export->folder, export->path, file->fd, "", file->name);
	return renameat(export->dir, file->partial, export->folder, file->name)
	               ? export_failed(export, file->name, "cannot be given its name")
	               : PS_EXIT_OK;
}

static enum ps_exit export_name_files(struct export *export)
{
	for (; export->named < export->count; export->named++) {
		const struct file *file = &export->files[export->named];
		enum ps_exit status = name_in_folder(export, file);

		if (!status)
			status = publish_file(export, file->name);
		if (status)
			return status;
	}
	return PS_EXIT_OK;
}

/* Removes the files of an export that failed, except those in the folder. */
static void export_delete_files(const struct export *export)
{
	for (unsigned i = 0; i < export->open; i++) {
		const struct file *file = &export->files[i];
		const char *name = i < export->named ? file->name : file->partial;

		if (*name)
			unlinkat(export->dir, name, 0);
	}
}

static void export_close(const struct export *export)
{
	for (unsigned i = 0; i < export->open; i++)
		close(export->files[i].fd);
	if (export->folder >= 0)
		remove_folder(export->dir, export->folder);
	close(export->dir);
}

static void export_print(const struct export *export, const struct ps_args *args, perseas_t *p)
{
	struct ps_json json = { .out = stdout };

	if (!args->json) {
		printf("%u segment%s of store '%s' written to %s, described by %s/%s\n",
		       export->count, ps_plural(export->count), args->store, args->to_path,
		       args->to_path, MANIFEST);
		return;
	}
	ps_recover_json(&json, args, p);
	ps_json_text(&json, "to", args->to_path);
	ps_json_number(&json, "segments", export->count);
	ps_json_end(&json, '}');
}

enum ps_exit ps_recover_to_files(const struct ps_args *args, perseas_t *p)
{
	struct export export = { .path = args->to_path, .folder = -1 };
	enum ps_exit status = open_directory(args->to_path, &export.dir);

	if (status)
		return status;
	ps_file_catch_write_signals();
	status = export_collect(&export, p);
	if (!status)
		status = write_files(&export, p);
	if (!status)
		status = make_folder(&export);
	if (!status)
		status = export_name_files(&export);
	if (!status)
		status = write_manifest(&export, args, p);
	if (!status && fsync(export.dir)) {
		status = export_failed(&export, ".", "cannot be made durable");
		unlinkat(export.dir, MANIFEST, 0);
	}
	if (status)
		export_delete_files(&export);
	else
		export_print(&export, args, p);
	export_close(&export);
	return status;
}
