/*
 * perseas.h - transactions on memory that is mirrored on other nodes.
 *
 * The model, and most names, are those of PERSEAS (Papathanasiou and Markatos,
 * "Lightweight Transactions on Networks of Workstations", ICDCS'98, section 3).
 *
 * All functions that return int return 0 or a negative PERSEAS_E… code, and
 * perseas_message() returns the sentence that goes with it. On an error, output
 * arguments are set to NULL or left as they were, and the store is unchanged, unless the
 * function says otherwise. Strings that are passed in are copied; sizes are in bytes.
 *
 * Threads: many threads may use a handle at once. perseas_close is the exception: it must
 * be the last call. One thread at a time may use a transaction. Ranges of transactions that are
 * open at the same time must not overlap (perseas_threads.h; PERSEAS_CHECK_OVERLAP finds them).
 *
 * Processes: a child does not inherit mapped memory by fork, and must not use a handle of
 * its parent.
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
	X(PERSEAS_EPROTOCOL, -5, "a mirror sent what is not understood")                           \
	X(PERSEAS_EVERSION, -6, "a mirror speaks another version")                                 \
	X(PERSEAS_ENOSTORE, -7, "there is no such store")                                          \
	X(PERSEAS_EEXIST, -8, "the store is there already")                                        \
	X(PERSEAS_EBUSY, -9, "the store has a live owner")                                         \
	X(PERSEAS_EFENCED, -10, "another owner has taken the store over")                          \
	X(PERSEAS_EQUORUM, -11, "too few mirrors to know the newest state")                        \
	X(PERSEAS_EINDOUBT, -12, "the commit is applied here, but not yet held by enough mirrors") \
	X(PERSEAS_EBLOCKED, -13, "an earlier commit is in doubt")                                  \
	X(PERSEAS_EDAMAGED, -14, "an image does not pass its checks")                              \
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
	X(PERSEAS_EHEAP, -33, "the heap is damaged, or of another version")                        \
	X(PERSEAS_EOBJECT, -34, "it is no object of the heap, or one of another type")             \
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
	PERSEAS_CREATE = 1,        /* create the store if no mirror has it and nobody else
	                              creates it at the same time. This also creates it if all
	                              mirrors have lost it. To get ENOSTORE then, make the store
	                              once by perseas_create or the command, and open without. */
	PERSEAS_TAKEOVER = 2,      /* fence a live owner instead of returning EBUSY */
	PERSEAS_CHECK_OVERLAP = 4, /* set_range reports overlapping open transactions */
	PERSEAS_CHECK_WRITES = 8,  /* commit reports undeclared writes: it compares what was written
	                              with a second copy of every segment (perseas_track.h) */
	PERSEAS_SALVAGE = 16,      /* claim and map only: no transactions, nothing is mended */
	PERSEAS_CANCEL = 32        /* take back a change of the roster that an owner left
	                              unfinished, and do not complete it; EBUSY if decided,
	                              EQUORUM if the roster before it has fewer than W mirrors */
};

