/*
 * perseas.h - transactions on memory that is mirrored on other nodes.
 *
 * The model, and most names, are those of PERSEAS (Papathanasiou and Markatos,
 * "Lightweight Transactions on Networks of Workstations", ICDCS'98, section 3).
 *
 * All functions that return int return 0 or a negative PERSEAS_E… code; the sentence
 * that goes with the last error of a handle is perseas_message(). On an error, output
 * arguments are set to NULL or left as they were, and the store is unchanged, unless the
 * function says otherwise.
 *
 * Threads: a handle may be used by many threads at once, except for perseas_close, which
 * must be the last call. A transaction may be used by one thread at a time. Isolation is
 * the application's: ranges of transactions that are open at the same time must not
 * overlap (PERSEAS_CHECK_OVERLAP finds it out).
 *
 * Processes: mapped memory is not inherited by fork, and a child must not use a
 * handle of its parent.
 */
#ifndef PERSEAS_H
#define PERSEAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* code, its text. */
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
	X(PERSEAS_ECONFLICT, -23, "the range overlaps one of another open transaction")            \
	X(PERSEAS_EUNDECLARED, -24, "memory was changed outside the declared ranges")              \
	X(PERSEAS_EROSTER, -25, "the mirrors given are not the store's")                           \
	X(PERSEAS_ELIMIT, -26, "a fixed limit is reached")                                         \
	X(PERSEAS_ESALVAGE, -27, "the store was opened for salvage only")                          \
	X(PERSEAS_ERDMA, -28, "a mirror cannot be reached over RDMA")                              \
	X(PERSEAS_EDENIED, -29, "a mirror's access rules do not allow it")                         \
	X(PERSEAS_ETLS, -30, "TLS with a mirror failed")

enum perseas_error {
	PERSEAS_OK = 0,
#define PERSEAS_ENUM(name, code, text) name = (code),
	PERSEAS_ERRORS(PERSEAS_ENUM)
#undef PERSEAS_ENUM
};

typedef struct perseas perseas_t;
typedef struct perseas_tx perseas_tx_t;

/* Bits of perseas_options.flags. */
enum perseas_flag {
	PERSEAS_CREATE = 1,        /* create the store if no mirror has it and nobody else
	                              creates it at the same time; also if all mirrors have
	                              lost it. To be told of that, make the store once by
	                              perseas_create or the command, and open without this. */
	PERSEAS_TAKEOVER = 2,      /* fence a live owner instead of returning EBUSY */
	PERSEAS_CHECK_OVERLAP = 4, /* set_range reports overlapping open transactions */
	PERSEAS_CHECK_WRITES = 8,  /* commit compares all memory and reports undeclared writes */
	PERSEAS_SALVAGE = 16,      /* claim and map only: no transactions, nothing is mended */
	PERSEAS_CANCEL = 32        /* a change of the roster that an owner left unfinished is taken
	                              back, instead of completed; EBUSY where it is decided */
};

enum perseas_event_kind {
	PERSEAS_EVENT_MIRROR_DOWN = 1, /* a mirror that was live no longer takes transactions */
	PERSEAS_EVENT_MIRROR_LIVE,     /* one is live again, or new and live; the text says why,
	                                  where it is not over the best fabric. It comes back to
	                                  that when it works, by MIRROR_DOWN and MIRROR_LIVE. */
	PERSEAS_EVENT_RESYNC_BEGUN,    /* one is being copied whole; the text says why */
	PERSEAS_EVENT_RESYNC_DONE,     /* the copy is whole; MIRROR_LIVE comes, too */
	PERSEAS_EVENT_RESYNC_BROKEN,   /* the copy broke off; it is tried again */
	PERSEAS_EVENT_IN_DOUBT,        /* a commit is in doubt, where none was */
	PERSEAS_EVENT_DURABLE,         /* W mirrors hold it: none is any more */
	PERSEAS_EVENT_FENCED,          /* another owner has the store: close the handle */
	PERSEAS_EVENT_ROSTER,          /* a change of the roster counts, and is recorded */
	PERSEAS_EVENT_RENEWED,         /* another owner claimed mirrors and went away: this one has
	                                  claimed them again, and lost nothing */
	PERSEAS_EVENT_DENIED,          /* the access rules of so many mirrors refuse this owner that
	                                  no commit can end; mirror and text name one. When they
	                                  allow it again, MIRROR_LIVE is told. */
	PERSEAS_EVENT_MIRROR_LAGS      /* a mirror cannot keep up: commits wait for it; told again
	                                  when they did not for 10 s */
};

