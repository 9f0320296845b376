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
 *   store_copy_turn.c   which copies to this daemon go on, and which wait
 *   store_rebuild.c     rebuilding images, and joining (I8, I9)
 *   store_segments.c    adding, publishing, destroying and removing segments
 *   store_session.c     what a session holds, and how it ends
 *   store_host.c        labels, boot and memory of this daemon
 *   store_order.c       reports of a store's owner, and orders to that owner
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
	struct piece regions[PS_REGIONS_MAX]; /* base NULL: the image has no such region */
};

enum { NAMES_TEXT = 480 };

struct owner_reports; /* store_order.c */
struct freed_image;
struct handover;

/* The commit slot of an image at an instant. */
struct found_slot {
	struct ps_slot slot;
	int index; /* index of `slot` in the log; -1: the image had no valid slot */
};

/* How the last session of a store ended. */
struct session_end {
	/* Epoch of the session's owner; 0: no session has ended, or that owner is back. */
	uint64_t epoch;
	uint64_t ns;                 /* time of the end */
	bool released;               /* the owner ended the session by a Release */
	struct found_slot last_slot; /* slot of the image at the end */
};

struct store {
	struct stores *stores;
	struct store *next;
	char name[PS_NAME_MAX + 1];
	Perseas__Header *header; /* as in the header's file; NULL: the file cannot be read */
	char damage[240];        /* why the image is refused; "": the image is sound */
	/* Why a restart would lose the image; "": its files are in place. */
	char restart_loss[NAMES_TEXT];
	/* Why the image may be sound, is refused, and must never be changed: BAD_VERSION if a later
	 * version wrote it, IO if descriptors or memory lacked to open it. Otherwise OK. */
	Perseas__Status untouchable;
	/* The spill was not loaded, because it is untouchable, and memory has no image. */
	bool is_only_spilled;
	bool is_over_quota; /* the owner used too much memory and is about to be cut */
	bool has_own_spill; /* the spill with the store's name was written from this image */
	struct image image;
	Perseas__Header *rebuilt_header; /* header of an unfinished rebuild, or NULL */
	struct image rebuilt;
	struct session *session; /* session of the connected owner; NULL: none */
	const struct job *job;   /* the job that works on the store (jobs.h); NULL: none */
	/* Reports of the session's owner, and the order to it; NULL: none yet. */
	struct owner_reports *owner_reports;
	struct holder *holder; /* process of an owner that left and still has the memory */
	/* For how much longer claims may wait for the end of `holder`, or of the process of the
	 * session that they cut. */
	uint32_t holder_wait_left_ms;
	struct handover *handover; /* the last handover that was requested; NULL: none */
	struct session_end session_end;
	uint8_t withdrawn_handover[PS_ID_SIZE]; /* id of the last handover withdrawn; zeros: none */
	uint64_t events[STORE_EVENTS]; /* by kind of event: how many since the store is served */
};

struct stores {
	struct memory *memory;
	uint8_t daemon[PS_ID_SIZE];  /* the daemon's identity, sent with every reply */
	const struct access *access; /* NULL: everything is allowed */
	struct store *first;
	unsigned count;
	unsigned session_count;    /* sessions that have a store */
	uint64_t owner_timeout_ms; /* 0: none */
	/* For how long claims of an image together wait for a process that has the image and is
	 * about to end. */
	uint32_t holder_wait_ms;
	/* Other programs removed files, so memory_ops.used() is wrong until
	 * memory_ops.recount(). */
	bool miscounted;
	bool closing;                     /* the daemon is about to exit: no store may change */
	struct spill *spill;              /* NULL: no spill directory */
	struct used_spills *used_spills;  /* NULL: no state directory */
	struct freed_image *freed_images; /* images that are being freed outside of the loop */
	unsigned tears_seen;              /* ps_guards_torn() when torn images were last searched */
	void (*before_unmap)(void *arg, const struct piece *piece); /* NULL: none */
	void *before_unmap_arg;
	void (*on_event)(void *arg, const struct store_event_info *news); /* NULL: none */
	void *on_event_arg;
	uint64_t (*now_ns)(void); /* monotonic clock; NULL: time stands still */
	struct standby *standbys; /* list of all standbys */
	struct labels labels;
	struct copy_turn *copy_turns; /* copies that go on or wait, in the order of arrival */
	uint32_t copies_max;          /* how many may go on at a time; 0: any number */
};

/* store_copy_turn.c */
/* Ends the session's turn to copy, if it has one. */
void copy_turn_end(struct session *session);
/* Notes that the copy of a session with a turn goes on. */
void copy_turn_note_progress(struct session *session);
/* Notes what the owner of a session with a turn says that it has sent to mirrors. */
void copy_turn_take_report(struct session *session, const Perseas__ConfirmRequest *request);
void copy_turns_free(struct stores *stores);

