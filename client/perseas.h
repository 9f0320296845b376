/*
 * perseas.h - transactions on memory that is mirrored on other nodes.
 *
 * The model, and most names, are those of PERSEAS (Papathanasiou and Markatos,
 * "Lightweight Transactions on Networks of Workstations", ICDCS'98, section 3).
 *
 * All functions that return int return 0 or a negative PERSEAS_E... code; perseas_message() then
 * returns a sentence about the error. On an error, output arguments are set to NULL or left
 * unchanged, and the store is unchanged, unless the function says otherwise. Strings that are
 * passed in are copied. Sizes are in bytes.
 *
 * Threads: many threads may use a handle at once, except that perseas_close must be the last call.
 * One thread at a time may use a transaction. Ranges of transactions that are open at the same time
 * must not overlap (perseas_threads.h; PERSEAS_CHECK_OVERLAP finds overlaps).
 *
 * Processes: a child of fork does not inherit mapped memory, and must not use a handle of its
 * parent.
 */
#ifndef PERSEAS_H
#define PERSEAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The codes of errors: name, number, text. */
#define PERSEAS_ERRORS(X)                                                                          \
	X(PERSEAS_EINVAL, -1, "an argument is not valid")                                          \
	X(PERSEAS_ENOMEM, -2, "this process is out of memory")                                     \
	X(PERSEAS_ESYSTEM, -3, "the operating system refused")                                     \
	X(PERSEAS_EUNREACHABLE, -4, "a mirror cannot be reached")                                  \
	X(PERSEAS_EPROTOCOL, -5, "a mirror sent an invalid message")                               \
	X(PERSEAS_EVERSION, -6, "a mirror speaks another version")                                 \
	X(PERSEAS_ENOSTORE, -7, "there is no such store")                                          \
	X(PERSEAS_EEXIST, -8, "the store exists already")                                          \
	X(PERSEAS_EBUSY, -9, "the store has a live owner")                                         \
	X(PERSEAS_EFENCED, -10, "another owner has taken the store over")                          \
	X(PERSEAS_EQUORUM, -11, "too few mirrors to know the newest state")                        \
	X(PERSEAS_EINDOUBT, -12, "the commit is applied here, but not yet held by enough mirrors") \
	X(PERSEAS_EBLOCKED, -13, "an earlier commit is in doubt")                                  \
	X(PERSEAS_EDAMAGED, -14, "an image failed its checks")                                     \
	X(PERSEAS_EMIRRORMEM, -15, "a mirror's memory limit is reached")                           \
	X(PERSEAS_ENOSEGMENT, -16, "there is no such segment")                                     \
	X(PERSEAS_ESIZE, -17, "the segment has another size")                                      \
	X(PERSEAS_EADDRESS, -18, "the segment's address is taken in this process")                 \
	X(PERSEAS_ERANGE, -19, "the range is not inside a mapped segment")                         \
	X(PERSEAS_EUNPUBLISHED, -20, "the segment is not published")                               \
	X(PERSEAS_ETOOBIG, -21, "the transaction is too large for the log")                        \
	X(PERSEAS_EENDED, -22, "the transaction has ended")                                        \
	X(PERSEAS_ECONFLICT, -23, "it conflicts with another open transaction")                    \
	X(PERSEAS_EUNDECLARED, -24, "memory was changed outside the declared ranges")              \
	X(PERSEAS_EROSTER, -25, "the mirrors given are not the store's")                           \
	X(PERSEAS_ELIMIT, -26, "a fixed limit is reached")                                         \
	X(PERSEAS_ESALVAGE, -27, "the store was opened for salvage only")                          \
	X(PERSEAS_ERDMA, -28, "a mirror cannot be reached over RDMA")                              \
	X(PERSEAS_EDENIED, -29, "a mirror's access rules do not allow it")                         \
	X(PERSEAS_ETLS, -30, "TLS with a mirror failed")                                           \
	X(PERSEAS_ETIMEOUT, -31, "it did not come to pass in the time given")                      \
	X(PERSEAS_ECANCELLED, -32, "the wait was cancelled")                                       \
	X(PERSEAS_EHEAP, -33, "the heap is damaged, or has another version")                       \
	X(PERSEAS_EOBJECT, -34, "no object of the heap begins there, or it has another type")      \
	X(PERSEAS_EEPOCH, -35, "the token is of another epoch")                                    \
	X(PERSEAS_EAGAIN, -36, "the call would block")                                             \
	X(PERSEAS_EUNFINISHED, -37, "the store's restore is not finished")

