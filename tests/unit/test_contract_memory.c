/*
 * test_contract_memory.c - the contract of memory.h, clause by clause, against the real
 * memory (memory_file.c) and the one that the simulator and other tests run on (memory_heap.c). No
 * test of the store logic can rely on what only one of them does.
 */
#include "../../server/store/memory.h"
#include "../../proto/image/layout.h"
#include "../../server/store/status.h"
#include "../support/memory_heap.h"
#include "../support/unit.h"

enum { LIMIT = 256 << 10, SIZE = 10000 };

struct subject {
	bool file;
	char directory[64];
	struct memory *memory;
	const struct memory_ops *ops;
};

static int begin(struct subject *s)
{
	const char *why = "";

	s->memory = s->file ? memory_file_new(s->directory, LIMIT, false, &why)
	                    : memory_heap_new(LIMIT, 1);
	if (!s->memory)
		return -1;
	s->ops = s->memory->ops;
	return 0;
}

static int setup_file(void **state)
{
	static struct subject s = { .file = true };

	strcpy(s.directory, "/dev/shm/perseas-contract-XXXXXX");
	*state = &s;
	return mkdtemp(s.directory) ? begin(&s) : -1;
}

static int setup_heap(void **state)
{
	static struct subject s;

	*state = &s;
	return begin(&s);
}

static int teardown(void **state)
{
	struct subject *s = *state;

	if (!s->file) {
		memory_heap_free(s->memory);
		return 0;
	}
	memory_file_free(s->memory);
	unit_remove_folder(s->directory);
	return 0;
}

struct unit_fixture unit_fixture = { setup_file, teardown };
struct unit_fixture unit_fixture_too = { setup_heap, teardown };

/* The daemon ends, and another one starts on what is there. */
static void restart(struct subject *s)
{
	struct memory *before = s->memory;

	if (s->file) {
		memory_file_free(before);
		assert_int_equal(begin(s), 0);
	} else {
		s->memory = memory_heap_copy(before);
		memory_heap_free(before);
		assert_non_null(s->memory);
	}
}

static struct piece made(struct subject *s, const char *name, uint64_t size)
{
	struct piece piece;

	assert_int_equal(s->ops->make(s->memory, "bank", name, size, &piece), 0);
	assert_int_equal(piece.size, size);
	return piece;
}

static void close_it(struct subject *s, struct piece *piece)
{
	s->ops->close(s->memory, piece);
}

static void make_and_close(struct subject *s, const char *name, uint64_t size)
{
	struct piece piece = made(s, name, size);

	close_it(s, &piece);
}

static void note(void *arg, const char *name)
{
	strcat(arg, name);
	strcat(arg, " ");
}

