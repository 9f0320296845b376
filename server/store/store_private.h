/*
 * store_private.h - declarations shared by the store*.c files.
 *
 *   store.c             the table of stores, status, digest
 *   store_view.c        the list of all stores for metrics and the status page
 *   store_header.c      editing and committing headers
 *   store_image.c       the pieces of one generation of an image
 *   store_load.c        loading stores that an earlier daemon left in memory
 *   store_create.c      create, settle, abandon, drop
 *   store_claim.c       claims (I5)
 *   store_copy.c        copying a running store
 *   store_rebuild.c     rebuilding images, and joining (I8, I9)
 *   store_segments.c    adding, publishing, destroying and removing segments
 *   store_session.c     what a session holds, and how it ends
 *   store_host.c        labels, boot and memory of this daemon
 *   store_order.c       an owner's reports and orders to it
 *   store_watch.c       whether a store has gained or lost its owner
 *   store_handover.c    standbys and planned handovers
 *   store_quota.c       quotas of identities
 *   store_file_names.c  images whose files were removed or renamed
 *   store_torn.c        images whose memory was truncated by another process
 *   store_spill.c       writing spills when the daemon stops
 *   store_unspill.c     loading spills when the daemon starts
 */
#ifndef PERSEAS_SERVER_STORE_PRIVATE_H
#define PERSEAS_SERVER_STORE_PRIVATE_H

#include "status.h"
#include "store.h"

enum { STORES_MAX = 1024 };

/* The open pieces of one generation, by region. */
struct image {
	uint64_t generation;
	struct piece regions[PS_REGIONS_MAX]; /* base NULL: there is no such region */
};

enum { NAMES_TEXT = 480 };

struct board;
struct freed_image;
struct handover;

/* The state of an image at an instant. */
struct stand {
	struct ps_slot slot;
	int index; /* index of the slot; -1: no slot was valid */
};

/* How the last session ended. */
struct parting {
	uint64_t epoch; /* epoch of its owner; 0: none has ended, or that owner is back */
	uint64_t ns;    /* time of the end */
	bool released;  /* ended by a Release */
	struct stand at;
};

struct store {
	struct stores *stores;
	struct store *next;
	char name[PS_NAME_MAX + 1];
	Perseas__Header *header; /* as in its file; NULL: it cannot be read */
	char damage[240];        /* why the image is refused; "": it is sound */
	/* Why a restart would lose the image; "": its files are in place. */
	char restart_loss[NAMES_TEXT];
	bool is_later_version; /* refused because a later version wrote it; it is never changed */
	bool on_disk;          /* with `later`: only the spill exists, and memory has nothing */
	bool is_over_quota;    /* its owner is about to be cut because it used too much memory */
	bool has_own_spill;    /* the spill with the store's name is of this image */
	struct image image;
	Perseas__Header *rebuilt_header; /* header of an unfinished rebuild, or NULL */
	struct image rebuilt;
	struct session *session;   /* session of the connected owner; NULL: none */
	const struct job *job;     /* the job that works on it (jobs.h); NULL: none */
	struct board *board;       /* reports and orders of the session; NULL: none yet */
	struct holder *holder;     /* process of an owner that left and still has the memory */
	uint32_t patience_ms;      /* for how long claims may still wait for its end */
	struct handover *handover; /* the last handover that was requested; NULL: none */
	struct parting parting;
	uint8_t withdrawn[PS_ID_SIZE]; /* id of the last handover that was withdrawn; zeros: none */
	uint64_t events[STORE_EVENTS]; /* number of events since the store is served */
};

struct stores {
	struct memory *memory;
	uint8_t daemon[PS_ID_SIZE];  /* the daemon's identity, sent with every reply */
	const struct access *access; /* NULL: everything is allowed */
	struct store *first;
	unsigned count;
	uint64_t owner_timeout_ms; /* 0: none */
	/* How long claims wait for a process that has an image and is about to end. */
	uint32_t patience_ms;
	/* Files disappeared without memory_ops knowing; recount is due. */
	bool miscounted;
	bool closing;                     /* the daemon is about to exit: no store may change */
	struct spill *spill;              /* NULL: no spill directory */
	struct consumed *consumed;        /* NULL: no state directory */
	struct freed_image *freed_images; /* images that are being freed outside of the loop */
	unsigned tears;                   /* ps_guards_torn() when torn images were last searched */
	void (*leave)(void *arg, const struct piece *piece); /* NULL: none */
	void *leave_arg;
	void (*tell)(void *arg, const struct store_event_info *news); /* NULL: none */
	void *tell_arg;
	uint64_t (*now_ns)(void); /* NULL: time stands still */
	struct standby *standbys; /* list of all standbys */
	struct labels labels;
};

