/*
 * remake.c - see remake.h.
 */
#include "remake.h"
#include "unfinished.h"
#include "../ask/ask.h"
#include "../ask/digest.h"
#include "../../open/opened.h"
#include "../../../proto/image/crc32c.h"

#include <inttypes.h>
#include <string.h>

/* --- checks --- */

static enum ps_exit complain_name_taken(const struct ps_remake *remake, const char *address,
                                        const Perseas__Header *header)
{
	if (header->n_segments)
		return ps_complain(PS_EXIT_NO, "%s has a store '%s' already: %s", address,
		                   remake->store, remake->hint);
	/* A restore publishes all segments in one transaction, so a store without segments may be a
	 * restore in progress. */
	return ps_complain(PS_EXIT_NO,
	                   "%s has a store '%s' already, without any segment: %s; or, if that was "
	                   "begun by a command that was killed, delete it with perseas drop",
	                   address, remake->store, remake->hint);
}

/* Deletes the unfinished store that an earlier, killed run of the same command left. */
static enum ps_exit clear_unfinished(const struct ps_remake *remake)
{
	const enum ps_exit status = ps_unfinished_remove(remake->store, remake->mirrors, NULL,
	                                                 &remake->options);

	if (!status)
		ps_complain(PS_EXIT_OK, "the unfinished store '%s' was deleted, and is made anew",
		            remake->store);
	return status;
}

static enum ps_exit check_name_free(const struct ps_images *images, const struct ps_remake *remake)
{
	const struct ps_peers *peers = images->peers;

	for (unsigned i = 0; i < peers->count; i++) {
		if (images->told[i] &&
		    images->told[i]->header->state != PERSEAS__STATE__STATE_CREATING)
			return complain_name_taken(remake, peers->addresses[i].text,
			                           images->told[i]->header);
		if (!images->told[i] && images->errors[i].code != PERSEAS_ENOSTORE)
			return ps_complain(ps_exit_of_code(images->errors[i].code),
			                   "making a store "
			                   "needs all of its mirrors: %s",
			                   images->errors[i].text);
	}
	if (remake->options.acks > peers->count)
		return ps_complain(PS_EXIT_USAGE, "--acks %u: there are only %u mirrors",
		                   remake->options.acks, peers->count);
	return PS_EXIT_OK;
}

/* Checks that this client may own the new store: a client that may only create stores could neither
 * fill nor remove it. Sends Claims with a random store id. A mirror checks the rights first, and
 * grants no claim of a store that it does not have. */
static enum ps_exit check_may_own_store(struct ps_peers *peers, const struct ps_remake *remake)
{
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(claim, CLAIM, &claim);
	uint8_t ids[2][PS_ID_SIZE];

	peers->env->ops->random(peers->env, ids, sizeof(ids));
	/* The message has no const; it is only packed. */
	claim.store = (char *)remake->store;
	claim.epoch = 1;
	claim.owner = (ProtobufCBinaryData){ PS_ID_SIZE, ids[0] };
	claim.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, ids[1] };
	ps_peers_ask_all(peers, &request);
	for (unsigned i = 0; i < peers->count; i++)
		if (peers->errors[i].code == PERSEAS_EDENIED)
			return ps_complain(PS_EXIT_NO, "%s", peers->errors[i].text);
	return PS_EXIT_OK;
}

enum ps_exit ps_remake_check(const struct ps_remake *remake)
{
	struct ps_peers peers;
	struct ps_images images;
	enum ps_exit status = ps_images_open(&images, &peers, remake->store, remake->mirrors,
	                                     &remake->options);

	if (status)
		return status;
	if (ps_unfinished_exists(remake->store, remake->mirrors, &remake->options)) {
		ps_images_close(&images, &peers);
		status = clear_unfinished(remake);
		if (!status)
			status = ps_images_open(&images, &peers, remake->store, remake->mirrors,
			                        &remake->options);
		if (status)
			return status;
	}
	status = ps_peers_check_distinct(&peers);
	if (!status)
		status = check_name_free(&images, remake);
	if (!status)
		status = ps_peers_check_routes(&peers, remake->store);
	if (!status)
		status = check_may_own_store(&peers, remake);
	ps_images_close(&images, &peers);
	return status;
}

/* --- the end --- */

void ps_remake_close(struct ps_remake *remake)
{
	perseas_close(remake->p);
	remake->p = NULL;
}

void ps_remake_delete_unfilled(struct ps_remake *remake)
{
	static const uint8_t none[PS_ID_SIZE];
	enum ps_exit status;

	ps_remake_close(remake);
	if (!memcmp(remake->store_id, none, PS_ID_SIZE))
		return;
	status = ps_unfinished_remove(remake->store, remake->mirrors, remake->store_id,
	                              &remake->options);
	if (status)
		ps_complain(PS_EXIT_OK,
		            "what this command made of store '%s' on %s may be there still: "
		            "perseas status shows it. perseas drop without --yes deletes it if "
		            "it is unfinished, and so does the same command again",
		            remake->store, remake->mirrors);
	else
		ps_complain(PS_EXIT_OK, "store '%s' on %s is not complete, and was deleted again",
		            remake->store, remake->mirrors);
}

/* --- making --- */

/* Creates and opens a store without segments, which no transaction fills. */
static enum ps_exit create_empty_store(struct ps_remake *remake)
{
	int rc = perseas_create(remake->store, remake->mirrors, &remake->options);

	if (!rc)
		rc = perseas_open(remake->store, remake->mirrors, &remake->options, &remake->p);
	return rc ? ps_library_complain(NULL, rc) : PS_EXIT_OK;
}

