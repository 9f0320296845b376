/*
 * recover_onto.c - a store made again on other mirrors.
 *
 * Segments go one after another: read from the old store, kept aside, unmapped, and mapped in the
 * new store at the same address, so that pointers in them stay good. They come to exist together
 * when all are there; the old store stays claimed until then, so that nobody changes it meanwhile.
 */
#include "recover.h"
#include "census.h"
#include "digest.h"
#include "../handle.h"
#include "../map.h"
#include "../segment.h"
#include "../../proto/crc32c.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

static const char *new_name(const struct ps_args *args)
{
	return args->as ? args->as : args->store;
}

/* --- before --- */

static enum ps_exit check_free(const struct ps_census *census, const struct ps_args *args)
{
	const struct ps_panel *panel = census->panel;

	for (unsigned i = 0; i < panel->count; i++) {
		if (census->told[i] &&
		    census->told[i]->header->state != PERSEAS__STATE__STATE_CREATING)
			return ps_complain(PS_EXIT_NO, "%s has a store '%s' already: give the new "
			                   "one another name with --as", panel->addresses[i].text,
			                   new_name(args));
		if (!census->told[i] && census->errors[i].code != PERSEAS_ENOSTORE)
			return ps_complain(ps_exit_of(census->errors[i].code), "making a store "
			                   "needs all of its mirrors: %s", census->errors[i].text);
	}
	if (args->acks > panel->count)
		return ps_complain(PS_EXIT_USAGE, "--acks %u: --onto lists only %u mirrors",
		                   args->acks,
		                   panel->count);
	return PS_EXIT_OK;
}

enum ps_exit ps_recover_onto_check(const struct ps_args *args)
{
	struct ps_panel panel;
	struct ps_census census;
	enum ps_exit status = ps_panel_open(&panel, args->onto, args->connect_timeout_ms);

	if (status)
		return status;
	ps_census_take(&census, &panel, new_name(args));
	status = check_free(&census, args);
	ps_census_free(&census);
	ps_panel_close(&panel);
	return status;
}

/* --- copying --- */

/* Reads a segment and leaves its address free. NULL with a complaint. */
static void *keep_aside(perseas_t *from, const struct perseas_segment_info *info,
                        enum ps_exit *status)
{
	void *base, *aside;
	int rc = perseas_map(from, info->name, 0, &base);

	if (rc) {
		*status = ps_recover_failed(from, rc);
		return NULL;
	}
	aside = mmap(NULL, info->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (aside == MAP_FAILED) {
		*status = ps_complain(PS_EXIT_FAILURE, "no memory for the %" PRIu64 " bytes of "
		                      "segment '%s': %s", info->size, info->name, strerror(errno));
		aside = NULL;
	} else {
		memcpy(aside, base, info->size);
	}
	perseas_unmap(from, base);
	return aside;
}

static enum ps_exit put(perseas_t *to, const struct perseas_segment_info *info, const void *bytes)
{
	uint64_t address = (uint64_t)(uintptr_t)info->address;
	void *base;
	int rc = ps_map_at(to, info->name, info->size, address, &base);

	if (rc == PERSEAS_EADDRESS) {
		rc = perseas_map(to, info->name, info->size, &base);
		if (!rc)
			ps_complain(PS_EXIT_OK, "segment '%s' cannot lie at 0x%" PRIx64 " again, "
			            "and is now at %p: pointers into it are no longer "
			            "good", info->name,
			            address, base);
	}
	if (rc)
		return ps_recover_failed(to, rc);
	memcpy(base, bytes, info->size);
	return PS_EXIT_OK;
}

static enum ps_exit copy_segments(perseas_t *from, perseas_t *to)
{
	struct perseas_segment_info info;
	enum ps_exit status = PS_EXIT_OK;

	for (unsigned i = 0; !status && !perseas_segment_at(from, i, &info); i++) {
		void *aside = keep_aside(from, &info, &status);

		if (!aside)
			break;
		status = put(to, &info, aside);
		munmap(aside, info.size);
	}
	return status;
}

static enum ps_exit publish(perseas_t *to)
{
	int rc = perseas_publish(to);