/* What happened to a store that is open here. Later versions may append fields and kinds. */
struct perseas_event {
	int kind;         /* enum perseas_event_kind */
	uint32_t missed;  /* events before this one that were not told, since nobody took
	                     them for too long */
	uint64_t seq;     /* the last transaction committed here then; IN_DOUBT and
	                     DURABLE: the one that was in doubt */
	char mirror[256]; /* address of the mirror that it is about, or "" */
	char text[256];   /* a sentence for people, never empty */
};

/* "mirror-down" and so on; "unknown" for a kind that this version does not know. Never NULL. */
const char *perseas_event_name(int kind);

/*
 * Options of perseas_open and perseas_create. Initialise with PERSEAS_OPTIONS_INIT, then
 * change what is needed; 0 takes the default that is named.
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
	uint32_t connect_timeout_ms; /* for one round of answers from the mirrors; 0: 3000.
	                                perseas_open waits for claims that it needs longer than
	                                that, as long as open_timeout_ms. */
	uint32_t commit_timeout_ms;  /* until a commit is in doubt; 0: 5000 */
	uint32_t open_timeout_ms;    /* for perseas_open as a whole, without copying; 0: 15000 */
	uint32_t spin_us;            /* how long a commit spins before it sleeps; 0: 50.
	                                UINT32_MAX: sleeps at once. */
	uint64_t accept_epoch;       /* the state that an operator accepts although fewer than R */
	uint64_t accept_seq;         /*   mirrors answered; accept_epoch 0: none */
	uint64_t resync_rate;        /* bytes a second, at most, at which a mirror is copied
	                                whole while transactions go on; 0: no limit */
	/*
	 * open: told of what happens to the store while it is open; NULL: nobody is. Called from a
	 * thread of the library's, in which signals are blocked, for one event at a time and in
	 * their order; no lock is held. It may call perseas_stat, perseas_mirror_stat,
	 * perseas_latency and what needs no handle. Calling anything else with this handle may
	 * wait for ever; so may waiting for a thread that does. While it runs, no mirror is taken
	 * up again or copied to, and an owner that is silent for long counts as dead: it should
	 * pass on what it is told, and return. perseas_close waits until it has returned, and it is
	 * not called after that; what happens shortly before may not be told. Never for a handle
	 * opened for salvage. *event is good until it returns.
	 */
	void (*on_event)(void *arg, const struct perseas_event *event);
	void *event_arg;
	/* Paths of PEM files: a certificate and those between it and its CA, its key, and the CA
	 * of the mirrors' certificates. All or none. With them every connection over tcp is TLS
	 * 1.3, with certificates of both ends. NULL: PERSEAS_TLS_CERT, PERSEAS_TLS_KEY and
	 * PERSEAS_TLS_CA in the environment; where these are not set either, connections are plain
	 * text. The strings are copied; files that have changed are read again when the handle
	 * connects to a mirror anew. */
	const char *tls_cert;
	const char *tls_key;
	const char *tls_ca;
	uint32_t pace_ms; /* how long a commit waits, at most, for a mirror that is about to be
	                     dropped since it cannot keep up (it lags by half of the ring); 0: 100.
	                     UINT32_MAX: not at all. */
	/* With the three above: a PEM file with the lists of what these CAs have revoked, one of
	 * every CA between a mirror's certificate and tls_ca, or no mirror can be connected to.
	 * NULL: PERSEAS_TLS_CRL in the environment, or what is revoked is not asked. */
	const char *tls_crl;
};