enum perseas_event_kind {
	PERSEAS_EVENT_MIRROR_DOWN = 1, /* a mirror that was live no longer takes transactions */
	PERSEAS_EVENT_MIRROR_LIVE,     /* a mirror is live; text says why if not over the best
	                                  fabric: when that works, DOWN and then LIVE follow */
	PERSEAS_EVENT_RESYNC_BEGUN,    /* a mirror is being copied whole; the text says why */
	PERSEAS_EVENT_RESYNC_DONE,     /* the copy is whole; MIRROR_LIVE follows */
	PERSEAS_EVENT_RESYNC_BROKEN,   /* the copy broke off, and will be tried again */
	PERSEAS_EVENT_IN_DOUBT,        /* a commit is in doubt, and none was before */
	PERSEAS_EVENT_DURABLE,         /* W mirrors hold every commit: none is in doubt any more */
	PERSEAS_EVENT_FENCED,          /* another owner has the store: close the handle */
	PERSEAS_EVENT_ROSTER,          /* a change of the roster counts, and is recorded */
	PERSEAS_EVENT_RENEWED,         /* this owner has claimed its mirrors again, and lost
	                                  nothing; text says why */
	PERSEAS_EVENT_DENIED,          /* the access rules of mirrors refuse this owner, of so many
	                                  that no commit can end; mirror and text name one of them.
	                                  MIRROR_LIVE follows when the rules allow it again. */
	PERSEAS_EVENT_MIRROR_LAGS,     /* a mirror cannot keep up, and commits wait for it. It comes
	                                  again only after 10 s without such a wait. */
	PERSEAS_EVENT_WHOLE,           /* PERSEAS_RECOVERY_ON_DEMAND: all mapped memory is here */
	PERSEAS_EVENT_MEMORY_WAITS,    /* memory is missing, and for a second none came whole: no
	                                  mirror gives it, or this host has no memory for it */
	PERSEAS_EVENT_HANDOVER,        /* an operator wants the standby that text names to own the
	                                  store next (perseas move): end what is open, close, and
	                                  open again only when the store has no owner */
	PERSEAS_EVENT_EXPIRES,         /* a certificate or revocation list expires soon, here or on
	                                  a mirror; daily, when it becomes urgent, and at its end */
	PERSEAS_EVENT_MEMORY_LOST      /* so many mirrors lost their memory that none of them can be
	                                  made anew (I9); text says how to save what is left */
};

/* How the contents of segments come into this process: perseas_options.recovery. */
enum perseas_recovery {
	PERSEAS_RECOVERY_READ_FIRST, /* perseas_map returns when all of it is here */
	/*
	 * perseas_map returns at once. A page is fetched when it is touched, and the other pages
	 * are fetched in the meantime: first what the newest transactions changed, as the open
	 * finds them in a mirror's log (up to 256 KiB of it), then the rest, at fetch_rate at most.
	 *
	 * An access to a missing page waits until a mirror has given it, for ever if no mirror can.
	 * If another owner has taken the store over before the page was here, the access ends in
	 * SIGBUS: that owner's state is never shown. perseas_set_range waits for its range in the
	 * same way, and returns PERSEAS_EFENCED then.
	 *
	 * A system call that is given missing memory waits, too, if the process may handle the
	 * kernel's faults (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd=1); otherwise it fails
	 * with EFAULT, and perseas_report says so. on_event must not touch memory that may be
	 * missing, and nobody may discard pages (madvise).
	 *
	 * Needs Linux 6.6 and userfaultfd(2), else memory is read first. Not with PERSEAS_SALVAGE.
	 * Over TLS who holds a lock of malloc or OpenSSL (a signal handler) may wait for ever.
	 */
	PERSEAS_RECOVERY_ON_DEMAND
};

/* Something that happened to a store that is open here. Later versions may append members and
 * kinds. */
struct perseas_event {
	int kind;         /* enum perseas_event_kind */
	uint32_t missed;  /* how many events before this one were left out, since on_event
	                     did not return for too long */
	uint64_t seq;     /* the last transaction committed here at that time; of IN_DOUBT and
	                     DURABLE: the one that was in doubt */
	char mirror[256]; /* address of the mirror that the event is about, or "" */
	char text[256];   /* a sentence for people, never empty */
};

/* The name of a kind of event, "mirror-down" and so on; "unknown" for a kind that this version does
 * not know. Never NULL; the text is static. Any thread. */
const char *perseas_event_name(int kind);

/*
 * Options of perseas_open and perseas_create. Initialise with PERSEAS_OPTIONS_INIT, then
 * change what is needed. 0 takes the default that is named. The library copies them.
 */