/* Creates and opens a store that the command's first transaction fills. */
static enum ps_exit create_store_to_fill(struct ps_remake *remake)
{
	struct ps_error error = { 0 };
	struct ps_env *env = ps_env_posix(&remake->options, &error);

	if (env && !ps_open_filling(env, remake->store, remake->mirrors, &remake->options,
	                            remake->store_id, &remake->p, &error))
		return PS_EXIT_OK;
	return ps_complain(ps_exit_of_code(error.code), "%s", error.text);
}

enum ps_exit ps_remake_begin(struct ps_remake *remake)
{
	const enum ps_exit status = remake->segments ? create_store_to_fill(remake)
	                                             : create_empty_store(remake);

	if (status)
		ps_remake_delete_unfilled(remake);
	return status;
}

enum ps_exit ps_remake_map(struct ps_remake *remake, const char *segment, uint64_t size,
                           uint64_t address, void **base)
{
	int rc = perseas_map_at(remake->p, segment, size, (void *)(uintptr_t)address, base, NULL);

	if (rc == PERSEAS_EADDRESS) {
		rc = perseas_map(remake->p, segment, size, base);
		if (!rc)
			ps_complain(PS_EXIT_OK,
			            "segment '%s' cannot lie at 0x%" PRIx64 " again, "
			            "and is now at %p: pointers into it are no longer good",
			            segment, address, *base);
	}
	return rc ? ps_library_complain(remake->p, rc) : PS_EXIT_OK;
}

/* --- comparing and publishing --- */

struct comparison {
	unsigned count;
	struct {
		struct perseas_segment_info info;
		uint32_t id;
	} segments[PS_SEGMENTS_MAX];
	struct ps_peers peers;
	bool good[PS_MIRRORS_MAX]; /* the mirror has answered, with the right checksums, so far */
	unsigned different;
	unsigned silent;
};

static void compare_piece(struct comparison *c, const struct perseas_segment_info *segment,
                          uint64_t offset, uint64_t length)
{
	const uint32_t crc = ps_crc32c(0, (const uint8_t *)segment->address + offset, length);

	for (unsigned i = 0; i < c->peers.count; i++) {
		if (!c->good[i])
			continue;
		if (c->peers.replies[i] && c->peers.replies[i]->digest->crc == crc)
			continue;
		c->good[i] = false;
		if (c->peers.replies[i]) {
			c->different++;
			ps_complain(PS_EXIT_OK, "%s: segment '%s' is not what was sent",
			            c->peers.addresses[i].text, segment->name);
		} else {
			c->silent++;
			ps_complain(PS_EXIT_OK, "%s", c->peers.errors[i].text);
		}
	}
}

/* Compares a segment on all mirrors. It has the same id on each. */
static void compare_segment(struct comparison *c, const char *store,
                            const struct perseas_segment_info *segment, uint32_t id)
{
	uint32_t ids[PS_MIRRORS_MAX];

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		ids[i] = id;
	for (uint64_t offset = 0; offset < segment->size;) {
		uint64_t length = ps_digest_length(offset, segment->size);

		ps_digest_ask_mirrors(&c->peers, store, c->good, ids, offset, length);
		compare_piece(c, segment, offset, length);
		offset += length;
		ps_bar_show("comparing", offset, segment->size);
	}
}

static void list_segments(struct comparison *c, perseas_t *p)
{
	struct perseas_segment_info info;

	while (c->count < PS_SEGMENTS_MAX && !perseas_segment_at(p, c->count, &info)) {
		c->segments[c->count].id = ps_opened_segment_id(p, info.name);
		c->segments[c->count++].info = info;
	}
}

/* Compares the bytes that were sent to the mirrors with the mapped segments. Returns PS_EXIT_PARTLY
 * if a mirror did not answer, or PS_EXIT_FAILURE if bytes differ. */
static enum ps_exit compare_segments(struct comparison *c, struct ps_remake *remake)
{
	enum ps_exit status = ps_peers_open(&c->peers, remake->mirrors, &remake->options);

	if (status)
		return status;
	for (unsigned i = 0; i < c->peers.count; i++)
		c->good[i] = true;
	for (unsigned i = 0; i < c->count && !ps_stop_requested(); i++)
		compare_segment(c, remake->store, &c->segments[i].info, c->segments[i].id);
	ps_bar_clear();
	remake->equal_mirrors = c->peers.count - c->different - c->silent;
	if (c->different)
		status = ps_complain(PS_EXIT_FAILURE, "the copy is not good; where it was taken "
		                                      "from is as it was");
	else if (ps_stop_requested())
		status = ps_complain(PS_EXIT_FAILURE, "stopped by a signal: nothing is published");
	else if (c->silent)
		status = PS_EXIT_PARTLY;
	ps_peers_close(&c->peers);
	return status;
}

enum ps_exit ps_remake_publish(struct ps_remake *remake)
{
	struct comparison c = { .count = 0 };
	enum ps_exit status;
	int rc;

	list_segments(&c, remake->p);
	rc = ps_opened_send_segments(remake->p, ps_stop_requested);
	ps_bar_clear();
	if (rc)
		return ps_library_complain(remake->p, rc);
	status = compare_segments(&c, remake);
	if (status && status != PS_EXIT_PARTLY) {
		ps_opened_cancel_send(remake->p);
		return status;
	}
	rc = ps_opened_publish(remake->p);
	if (rc)
		return ps_library_complain(remake->p, rc);
	if (!remake->quiet)
		printf("%u of %u mirrors hold what was recovered, byte for byte\n",
		       remake->equal_mirrors, c.peers.count);
	return status;
}