enum perseas_error {
	PERSEAS_OK = 0,
#define PERSEAS_ENUM(name, code, text) name = (code),
	PERSEAS_ERRORS(PERSEAS_ENUM)
#undef PERSEAS_ENUM
};

/* In C++ `perseas` is the namespace of <perseas.hpp>, so the structure has another name there. */
#ifdef __cplusplus
typedef struct perseas_handle perseas_t;
#else
typedef struct perseas perseas_t;
#endif
typedef struct perseas_tx perseas_tx_t;

/* Bits of perseas_options.flags. */
enum perseas_flag {
	PERSEAS_CREATE = 1,        /* create the store if no mirror has it and no other process
	                              creates it at the same time. Also creates it if all mirrors
	                              have lost it. To get ENOSTORE in that case, create the store
	                              once by perseas_create or the command, and open it without
	                              this flag. */
	PERSEAS_TAKEOVER = 2,      /* fence a live owner instead of returning EBUSY */
	PERSEAS_CHECK_OVERLAP = 4, /* set_range reports overlapping open transactions */
	PERSEAS_CHECK_WRITES = 8,  /* commit reports undeclared writes: it compares what was written
	                              with a second copy of every segment (perseas_track.h) */
	PERSEAS_SALVAGE = 16, /* claim and map only: no transactions, and no mirror is repaired */
	PERSEAS_CANCEL = 32   /* withdraw a change of the roster that an owner left unfinished,
	                         instead of completing it; EBUSY if it is decided, EQUORUM if the
	                         roster before it has fewer than W mirrors */
};

enum perseas_event_kind {
	PERSEAS_EVENT_MIRROR_DOWN = 1, /* a mirror that was live no longer takes transactions */
	PERSEAS_EVENT_MIRROR_LIVE,  /* a mirror is live; text says why if it is not reached over the
	                               best fabric. When that fabric works again, DOWN and then LIVE
	                               follow. */
	PERSEAS_EVENT_RESYNC_BEGUN, /* a copy to a mirror begins; the text says what is copied, and
	                               why */
	PERSEAS_EVENT_RESYNC_DONE,  /* the copy is complete; MIRROR_LIVE follows */
	PERSEAS_EVENT_RESYNC_BROKEN, /* the copy broke off, and will be tried again */
	PERSEAS_EVENT_IN_DOUBT,      /* a commit is in doubt, and none was before */
	PERSEAS_EVENT_DURABLE, /* W mirrors hold every commit: no commit is in doubt any more */
	PERSEAS_EVENT_FENCED,  /* another owner has the store: close the handle */
	PERSEAS_EVENT_ROSTER,  /* a change of the roster took effect, and is recorded */
	PERSEAS_EVENT_RENEWED, /* this owner has claimed its mirrors again, and lost nothing; text
	                          says why */
	PERSEAS_EVENT_DENIED,  /* the access rules of so many mirrors refuse this owner that no
	                          commit can succeed; mirror and text name one of them. MIRROR_LIVE
	                          follows when the rules allow it again. */
	PERSEAS_EVENT_MIRROR_LAGS,  /* a mirror cannot keep up, and commits wait for it. Reported
	                               again only after 10 s without such a wait. */
	PERSEAS_EVENT_WHOLE,        /* PERSEAS_RECOVERY_ON_DEMAND: all mapped memory is here */
	PERSEAS_EVENT_MEMORY_WAITS, /* memory is missing, and no page arrived for a second: no
	                               mirror sends it, or this host has no memory for it */
	PERSEAS_EVENT_HANDOVER,   /* an operator wants the standby that text names to own the store
	                             next (perseas move): end open transactions, close, and open
	                             again only when the store has no owner */
	PERSEAS_EVENT_EXPIRES,    /* a certificate or revocation list expires soon, here or on a
	                             mirror; reported daily, when it becomes urgent, and when it
	                             expires */
	PERSEAS_EVENT_MEMORY_LOST /* so many mirrors lost their memory that none of them can get a
	                             new image (I9); text says how to save what is left */
};

