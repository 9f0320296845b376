/*
 * store_private.h - what the files store*.c share.
 *
 *   store.c           the table of stores, status, digest
 *   store_view.c      every store, as who watches the daemon sees it
 *   store_header.c    headers: the only truth about an image
 *   store_image.c     the pieces of one generation of an image
 *   store_load.c      stores that were there before the daemon
 *   store_make.c      create, settle, abandon, drop
 *   store_claim.c     claims (I5)
 *   store_copy.c      copying a store that runs
 *   store_rebuild.c   images made beside, or anew; joining (I8, I9)
 *   store_segments.c  segments that come and go
 *   store_session.c   what a session holds, and how it ends
 *   store_host.c      where this daemon runs, and what it has left
 *   store_order.c     what a session's owner reports and is asked for
 *   store_watch.c     whether a store has got or lost its owner
 *   store_move.c      who waits to own a store, and its planned handover
 *   store_quota.c     how much an identity may have
 *   store_names.c     images whose files were removed or moved
 *   store_torn.c      images whose memory was truncated by an owner that has it
 *   store_spill.c     images written when the daemon ends
 *   store_unspill.c   images loaded from the spill when the daemon starts
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
struct grave;
struct handover;

/* How an image stood. */
struct stand {
	struct ps_slot slot;
	int index; /* -1: no slot was valid */
};

/* How the last session ended. */
struct parting {
	uint64_t epoch; /* of its owner; 0: none has ended, or that owner is back */
	uint64_t ns;    /* when */
	bool released;  /* by a Release */
	struct stand at;
};

struct store {
	struct stores *stores;
	struct store *next;
	char name[PS_NAME_MAX + 1];
	Perseas__Header *header; /* as in its file; NULL: it cannot be read */
	char damage[240];        /* why the image is refused, "" when it is sound */
	char astray[NAMES_TEXT]; /* why a restart would lose the image; "": its files are there */
	bool later;              /* refused since a later version wrote it: it stays as it is */
	bool on_disk;            /* with `later`: it is a spill, and memory has nothing of it */
	bool exceeds;            /* its owner is about to be cut off: it took more than its share */
	bool spilled;            /* what has the name of its spill is of this image, and no other */
	struct image image;
	Perseas__Header *beside_header; /* of an unfinished rebuild, else NULL */
	struct image beside;
	struct session *session;   /* of the owner, while it is connected */
	const struct job *job;     /* that works on it (jobs.h); NULL: none */
	struct board *board;       /* of the session; NULL: nothing is on it */
	struct holder *holder;     /* the process of an owner that left with the memory */
	uint32_t patience_ms;      /* for how long claims may still wait for its end */
	struct handover *handover; /* the last one that was asked for; NULL: none */
	struct parting parting;
	uint8_t withdrawn[PS_ID_SIZE]; /* the last handover that was taken back; all zero: none */
	uint64_t events[STORE_EVENTS]; /* how often each has happened since it is served */
};

struct stores {
	struct memory *memory;
	uint8_t daemon[PS_ID_SIZE];  /* the daemon's identity, which every answer has */
	const struct access *access; /* NULL: everybody may do everything */
	struct store *first;
	unsigned count;
	uint64_t owner_timeout_ms; /* 0: none */
	uint32_t patience_ms;      /* with a process that has an image and is about to end */
	bool miscounted;           /* files went that nobody told memory of */
	bool closing;              /* the daemon is about to end: nothing may change any more */
	struct spill *spill;       /* NULL: there is no spill directory */
	struct consumed *consumed; /* NULL: there is no state directory */
	struct grave *graves;      /* images beside of which the memory is being given back */
	unsigned tears;            /* ps_guard_tears() when torn images were last looked for */
	void (*leave)(void *arg, const struct piece *piece); /* NULL: nobody is to be told */
	void *leave_arg;
	void (*tell)(void *arg, const struct store_news *news); /* NULL: nobody is to be told */
	void *tell_arg;
	uint64_t (*now_ns)(void); /* NULL: time stands still */
	struct standby *standbys; /* that sessions told of */
	struct labels labels;
};