	if (rc == PERSEAS_EINDOUBT)
		rc = perseas_flush(to);
	/* All that take part shall have it, not only W. */
	ps_exclusive_enter(to);
	ps_exclusive_leave(to);
	ps_bar_clear();
	return rc ? ps_recover_failed(to, rc) : PS_EXIT_OK;
}

/* --- comparing --- */

struct comparison {
	struct ps_panel panel;
	bool good[PS_MIRRORS_MAX]; /* has answered, and alike, so far */
	unsigned different;
	unsigned silent;
};

static void compare_piece(struct comparison *c, const struct ps_segment *segment, uint64_t offset,
                          uint64_t length)
{
	uint32_t crc = ps_crc32c(0, segment->base + offset, length);

	for (unsigned i = 0; i < c->panel.count; i++) {
		if (!c->good[i])
			continue;
		if (c->panel.replies[i] && c->panel.replies[i]->digest->crc == crc)
			continue;
		c->good[i] = false;
		if (c->panel.replies[i]) {
			c->different++;
			ps_complain(PS_EXIT_OK, "%s: segment '%s' is not what was sent",
			            c->panel.addresses[i].text, segment->name);
		} else {
			c->silent++;
			ps_complain(PS_EXIT_OK, "%s", c->panel.errors[i].text);
		}
	}
}

static void compare_segment(struct comparison *c, const char *store,
                            const struct ps_segment *segment)
{
	uint32_t ids[PS_MIRRORS_MAX];

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		ids[i] = segment->id;
	for (uint64_t offset = 0; offset < segment->size;) {
		uint64_t length = ps_digest_length(offset, segment->size);

		ps_digest_ask(&c->panel, store, c->good, ids, offset, length);
		compare_piece(c, segment, offset, length);
		offset += length;
		ps_bar_show("comparing", offset, segment->size);
	}
}

static enum ps_exit compare(const struct ps_args *args, const perseas_t *to)
{
	struct comparison c = { .different = 0 };
	enum ps_exit status = ps_panel_open(&c.panel, args->onto, args->connect_timeout_ms);

	if (status)
		return status;
	for (unsigned i = 0; i < c.panel.count; i++)
		c.good[i] = true;
	for (unsigned i = 0; i < to->segment_count; i++)
		compare_segment(&c, new_name(args), &to->segments[i]);
	printf("%u of %u mirrors hold what was recovered, byte for byte\n",
	       c.panel.count - c.different - c.silent, c.panel.count);
	if (c.different)
		status = ps_complain(PS_EXIT_FAILURE, "the copy is not good; the old store is as "
		                     "it was");
	else if (c.silent)
		status = PS_EXIT_PARTLY;
	ps_panel_close(&c.panel);
	return status;
}

/* --- all of it --- */

static enum ps_exit fill(const struct ps_args *args, perseas_t *from, perseas_t *to)
{
	uint64_t epoch, seq;
	enum ps_exit status = copy_segments(from, to);

	if (!status)
		status = publish(to);
	if (status) {
		/* The mirrors keep no memory for what never came to exist. */
		while (to->segment_count > 0 && !to->segments[0].born && to->segments[0].base &&
		       !perseas_unmap(to, to->segments[0].base))
			;
		return ps_complain(status, "store '%s' on the new mirrors is not complete, and of "
		                   "no use; give the next attempt another name with --as",
		                   new_name(args));
	}
	status = compare(args, to);
	ps_recover_state(from, &epoch, &seq);
	if (status == PS_EXIT_OK || status == PS_EXIT_PARTLY)
		printf("store '%s', as it was at epoch %" PRIu64 ", transaction %" PRIu64 ", is "
		       "now store '%s' on %s; open it there:\n    perseas_open(\"%s\", \"%s\", "
		       "…)\n", args->store, epoch, seq, new_name(args), args->onto,
		       new_name(args), args->onto);
	return status;
}

enum ps_exit ps_recover_onto(const struct ps_args *args, perseas_t *from)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	enum ps_exit status;
	perseas_t *to;
	int rc;

	options.acks = args->acks;
	options.log_size = from->log_size;
	options.connect_timeout_ms = args->connect_timeout_ms;
	rc = perseas_create(new_name(args), args->onto, &options);
	if (!rc)
		rc = perseas_open(new_name(args), args->onto, &options, &to);
	if (rc)
		return ps_recover_failed(NULL, rc);
	status = fill(args, from, to);
	perseas_close(to);
	return status;
}