/* When the contents of segments are read: perseas_options.recovery. */
enum perseas_recovery {
	PERSEAS_RECOVERY_READ_FIRST, /* perseas_map returns when the whole segment has been read */
	/*
	 * perseas_map returns at once. A page is fetched when the application touches it. The other
	 * pages are fetched in the background, at most fetch_rate bytes a second: first the pages
	 * that the newest transactions changed, as far as the newest 256 KiB of a mirror's log
	 * tell, then the rest.
	 *
	 * An access to a missing page waits until a mirror has sent it, without a limit. If another
	 * owner takes the store over before that, the access ends in SIGBUS; the new owner's state
	 * is never shown. perseas_set_range waits for its range in the same way, and returns
	 * PERSEAS_EFENCED in that case.
	 *
	 * A system call that accesses missing memory waits, too, if the process may handle the
	 * kernel's faults (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd=1). Otherwise it fails
	 * with EFAULT, and perseas_report says so. on_event must not touch memory that may be
	 * missing, and no code may discard pages (madvise).
	 *
	 * Needs Linux 6.6 and userfaultfd(2); without them memory is read first. Cannot be combined
	 * with PERSEAS_SALVAGE. Over TLS, a thread that touches missing memory while it holds a
	 * lock of malloc or OpenSSL (in a signal handler) may wait for ever.
	 */
	PERSEAS_RECOVERY_ON_DEMAND
};

/* An event of an open store. Later versions may append members and kinds. */
struct perseas_event {
	int kind;        /* enum perseas_event_kind */
	uint32_t missed; /* events before this one that were dropped because on_event did not return
	                    for too long */
	uint64_t seq; /* the last transaction committed here at that time; for IN_DOUBT and DURABLE:
	                 the transaction that was in doubt */
	char mirror[256]; /* address of the mirror, or "" if the event is not about a mirror */
	char text[256];   /* a sentence for people, never empty */
};

/* Returns the name of a kind of event, such as "mirror-down"; "unknown" for a kind that this
 * version does not know. Never NULL; the text is static. Any thread. */
const char *perseas_event_name(int kind);

/*
 * Options of perseas_open and perseas_create. Initialise with PERSEAS_OPTIONS_INIT, then change
 * what is needed. 0 means the default that the comment names. The library copies the options.
 * "create:", "open:" and "standby:" name the calls that use a member; others ignore it.
 */