struct perseas_options {
	size_t size;                 /* sizeof(struct perseas_options), for later versions */
	uint32_t flags;              /* of enum perseas_flag */
	uint32_t acks;               /* create: W, 1 .. mirrors; 0: a majority */
	uint64_t log_size;           /* create: bytes of the undo log on each mirror, 4 KiB ..
	                                64 GiB, rounded up to 4 KiB; 0: 16 MiB. A transaction's undo
	                                record may take half of it, and 1 GiB at most. */
	uint64_t ring_size;          /* bytes of the owner's ring of sent transactions, from 64 KiB;
	                                0: 64 MiB. A transaction may take a quarter of it. */
	uint32_t connect_timeout_ms; /* for one round of answers from the mirrors, or the next
	                                part of a copy; 0: 3000. perseas_open waits longer for a
	                                claim that it needs, up to open_timeout_ms. */
	uint32_t commit_timeout_ms;  /* until a commit is in doubt; 0: 5000 */
	uint32_t open_timeout_ms;    /* for perseas_open as a whole, without copying; 0: 15000 */
	uint32_t spin_us;            /* how long a commit spins before it sleeps, unless other
	                                threads wait, too; 0: 50. UINT32_MAX: sleeps at once. */
	uint64_t accept_epoch;       /* the epoch of the state that an operator accepts although
	                                fewer than R mirrors answered; 0: none */
	uint64_t accept_seq;         /* the last transaction of that state */
	uint64_t resync_rate;        /* bytes a second, at most, at which a mirror is copied
	                                whole while transactions go on; 0: no limit */
	/*
	 * open: the library calls this function for each event of the store while it is open; NULL:
	 * none. It is called from a thread of the library, in which signals are blocked, for one
	 * event at a time and in their order; no lock is held. *event is valid until the function
	 * returns.
	 *
	 * It may call perseas_stat, perseas_mirror_stat, perseas_latency and functions without a
	 * handle. Another call with this handle may never return; nor may a wait for a thread that
	 * makes one. While the function runs, no mirror is reconnected or copied to, and mirrors
	 * take an owner that is silent for long for dead: so it should pass the event on, and
	 * return. perseas_close waits until it has returned, and it is not called after that;
	 * events shortly before may be lost. It is not called for a handle opened for salvage.
	 */
	void (*on_event)(void *arg, const struct perseas_event *event);
	void *event_arg; /* the first argument of on_event */
	/* Paths of PEM files: a certificate and those between it and its CA, its key, and the CA
	 * of the mirrors' certificates. All or none. With them every connection over tcp is TLS
	 * 1.3, with certificates of both ends. NULL: PERSEAS_TLS_CERT, PERSEAS_TLS_KEY and
	 * PERSEAS_TLS_CA in the environment; if these are not set either, connections are plain
	 * text. Files that have changed are read again when the handle reconnects to a mirror. */
	const char *tls_cert;
	const char *tls_key;
	const char *tls_ca;
	uint32_t pace_ms; /* how long a commit waits, at most, for a mirror that lags by half of
	                     the ring, before that mirror is dropped; 0: 100. UINT32_MAX: it does
	                     not wait. One with PERSEAS_NOWAIT waits as said there instead; from
	                     the first such commit on, others wait so long from when the mirror
	                     got on last. */
	/* With the three above: path of a PEM file with the revocation lists of the CAs. It must
	 * have one of every CA between a mirror's certificate and tls_ca, or no mirror can be
	 * connected to. NULL: PERSEAS_TLS_CRL in the environment; if that is not set either,
	 * revocation is not checked. */
	const char *tls_crl;
	uint32_t recovery;   /* open: enum perseas_recovery; 0: PERSEAS_RECOVERY_READ_FIRST */
	uint64_t fetch_rate; /* PERSEAS_RECOVERY_ON_DEMAND: bytes a second, at most, at which memory
	                        is fetched that no access waits for; 0: no limit */
	/* open: how long a mirror may say nothing, in milliseconds from 100; then it is taken for
	 * dead: commits go on with the others, and it is taken up again when it answers. In each
	 * quarter of this time it is asked for a sign of life. One that is stopped, without power
	 * or cut off is found within twice this time; a request that it leaves unanswered is given
	 * up after connect_timeout_ms all the same. 0: 3000. UINT32_MAX: it is not asked. */
	uint32_t mirror_timeout_ms;
	uint32_t order;   /* standby: 250 ms for each step of it are left to others before this one
	                     opens a store that has no owner; 0: it goes first */
	const char *name; /* standby: what perseas move calls it, of the same characters as a
	                     store's name, and then its order is 100 at most; NULL: nothing can
	                     be handed over to it */
	/* standby: 1: while it waits it keeps a copy of the store's memory, which perseas_map takes
	 * then what it would otherwise read from mirrors (perseas_standby.h) */
	uint32_t warm;
	uint64_t warm_rate; /* standby: bytes a second, at most, that it reads for it; 0: 64 MiB */
	uint32_t flush_within_ms; /* open: for how long what is committed with PERSEAS_NOWAIT may be
	                             lost (perseas_nowait.h); 0: no such bound */
	/* open: for how long, up to a second, a commit with PERSEAS_NOWAIT may be held back, to be
	 * sent as one with those after it (perseas_nowait.h); 0: none is */
	uint32_t gather_us;
	uint32_t gather_bytes; /* how much of the ring what is held back may take, from 1 KiB to a
	                          quarter of it; 0: 64 KiB */
};

