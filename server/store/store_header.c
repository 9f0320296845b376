/*
 * store_header.c - edits copies of an image's header and commits them. The store_*.c files that
 * change a store call it. A commit replaces the header atomically; headers must never be edited in
 * place.
 */
#include "store_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void header_free(Perseas__Header *header)
{
	if (header)
		perseas__header__free_unpacked(header, NULL);
}

int header_edit(const Perseas__Header *header, Perseas__Header **edit, struct why *why)
{
	*edit = NULL;
	if (!header)
		return refuse(why, STATUS(BAD_STATE),
		              "the rebuild of the image failed; begin it again");
	*edit = ps_header_copy(header);
	if (!*edit)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	return 0;
}

bool header_set_promise(Perseas__Header *header, uint64_t epoch, ProtobufCBinaryData owner)
{
	uint8_t *data = malloc(owner.len ? owner.len : 1);

	if (!data)
		return false;
	memcpy(data, owner.data, owner.len);
	free(header->promised_owner.data);
	header->promised_owner.data = data;
	header->promised_owner.len = owner.len;
	header->promised_epoch = epoch;
	return true;
}

bool header_set_identity(char **field, const char *name)
{
	char *copy = name && *name ? strdup(name) : (char *)protobuf_c_empty_string;

	if (!copy)
		return false;
	if (*field != protobuf_c_empty_string)
		free(*field);
	*field = copy;
	return true;
}

Perseas__Segment *header_segment(const Perseas__Header *header, uint32_t id)
{
	for (size_t i = 0; i < header->n_segments; i++)
		if (header->segments[i]->id == id)
			return header->segments[i];
	return NULL;
}

bool header_add_segment(Perseas__Header *header, const Perseas__Segment *segment)
{
	size_t count = header->n_segments;
	Perseas__Segment **table = realloc(header->segments, (count + 1) * sizeof(*table));

	if (!table)
		return false;
	header->segments = table;
	table[count] = ps_segment_copy(segment);
	header->n_segments += table[count] != NULL;
	return table[count] != NULL;
}

void header_remove_segment(Perseas__Header *header, size_t index)
{
	assert(index < header->n_segments);
	perseas__segment__free_unpacked(header->segments[index], NULL);
	header->n_segments--;
	memmove(&header->segments[index], &header->segments[index + 1],
	        (header->n_segments - index) * sizeof(*header->segments));
}

bool segment_is_destroyed(const Perseas__Segment *segment, const struct ps_slot *slot)
{
	return segment->died != 0 && segment->died_epoch <= slot->epoch &&
	       segment->died <= slot->seq;
}

unsigned header_prune(Perseas__Header *header, const struct ps_slot *slot)
{
	unsigned changed = 0;

	for (size_t i = header->n_segments; i-- > 0;) {
		Perseas__Segment *segment = header->segments[i];
		const uint64_t born = segment->born;

		if (born == 0 || born > slot->seq || segment_is_destroyed(segment, slot)) {
			header_remove_segment(header, i);
			changed++;
		} else if (segment->died != 0) {
			/* The transaction that destroys it was not committed here. Clear it,
			 * because a slot of another owner could have the same seq. */
			segment->died = segment->died_epoch = 0;
			changed++;
		}
	}
	return changed;
}

/* Records the present boot in the header. Returns false if memory is out. */
static bool set_boot(const struct store *store, Perseas__Header *header)
{
	struct memory *memory = store->stores->memory;
	const uint8_t *boot = memory->ops->boot ? memory->ops->boot(memory) : NULL;

	free(header->boot.data);
	header->boot = (ProtobufCBinaryData){ 0, NULL };
	if (!boot)
		return true;
	header->boot.data = malloc(PS_ID_SIZE);
	if (!header->boot.data)
		return false;
	memcpy(header->boot.data, boot, PS_ID_SIZE);
	header->boot.len = PS_ID_SIZE;
	return true;
}

bool header_is_of_other_boot(const struct store *store, const Perseas__Header *header)
{
	struct memory *memory = store->stores->memory;
	const uint8_t *boot = memory->ops->boot ? memory->ops->boot(memory) : NULL;

	return header->boot.len != (boot ? PS_ID_SIZE : 0) ||
	       (boot && !ps_id_equal(header->boot, boot));
}

bool header_data_survives(const struct store *store, const Perseas__Header *header)
{
	struct memory *memory = store->stores->memory;
	const uint8_t *boot = header->boot.len == PS_ID_SIZE ? header->boot.data : NULL;

	return !memory->ops->data_survives || memory->ops->data_survives(memory, boot);
}