struct perseas_options {
	size_t size;                 /* sizeof(struct perseas_options), for later versions */
	uint32_t flags;              /* of enum perseas_flag */
	uint32_t acks;               /* create: W, 1 .. mirrors; 0: a majority */
	uint64_t log_size;           /* create: bytes of the undo log on each mirror, 4 KiB .. 64
	                                GiB, rounded up to 4 KiB; 0: 16 MiB. A transaction's undo
	                                record may take half of it, and 1 GiB at most. */
	uint64_t ring_size;          /* bytes of the owner's ring of sent transactions, from 64 KiB;
	                                0: 64 MiB. A transaction may take a quarter of it. */
	uint32_t connect_timeout_ms; /* for one round of answers from the mirrors, or for the next
	                                part of a copy; 0: 3000. perseas_open waits longer for a
	                                claim that it needs, up to open_timeout_ms. */
	uint32_t commit_timeout_ms;  /* a commit that takes longer is in doubt; 0: 5000 */
	uint32_t open_timeout_ms;    /* for perseas_open as a whole, except copying; 0: 15000 */
	uint32_t spin_us;      /* how long a commit spins before it sleeps, unless other threads
	                          also wait; 0: 50. UINT32_MAX: it sleeps at once. */
	uint64_t accept_epoch; /* the epoch of the state that an operator accepts although fewer
	                          than R mirrors answered; 0: none */
	uint64_t accept_seq;   /* the last transaction of that state */
	uint64_t resync_rate;  /* bytes a second, at most, for copying a whole image to a mirror
	                          while transactions go on; 0: no limit */
	/*
	 * open: a function that the library calls for each event of the store; NULL: none. A thread
	 * of the library calls it, with signals blocked and no lock held, for one event at a time
	 * and in their order. *event is valid until the function returns.
	 *
	 * The function may call perseas_stat, perseas_mirror_stat, perseas_latency and functions
	 * that take no handle. Any other call with this handle may never return, and neither may a
	 * wait for a thread that makes such a call. While the function runs, no mirror is
	 * reconnected or copied to, and after a while the mirrors take this owner for dead. So it
	 * should pass the event on, and return. perseas_close waits for it to return, and does not
	 * call it afterwards; the last events before the close may be lost. A handle that is opened
	 * for salvage has no events.
	 */
	void (*on_event)(void *arg, const struct perseas_event *event);
	void *event_arg; /* the first argument of on_event */
	/*
	 * Paths of PEM files: a certificate with all between it and its CA, its key, and the CA of
	 * the mirrors' certificates. Set all three or none. With them, every connection over tcp
	 * uses TLS 1.3, with certificates of both ends. NULL: PERSEAS_TLS_CERT, PERSEAS_TLS_KEY and
	 * PERSEAS_TLS_CA in the environment; without these, connections are plain text. When the
	 * handle reconnects to a mirror it reads files that have changed.
	 */
	const char *tls_cert;
	const char *tls_key;
	const char *tls_ca;
	uint32_t pace_ms; /* how long a commit waits, at most, for a mirror that lags by half of the
	                     ring, before that mirror is dropped; 0: 100. UINT32_MAX: it does not
	                     wait. perseas_nowait.h says how long a commit with PERSEAS_NOWAIT
	                     waits. After the first such commit, the time for all others restarts
	                     whenever the mirror makes progress. */
	/* With the three files above: path of a PEM file with revocation lists. It must have the
	 * list of every CA between a mirror's certificate and tls_ca; otherwise no mirror can be
	 * connected to. NULL: PERSEAS_TLS_CRL in the environment; without that, revocation is not
	 * checked. */
	const char *tls_crl;
	uint32_t recovery;   /* open: enum perseas_recovery; 0: PERSEAS_RECOVERY_READ_FIRST */
	uint64_t fetch_rate; /* PERSEAS_RECOVERY_ON_DEMAND: bytes a second, at most, for fetching
	                        memory in the background; 0: no limit */
	/* open: a mirror that is silent for this many milliseconds, at least 100, is taken for
	 * dead: commits go on with the others, and the mirror is used again when it answers. In
	 * each quarter of this time it is asked for a sign of life. A mirror that is stopped,
	 * without power or cut off is detected within twice this time. A request that it leaves
	 * unanswered is also given up after connect_timeout_ms. 0: 3000. UINT32_MAX: the mirror is
	 * not asked. */
	uint32_t mirror_timeout_ms;
	/* standby: when the store has no owner, this standby waits 250 ms times this number before
	 * it opens the store; standbys with a smaller number go first. 0: it does not wait. */
	uint32_t order;
	/* standby: its name in `perseas move`, of the characters that a store's name may have;
	 * order is then at most 100. NULL: nothing can be handed over to it. */
	const char *name;
	/* standby: 1: while it waits it keeps a copy of the store's memory, so that perseas_map
	 * need not read that from mirrors (perseas_standby.h) */
	uint32_t warm;
	uint64_t warm_rate; /* standby: bytes a second, at most, that it reads for this copy; 0: 64
	                       MiB */
	uint32_t flush_within_ms; /* open: how old a commit with PERSEAS_NOWAIT may get, in
	                             milliseconds, before W mirrors hold it (perseas_nowait.h); 0:
	                             no bound */
	/* open: for how many microseconds, up to a second, a commit with PERSEAS_NOWAIT may be held
	 * back, to be sent together with later ones (perseas_nowait.h); 0: it is sent at once */
	uint32_t gather_us;
	uint32_t gather_bytes; /* bytes of the ring that transactions which are held back may take,
	                          from 1 KiB to a quarter of the ring; 0: 64 KiB */
};