/* store.c */
enum { ERRNO_TEXT = 80 };
/* Formats an errno as " (sentence)", or "" for 0. Returns text. */
const char *errno_text(char text[ERRNO_TEXT], int error);
/* Writes the sentence of a refusal to `why`. Returns -status. */
int refuse(struct why *why, Perseas__Status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct store *store_find(struct stores *stores, const char *name);
/* Returns the store with that name. Returns NULL with *ret and `why` set if no store has the name,
 * or if a later version wrote its image. */
struct store *store_find_served(struct stores *stores, const char *name, int *ret, struct why *why);
/* Like store_find_served(), but also refuses a damaged image. */
struct store *store_find_sound(struct stores *stores, const char *name, int *ret, struct why *why);
/* Like store_find_sound(), but also refuses if the daemon is about to exit. Begins a new reply. */
struct store *store_find_to_change(struct stores *stores, const char *name, int *ret,
                                   struct why *why);
/* Returns 0, or a refusal if the image is untouchable. */
int store_check_touchable(const struct store *store, struct why *why);
/* Adds an empty store to the table. Returns NULL if memory is out. */
struct store *store_insert(struct stores *stores, const char *name);
/* Closes the store's images, whose files stay, and frees the store. */
void store_delete(struct store *store);
/* Begins a new reply: frees what scratch_alloc() returned to this thread. */
void scratch_reset(void);
/* Allocates zeroed memory that is valid until the next scratch_reset(). Returns NULL if memory is
 * out. */
void *scratch_alloc(size_t size);
/* Makes a Slot message for a reply, all zero if index < 0. Returns NULL if memory is out. */
Perseas__Slot *scratch_slot(const struct ps_slot *slot, int index);
/* Returns 0, or a refusal if the daemon is about to exit. Begins a new reply. */
int stores_check_open(struct stores *stores, struct why *why);
bool same_id(ProtobufCBinaryData id, ProtobufCBinaryData other);
/* Makes a copy of the header without the store's key, which only an owner that claims the store may
 * see. The copy points into the header. */
void header_without_key(Perseas__Header *copy, const Perseas__Header *header);
/* Fills in an empty status. */
int store_fill_status(struct store *store, Perseas__StoreStatus *status, struct why *why);
/* Counts an event of the store and reports it to the callback of stores_on_event(). epoch and seq
 * are 0 if the event has none. */
void store_report(struct store *store, enum store_event event, const struct session *session,
                  uint64_t epoch, uint64_t seq);

/* store_header.c */
/* Writes a promise to the header. Returns false if memory is out. */
bool header_set_promise(Perseas__Header *header, uint64_t epoch, ProtobufCBinaryData owner);
/* Returns false if memory is out. */
bool header_add_segment(Perseas__Header *header, const Perseas__Segment *segment);
/* Returns the segment with this id, or NULL. */
Perseas__Segment *header_segment(const Perseas__Header *header, uint32_t id);
void header_remove_segment(Perseas__Header *header, size_t index);
/* Returns true if the segment was destroyed by the transaction of this slot or an earlier one. */
bool segment_is_destroyed(const Perseas__Segment *segment, const struct ps_slot *slot);
/* Removes segments that do not exist at the slot, because they were never published, are published
 * by a later transaction, or are destroyed. Clears the destruction of segments by later
 * transactions. Returns how many segments changed. */
unsigned header_prune(Perseas__Header *header, const struct ps_slot *slot);
/* Sets a field with the name of an identity: header->creator or header->sharer. NULL stands for
 * nobody. Returns false if memory is out. */
bool header_set_identity(char **field, const char *name);
void header_free(Perseas__Header *header);
/* Copies a header, to be changed and committed. Sets *edit to NULL on failure. */
int header_edit(const Perseas__Header *header, Perseas__Header **edit, struct why *why);
/* Returns true if the header names another boot of the host than the present one, or no boot. */
bool header_is_of_other_boot(const struct store *store, const Perseas__Header *header);
/* Returns true if the image's memory is unchanged since the boot in the header: a disk, which
 * outlasts a boot, may have lost the newest data. */
bool header_data_survives(const struct store *store, const Perseas__Header *header);
/* Returns true if the image has other files than those in which a daemon served it last. */
bool header_was_image_copied(const struct store *store, const Perseas__Header *header);
/* Records the files from which the image is served. */
void header_note_files(const struct store *store);
/* Makes `header` the store's header, with the present boot: first in the header's file, then in
 * store->header. Takes ownership of `header`, also on failure. */
int header_commit(struct store *store, Perseas__Header *header, struct why *why);
/* Returns the header that the session works on: that of the image, or of the rebuilt image. Returns
 * NULL if the session's rebuild failed. */
Perseas__Header *session_header(const struct session *session);
/* Replaces the header that session_header() returns by a changed copy, also in the file if that
 * header has a file. Takes ownership of `header`. */
int session_replace_header(struct session *session, Perseas__Header *header, struct why *why);

/* store_image.c */
/* Makes an image without pieces. */
void image_init(struct image *image);
/* Makes the zeroed pieces that `header` describes. On failure no piece is left. */
int image_make(struct store *store, const Perseas__Header *header, uint64_t generation,
               struct image *image, struct why *why);
/* Makes the zeroed piece of one region. */
int image_make_region(struct store *store, struct image *image, uint32_t region, uint64_t size,
                      struct why *why);
/* Opens the pieces that `header` describes and checks their sizes. On failure `text` has the
 * reason. */
int image_open(struct store *store, const Perseas__Header *header, struct image *image, char *text,
               size_t size);
/* Closes the image's pieces, whose files stay. */
void image_close(struct store *store, struct image *image);
/* Closes the image's pieces and removes their files. */
void image_remove(struct store *store, struct image *image);
void image_remove_region(struct store *store, struct image *image, uint32_t region);
/* Removes the pieces of segments that `header` does not list. */
void image_prune(struct store *store, struct image *image, const Perseas__Header *header);
/* Returns whether other processes can write to the image. Ignores the promise page, which they can
 * only read. */
enum memory_sharing image_sharing(const struct store *store, const struct image *image);
/* Fills in the addresses of the image's log and segments, for proto/image. */
void image_view(const struct image *image, struct ps_image *view);
/* Copies the newest valid commit slot. Returns its index, or -1 with *slot zeroed. */
int image_slot(const struct image *image, struct ps_slot *slot);
/* Writes the image's promise page: first the owner, then the epoch (I5). */
void image_write_promise(struct image *image, uint64_t epoch, ProtobufCBinaryData owner);
/* Returns the size that `header` gives a region, or 0 if it has no such region. */
uint64_t region_size(const Perseas__Header *header, uint32_t region);
enum { PIECE_NAME = 48 };
/* Formats the file name of a region's piece, such as "log.3". */
void piece_name(char name[PIECE_NAME], uint32_t region, uint64_t generation);
/* Removes all files of the store except the header and pieces of the image that `keep` describes.
 * NULL: removes everything. */
void pieces_sweep(struct store *store, const Perseas__Header *keep);

/* store_claim.c: checks whether the image's promise lets this owner claim it with this epoch (I5).
 * Returns 0, or a refusal with STALE_EPOCH or LIMIT. */
int promise_allows(const struct store *store, uint64_t epoch, ProtobufCBinaryData owner,
                   struct why *why);

/* store_load.c */
/* Refuses the store, without touching its image, because `what` of it could not be opened after
 * memory.h reported NO_MEMORY. */
void store_refuse_unread(struct store *store, const char *what);
struct name_list {
	char (*names)[PS_NAME_MAX + 1];
	size_t count;
	bool out_of_memory; /* the list is incomplete */
};
/* Adds a name to `list`, a struct name_list, if it is a valid store name. */
void name_list_add(void *list, const char *name);

/* store_file_names.c: checks whether a restart would find the image's files. Writes the header's
 * file again if only that is missing. Stores in store->restart_loss what is wrong. Returns true if
 * the image must be copied to new files and memory suffices for that. */
bool store_check_names(struct store *store);
/* store_file_names.c: returns true if the store's folder was renamed. No new folder may be made in
 * its place, because then the old one could not be renamed back. */
bool store_folder_is_renamed(const struct store *store);
/* store_file_names.c: returns the refusal of a change to a store whose files were renamed. */
int refuse_moved(const struct store *store, struct why *why);
/* store_file_names.c: returns true if files of the image were removed, so that no daemon can load
 * it. */
bool store_has_removed_files(const struct store *store);
/* store_file_names.c: checks whether the header may be written to its file. Sets *in_memory if it
 * must be kept only in this process, because the image's pieces were removed. Returns 0, or a
 * refusal with IO if the pieces were renamed. */
int header_check_files(const struct store *store, const Perseas__Header *header, bool *in_memory,
                       struct why *why);
/* store_claim.c: copies the image to new files, like a claim of an image that its old owner may
 * still write to, and leaves the store without an owner. The caller has checked that memory
 * suffices. */
int store_copy_to_new_files(struct store *store, struct why *why);

/* store_torn.c: returns true if the memory of the image, or of the rebuilt image, was truncated by
 * another process. Any thread may call it. */
bool store_is_torn(const struct store *store);
/* store_torn.c: checks whether the image is torn (store_is_torn()). If so, marks the store damaged,
 * ends its session, and returns true. */
bool store_notice_torn(struct store *store);

/* store_copy.c: copies the image while its old owner may write to it, to new pieces of the next
 * generation in `copy`. Sets *slot to the copy's commit slot, and *undone to whether later
 * transactions were undone in the copy. */
int image_copy(struct store *store, struct image *copy, struct ps_slot *slot, bool *undone,
               struct why *why);

/* store_session.c */
/* Makes the connection the session of the store's owner. */
void session_attach(struct store *store, struct session *session, uint64_t epoch,
                    ProtobufCBinaryData owner, bool shared, bool rdma);
/* Cuts the data paths of the store's session, ends its claim, and drops an unfinished rebuild. */
void session_detach(struct store *store);
/* Returns true if the session's owner is alive. Returns false for NULL. */
bool session_lives(const struct session *session);
/* Returns true if the session wants descriptors of the store's memory and has the right to share
 * it. Otherwise the session is served as over tcp. */
bool session_may_share(const struct session *session, const struct store *store, bool wanted);
/* Retires the promise in the promise page: an owner that still has the memory no longer finds its
 * own promise there, and stops. */
void promise_retire(struct store *store);
/* Removes the rebuilt image with its header. */
void rebuilt_drop(struct store *store);
/* Takes the rebuilt image from the store at once, and removes it in a job, outside of the loop. */
void rebuilt_free_later(struct store *store);
/* Returns a generation that no image of the store has, including those that are being freed. */
uint64_t store_next_generation(const struct store *store);
/* Forgets the process that had the store's memory (store->holder). */
void holder_drop(struct store *store);
/* Makes the grant for the session: its regions, token and what its fabrics add. */
int session_make_grant(struct session *session, Perseas__Grant **grant, struct why *why);
/* Returns the image that the session's data path writes to: the store's, or the rebuilt one. */
static inline struct image *session_image(const struct session *session)
{
	assert(session->store);
	return session->is_rebuilding ? &session->store->rebuilt : &session->store->image;
}

/* store_order.c */
/* Frees the reports of the session's owner and the order to it. */
void owner_reports_drop(struct store *store);
/* Stores the reports, counters and the order's result of an owner's Confirm. */
int owner_reports_update(struct store *store, const Perseas__ConfirmRequest *request,
                         struct why *why);
/* Returns the order that the store's owner must carry out, or NULL if there is none or it is
 * done. */
Perseas__Order *store_pending_order(const struct store *store);
/* Adds the owner's reports, and the order with a copy of its result, to a status. Returns false if
 * memory is out. */
bool owner_reports_fill_status(const struct store *store, Perseas__StoreStatus *status);

/* store_handover.c */
/* Forgets the store's handover. */
void handover_drop(struct store *store);
/* Returns the id of the handover that is in progress, or no bytes. */
ProtobufCBinaryData handover_id(struct store *store);
/* Records that the store's session is about to end. `released`: by a Release. */
void handover_record_end(struct store *store, bool released);
/* Records that a session of the store has begun. */
void handover_record_claim(struct store *store);
/* Records a Confirm of the session: it shows whether the next owner has opened the store. */
void handover_record_confirm(struct store *store);
/* Returns the handover that the session's owner must be told, or NULL if there is none or memory is
 * out. */
Perseas__Handover *handover_for_owner(struct store *store);
/* Adds the standbys and the handover to a status. Returns false if memory is out. */
bool handover_status(struct store *store, Perseas__StoreStatus *status);
/* Forgets that this session waits to own a store. */
void standby_forget(struct session *session);
/* Forgets all standbys. */
void standbys_forget(struct stores *stores);

/* store_quota.c: the functions that return int check a quota, and return 0 or a refusal that names
 * it. An identity is charged for the images that it created: those of stores, rebuilt ones, and
 * replaced ones that a process still has. */
/* Checks whether the identity `who` (NULL: unknown) may create a store of `bytes` bytes, in place
 * of the store `instead` (NULL: of none). */
int quota_check_create(struct stores *stores, const char *who, const struct store *instead,
                       uint64_t bytes, struct why *why);
/* Checks whether the store's image (is_rebuilt: its rebuilt image) may grow to `bytes` bytes. */
int quota_check_growth(const struct store *store, bool is_rebuilt, uint64_t bytes, struct why *why);
/* Checks whether the image may be copied while its old owner still has it. Does not count the image
 * itself, so a takeover is possible even if the image is all that the quota allows; it counts
 * images that were copied before. */
int quota_check_copy(const struct store *store, struct why *why);
/* Returns true if the store's files occupy more than was reserved, and its creator's quota or the
 * limit of the mirror is exceeded. */
bool quota_exceeded(const struct store *store);
/* Checks whether the session may claim the store, given the stores that its identity holds. */
int quota_check_claim(const struct session *session, const struct store *store, struct why *why);

/* Returns 0, or a refusal if the session holds no claim. Begins a new reply. */
int session_check_claim(struct session *session, struct why *why);

#endif