#define PERSEAS_OPTIONS_INIT                                                                       \
	{                                                                                          \
		sizeof(struct perseas_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, \
			NULL, NULL, 0, NULL                                                        \
	}

/* The library's version, "major.minor.patch". Never NULL. */
const char *perseas_version(void);

/* The text of an error code; never NULL. Any thread. */
const char *perseas_strerror(int code);

/* The name of an error code, "PERSEAS_EBUSY"; "PERSEAS_OK" for 0; never NULL. */
const char *perseas_error_name(int code);

/*
 * The sentence of the last error on this handle in the calling thread, or, with NULL, of
 * the last perseas_open or perseas_create that failed in the calling thread. Never NULL; it
 * stays good until the thread's next call.
 */
const char *perseas_message(const perseas_t *p);

/*
 * Makes a store on every mirror of the list, and does not open it. All mirrors must be
 * there, and none may have the store (I6, creating).
 *
 * mirrors is a comma-separated list, 1 to 16: "host:port" (rdma where both ends have it, else
 * tcp), "rdma://host:port" (rdma or nothing), "tcp://host:port", "unix:///path" (shared memory,
 * same host). Without a port it is 7170, and "unix://" is unix:///run/perseas/socket. options may
 * be NULL. PERSEAS_RDMA=off in the environment switches RDMA off.
 *
 * Errors: EINVAL, ENOMEM, ESYSTEM, EUNREACHABLE, EPROTOCOL, EVERSION, ETLS, EEXIST, EMIRRORMEM,
 * ELIMIT, EDENIED. Several may create the same store at the same time: one of them succeeds, the
 * others get EEXIST; it is tried again for open_timeout_ms. After an error no mirror serves the
 * store: what was made is taken back, or, where a mirror broke, stays `creating`, which a later
 * create withdraws. But EUNREACHABLE where the message says that it is not known: the first mirror
 * of the list decides whether the store is made, and did not answer. Create it again, or open it.
 */
int perseas_create(const char *store, const char *mirrors, const struct perseas_options *options);

/*
 * Opens a store: claims it, fences the owner before, chooses the newest state, rolls back what
 * was unfinished, and makes that state this owner's on W mirrors (PERSEAS_init; I5 to I7).
 * The name is 1 to 63 of A-Z a-z 0-9 . _ - and begins with no dot. Mirrors that are behind,
 * ahead or empty are mended before it returns. Members of the store's roster that the list does
 * not name are asked too, so that a list may be older than a change of the roster.
 *
 * *p is the caller's until perseas_close. mirrors and options are as for perseas_create. With rdma,
 * the ring of options.ring_size is registered: RLIMIT_MEMLOCK must allow for it and 1 MiB more.
 * A mirror at rdma:// that cannot be reached so is missing; the report says why.
 *
 * Errors: EINVAL, ENOMEM, ESYSTEM, EUNREACHABLE (also: sessions with mirrors broke again and again,
 * and nobody else claimed the store), EPROTOCOL, EVERSION, ENOSTORE, EBUSY
 * (a live owner was seen for half a second; nothing was fenced), EQUORUM (the message names the
 * mirrors that are missing and the newest state seen), EDAMAGED, ERDMA (no mirror can be reached
 * over RDMA, and each was to be), ETLS (a file of the options cannot be used, or every mirror and
 * this process disagree about TLS; the message says what to do), EROSTER, EFENCED (another claimed
 * it meanwhile, again and again), EDENIED (no mirror's access rules allow it), ELIMIT (nor do its
 * quotas; or every mirror promised an epoch that no claim can follow: perseas recover --help).
 */
int perseas_open(const char *store, const char *mirrors, const struct perseas_options *options,
                 perseas_t **p);

/*
 * Says in several lines what perseas_open found on each mirror, which state it chose and
 * why, and what it mended. Valid until perseas_close; never NULL.
 */
const char *perseas_report(const perseas_t *p);

/*
 * Maps a segment at the address that the store has recorded for it (PERSEAS_malloc). A
 * segment that exists is read from a mirror, size must be 0 or its size. One that does not
 * is made, zeroed, on every mirror; it exists only from perseas_publish on.
 *
 * size is in bytes, up to 1 TiB. *addr is page-aligned and good until perseas_unmap or
 * perseas_close. A segment that is mapped already gives the same address again.
 *
 * Errors: EINVAL, ENOMEM, ESYSTEM, ENOSEGMENT (size 0 and no such segment), ESIZE,
 * EADDRESS, EMIRRORMEM (or a quota), EUNREACHABLE, EFENCED, EBLOCKED, ELIMIT (128 segments),
 * ESALVAGE.
 */
int perseas_map(perseas_t *p, const char *segment, size_t size, void **addr);

/*
 * Sends the first contents of every segment mapped and not yet published to the mirrors
 * (PERSEAS_init_remote_db). They come to exist together, as one transaction. The application
 * must not change them meanwhile. Transactions of other segments wait. 0 when there is none.
 *
 * Errors: EINDOUBT, EBLOCKED, EFENCED, ENOMEM, ESALVAGE, EUNREACHABLE.
 */
int perseas_publish(perseas_t *p);

/*
 * Begins a transaction (PERSEAS_begin_transaction). flags is 0. *tx is the caller's until
 * perseas_commit or perseas_abort ends it. Sends nothing.
 *
 * Errors: EINVAL, ENOMEM, EBLOCKED, EFENCED, ESALVAGE.
 */
int perseas_begin(perseas_t *p, unsigned flags, perseas_tx_t **tx);

/*
 * Declares that the transaction may change `len` bytes at addr, before it does
 * (PERSEAS_set_range): their contents are kept for abort and roll-back. Ranges of one
 * transaction may overlap; each byte is kept once. len 0 does nothing. Sends nothing.
 *
 * Errors: EENDED, ERANGE (not wholly inside one mapped segment), EUNPUBLISHED, ETOOBIG,
 * ENOMEM, ECONFLICT (PERSEAS_CHECK_OVERLAP). The transaction stays as it was.
 */
int perseas_set_range(perseas_tx_t *tx, const void *addr, size_t len);

/*
 * Commits (PERSEAS_commit_transaction): returns 0 when W mirrors hold the transaction. One
 * network round trip. flags is 0.
 *
 * EINDOUBT: it is applied here and W mirrors did not answer in time; perseas_flush waits
 * for it. EFENCED: another owner has the store; if any mirror was reached before, the
 * outcome is unknown. In these cases, as after 0, the transaction has ended.
 * EBLOCKED (an earlier commit is in doubt, or mirrors that another owner claimed before it went
 * away could not be claimed again within the commit timeout), ETOOBIG, EUNDECLARED
 * (PERSEAS_CHECK_WRITES), EINVAL: nothing was sent and the transaction is still open. EENDED: it
 * was not.
 */
int perseas_commit(perseas_tx_t *tx, unsigned flags);

/*
 * Puts every declared byte back as it was (PERSEAS_abort_transaction) and ends the
 * transaction. Sends nothing, and works whatever the mirrors do. Errors: EENDED.
 */
int perseas_abort(perseas_tx_t *tx);

/*
 * Waits, up to the commit timeout, until W mirrors hold every commit. Errors: EINDOUBT (not
 * yet), EFENCED (what was in doubt stays unknown).
 */
int perseas_flush(perseas_t *p);

enum perseas_mirror_state {
	PERSEAS_MIRROR_DOWN,      /* not connected; is tried again */
	PERSEAS_MIRROR_REPLAYING, /* connected again, being sent what it missed */
	PERSEAS_MIRROR_LIVE,
	PERSEAS_MIRROR_STALE,     /* missed more than the ring holds; waits to be copied whole */
	PERSEAS_MIRROR_FENCED,    /* promised to another owner: claimed again when that one is
	                             gone, and adopted nothing */
	PERSEAS_MIRROR_LOST,      /* no longer has the image; waits to be made anew (I9) */
	PERSEAS_MIRROR_RESYNCING, /* being copied whole, while transactions go on */
	PERSEAS_MIRROR_REMOVED    /* no longer in the roster */
};

/* The name of a mirror's state, "live" and so on; never NULL. */
const char *perseas_mirror_state_name(enum perseas_mirror_state state);

struct perseas_mirror_stat {
	char address[256];
	char fabric[8]; /* "rdma", "tcp", "shm" */
	enum perseas_mirror_state state;
	uint64_t seq;          /* the last transaction that it is known to hold */
	uint64_t resync_done;  /* RESYNCING: bytes that have been copied; else 0 */
	uint64_t resync_total; /* RESYNCING: bytes that are copied in all; else 0 */
	char trouble[256];     /* why it is not live; or why it is, but not over the best
	                          fabric that both ends have; else "" */
};

struct perseas_stat {
	uint64_t epoch;
	uint64_t seq;         /* the last transaction committed here */
	uint64_t durable_seq; /* the last that W mirrors hold */
	uint32_t mirrors;
	uint32_t acks;     /* W */
	uint32_t live;     /* mirrors that are LIVE */
	uint32_t in_doubt; /* 1: a commit is in doubt */
	uint64_t commits;  /* by this handle */
	uint64_t aborts;
	uint64_t bytes_sent;     /* to all mirrors together, for transactions */
	uint64_t reconnects;     /* sessions that were taken up again */
	uint64_t replayed;       /* transactions sent again after that */
	uint64_t dropped;        /* times a mirror was dropped because it lagged */
	uint64_t log_laps;       /* times the log on the mirrors wrapped around */
	uint64_t mended_forward; /* mirrors that were sent at open what they missed */
	uint64_t mended_delta;   /* mirrors mended at open from the logs of both sides */
	uint64_t mended_whole;   /* mirrors copied whole at open */
	uint64_t resyncs;        /* mirrors copied whole while transactions went on */
	uint64_t allocations;    /* of memory, by begin, set_range and commit */
	uint64_t range_bytes;    /* that commits sent as changed: each byte of one once */
	uint64_t doubts;         /* commits that returned EINDOUBT */
	uint64_t timed;          /* commits that were timed; the next are estimates from them */
	uint64_t latency_p50_ns; /*   (perseas_latency); 0: none yet */
	uint64_t latency_p99_ns;
	uint64_t latency_p999_ns;
	uint64_t latency_max_ns; /* of those that were timed, exact */
	uint64_t renewals;       /* times the store was claimed again while it was open */
	uint64_t paced;          /* commits that waited for a mirror that could not keep up */
	uint64_t paced_ns;       /* how long they waited, together */
};

/* Fills in *stat with a handle's figures. Never fails but for EINVAL. */
int perseas_stat(perseas_t *p, struct perseas_stat *stat);

/*
 * How long commits of this handle took: from the call of perseas_commit until it is about to
 * return, where it returned 0 or EINDOUBT and the transaction had ranges.
 *
 * Not every commit is timed, since reading the clock twice takes as long as a good part of a commit
 * over shared memory. Timed are all commits while any mirror is reached over rdma or tcp, or is
 * away; all that had to wait for mirrors; and of the others one of 64 in the mean, chosen at random
 * before it is known how long it takes, which is counted 64 times. So counts are unbiased estimates
 * of those of all commits. One that was not chosen, and then had to wait, is timed from when it
 * began to wait.
 */
enum { PERSEAS_LATENCY_BUCKETS = 528 };

struct perseas_latency {
	uint64_t timed;  /* commits that were timed */
	uint64_t count;  /* of all that are counted below: about as many as were run */
	uint64_t sum_ns; /* all that are counted, together */
	uint64_t max_ns; /* the longest that was timed, exact */
	uint64_t counts[PERSEAS_LATENCY_BUCKETS]; /* by perseas_latency_bound() */
};

/* Fills in *latency, since the handle was opened; what was counted in between is the difference of
 * two. Never fails but for EINVAL. */
int perseas_latency(perseas_t *p, struct perseas_latency *latency);

/* The longest time, in ns, that counts[bucket] is of; each bucket begins where the one before
 * ends, and is a sixteenth wide at most. UINT64_MAX for the last one and beyond. */
uint64_t perseas_latency_bound(unsigned bucket);

/* The time in ns that `percent` of those counted do not exceed, rounded up to the end of its
 * bucket but never above max_ns. 0 when nothing is counted, or latency is NULL. */
uint64_t perseas_latency_percentile(const struct perseas_latency *latency, double percent);

/* Fills in *stat with the figures of one mirror; index is 0 to stat.mirrors - 1. EINVAL beyond. */
int perseas_mirror_stat(perseas_t *p, unsigned index, struct perseas_mirror_stat *stat);

enum perseas_roster_kind {
	PERSEAS_ROSTER_ADD = 1, /* `with` joins the roster */
	PERSEAS_ROSTER_REMOVE,  /* `address` leaves it */
	PERSEAS_ROSTER_REPLACE, /* `with` takes the place of `address` */
	PERSEAS_ROSTER_CANCEL   /* the change that another thread waits for is taken back */
};

struct perseas_roster_change {
	int kind;            /* enum perseas_roster_kind */
	const char *address; /* of a member, as the roster has it; ADD, CANCEL: NULL */
	const char *with; /* of the new mirror, as perseas_create takes it; REMOVE, CANCEL: NULL */
	uint32_t acks;    /* W afterwards; 0: as it is, or a majority where it no longer
	                        fits */
	int gone;         /* 1: the mirror at `address` is gone for good, with what it
	                        holds, and will not be started again. Needed to replace a dead
	                        mirror of two: while it may come back alone, it would not
	                        know of the change. */
};

/*
 * CANCEL takes the change back that another thread has asked for, or an order: as long as it is not
 * decided, which it is as soon as enough mirrors know it. The roster is then as it was, and the
 * other call returns EQUORUM. Errors: EINVAL (no change is being made), EBUSY (it is decided, and
 * will be completed), EFENCED, ESALVAGE. The others:
 *
 * Changes which mirrors the store has, one at a time, while transactions go on (a joint change, as
 * in Raft). A new mirror is copied whole first, without a vote; then both rosters must agree for
 * as long as it takes to record the change; then only the new one counts. A mirror that is dead
 * can be replaced, also where W is all of three; one of two with `gone` only. The removed mirror
 * keeps its image, which counts for nothing: `perseas drop` deletes it. Blocks; other threads may
 * go on.
 *
 * Errors: EINVAL (no such member, an address that is not one or is in the roster, acks out of
 * range), ELIMIT (16 mirrors), EBUSY (another change is not over), EUNREACHABLE (nobody answers at
 * the new mirror's address, or it could not be copied to for ten seconds; the message says why),
 * EQUORUM (too few members can be told, or the roster as it is now, or as it would be, has fewer
 * than W mirrors that are live, or the latter fewer than the next open needs; the message names the
 * one that is short), EBLOCKED (a commit is in doubt, and the mirror that leaves is not what it
 * waits for), EFENCED, ESALVAGE, ENOMEM. After an error the roster is as it was, unless the owner
 * was fenced: then the next open completes the change, or knows nothing of it.
 */
int perseas_roster(perseas_t *p, const struct perseas_roster_change *change);

struct perseas_segment_info {
	char name[64];
	uint64_t size; /* bytes */
	void *address; /* recorded */
	int mapped;    /* 1: in this process */
	int published; /* 1: it exists; 0: mapped, and not yet published */
};

/* Fills in *info for a segment by its place in the store, from 0. ENOSEGMENT beyond the last. */
int perseas_segment_at(perseas_t *p, unsigned index, struct perseas_segment_info *info);

/* Fills in *info for a segment by its name. ENOSEGMENT: neither in the store nor mapped. */
int perseas_segment(perseas_t *p, const char *name, struct perseas_segment_info *info);

/* Called while perseas_open or perseas_map copies: bytes done of bytes in all, from the
 * calling thread of that function. Process-wide; NULL for none; not thread-safe. */
void perseas_set_progress(void (*progress)(void *arg, const char *what, uint64_t done,
                                           uint64_t total),
                          void *arg);

/*
 * Unmaps a segment; it stays in the store. No open transaction may have ranges in it. One that
 * was not published is dropped on the mirrors. Errors: ERANGE (addr is not the address of a
 * mapped segment), ECONFLICT (an open transaction has ranges in it).
 */
int perseas_unmap(perseas_t *p, void *addr);

/*
 * Ends the session and frees everything; open transactions are rolled back in memory that is
 * then unmapped. Gives mirrors that are a little behind half a second to catch up, but does not
 * wait for commits in doubt: call perseas_flush before. NULL is allowed. Always returns 0.
 */
int perseas_close(perseas_t *p);

#ifdef __cplusplus
}
#endif

#endif