#define PERSEAS_OPTIONS_INIT                                                                       \
	{                                                                                          \
		sizeof(struct perseas_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, \
			NULL, NULL, 0, NULL, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0                       \
	}

/* Returns the library's version, "major.minor.patch". Never NULL; the text is static. Any
 * thread. */
const char *perseas_version(void);

/* Returns the text of an error code; never NULL; the text is static. Any thread. */
const char *perseas_strerror(int code);

/* Returns the name of an error code, such as "PERSEAS_EBUSY"; "PERSEAS_OK" for 0. Never NULL; the
 * text is static. Any thread. */
const char *perseas_error_name(int code);

/*
 * Returns the sentence about the calling thread's last error on this handle. With NULL: about its
 * last failed perseas_open, perseas_create, perseas_close or call for a standby
 * (perseas_standby.h). Never NULL. The library owns the text, which is valid until the thread's
 * next call.
 */
const char *perseas_message(const perseas_t *p);

/*
 * Creates a store on every mirror of the list, and does not open it. All mirrors must answer, and
 * none may have the store (I6).
 *
 * mirrors is a comma-separated list of 1 to 16 addresses: "host:port" (RDMA if both ends have it,
 * else TCP), "rdma://host:port" (RDMA only), "tcp://host:port", "unix:///path" (shared memory, same
 * host). The default port is 7170, and "unix://" means unix:///run/perseas/socket. Or it names a
 * list, which each call looks up: "@NAME" is a line "NAME LIST" in ~/.config/perseas/clusters or
 * /etc/perseas/clusters, and "srv://DOMAIN" stands for SRV records in the DNS (operating.md). store
 * has 1 to 63 characters of A-Z a-z 0-9 . _ - and does not begin with a dot. options may be NULL.
 * PERSEAS_RDMA=off in the environment switches RDMA off.
 *
 * If several processes create the same store at the same time, one of them succeeds, and the others
 * get EEXIST; the call tries for open_timeout_ms. After an error no mirror serves the store: what
 * was created is withdrawn, or stays `creating` on a mirror that broke, until a later create
 * withdraws it. There is one exception: EUNREACHABLE with a message that says that the outcome is
 * not known. Then the first mirror of the list decides, and it did not answer: create the store
 * again, or open it.
 *
 * Errors: EINVAL, ENOMEM, ESYSTEM (here, or a mirror's files), EUNREACHABLE, EPROTOCOL, EVERSION,
 * ETLS, EEXIST, EDAMAGED (a mirror has a damaged image of that name), EMIRRORMEM, ELIMIT, EDENIED,
 * ERDMA (an address asks for RDMA, and one end has none).
 */
int perseas_create(const char *store, const char *mirrors, const struct perseas_options *options);

/*
 * Opens a store (PERSEAS_init, section 3): claims it, fences the previous owner, chooses the newest
 * state, rolls back the unfinished transaction, and makes that state this owner's on W mirrors (I5
 * to I7). Mirrors that are behind, ahead or empty are brought to this state before the call returns
 * if that takes little, or if they are needed for W, and otherwise by a thread of the library
 * afterwards. It also asks members of the store's roster that the list does not name, so that a
 * list may be older than a change of the roster.
 *
 * store, mirrors and options are as for perseas_create. The caller owns *p until perseas_close; *p
 * is NULL on an error. With RDMA, the ring of options.ring_size is registered: RLIMIT_MEMLOCK must
 * allow that and 1 MiB more. A mirror at rdma:// that RDMA does not reach counts as missing, and
 * the report says why.
 *
 * Errors: EINVAL, ENOMEM, ESYSTEM, EUNREACHABLE (no mirror answers, or sessions with mirrors broke
 * again and again although no other process claimed the store), EPROTOCOL, EVERSION, ENOSTORE,
 * EBUSY (a live owner was seen for half a second; nothing was fenced), EQUORUM (the message names
 * the missing mirrors and the newest state seen), EUNFINISHED (a restore is not finished; nothing
 * was fenced), EDAMAGED (only damaged images, or different segments with the newest transaction),
 * ERDMA (every address asks for RDMA, and no mirror can be reached over it), ETLS (a file of the
 * options cannot be used, or every mirror and this process disagree about TLS), EROSTER (two stores
 * of that name), EFENCED (other processes claimed it again and again meanwhile), EDENIED (no
 * mirror's access rules allow it), ELIMIT (no mirror's quotas allow it, or every mirror promised an
 * epoch that no claim can follow: perseas recover --help), EMIRRORMEM (with PERSEAS_CREATE).
 */
int perseas_open(const char *store, const char *mirrors, const struct perseas_options *options,
                 perseas_t **p);

/*
 * Returns a text on what the open found: the state of each mirror, which state it chose and why,
 * and which mirrors it repaired. Never NULL. The library owns the text, which is valid until
 * perseas_close.
 */
const char *perseas_report(const perseas_t *p);

/*
 * Maps a segment at its recorded address (PERSEAS_malloc, section 3). If the segment exists, its
 * contents are read from a mirror, and size must be 0 or the segment's size; perseas_segment_grow
 * makes a published segment larger. If it does not exist, it is created on every mirror, filled
 * with zeros, and exists for later owners only after perseas_publish.
 *
 * The rules for the name of a segment are those for a store's name; a new segment's name must not
 * end with .grown.NUMBER. size is at most 1 TiB. *addr is page-aligned and valid until
 * perseas_unmap or perseas_close; NULL on an error. For a segment that is mapped already, the call
 * returns the same address. Waits for transactions that are being sent; other commits wait
 * meanwhile.
 *
 * Errors: EINVAL, ENOMEM, ENOSEGMENT (size is 0, and there is no such segment), ESIZE, EADDRESS
 * (something else is at the address, or perseas_map_at mapped the segment at another one),
 * EMIRRORMEM (a mirror's memory or a quota), EUNREACHABLE (fewer than W mirrors created it, or no
 * mirror is left to read it from), EFENCED, EBLOCKED, ELIMIT (128 segments, here or on a mirror),
 * ESALVAGE (the store is open for salvage, and has no such segment).
 */
int perseas_map(perseas_t *p, const char *segment, size_t size, void **addr);

/*
 * Sends the first contents of all mapped segments that are not yet published to the mirrors
 * (PERSEAS_init_remote_db, section 3). One transaction publishes all of them together. The
 * application must not change them meanwhile, and commits wait. Returns 0 if there are none.
 *
 * Errors: EINVAL, EINDOUBT (the segments are published here, and W mirrors did not answer in time),
 * EBLOCKED, EFENCED, ENOMEM, ESALVAGE, EUNREACHABLE (fewer than W mirrors received the contents;
 * nothing is published).
 */
int perseas_publish(perseas_t *p);

/*
 * Begins a transaction (PERSEAS_begin_transaction, section 3). perseas_threads.h and
 * perseas_track.h describe the flags. The caller owns *tx until perseas_commit or perseas_abort
 * ends it; *tx is NULL on an error. Sends nothing.
 *
 * Errors: EINVAL, ENOMEM, EBLOCKED (a commit is in doubt), EFENCED, ESALVAGE, ECONFLICT.
 */
int perseas_begin(perseas_t *p, unsigned flags, perseas_tx_t **tx);

/*
 * Declares that the transaction may change len bytes at addr (PERSEAS_set_range, section 3). Call
 * it before changing them: it saves their contents for abort and roll-back. Ranges of one
 * transaction may overlap; each byte is saved once. Does nothing if len is 0. Sends nothing.
 *
 * Errors: EINVAL, EENDED, ERANGE (not wholly inside one mapped segment), EUNPUBLISHED, ETOOBIG
 * (half of the log, 1 GiB, or a quarter of the ring), ENOMEM, ECONFLICT (PERSEAS_CHECK_OVERLAP),
 * EFENCED (memory of the range is missing: PERSEAS_RECOVERY_ON_DEMAND). An error leaves the
 * transaction unchanged.
 */
int perseas_set_range(perseas_tx_t *tx, const void *addr, size_t len);

/*
 * Commits a transaction (PERSEAS_commit_transaction, section 3): returns 0 when W mirrors hold it.
 * Takes one network round trip. If mirrors do not answer, it waits for commit_timeout_ms. While
 * another thread maps, publishes or unmaps, it waits for that first. flags is 0, or says that the
 * commit does not wait (perseas_nowait.h).
 *
 * After 0, EINDOUBT and EFENCED the transaction has ended. EINDOUBT: it is applied here, and W
 * mirrors did not answer in time; perseas_flush waits for them. EFENCED: another owner has the
 * store. If the transaction was sent before this was noticed, its outcome is unknown; otherwise its
 * changes are undone here.
 *
 * After EBLOCKED, ENOMEM, EUNDECLARED, ETOOBIG (PERSEAS_TRACK) and EINVAL nothing was sent, and the
 * transaction is still open. EBLOCKED has three reasons: an earlier commit is in doubt; for
 * commit_timeout_ms the mirrors could not be claimed again from another owner that is gone; or for
 * so long too few mirrors completed what fills half of the ring (perseas_nowait.h). EUNDECLARED:
 * PERSEAS_CHECK_WRITES found a change outside the declared ranges. EENDED: the transaction had
 * ended before.
 */
int perseas_commit(perseas_tx_t *tx, unsigned flags);

/*
 * Restores every declared byte (PERSEAS_abort_transaction, section 3) and ends the transaction.
 * Sends nothing and waits for no mirror. It works in every state of the mirrors, also while memory
 * is missing (PERSEAS_RECOVERY_ON_DEMAND), and after another owner took the store over.
 *
 * Errors: EINVAL, EENDED.
 */
int perseas_abort(perseas_tx_t *tx);

/*
 * Waits until W mirrors hold every commit, for at most commit_timeout_ms. Other threads may go on.
 * 0 does not prove that this process still owns the store: perseas_confirm does.
 * Errors: EINVAL, EINDOUBT (fewer than W mirrors hold every commit), EFENCED (the outcome of
 * commits that were in doubt stays unknown).
 */
int perseas_flush(perseas_t *p);

enum perseas_mirror_state {
	PERSEAS_MIRROR_DOWN,      /* not connected; the library tries again */
	PERSEAS_MIRROR_REPLAYING, /* connected again, and receiving what it missed */
	PERSEAS_MIRROR_LIVE,      /* receives transactions */
	PERSEAS_MIRROR_STALE,     /* missed more than the ring holds; will be sent what changed */
	PERSEAS_MIRROR_FENCED, /* promised to another owner; claimed again if that owner is gone and
	                          adopted nothing */
	PERSEAS_MIRROR_LOST,   /* has lost its image; will get a new one (I9) */
	PERSEAS_MIRROR_RESYNCING, /* receives what changed, or everything; transactions go on */
	PERSEAS_MIRROR_REMOVED    /* not in the roster, or no longer */
};

/* Returns the name of a mirror's state, such as "live". Never NULL; the text is static. Any thread.
 */
const char *perseas_mirror_state_name(enum perseas_mirror_state state);

struct perseas_mirror_stat {
	char address[256];
	char fabric[8]; /* "rdma", "tcp", "shm" */
	enum perseas_mirror_state state;
	uint32_t copy_place;   /* place in its daemon's line of those that wait for a copy, from 1;
	                          0: it does not wait */
	uint64_t seq;          /* the last transaction that the mirror is known to hold */
	uint64_t resync_done;  /* RESYNCING: bytes copied so far; else 0 */
	uint64_t resync_total; /* RESYNCING: all bytes to copy, once known; else 0 */
	uint64_t resync_rate;  /* RESYNCING: bytes per second lately; 0: unknown */
	uint64_t resync_ms;    /* RESYNCING: how long the rest takes at that rate; 0: unknown */
	char resync_whole[16]; /* RESYNCING: why everything is copied, such as "lost"; else "" */
	char trouble[256]; /* why the mirror is not live, or why a live mirror is not reached over
	                      the best fabric of both ends; else "" */
};

struct perseas_stat {
	uint64_t epoch;
	uint64_t seq;            /* the last transaction committed here */
	uint64_t durable_seq;    /* the last transaction that W mirrors hold */
	uint32_t mirrors;        /* number of mirrors, for perseas_mirror_stat */
	uint32_t acks;           /* W */
	uint32_t live;           /* mirrors in state LIVE */
	uint32_t in_doubt;       /* 1 if a commit is in doubt, else 0 */
	uint64_t commits;        /* commits that returned 0 */
	uint64_t aborts;         /* aborted transactions */
	uint64_t bytes_sent;     /* bytes sent for transactions, to all mirrors together */
	uint64_t reconnects;     /* sessions that were re-established */
	uint64_t replayed;       /* transactions that were sent again after that */
	uint64_t dropped;        /* mirrors dropped because they lagged */
	uint64_t log_laps;       /* times that the log on the mirrors wrapped around */
	uint64_t mended_forward; /* mirrors that received at open the transactions that they
	                            missed */
	uint64_t mended_delta;   /* mirrors repaired at open by comparing both logs */
	uint64_t mended_whole;   /* mirrors that were needed for W, and copied whole at open */
	uint64_t resyncs;        /* mirrors copied to while transactions went on */
	uint64_t resync_bytes;   /* bytes that were copied to mirrors for that, also in vain */
	uint64_t allocations;    /* memory allocations by begin, set_range and commit */
	uint64_t range_bytes;    /* changed bytes that commits sent; each counts once a commit */
	uint64_t doubts;         /* commits that returned EINDOUBT */
	uint64_t timed;          /* commits that were timed (perseas_latency) */
	uint64_t latency_p50_ns; /* estimates, like the next two; 0: no commit was timed yet */
	uint64_t latency_p99_ns;
	uint64_t latency_p999_ns;
	uint64_t latency_max_ns; /* the longest time, exact */
	uint64_t renewals;       /* times the store was claimed again while it was open */
	uint64_t paced;          /* commits that waited for a mirror that could not keep up */
	uint64_t paced_ns;       /* time of these waits, together */
	uint64_t missing;        /* mapped bytes that are not yet here, approximately */
	uint64_t fetched;        /* bytes that arrived after perseas_map had returned */
	uint64_t faults;         /* accesses to missing memory */
	uint64_t open;           /* open transactions (perseas_open_transactions) */
	uint64_t saved_within;   /* bytes that a transaction declared more than once; each is sent
	                            once */
	uint64_t saved_between;  /* bytes not sent because a later transaction of the same group
	                            changed them again (gather_us) */
	uint64_t gathered;       /* transactions that were held back */
	uint64_t groups;         /* records in which these were sent */
};

/* Fills in *stat with the handle's figures, counted since the store was opened. Errors: EINVAL. */
int perseas_stat(perseas_t *p, struct perseas_stat *stat);

/* Fills in *stat with the figures of one mirror; index is 0 to perseas_stat.mirrors - 1. Errors:
 * EINVAL (also: index is too large). */
int perseas_mirror_stat(perseas_t *p, unsigned index, struct perseas_mirror_stat *stat);

struct perseas_segment_info {
	char name[64];
	uint64_t size; /* bytes, including all parts that it has grown by */
	void *address; /* recorded address of its first byte */
	int mapped;    /* 1: it is mapped in this process */
	int published; /* 1: it is published; 0: mapped, and not yet published */
};

/* Fills in *info for the segment with this index in the store, from 0. A segment that has grown has
 * one index. Errors: EINVAL, ENOSEGMENT (index is beyond the last). */
int perseas_segment_at(perseas_t *p, unsigned index, struct perseas_segment_info *info);

/* Fills in *info for the segment of this name. Errors: EINVAL, ENOSEGMENT (it is neither in the
 * store nor mapped). */
int perseas_segment(perseas_t *p, const char *name, struct perseas_segment_info *info);

/* Sets a function that perseas_open and perseas_map call while they copy, in the thread that called
 * them: `what` is being copied, and `done` of `total` bytes are copied. NULL: none. The setting is
 * for the whole process; change it only while no other thread uses the library. */
void perseas_set_progress(void (*progress)(void *arg, const char *what, uint64_t done,
                                           uint64_t total),
                          void *arg);

/*
 * Unmaps a segment, which stays in the store. A segment that was not published is deleted on the
 * mirrors. No open transaction may have ranges in it. Waits for transactions that are being sent.
 *
 * Errors: EINVAL, ERANGE (addr is not the address of a mapped segment), ECONFLICT (an open
 * transaction has ranges in it), ENOMEM.
 */
int perseas_unmap(perseas_t *p, void *addr);

/*
 * Waits until no mapped memory is missing (PERSEAS_RECOVERY_ON_DEMAND), for at most timeout_ms;
 * negative: without a limit.
 *
 * Errors: EINVAL, EUNREACHABLE (timed out; the message says how much is missing), EFENCED.
 */
int perseas_wait_whole(perseas_t *p, int64_t timeout_ms);

/*
 * Makes len bytes at addr the next to be fetched in the background, and does not wait for them.
 * Does nothing for bytes that are here already, or not inside one mapped segment. Errors: EINVAL.
 */
int perseas_prefetch(perseas_t *p, const void *addr, size_t len);

/*
 * Ends the session, unmaps all segments, and frees the handle and its transactions; open
 * transactions are not committed. Like perseas_flush, it waits until W mirrors hold all commits
 * with PERSEAS_NOWAIT. It does not wait for a commit that is in doubt: call perseas_flush before.
 * Mirrors that are a little behind get half a second to catch up; a mirror that is being copied to
 * stays behind, until the next owner or perseas recover goes on with it. p may be NULL.
 * Errors: EINDOUBT (commits with PERSEAS_NOWAIT may be lost: W mirrors do not hold all of them),
 * EFENCED (the outcome of such commits is unknown): the handle is freed. EINVAL (in a child of
 * fork): the handle is unchanged.
 */
int perseas_close(perseas_t *p);

#ifdef __cplusplus
}
#endif

#include "perseas_heap.h"
#include "perseas_latency.h"
#include "perseas_nowait.h"
#include "perseas_roster.h"
#include "perseas_segments.h"
#include "perseas_standby.h"
#include "perseas_threads.h"
#include "perseas_track.h"

#endif