/* store.c */
/* Formats errno as " (sentence)", or "" for 0. Returns text. */
enum { REASON_TEXT = 80 };
const char *reason_text(char text[REASON_TEXT], int error);
int refuse(struct why *why, Perseas__Status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct store *store_find(struct stores *stores, const char *name);
/* Returns the store with that name, or NULL with *ret and `why` set. */
struct store *store_find_served(struct stores *stores, const char *name, int *ret, struct why *why);
/* Does the same, and refuses a damaged image. */
struct store *store_find_sound(struct stores *stores, const char *name, int *ret, struct why *why);
/* Does the same, and refuses if the daemon is about to exit. Begins a new reply. */
struct store *store_find_to_change(struct stores *stores, const char *name, int *ret,
                                   struct why *why);
/* Returns 0, or a refusal if a later version wrote the image. */
int store_check_later(const struct store *store, struct why *why);
struct store *store_insert(struct stores *stores, const char *name);
void store_delete(struct store *store);
void scratch_reset(void);
/* Allocates zeroed memory that is valid until the next scratch_reset(). Returns NULL if memory is
 * out. */
void *scratch_alloc(size_t size);
/* Makes a slot for a reply, all zero if index < 0. Returns NULL if memory is out. */
Perseas__Slot *scratch_slot(const struct ps_slot *slot, int index);
/* Returns 0, or a refusal if the daemon is about to exit. Begins a new reply. */
int stores_check_open(struct stores *stores, struct why *why);
bool same_id(ProtobufCBinaryData id, ProtobufCBinaryData other);
/* Copies a header for any client but its claimer, that is, without the store's key. The copy points
 * into the header. */
void header_without_key(Perseas__Header *told, const Perseas__Header *header);
/* Fills in an empty status. */
int store_fill_status(struct store *store, Perseas__StoreStatus *status, struct why *why);
/* Counts an event and reports it. epoch and seq are 0 if there are none. */
void store_report(struct store *store, enum store_event event, const struct session *session,
                  uint64_t epoch, uint64_t seq);

/* store_header.c */
/* Both return false if memory is out. */
bool header_promise(Perseas__Header *header, uint64_t epoch, ProtobufCBinaryData owner);
bool header_add_segment(Perseas__Header *header, const Perseas__Segment *segment);
Perseas__Segment *header_segment(const Perseas__Header *header, uint32_t id);
void header_remove_segment(Perseas__Header *header, size_t index);
/* Returns true if the segment is destroyed in an image with this slot. */
bool segment_is_dead(const Perseas__Segment *segment, const struct ps_slot *slot);
/* Removes segments that do not exist at the slot, because they were never published, are published
 * later, or are destroyed. Clears later deaths. Returns how many segments changed. */
unsigned header_prune(Perseas__Header *header, const struct ps_slot *slot);
/* Sets the name of the creator or the sharer. NULL stands for nobody. Returns false if memory is
 * out. */
bool header_set_name(char **field, const char *name);
void header_free(Perseas__Header *header);
/* Copies a header, to be changed and committed. Sets *edit to NULL on failure. */
int header_edit(const Perseas__Header *header, Perseas__Header **edit, struct why *why);
/* Returns true if the header names another boot of the host than the present one, or none. */
bool header_is_of_other_boot(const struct store *store, const Perseas__Header *header);
/* Returns true if an image of the boot in the header can be served. */
bool header_can_be_served(const struct store *store, const Perseas__Header *header);
/* Returns true if the image has other files than those in which a daemon served it last. */
bool header_is_copy(const struct store *store, const Perseas__Header *header);
/* Records the files from which the image is served. */
void header_note_files(const struct store *store);
/* Makes `header` the store's header, first in its file, with the present boot. Takes ownership,
 * also on failure. */
int header_commit(struct store *store, Perseas__Header *header, struct why *why);
/* Returns the header that the session works on: of the image, or of the rebuilt one. NULL: its
 * rebuild failed. */
Perseas__Header *header_of(const struct session *session);
/* Replaces header_of() by a changed copy, in its file if it has one. Takes ownership. */
int header_replace(struct session *session, Perseas__Header *header, struct why *why);

/* store_image.c */
void image_init(struct image *image);
/* Makes the zeroed pieces that `header` describes. On failure none is left. */
int image_make(struct store *store, const Perseas__Header *header, uint64_t generation,
               struct image *image, struct why *why);
int image_make_region(struct store *store, struct image *image, uint32_t region, uint64_t size,
                      struct why *why);
/* Opens the pieces that `header` describes and checks their sizes. On failure `text` has the
 * reason. */
int image_open(struct store *store, const Perseas__Header *header, struct image *image, char *text,
               size_t size);
void image_close(struct store *store, struct image *image);
void image_remove(struct store *store, struct image *image); /* also closes its pieces */
void image_remove_region(struct store *store, struct image *image, uint32_t region);
/* Removes the segments that `header` does not list. */
void image_prune(struct store *store, struct image *image, const Perseas__Header *header);
/* Returns which processes can write to the image, apart from its promise page, which none can. */
enum memory_whose image_whose(const struct store *store, const struct image *image);
void image_view(const struct image *image, struct ps_image *view);
/* Returns the index of the valid commit slot, or -1 with *slot zeroed. */
int image_slot(const struct image *image, struct ps_slot *slot);
/* Writes the promise page, the owner before the epoch (I5). */
void image_promise(struct image *image, uint64_t epoch, ProtobufCBinaryData owner);
/* Returns the size of a region by `header`; 0: it has no such region. */
uint64_t region_size(const Perseas__Header *header, uint32_t region);
enum { PIECE_NAME = 48 };
void piece_name(char name[PIECE_NAME], uint32_t region, uint64_t generation);
/* Removes all pieces of the store that do not belong to `keep` (NULL: all). */
void pieces_sweep(struct store *store, const Perseas__Header *keep);

/* store_claim.c, I5: checks whether the image's promise allows this owner this epoch. Returns 0, or
 * a refusal with STALE_EPOCH or LIMIT. */
int promise_allows(const struct store *store, uint64_t epoch, ProtobufCBinaryData owner,
                   struct why *why);

/* store_load.c */
struct name_list {
	char (*names)[PS_NAME_MAX + 1];
	size_t count;
	bool short_of; /* memory is out, so the list is incomplete */
};
/* Adds a name to `list`, a struct name_list, if it is a valid store name. */
void name_list_add(void *list, const char *name);

/* store_file_names.c: checks whether a restart would find the image's files, writes small files
 * again, and stores in store->restart_loss what is wrong. Returns true if the image must be copied
 * to new files and can be. */
bool store_check_names(struct store *store);
/* store_file_names.c: returns true if the store's folder was renamed. No new one may be made in its
 * place, because then it could not be renamed back. */
bool store_is_moved(const struct store *store);
int refuse_moved(const struct store *store, struct why *why);
/* store_file_names.c: returns true if files of the image were removed, so that no daemon can load
 * it. */
bool store_is_removed(const struct store *store);
/* store_file_names.c: checks whether the header may be written. Sets *in_memory if it must be kept
 * only in this process, because its pieces have no names. Returns 0, or IO if the pieces were
 * renamed. */
int header_find_place(const struct store *store, const Perseas__Header *header, bool *in_memory,
                      struct why *why);
/* store_claim.c: copies the image to new files, as a claim would if its owner still had it, and
 * leaves the store without an owner. The caller has checked that there is memory. */
int store_copy_aside(struct store *store, struct why *why);

/* store_torn.c: returns true if the image, or the rebuilt one, is torn. Any thread may call it. */
bool store_is_torn(const struct store *store);
/* store_torn.c: checks whether the image is torn; if so, marks the store damaged, ends its session,
 * and returns true. */
bool store_notice_torn(struct store *store);

/* store_copy.c: makes `copy`, the next generation of the image. *slot is its commit slot, and
 * *undone says whether later transactions were undone. */
int image_copy(struct store *store, struct image *copy, struct ps_slot *slot, bool *undone,
               struct why *why);

/* store_session.c */
void session_attach(struct store *store, struct session *session, uint64_t epoch,
                    ProtobufCBinaryData owner, bool shared, bool rdma);
/* Cuts the data paths, ends the claim, and drops an unfinished rebuild. */
void session_detach(struct store *store);
/* Returns true if the session's owner is alive. Returns false for NULL. */
bool session_lives(const struct session *session);
/* Returns true if a session that wants descriptors of the memory gets them. Otherwise it is served
 * as over tcp. */
bool session_shares(const struct session *session, const struct store *store, bool wanted);
/* Retires the promise, so that an owner that still has the memory no longer finds its own. */
void promise_retire(struct store *store);
void rebuilt_drop(struct store *store);
/* Does what rebuilt_drop() does, but frees the memory outside of the loop. The store has no rebuilt
 * image at once. */
void rebuilt_free_later(struct store *store);
/* Returns a generation that no image of the store has, including those that are being freed. */
uint64_t store_next_generation(const struct store *store);
void holder_drop(struct store *store);
int session_grant(struct session *session, Perseas__Grant **grant, struct why *why);
/* Returns the image that the session's data path leads to. */
static inline struct image *image_of(const struct session *session)
{
	assert(session->store);
	return session->is_rebuilding ? &session->store->rebuilt : &session->store->image;
}

/* store_order.c */
void board_drop(struct store *store);
int board_update(struct store *store, const Perseas__ConfirmRequest *request, struct why *why);
/* Returns the order that is not done, or NULL. */
Perseas__Order *board_order(const struct store *store);
/* Adds the owner's reports and its order; the result is a copy that may be changed. Returns false
 * if memory is out. */
bool board_status(const struct store *store, Perseas__StoreStatus *status);

/* store_handover.c */
void handover_drop(struct store *store);
/* Returns the id of the handover, or no bytes. */
ProtobufCBinaryData handover_id(struct store *store);
/* Record that the session is about to end (released: by a Release), has begun, or has sent a
 * Confirm. */
void handover_ends(struct store *store, bool released);
void handover_claimed(struct store *store);
void handover_confirmed(struct store *store);
/* Returns the handover that the session's owner must be told, or NULL if there is none or memory is
 * out. */
Perseas__Handover *handover_for_owner(struct store *store);
/* Fills in standbys and handover. Returns false if memory is out. */
bool handover_status(struct store *store, Perseas__StoreStatus *status);
/* Forget the standby of this session; forget all. */
void standby_forget(struct session *session);
void standbys_forget(struct stores *stores);

/* store_quota.c: each returns 0, or a refusal that names the quota. An identity is charged for what
 * it created: images, rebuilt images, and images that were replaced while a process still has
 * them.
 *
 * quota_create: checks whether `who` (NULL: unknown) may have another store of `bytes` bytes, in
 * place of `instead` (NULL: none). */
int quota_create(struct stores *stores, const char *who, const struct store *instead,
                 uint64_t bytes, struct why *why);
/* Checks whether the image, or the rebuilt one, may have `bytes` bytes, by its creator's quota. */
int quota_grow(const struct store *store, bool is_rebuilt, uint64_t bytes, struct why *why);
/* Checks whether the image may be copied from an owner that keeps it. Does not count the image
 * itself: a takeover is possible even if the image is all that the quota allows, but not
 * repeatedly. */
int quota_copy(const struct store *store, struct why *why);
/* Returns true if the store's files occupy more than was reserved, and its creator's quota or the
 * limit of the mirror is exceeded. */
bool quota_exceeded(const struct store *store);
/* Checks whether the session may hold the store, given what its identity holds. */
int quota_claim(const struct session *session, const struct store *store, struct why *why);

/* Returns 0, or a refusal if the session holds no claim. Begins a new reply. */
int session_check(struct session *session, struct why *why);

#endif
