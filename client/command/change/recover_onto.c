/*
 * recover_onto.c - makes a recovered store again on other mirrors.
 *
 * Each segment in turn is mapped from the old store, copied to other memory, unmapped, and mapped
 * in the new store at the same address, so that pointers into it stay valid. All segments are
 * published together at the end. Until then the old store stays claimed, so that no other process
 * changes it.
 */
#include "../../../proto/base/json.h"
#include "recover.h"
#include "remake.h"
#include "../ask/shared_hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

static const char *new_store_name(const struct ps_args *args)
{
	return args->new_store_name ? args->new_store_name : args->store;
}

/* --- checks --- */

/* Describes the new store. */
static struct ps_remake describe_new_store(const struct ps_args *args, uint64_t log_size)
{
	struct ps_remake remake = {
		.store = new_store_name(args),
		.mirrors = args->onto_mirrors,
		.options = args->options,
		.quiet = args->json,
		.hint = "give the new one another name with --as",
	};

	remake.options.log_size = log_size;
	/* The accepted state is one of the old store. */
	remake.options.accept_epoch = remake.options.accept_seq = 0;
	return remake;
}

enum ps_exit ps_recover_onto_mirrors_check(const struct ps_args *args)
{
	struct ps_remake remake = describe_new_store(args, 0);

	return ps_remake_check(&remake);
}

/* --- copying --- */

/* Copies a segment's bytes to other memory and unmaps the segment, so that its address is free.
 * Returns the copy, or NULL with a complaint. */
static void *copy_and_unmap(perseas_t *from, const struct perseas_segment_info *info,
                            enum ps_exit *status)
{
	void *base, *aside;
	int rc = perseas_map(from, info->name, 0, &base);

	if (rc) {
		*status = ps_library_complain(from, rc);
		return NULL;
	}
	aside = mmap(NULL, info->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (aside == MAP_FAILED) {
		*status = ps_complain(PS_EXIT_FAILURE,
		                      "no memory for the %" PRIu64 " bytes of "
		                      "segment '%s': %s",
		                      info->size, info->name, strerror(errno));
		aside = NULL;
	} else {
		memcpy(aside, base, info->size);
	}
	perseas_unmap(from, base);
	return aside;
}

static enum ps_exit map_and_fill(struct ps_remake *remake, const struct perseas_segment_info *info,
                                 const void *bytes)
{
	void *base;
	enum ps_exit status = ps_remake_map(remake, info->name, info->size,
	                                    (uint64_t)(uintptr_t)info->address, &base);

	if (!status)
		memcpy(base, bytes, info->size);
	return status;
}

static enum ps_exit copy_segments(perseas_t *from, struct ps_remake *to)
{
	struct perseas_segment_info info;
	enum ps_exit status = PS_EXIT_OK;

	for (unsigned i = 0; !status && !perseas_segment_at(from, i, &info); i++) {
		void *aside = copy_and_unmap(from, &info, &status);

		if (!aside)
			break;
		status = map_and_fill(to, &info, aside);
		munmap(aside, info.size);
		if (!status && ps_stop_requested())
			status = ps_complain(PS_EXIT_FAILURE, "stopped by a signal");
	}
	return status;
}

/* --- all of it --- */

static void print_remade(const struct ps_args *args, perseas_t *from, const struct ps_remake *to)
{
	struct ps_json json = { .out = stdout };
	struct ps_opened opened;

	ps_opened_read(from, &opened);
	if (!args->json) {
		printf("store '%s', as it was at epoch %" PRIu64 ", transaction %" PRIu64 ", is "
		       "now store '%s' on %s; open it there:\n    perseas_open(\"%s\", \"%s\", "
		       "…)\n",
		       args->store, opened.state_epoch, opened.state_seq, new_store_name(args),
		       args->onto_mirrors, new_store_name(args), args->onto_mirrors);
		return;
	}
	ps_recover_json(&json, args, from);
	ps_json_text(&json, "as", new_store_name(args));
	ps_json_list(&json, "onto", args->onto_mirrors);
	ps_json_number(&json, "alike", to->equal_mirrors);
	ps_json_end(&json, '}');
}

static enum ps_exit fill_store(const struct ps_args *args, perseas_t *from, struct ps_remake *to)
{
	enum ps_exit status = copy_segments(from, to);

	if (!status)
		status = ps_remake_publish(to);
	if (status == PS_EXIT_OK || status == PS_EXIT_PARTLY)
		print_remade(args, from, to);
	else
		ps_remake_delete_unfilled(to);
	return status;
}

enum ps_exit ps_recover_onto_mirrors(const struct ps_args *args, perseas_t *from)
{
	struct perseas_segment_info info;
	struct ps_opened opened;
	struct ps_remake remake;
	enum ps_exit status;

	ps_opened_read(from, &opened);
	remake = describe_new_store(args, opened.log_size);
	while (!perseas_segment_at(from, (unsigned)remake.segments, &info))
		remake.segments++;
	ps_stop_catch();
	status = ps_remake_begin(&remake);
	if (!status)
		status = fill_store(args, from, &remake);
	ps_remake_close(&remake);
	if (status == PS_EXIT_OK || status == PS_EXIT_PARTLY)
		ps_shared_hosts_warn(new_store_name(args), args->onto_mirrors, &args->options);
	return status;
}