bool header_was_image_copied(const struct store *store, const Perseas__Header *header)
{
	struct memory *memory = store->stores->memory;

	return memory->ops->was_image_copied &&
	       memory->ops->was_image_copied(memory, store->name, header->image_id.data,
	                                     header->generation);
}

void header_note_files(const struct store *store)
{
	struct memory *memory = store->stores->memory;

	if (memory->ops->note_files)
		memory->ops->note_files(memory, store->name, store->header->image_id.data,
		                        store->header->generation);
}

static void set_store_header(struct store *store, Perseas__Header *header)
{
	header_free(store->header);
	store->header = header;
}

/* Asserts that a new header takes nothing back that must last, such as a promise. Requests that
 * would do so were refused before. */
static void assert_follows(const Perseas__Header *before, const Perseas__Header *after)
{
	if (!before)
		return;
	/* I5: a promise never falls, and an epoch has one owner. */
	assert(after->promised_epoch >= before->promised_epoch);
	assert(after->promised_epoch > before->promised_epoch || !after->promised_epoch ||
	       same_id(after->promised_owner, before->promised_owner));
	/* Readers notice by these that the image was changed by something other than
	 * transactions. */
	assert(after->generation >= before->generation);
	assert(after->generation > before->generation || after->rewrites >= before->rewrites);
	/* I8: an image is joining before its first byte changes, and readers notice it. */
	assert(after->state != STATE(JOINING) || before->state == STATE(JOINING) ||
	       after->generation > before->generation || after->rewrites > before->rewrites);
	/* A settled store never becomes unsettled. */
	assert(after->state != STATE(CREATING) || before->state == STATE(CREATING));
}

/* Refuses a header that is invalid, lowers the level of the store, or changes its mark
 * `filling`. */
static int check_new_header(const struct store *store, const Perseas__Header *header,
                            struct why *why)
{
	const Perseas__Header *now = store->header;
	const char *text = NULL;

	if (!ps_header_valid(header, &text))
		return refuse(why, STATUS(BAD_REQUEST), "the header of store %s would be wrong: %s",
		              store->name, text);
	if (now && same_id(now->store_id, header->store_id) &&
	    header->roster->level < now->roster->level)
		return refuse(why, STATUS(BAD_STATE),
		              "store %s is of level %u, which is never lowered", store->name,
		              now->roster->level);
	if (now && same_id(now->store_id, header->store_id) &&
	    header->roster->filling != now->roster->filling)
		return refuse(why, STATUS(BAD_STATE),
		              "store %s was created %s by its first transaction, which no roster "
		              "changes",
		              store->name,
		              now->roster->filling ? "to be filled" : "not to be filled");
	return 0;
}

int header_commit(struct store *store, Perseas__Header *header, struct why *why)
{
	struct memory *memory = store->stores->memory;
	char reason[ERRNO_TEXT];
	bool in_memory;
	uint8_t *bytes;
	size_t len;
	int ret;

	ret = check_new_header(store, header, why);
	if (ret) {
		header_free(header);
		return ret;
	}
	if (!set_boot(store, header)) {
		header_free(header);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	ret = header_check_files(store, header, &in_memory, why);
	if (ret) {
		header_free(header);
		return ret;
	}
	assert_follows(store->header, header);
	if (in_memory) {
		set_store_header(store, header);
		return 0;
	}
	if (ps_header_pack(header, &bytes, &len) < 0) {
		header_free(header);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	errno = 0;
	ret = memory->ops->replace(memory, store->name, "header", bytes, len);
	errno_text(reason, errno);
	free(bytes);
	if (ret) {
		const char *advice = memory->ops->advice ? memory->ops->advice(memory) : NULL;

		header_free(header);
		return refuse(why, (Perseas__Status)-ret,
		              "the header of store %s cannot be written%s; %s", store->name, reason,
		              advice ? advice : "look at the memory directory's file system");
	}
	set_store_header(store, header);
	header_note_files(store);
	return 0;
}

Perseas__Header *session_header(const struct session *session)
{
	assert(session->store);
	return session->is_rebuilding ? session->store->rebuilt_header : session->store->header;
}

int session_replace_header(struct session *session, Perseas__Header *header, struct why *why)
{
	struct store *store = session->store;
	const char *text = NULL;

	if (!session->is_rebuilding)
		return header_commit(store, header, why);
	if (!ps_header_valid(header, &text)) {
		header_free(header);
		return refuse(why, STATUS(BAD_REQUEST), "the table of store %s would be wrong: %s",
		              store->name, text);
	}
	assert(store->session == session);
	header_free(store->rebuilt_header);
	store->rebuilt_header = header;
	return 0;
}