/* store.c */
/* What the system says of this errno, as " (sentence)"; of 0: "". */
enum { REASON_TEXT = 80 };
const char *reason_text(char text[REASON_TEXT], int error);
int refuse(struct why *why, Perseas__Status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct store *store_find(struct stores *stores, const char *name);
/* The store of that name; or NULL and *ret is set. */
struct store *store_named(struct stores *stores, const char *name, int *ret, struct why *why);
/* The same, where the image must be sound. */
struct store *store_sound(struct stores *stores, const char *name, int *ret, struct why *why);
/* The same, where the daemon must not be about to end either; starts a new reply. */
struct store *store_to_change(struct stores *stores, const char *name, int *ret, struct why *why);
/* 0, or a refusal: the image is of a later version. */
int store_check_later(const struct store *store, struct why *why);
struct store *store_insert(struct stores *stores, const char *name);
void store_delete(struct store *store);
void scratch_reset(void);
/* Zeroed memory until the next scratch_reset; NULL: out of memory. */
void *scratch_alloc(size_t size);
/* A slot for a reply; all zero with index < 0. NULL: out of memory. */
Perseas__Slot *scratch_slot(const struct ps_slot *slot, int index);
/* 0, unless the daemon is about to end; starts a new reply. */
int stores_check_open(struct stores *stores, struct why *why);
bool same_id(ProtobufCBinaryData id, ProtobufCBinaryData other);
/* Copies a header for anybody but its claimer: without the store's key. The copy points into the
 * header. */
void header_tell(Perseas__Header *told, const Perseas__Header *header);
/* Fills in what an empty status has to say of it. */
int store_fill_status(struct store *store, Perseas__StoreStatus *status, struct why *why);
/* Counts it, and tells. epoch and seq: 0: none. */
void store_tell(struct store *store, enum store_event event, const struct session *session,
                uint64_t epoch, uint64_t seq);

/* store_header.c */
/* Both return false when out of memory. */
bool header_promise(Perseas__Header *header, uint64_t epoch, ProtobufCBinaryData owner);
bool header_add_segment(Perseas__Header *header, const Perseas__Segment *segment);
Perseas__Segment *header_segment(const Perseas__Header *header, uint32_t id);
void header_remove_segment(Perseas__Header *header, size_t index);
/* Does the image that stands at this slot no longer have it? */
bool segment_is_dead(const Perseas__Segment *segment, const struct ps_slot *slot);
/* Removes what does not exist at the slot: never published, or only later, or dead. What was to die
 * later lives. How many were changed. */
unsigned header_prune(Perseas__Header *header, const struct ps_slot *slot);
/* Puts an identity's name into the creator or the sharer. NULL: nobody. False: out of memory. */
bool header_set_name(char **field, const char *name);
void header_free(Perseas__Header *header);
/* A copy to be changed and committed; NULL on failure. */
int header_edit(const Perseas__Header *header, Perseas__Header **edit, struct why *why);
/* Does it name another boot of the host than this one, or none? */
bool header_is_old(const struct store *store, const Perseas__Header *header);
/* Can the image of the boot that it names be served? */
bool header_lasts(const struct store *store, const Perseas__Header *header);
/* Does the image consist of other files than those in which a daemon served it last? */
bool header_is_copy(const struct store *store, const Perseas__Header *header);
/* Notes in which files it is served from now on. */
void header_note_files(const struct store *store);
/* Makes `header` the store's, in its file first, with the boot of this host. Takes it, also on
 * failure. */
int header_commit(struct store *store, Perseas__Header *header, struct why *why);
/* The header that the session works on: of the image, or of the one beside. NULL: its
 * rebuild failed. */
Perseas__Header *header_of(const struct session *session);
/* A changed copy of header_of() takes its place, in its file if it has one. Takes it. */
int header_replace(struct session *session, Perseas__Header *header, struct why *why);

/* store_image.c */
void image_init(struct image *image);
/* Makes the zeroed pieces that `header` describes. All or nothing. */
int image_make(struct store *store, const Perseas__Header *header, uint64_t generation,
               struct image *image, struct why *why);
int image_make_region(struct store *store, struct image *image, uint32_t region, uint64_t size,
                      struct why *why);
/* Opens them; every size must be as `header` says. text: what is wrong. */
int image_open(struct store *store, const Perseas__Header *header, struct image *image, char *text,
               size_t size);
void image_close(struct store *store, struct image *image);
void image_remove(struct store *store, struct image *image); /* and closes */
void image_remove_region(struct store *store, struct image *image, uint32_t region);
/* Removes the segments that `header` does not list. */
void image_prune(struct store *store, struct image *image, const Perseas__Header *header);
/* Who can still write to the image, but for the promise page, which nobody can? */
enum memory_whose image_whose(const struct store *store, const struct image *image);
void image_view(const struct image *image, struct ps_image *view);
/* The slot that counts. -1: none does, *slot is zero then. */
int image_slot(const struct image *image, struct ps_slot *slot);
/* Writes the promise page, owner first (I5). */
void image_promise(struct image *image, uint64_t epoch, ProtobufCBinaryData owner);
/* The size of a region by `header`, 0: it has no such region. */
uint64_t region_size(const Perseas__Header *header, uint32_t region);
enum { PIECE_NAME = 48 };
void piece_name(char name[PIECE_NAME], uint32_t region, uint64_t generation);
/* Removes every piece of the store that is not `keep`'s (NULL: all of them). */
void pieces_sweep(struct store *store, const Perseas__Header *keep);

/* store_claim.c, I5: may this owner have this epoch, by the promise of the image? 0, or
 * STALE_EPOCH or LIMIT. */
int promise_check(const struct store *store, uint64_t epoch, ProtobufCBinaryData owner,
                  struct why *why);

/* store_load.c */
struct name_list {
	char (*names)[PS_NAME_MAX + 1];
	size_t count;
	bool short_of; /* memory: not all names are there */
};
/* Adds a name to the struct name_list `list`, if it is one of a store. */
void note_name(void *list, const char *name);

/* store_names.c: looks whether the next daemon would find the image's files, puts back what needs
 * no copy, and notes in store->astray what is wrong. Returns true if the image must be copied to
 * new files, and can be. */
bool store_check_names(struct store *store);
/* store_names.c: is the folder elsewhere? It could not come back to where another one was made. */
bool store_is_moved(const struct store *store);
int refuse_moved(const struct store *store, struct why *why);
/* store_names.c: were files of the image removed, so that no daemon will find it? */
bool store_is_removed(const struct store *store);
/* store_names.c: may the header, which has a generation, be written? *in_memory: only the store
 * has it, as only this daemon has the pieces that it names. 0, or IO: they are elsewhere. */
int header_find_place(const struct store *store, const Perseas__Header *header, bool *in_memory,
                      struct why *why);
/* store_claim.c: copies the image to new files, as a claim would from an owner that still has it,
 * and leaves it without an owner. The caller has seen that there is room. */
int store_copy_aside(struct store *store, struct why *why);

/* store_torn.c: is it, or the image beside? Any thread's. */
bool store_is_torn(const struct store *store);
/* store_torn.c: is the image torn? If so the store is damaged from now on, and nobody's session. */
bool store_notice_torn(struct store *store);

/* store_copy.c: `copy` is the next generation, made by this; *slot is what it stands at and
 * *undone whether transactions after it were undone. */
int image_copy(struct store *store, struct image *copy, struct ps_slot *slot, bool *undone,
               struct why *why);

/* store_session.c */
void session_attach(struct store *store, struct session *session, uint64_t epoch,
                    ProtobufCBinaryData owner, bool shared, bool rdma);
/* Cuts the data paths and takes the claim away; forgets an unfinished rebuild. */
void session_detach(struct store *store);
/* Is this the session of an owner that lives? NULL: no. */
bool session_lives(const struct session *session);
/* Does a session that wants the memory itself get it? Else it is served as over tcp. */
bool session_shares(const struct session *session, const struct store *store, bool wanted);
/* What an owner that may still have the memory finds from now on is not its own promise. */
void promise_retire(struct store *store);
void beside_drop(struct store *store);
/* As beside_drop(), but beside the loop: the store has no image beside from now on. */
void beside_bury(struct store *store);
/* Of an image that is made now: no other image of the store has it, nor one that is being given
 * up, whose pieces still have their names. */
uint64_t store_next_generation(const struct store *store);
void holder_drop(struct store *store);
int session_grant(struct session *session, Perseas__Grant **grant, struct why *why);
/* The image that the session's data path leads to. */
static inline struct image *image_of(const struct session *session)
{
	return session->beside ? &session->store->beside : &session->store->image;
}

/* store_order.c */
void board_drop(struct store *store);
int board_tell(struct store *store, const Perseas__ConfirmRequest *request, struct why *why);
/* The order that is not over, or NULL. */
Perseas__Order *board_order(const struct store *store);
/* Adds what the owner told, and the order that it was given; the result is a copy that may be
 * changed. Returns false if there is no memory. */
bool board_status(const struct store *store, Perseas__StoreStatus *status);

/* store_move.c */
void handover_drop(struct store *store);
/* The id, or nothing where there is none. */
ProtobufCBinaryData handover_id(struct store *store);
/* The session is about to end, by a Release or otherwise; began; confirmed itself. */
void handover_ends(struct store *store, bool released);
void handover_claimed(struct store *store);
void handover_confirmed(struct store *store);
/* What the session's owner is to be told; NULL: nothing, or out of memory. */
Perseas__Handover *handover_asked(struct store *store);
/* Fills in standbys and handover. False: out of memory. */
bool handover_status(struct store *store, Perseas__StoreStatus *status);
/* The session waits for nothing any more; none does. */
void standby_forget(struct session *session);
void standbys_forget(struct stores *stores);

/*
 * store_quota.c: 0, or a refusal that names the quota. What an identity has on this mirror is what
 * it created: images, those beside them, and those that were replaced while a process has them.
 *
 * quota_create: may `who` (NULL: nobody that is known) have a store of so many bytes, in the place
 * of `instead` (NULL: of none)?
 */
int quota_create(struct stores *stores, const char *who, const struct store *instead,
                 uint64_t bytes, struct why *why);
/* May the image, or the one beside, have so many bytes? Its creator's quota says. */
int quota_grow(const struct store *store, bool beside, uint64_t bytes, struct why *why);
/* May the image be copied away from an owner that keeps it? The image itself does not count: a
 * takeover is possible also where it is all that the quota allows, but not again and again. */
int quota_copy(const struct store *store, struct why *why);
/* Do the files of the store take more than was reserved for them, and are its creator's quota, or
 * the limit of the mirror, exceeded? */
bool quota_exceeded(const struct store *store);
/* May the session hold the store, beside what its identity holds? */
int quota_claim(const struct session *session, const struct store *store, struct why *why);

/* 0 when the session holds a claim; starts a new reply. */
int session_check(struct session *session, struct why *why);

#endif