/* make: "a zeroed piece", also in the place of one of the same name, whose users keep that. */
TEST(what_is_made_is_zeroed, struct subject *s)
{
	struct piece first = made(s, "log.1", SIZE), second;

	memset(first.base, 0xee, SIZE);
	second = made(s, "log.1", SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		assert_int_equal(second.base[i], 0);
	assert_int_equal(first.base[SIZE - 1], 0xee);
	close_it(s, &first);
	close_it(s, &second);
}

/* Nobody used more than was reserved, so nothing is given back. */
TEST(what_is_made_takes_what_was_reserved, struct subject *s)
{
	struct piece piece;

	assert_int_equal(s->ops->make(s->memory, "bank", "log.1", SIZE, &piece), 0);
	memset(piece.base, 7, SIZE);
	assert_int_equal(s->ops->piece_excess(s->memory, &piece), 0);
	assert_int_equal(s->ops->total_excess(s->memory), 0);
	s->ops->trim(s->memory);
	assert_int_equal(s->ops->used(s->memory), SIZE);
	assert_int_equal(piece.base[SIZE - 1], 7);
	s->ops->close(s->memory, &piece);
}

/* make: "NO_MEMORY: over the limit. Nothing is left then." */
TEST(what_is_too_large_is_refused_and_leaves_nothing, struct subject *s)
{
	struct piece piece;
	char found[256] = "";

	make_and_close(s, "log.1", SIZE);
	assert_int_equal(s->ops->limit(s->memory), LIMIT);
	/* room: "of the limit, and of what the file system, the host and its control group
	 * leave". */
	if (s->ops->room)
		assert_int_equal(s->ops->room(s->memory), LIMIT - SIZE);
	assert_int_equal(s->ops->make(s->memory, "bank", "segment-0.1", LIMIT - SIZE + 1, &piece),
	                 -STATUS(NO_MEMORY));
	assert_int_equal(s->ops->make(s->memory, "bank", "segment-0.1", INT64_MAX, &piece),
	                 -STATUS(NO_MEMORY));
	assert_int_equal(s->ops->open(s->memory, "bank", "segment-0.1", &piece), -STATUS(NO_STORE));
	assert_int_equal(s->ops->used(s->memory), SIZE);
	s->ops->list_pieces(s->memory, "bank", note, found);
	assert_string_equal(found, "log.1 ");
	make_and_close(s, "segment-0.1", LIMIT - SIZE);
}

/* open: "one that is there", with its size; what one stores, all who have it see. */
TEST(those_who_open_a_piece_share_it, struct subject *s)
{
	struct piece one = made(s, "log.1", SIZE), other;

	assert_int_equal(s->ops->open(s->memory, "bank", "log.1", &other), 0);
	assert_int_equal(other.size, SIZE);
	one.base[77] = 7;
	assert_int_equal(other.base[77], 7);
	close_it(s, &one);
	other.base[78] = 8;
	close_it(s, &other);
	assert_int_equal(s->ops->open(s->memory, "bank", "log.1", &other), 0);
	assert_int_equal(other.base[77] + other.base[78], 15);
	close_it(s, &other);
}

/* open: "NO_STORE: it is not." The same of load. */
TEST(what_is_not_there_is_said_to_be_no_store, struct subject *s)
{
	struct piece piece;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(s->ops->open(s->memory, "bank", "log.1", &piece), -STATUS(NO_STORE));
	assert_int_equal(s->ops->load(s->memory, "bank", "header", &bytes, &len),
	                 -STATUS(NO_STORE));
	make_and_close(s, "log.1", SIZE);
	assert_int_equal(s->ops->open(s->memory, "bank", "log.2", &piece), -STATUS(NO_STORE));
	assert_int_equal(s->ops->open(s->memory, "other", "log.1", &piece), -STATUS(NO_STORE));
	assert_int_equal(s->ops->load(s->memory, "bank", "header", &bytes, &len),
	                 -STATUS(NO_STORE));
}

/* close: "the piece stays", for the next daemon, too. It can be closed again. */
TEST(what_is_closed_stays, struct subject *s)
{
	struct piece piece = made(s, "log.1", SIZE);

	memset(piece.base, 0x5a, SIZE);
	close_it(s, &piece);
	assert_null(piece.base);
	assert_int_equal(piece.fd, -1);
	close_it(s, &piece);
	restart(s);
	assert_int_equal(s->ops->used(s->memory), SIZE);
	assert_int_equal(s->ops->open(s->memory, "bank", "log.1", &piece), 0);
	assert_int_equal(piece.size, SIZE);
	assert_int_equal(piece.base[0], 0x5a);
	assert_int_equal(piece.base[SIZE - 1], 0x5a);
	close_it(s, &piece);
}

/* remove: by name; others may have it, and while they do, it is counted (used, kept), and the limit
 * holds for it. */
TEST(what_is_removed_counts_while_somebody_has_it, struct subject *s)
{
	const uint64_t size = LIMIT - 8192;
	struct piece piece = made(s, "segment-0.1", size), next;

	piece.base[size - 1] = 3;
	s->ops->remove(s->memory, "bank", "segment-0.1");
	assert_int_equal(s->ops->open(s->memory, "bank", "segment-0.1", &next), -STATUS(NO_STORE));
	assert_int_equal(piece.base[size - 1], 3);
	assert_int_equal(s->ops->removed_bytes(s->memory, "bank"), size);
	assert_int_equal(s->ops->removed_bytes(s->memory, "other"), 0);
	assert_int_equal(s->ops->used(s->memory), size);
	assert_int_equal(s->ops->make(s->memory, "bank", "segment-0.2", size, &next),
	                 -STATUS(NO_MEMORY));
	close_it(s, &piece);
	assert_int_equal(s->ops->removed_bytes(s->memory, "bank"), 0);
	assert_int_equal(s->ops->used(s->memory), 0);
	make_and_close(s, "segment-0.2", size);
	s->ops->remove(s->memory, "bank", "none");
	s->ops->remove(s->memory, "none", "segment-0.2");
	assert_int_equal(s->ops->used(s->memory), size);
}

/* look_up finds a piece by its name, as the next daemon would. Another piece of that name is not
 * the open one. */
TEST(a_piece_is_looked_up_by_its_name, struct subject *s)
{
	struct piece piece = made(s, "log.1", SIZE), next;

	assert_int_equal(s->ops->look_up(s->memory, "bank", "log.1", &piece), MEMORY_NAMED);
	assert_int_equal(s->ops->look_up(s->memory, "bank", "header", NULL), MEMORY_REMOVED);
	assert_int_equal(s->ops->replace(s->memory, "bank", "header", "one", 3), 0);
	assert_int_equal(s->ops->look_up(s->memory, "bank", "header", NULL), MEMORY_NAMED);
	s->ops->remove(s->memory, "bank", "log.1");
	assert_int_equal(s->ops->look_up(s->memory, "bank", "log.1", &piece), MEMORY_REMOVED);
	next = made(s, "log.1", SIZE);
	assert_int_equal(s->ops->look_up(s->memory, "bank", "log.1", &piece), MEMORY_REMOVED);
	assert_int_equal(s->ops->look_up(s->memory, "bank", "log.1", &next), MEMORY_NAMED);
	close_it(s, &piece);
	close_it(s, &next);
}

static void assert_holds(struct subject *s, const char *text)
{
	uint8_t *bytes;
	size_t len;

	assert_int_equal(s->ops->load(s->memory, "bank", "header", &bytes, &len), 0);
	assert_true(len >= strlen(text));
	assert_memory_equal(bytes, text, strlen(text));
	for (size_t i = strlen(text); i < len; i++)
		assert_int_equal(bytes[i], 0);
	free(bytes);
}

static int replace(struct subject *s, const char *text)
{
	return s->ops->replace(s->memory, "bank", "header", text, strlen(text));
}

/* replace: "by these bytes, whole"; load: "and maybe zeros behind it". */
TEST(a_small_piece_is_replaced_whole, struct subject *s)
{
	assert_int_equal(replace(s, "the first, which is long"), 0);
	assert_holds(s, "the first, which is long");
	assert_int_equal(replace(s, "short"), 0);
	assert_holds(s, "short");
	assert_int_equal(replace(s, "3"), 0);
	restart(s);
	assert_holds(s, "3");
}

/* replace: with the first, room is kept for all that follow, also when there is no memory left. */
TEST(a_header_is_written_when_memory_is_full, struct subject *s)
{
	assert_int_equal(replace(s, "first"), 0);
	make_and_close(s, "log.1", LIMIT - s->ops->used(s->memory));
	assert_int_equal(s->ops->used(s->memory), LIMIT);
	for (unsigned i = 0; i < 5; i++) {
		char text[2000];

		memset(text, (int)('a' + i), sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		assert_int_equal(replace(s, text), 0);
		assert_holds(s, text);
	}
}

/* stores, pieces: each that is there, once; nothing that is removed. */
TEST(stores_and_pieces_are_found_once, struct subject *s)
{
	char found[256] = "";

	make_and_close(s, "log.1", SIZE);
	make_and_close(s, "log.2", SIZE);
	s->ops->list_stores(s->memory, note, found);
	assert_string_equal(found, "bank ");
	s->ops->remove(s->memory, "bank", "log.1");
	found[0] = '\0';
	s->ops->list_pieces(s->memory, "bank", note, found);
	assert_string_equal(found, "log.2 ");
	found[0] = '\0';
	s->ops->list_pieces(s->memory, "none", note, found);
	assert_string_equal(found, "");
}

/* forget: "removes the folder, when it is empty", and only then. */
TEST(a_store_with_pieces_is_not_forgotten, struct subject *s)
{
	char found[256] = "";

	assert_int_equal(replace(s, "header"), 0);
	make_and_close(s, "log.1", SIZE);
	s->ops->remove(s->memory, "bank", "header");
	s->ops->remove_folder(s->memory, "bank");
	s->ops->list_stores(s->memory, note, found);
	assert_string_equal(found, "bank ");
	s->ops->remove(s->memory, "bank", "log.1");
	s->ops->remove_folder(s->memory, "bank");
	s->ops->remove_folder(s->memory, "none");
	found[0] = '\0';
	s->ops->list_stores(s->memory, note, found);
	assert_string_equal(found, "");
	assert_int_equal(s->ops->used(s->memory), 0);
}

/* set_aside: "under a name that is never looked at again, which `where` tells"; twice. */
TEST(what_is_set_aside_is_not_found_again, struct subject *s)
{
	char where[2][64], found[256] = "";
	struct piece piece;

	for (unsigned i = 0; i < 2; i++) {
		make_and_close(s, "log.1", SIZE);
		assert_int_equal(s->ops->set_aside(s->memory, "bank", where[i], sizeof(where[i])),
		                 0);
		assert_int_equal(s->ops->open(s->memory, "bank", "log.1", &piece),
		                 -STATUS(NO_STORE));
	}
	assert_string_not_equal(where[0], where[1]);
	restart(s);
	s->ops->list_stores(s->memory, note, found);
	assert_string_equal(found, "");
	assert_int_equal(s->ops->set_aside(s->memory, "none", where[0], sizeof(where[0])),
	                 -STATUS(IO));
}

/* boot, lasts: what was written in this boot is as it was, in another it is not. */
TEST(what_was_memory_in_another_boot_does_not_last, struct subject *s)
{
	uint8_t other[PS_ID_SIZE];
	const uint8_t *boot = s->ops->boot(s->memory);

	assert_non_null(boot);
	memcpy(other, boot, sizeof(other));
	assert_true(s->ops->data_survives(s->memory, other));
	other[15] ^= 1;
	assert_false(s->ops->data_survives(s->memory, other));
	assert_true(s->ops->data_survives(s->memory, NULL));
}

/* identity: the same for the next daemon that has this memory. */
TEST(the_identity_lasts_as_long_as_the_memory, struct subject *s)
{
	static const uint8_t none[PS_ID_SIZE];
	uint8_t ids[2][PS_ID_SIZE];

	s->ops->identity(s->memory, ids[0]);
	restart(s);
	s->ops->identity(s->memory, ids[1]);
	assert_memory_not_equal(ids[0], none, PS_ID_SIZE);
	assert_memory_equal(ids[0], ids[1], PS_ID_SIZE);
}

/* random: ids of their own, in the next daemon, too. */
TEST(random_bytes_differ, struct subject *s)
{
	uint8_t ids[3][PS_ID_SIZE] = { { 0 } }, guard[PS_ID_SIZE + 2] = { 0 };

	s->ops->random(s->memory, ids[0], PS_ID_SIZE);
	s->ops->random(s->memory, ids[1], PS_ID_SIZE);
	restart(s);
	s->ops->random(s->memory, ids[2], PS_ID_SIZE);
	assert_memory_not_equal(ids[0], ids[1], PS_ID_SIZE);
	assert_memory_not_equal(ids[1], ids[2], PS_ID_SIZE);
	assert_memory_not_equal(ids[0], ids[2], PS_ID_SIZE);
	s->ops->random(s->memory, guard + 1, PS_ID_SIZE);
	assert_int_equal(guard[0] + guard[PS_ID_SIZE + 1], 0);
	s->ops->fence(s->memory);
}