#define PERSEAS_OPTIONS_INIT                                                                       \
	{                                                                                          \
		sizeof(struct perseas_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, \
			NULL, NULL, 0, NULL, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0                       \
	}

/* The library's version, "major.minor.patch". Never NULL; the text is static. Any thread. */
const char *perseas_version(void);

/* The text of an error code; never NULL; the text is static. Any thread. */
const char *perseas_strerror(int code);

/* The name of an error code, "PERSEAS_EBUSY"; "PERSEAS_OK" for 0. Never NULL; the text is static.
 * Any thread. */
const char *perseas_error_name(int code);

/*
 * The sentence of the last error on this handle in the calling thread. With NULL: of the last
 * perseas_open, perseas_create, perseas_close or call for a standby (perseas_standby.h) that failed
 * in the calling thread. Never NULL. The library owns it; it is valid until the thread's next call.
 */
const char *perseas_message(const perseas_t *p);

/*
 * Makes a store on every mirror of the list, and does not open it. All mirrors must answer, and
 * none may have the store (I6).
 *
 * mirrors is a comma-separated list of 1 to 16 addresses: "host:port" (RDMA if both ends have it,
 * else TCP), "rdma://host:port" (RDMA or nothing), "tcp://host:port", "unix:///path" (shared
 * memory, same host). The port is 7170 if none is given, and "unix://" is
 * unix:///run/perseas/socket. Or it names a list, which is looked up by each call: "@NAME" a line
 * "NAME LIST" in ~/.config/perseas/clusters or /etc/perseas/clusters, "srv://DOMAIN" of SRV records
 * in the DNS (operating.md). store is 1 to 63 of A-Z a-z 0-9 . _ - and does not begin with a dot.
 * options may be NULL. RDMA is switched off by PERSEAS_RDMA=off in the environment.
 *
 * Several processes may create the same store at the same time: one of them succeeds, the others
 * get EEXIST. It is tried again for open_timeout_ms. After an error no mirror serves the store:
 * what was made is taken back, or stays `creating` on a mirror that broke, and a later create
 * withdraws it. One exception: EUNREACHABLE, when the message says that it is not known whether it
 * was made: the first mirror of the list decides, and did not answer. Create it again, or open it.
 *
 * Errors: EINVAL, ENOMEM, ESYSTEM (here, or a mirror's files), EUNREACHABLE, EPROTOCOL, EVERSION,
 * ETLS, EEXIST, EDAMAGED (a mirror has a damaged image of that name), EMIRRORMEM, ELIMIT, EDENIED,
 * ERDMA (an address asks for RDMA, and one end has none).
 */
int perseas_create(const char *store, const char *mirrors, const struct perseas_options *options);

/*
 * Opens a store (PERSEAS_init, section 3): claims it, fences the owner before, chooses the newest
 * state, rolls back what was unfinished, and makes that state this owner's on W mirrors (I5 to I7).
 * Mirrors that are behind, ahead or empty are mended before it returns. Members of the store's
 * roster that the list does not name are asked, too, so a list may be older than a change of the
 * roster.
 *
 * store, mirrors and options are as for perseas_create. *p is the caller's until perseas_close;
 * NULL on an error. With RDMA, the ring of options.ring_size is registered: RLIMIT_MEMLOCK must
 * allow for it and 1 MiB more. A mirror at rdma:// that RDMA does not reach counts as missing, and
 * the report says why.
 *
 * Errors: EINVAL, ENOMEM, ESYSTEM, EUNREACHABLE (no mirror answers, or sessions with mirrors broke
 * again and again and nobody else claimed the store), EPROTOCOL, EVERSION, ENOSTORE, EBUSY (a live
 * owner was seen for half a second; nothing was fenced), EQUORUM (the message names the missing
 * mirrors and the newest state seen), EUNFINISHED (a restore is not finished; nothing was fenced),
 * EDAMAGED (only damaged images, or different segments with the newest transaction), ERDMA (every
 * address asks for RDMA, and no mirror can be reached over it), ETLS (a file of the options cannot
 * be used, or every mirror and this process disagree about TLS), EROSTER (two stores of that name),
 * EFENCED (others claimed it meanwhile, again and again), EDENIED (no mirror's access rules allow
 * it), ELIMIT (no mirror's quotas allow it, or every mirror promised an epoch that no claim can
 * follow: perseas recover --help), EMIRRORMEM (with PERSEAS_CREATE).
 */
int perseas_open(const char *store, const char *mirrors, const struct perseas_options *options,
                 perseas_t **p);

/*
 * Says what perseas_open found on each mirror, which state it chose and why, and what it mended.
 * Never NULL. The library owns the text, which is valid until perseas_close.
 */
const char *perseas_report(const perseas_t *p);

/*
 * Maps a segment at the address that the store has recorded for it (PERSEAS_malloc, section 3). The
 * contents of a segment that exists are read from a mirror; size must be 0 or its size. A segment
 * that does not exist is made, zeroed, on every mirror, and exists only from perseas_publish on.
 * perseas_segment_grow makes one larger that is published.
 *
 * segment is a name like a store's, and one that is made has none that ends with .grown.NUMBER.
 * size is in bytes, up to 1 TiB. *addr is page-aligned and valid until perseas_unmap or
 * perseas_close; NULL on an error. A segment that is mapped already gives the same address again.
 * Waits for transactions that are under way; other commits wait meanwhile.
 *
 * Errors: EINVAL, ENOMEM, ENOSEGMENT (size 0 and no such segment), ESIZE, EADDRESS (something else
 * is there; or perseas_map_at mapped the segment elsewhere), EMIRRORMEM (a mirror's memory or a
 * quota), EUNREACHABLE (fewer than W mirrors could make it, or none is left to read it from),
 * EFENCED, EBLOCKED, ELIMIT (128 segments, here or on a mirror), ESALVAGE (opened for salvage, and
 * no such segment).
 */
int perseas_map(perseas_t *p, const char *segment, size_t size, void **addr);

/*
 * Sends the first contents of every segment that is mapped and not yet published to the mirrors
 * (PERSEAS_init_remote_db, section 3). The segments come to exist together, as one transaction. The
 * application must not change them meanwhile, and commits wait. Returns 0 if there are none.
 *
 * Errors: EINVAL, EINDOUBT (the segments are published here, and W mirrors did not answer in time),
 * EBLOCKED, EFENCED, ENOMEM, ESALVAGE, EUNREACHABLE (fewer than W mirrors took the contents;
 * nothing is published).
 */
int perseas_publish(perseas_t *p);

/*
 * Begins a transaction (PERSEAS_begin_transaction, section 3). flags: perseas_threads.h and
 * perseas_track.h. *tx is the caller's until perseas_commit or perseas_abort ends it; NULL on an
 * error. Sends nothing.
 *
 * Errors: EINVAL, ENOMEM, EBLOCKED (a commit is in doubt), EFENCED, ESALVAGE, ECONFLICT.
 */
int perseas_begin(perseas_t *p, unsigned flags, perseas_tx_t **tx);

/*
 * Declares that the transaction may change len bytes at addr, before it does (PERSEAS_set_range,
 * section 3): their contents are kept for abort and roll-back. Ranges of one transaction may
 * overlap; each byte is kept once. len 0 does nothing. Sends nothing.
 *
 * Errors: EINVAL, EENDED, ERANGE (not wholly inside one mapped segment), EUNPUBLISHED, ETOOBIG
 * (half of the log, 1 GiB, or a quarter of the ring), ENOMEM, ECONFLICT (PERSEAS_CHECK_OVERLAP),
 * EFENCED (memory of the range is missing: PERSEAS_RECOVERY_ON_DEMAND). After an error the
 * transaction is as it was.
 */
int perseas_set_range(perseas_tx_t *tx, const void *addr, size_t len);

/*
 * Commits a transaction (PERSEAS_commit_transaction, section 3): returns 0 when W mirrors hold it.
 * One network round trip; if mirrors do not answer, it waits for them for commit_timeout_ms. While
 * another thread maps, publishes or unmaps, it waits for that first. flags is 0, or as
 * perseas_nowait.h says, for commits that do not wait.
 *
 * After 0, EINDOUBT and EFENCED the transaction has ended. EINDOUBT: it is applied here, and W
 * mirrors did not answer in time; perseas_flush waits for them. EFENCED: another owner has the
 * store. If the transaction was sent before that was seen, its outcome is unknown; otherwise its
 * changes are undone here.
 *
 * After EBLOCKED, ENOMEM, EUNDECLARED, ETOOBIG (PERSEAS_TRACK) and EINVAL nothing was sent, and the
 * transaction is still open. EBLOCKED: an earlier commit is in doubt; or, for commit_timeout_ms,
 * mirrors that another owner claimed before it went away could not be claimed again, or too few had
 * completed what half of the ring holds (perseas_nowait.h). EUNDECLARED: PERSEAS_CHECK_WRITES found
 * a change outside the declared ranges. EENDED: the transaction had ended before.
 */
int perseas_commit(perseas_tx_t *tx, unsigned flags);

/*
 * Restores every declared byte (PERSEAS_abort_transaction, section 3) and ends the transaction.
 * Sends nothing and waits for no mirror: it works whatever these do, while memory is missing that
 * is fetched on demand, and once another owner has the store.
 *
 * Errors: EINVAL, EENDED.
 */
int perseas_abort(perseas_tx_t *tx);

/*
 * Waits until W mirrors hold every commit, commit_timeout_ms at most. Other threads may go on. 0
 * does not prove that no other owner has the store by now: perseas_confirm does.
 * Errors: EINVAL, EINDOUBT (they do not hold it yet), EFENCED (the outcome of what was in doubt
 * stays unknown).
 */
int perseas_flush(perseas_t *p);

enum perseas_mirror_state {
	PERSEAS_MIRROR_DOWN,      /* it is not connected; the library tries again */
	PERSEAS_MIRROR_REPLAYING, /* it is connected again, and is sent what it missed */
	PERSEAS_MIRROR_LIVE,      /* it takes transactions */
	PERSEAS_MIRROR_STALE,     /* it missed more than the ring holds; waits to be copied whole */
	PERSEAS_MIRROR_FENCED,    /* it is promised to another owner; it is claimed again if that
	                             one is gone and adopted nothing */
	PERSEAS_MIRROR_LOST,      /* it no longer has the image; waits to be made anew (I9) */
	PERSEAS_MIRROR_RESYNCING, /* it is being copied whole, while transactions go on */
	PERSEAS_MIRROR_REMOVED    /* it is no longer in the roster */
};

/* The name of a mirror's state, "live" and so on. Never NULL; the text is static. Any thread. */
const char *perseas_mirror_state_name(enum perseas_mirror_state state);

struct perseas_mirror_stat {
	char address[256];
	char fabric[8]; /* "rdma", "tcp", "shm" */
	enum perseas_mirror_state state;
	uint64_t seq;          /* the last transaction that it is known to hold */
	uint64_t resync_done;  /* RESYNCING: bytes copied so far; else 0 */
	uint64_t resync_total; /* RESYNCING: bytes to copy in all; else 0 */
	char trouble[256];     /* why it is not live; or, of one that is live, why it is not over
	                          the best fabric that both ends have; else "" */
};

struct perseas_stat {
	uint64_t epoch;
	uint64_t seq;            /* the last transaction committed here */
	uint64_t durable_seq;    /* the last transaction that W mirrors hold, or held */
	uint32_t mirrors;        /* that perseas_mirror_stat has figures of */
	uint32_t acks;           /* W */
	uint32_t live;           /* mirrors that are LIVE */
	uint32_t in_doubt;       /* 1: a commit is in doubt */
	uint64_t commits;        /* that returned 0, by this handle */
	uint64_t aborts;         /* by this handle */
	uint64_t bytes_sent;     /* to all mirrors together, for transactions */
	uint64_t reconnects;     /* sessions that were taken up again */
	uint64_t replayed;       /* transactions that were sent again after that */
	uint64_t dropped;        /* times a mirror was dropped because it lagged */
	uint64_t log_laps;       /* times the log on the mirrors wrapped around */
	uint64_t mended_forward; /* mirrors that were sent at open what they missed */
	uint64_t mended_delta;   /* mirrors mended at open from the logs of both sides */
	uint64_t mended_whole;   /* mirrors copied whole at open */
	uint64_t resyncs;        /* mirrors copied whole while transactions went on */
	uint64_t allocations;    /* of memory, by begin, set_range and commit */
	uint64_t range_bytes;    /* bytes that commits sent as changed; each counts once a commit */
	uint64_t doubts;         /* commits that returned EINDOUBT */
	uint64_t timed;          /* commits that were timed (perseas_latency) */
	uint64_t latency_p50_ns; /* estimated from those, as the next two; 0: none was timed yet */
	uint64_t latency_p99_ns;
	uint64_t latency_p999_ns;
	uint64_t latency_max_ns; /* the longest that was timed, exact */
	uint64_t renewals;       /* times the store was claimed again while it was open */
	uint64_t paced;          /* commits that waited for a mirror that could not keep up */
	uint64_t paced_ns;       /* how long they waited, together */
	uint64_t missing;        /* about so many bytes that are mapped are not here yet */
	uint64_t fetched;        /* bytes that came after perseas_map had returned */
	uint64_t faults;         /* times somebody touched what was missing */
	uint64_t open;           /* transactions that are open (perseas_open_transactions) */
	uint64_t saved_within;   /* bytes that a transaction declared again: each is sent once */
	uint64_t saved_between;  /* bytes not sent as changed since a later transaction of the same
	                            group changed them again (gather_us) */
	uint64_t gathered;       /* transactions that were held back */
	uint64_t groups;         /* records in which they were sent */
};

/* Fills in *stat with a handle's figures, counted since it was opened. Errors: EINVAL. */
int perseas_stat(perseas_t *p, struct perseas_stat *stat);

/*
 * How long commits of this handle took: from the call of perseas_commit until it is about to
 * return, if it returned 0 or EINDOUBT and the transaction had ranges. Commits with PERSEAS_NOWAIT
 * are not timed.
 *
 * Not every commit is timed, since to read the clock twice takes as long as a good part of a commit
 * over shared memory. These are timed: all commits while any mirror is reached over rdma or tcp, or
 * is away; all commits that had to wait for mirrors; and one of 64 of the others, on average. The
 * last are chosen at random before it is known how long they take, and each is counted 64 times. So
 * the counts are unbiased estimates for all commits. A commit that was not chosen and then had to
 * wait is timed from when it began to wait.
 */
enum { PERSEAS_LATENCY_BUCKETS = 528 };

struct perseas_latency {
	uint64_t timed;  /* commits that were timed */
	uint64_t count;  /* the sum of counts[]: about as many commits as were run */
	uint64_t sum_ns; /* the time of all that are counted, together */
	uint64_t max_ns; /* the longest that was timed, exact */
	uint64_t counts[PERSEAS_LATENCY_BUCKETS]; /* a bucket each: perseas_latency_bound() */
};

/* Fills in *latency with what was counted since the handle was opened. The difference of two is
 * what was counted in between. Errors: EINVAL. */
int perseas_latency(perseas_t *p, struct perseas_latency *latency);

/* The longest time, in ns, that counts[bucket] counts. Each bucket begins where the one before
 * ends, and is at most a sixteenth of its times wide. UINT64_MAX for the last bucket and beyond.
 * Any thread. */
uint64_t perseas_latency_bound(unsigned bucket);

/* The time, in ns, that `percent` (0 to 100) of the counted commits do not exceed, rounded up to
 * the end of its bucket, but never above max_ns. 0 if nothing is counted, or latency is NULL. Any
 * thread. */
uint64_t perseas_latency_percentile(const struct perseas_latency *latency, double percent);

/* Fills in *stat with the figures of one mirror; index is 0 to perseas_stat.mirrors - 1. Errors:
 * EINVAL (also: there is no such mirror). */
int perseas_mirror_stat(perseas_t *p, unsigned index, struct perseas_mirror_stat *stat);

struct perseas_segment_info {
	char name[64];
	uint64_t size; /* bytes, with what it has grown by */
	void *address; /* that the store has recorded, of its first byte */
	int mapped;    /* 1: in this process */
	int published; /* 1: it exists; 0: mapped, and not yet published */
};

/* Fills in *info for a segment by its place in the store, from 0. One that has grown is one
 * segment. Errors: EINVAL, ENOSEGMENT (beyond the last). */
int perseas_segment_at(perseas_t *p, unsigned index, struct perseas_segment_info *info);

/* Fills in *info for a segment by its name. Errors: EINVAL, ENOSEGMENT (it is neither in the store
 * nor mapped). */
int perseas_segment(perseas_t *p, const char *name, struct perseas_segment_info *info);

/* Sets a function that is called while perseas_open or perseas_map copies, by the thread that
 * called these: what is copied, and bytes done of bytes in all. NULL: none. It is of the whole
 * process; set it while no other thread uses the library. */
void perseas_set_progress(void (*progress)(void *arg, const char *what, uint64_t done,
                                           uint64_t total),
                          void *arg);

/*
 * Unmaps a segment, which stays in the store. No open transaction may have ranges in it. A segment
 * that was not published is dropped on the mirrors. Waits for transactions that are under way.
 *
 * Errors: EINVAL, ERANGE (addr is not the address of a mapped segment), ECONFLICT (an open
 * transaction has ranges in it), ENOMEM.
 */
int perseas_unmap(perseas_t *p, void *addr);

/*
 * Waits until all memory that is mapped is here (PERSEAS_RECOVERY_ON_DEMAND; else it is), for
 * timeout_ms at most; negative: for ever.
 *
 * Errors: EINVAL, EUNREACHABLE (not in time; the message says how much is missing), EFENCED.
 */
int perseas_wait_whole(perseas_t *p, int64_t timeout_ms);

/*
 * Has len bytes at addr fetched before what nobody waits for, and does not wait. Bytes that are
 * here, or not inside one mapped segment, do nothing. Errors: EINVAL.
 */
int perseas_prefetch(perseas_t *p, const void *addr, size_t len);

/*
 * Ends the session, unmaps all segments and frees the handle and its transactions; open
 * transactions are not committed. It waits as perseas_flush does for what was committed with
 * PERSEAS_NOWAIT, but for no commit that is in doubt: call perseas_flush before. Mirrors that are
 * a little behind get half a second to catch up. p may be NULL. EINVAL leaves it as it was.
 * Errors, of what was committed with PERSEAS_NOWAIT: EINDOUBT (it may be lost: W mirrors do not
 * hold all of it), EFENCED (its outcome is unknown). EINVAL: in a child of fork.
 */
int perseas_close(perseas_t *p);

#ifdef __cplusplus
}
#endif

#include "perseas_heap.h"
#include "perseas_nowait.h"
#include "perseas_roster.h"
#include "perseas_segments.h"
#include "perseas_standby.h"
#include "perseas_threads.h"
#include "perseas_track.h"

#endif
