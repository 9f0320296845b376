/*
 * rvm.h - the interface of RVM, lightweight recoverable virtual memory, on mirrored memory.
 *
 * Programs written for RVM (Satyanarayanan, Mashburn, Kumar, Steere and Kistler, "Lightweight
 * Recoverable Virtual Memory", SOSP'93, section 4) compile against this header and link with
 * librvm-perseas, unchanged. Names, members and values of codes are RVM's; the text and the code
 * are not. doc/rvm.md says what changes for such a program.
 *
 * The log. Where RVM takes the name of a log file (rvm_options_t.log_dev), this library takes a
 * store and its mirrors: "perseas:STORE@LIST", with LIST as in perseas_open, for example
 * "perseas:bank@node1:7170,node2:7170". Any other text is the path of a file. The first line of
 * that file that is neither empty nor a comment (#) must be such a name; so a program with a fixed
 * log path need not change. A commit is permanent once a majority of the mirrors holds it, or the
 * number of mirrors with which the store was created.
 *
 * Segments. rvm_region_t.data_dev names an external data segment, a file or a device. The first
 * time a part of it is mapped with this store, it is read from there; from then on the store holds
 * it, and rvm_map takes it from the mirrors, wherever the program runs. rvm_truncate writes it
 * back. The store knows a segment by its name as written, so a program that moves to another node
 * must use the same name. A store holds 64 segments, and 120 parts of them that were mapped as
 * regions. A region has 1 TiB at most. Segments of the store whose names begin with "rvm." belong
 * to this library. A region whose address the library chooses gets the same address the next time,
 * if that is free.
 *
 * Errors. Functions return RVM_SUCCESS or an error code; rvm_message() returns a sentence about the
 * error. RVM_EIO sets errno. Unless a function says otherwise, an error changes nothing. Any
 * function that needs the store may return: RVM_EINIT (rvm_initialize was not called, or
 * rvm_terminate was), RVM_ELOG (no log was named yet), RVM_ENO_MEMORY, RVM_ETERMINATED (another
 * owner has taken over the store: end the program), RVM_EIO (mirrors cannot be reached or do not
 * answer, or a file cannot be read or written), RVM_EINTERNAL (a bug in this library).
 *
 * Records. The program makes records with rvm_malloc_X, or fills them in with rvm_init_X. For other
 * records, and for NULL, functions return RVM_EOPTIONS, RVM_EREGION, RVM_ETID or RVM_ESTATISTICS.
 *
 * Threads. Any number of threads may call these functions; a transaction is used by one thread at a
 * time. Neither RVM nor this library isolates transactions: the program must not let two open
 * transactions declare the same byte. rvm_terminate must be the last call. A child of fork must not
 * use the library, and does not inherit regions.
 *
 * Differences from RVM:
 * - Aborting a transaction that began with no_restore does restore memory. Otherwise mirrors
 *   that are copied from this process would hold bytes that were never committed.
 * - External pagers are not supported: RVM_EPAGER. RVM_MAP_PRIVATE fetches memory when it is
 *   touched.
 * - rvm_region_t.no_copy is ignored: the contents are always copied. What the caller's memory
 *   held before is lost.
 * - RVM_COALESCE_TRANS and RVM_MAP_PRIVATE have no effect if they are first set after the log
 *   was named; rvm_query says which flags are in force. RVM_COALESCE_RANGES is always in force.
 * - rvm_options_t.truncate, recovery_buf_len and max_read_len are stored and returned by
 *   rvm_query, but not used: no log needs truncating.
 */
#ifndef RVM_VERSION

/* The argument of rvm_initialize, which accepts every text that begins with "RVM Interface Version
 * 1.3", also from a program that was compiled with another header of this version. */
#define RVM_VERSION "RVM Interface Version 1.3 (Perseas)"
#define RVM_VERSION_MAX 128 /* longest version text in bytes, including its terminating zero */

#include <sys/param.h>
#include <sys/time.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

typedef enum { rvm_false = 0, rvm_true = 1 } rvm_bool_t;

/* The type of a record, in its first member. */
typedef enum {
	rvm_first_struct_id = 39, /* not a type */
	rvm_region_id,
	rvm_options_id,
	rvm_tid_id,
	rvm_statistics_id,
	rvm_last_struct_id /* not a type */
} rvm_struct_id_t;

/* How a transaction begins, and how it ends. */
typedef enum {
	rvm_first_mode = 139, /* not a mode */
	restore,              /* begin: an abort restores memory */
	/* Begin: the program will not abort it; an abort restores memory all the same. */
	no_restore,
	flush,        /* end: return when the transaction is permanent */
	no_flush,     /* end: return at once; rvm_flush makes it permanent */
	rvm_last_mode /* not a mode */
} rvm_mode_t;

/* A code: RVM_SUCCESS or one of those below. */
typedef int rvm_return_t;

#define RVM_SUCCESS 0
#define rvm_first_code 199        /* all error codes are greater */
#define RVM_EINIT 200             /* the library was not initialized, or was terminated */
#define RVM_EINTERNAL 201         /* a bug in the library */
#define RVM_EIO 202               /* errno has the reason */
#define RVM_ELOG 204              /* no log was named, or its store cannot be opened */
#define RVM_ELOG_VERSION_SKEW 205 /* the mirrors speak another version of the protocol */
#define RVM_EMODE 206             /* a transaction cannot begin or end with this mode */
#define RVM_ENAME_TOO_LONG 207    /* a name of more than 1023 bytes */
#define RVM_ENO_MEMORY 208
#define RVM_ENOT_MAPPED 209 /* the bytes do not lie in one mapped region */
#define RVM_EOFFSET 210     /* the offset or length lies outside of the segment */
#define RVM_EOPTIONS 211
#define RVM_EOVERLAP 212 /* a part of these bytes of the segment is already mapped */
#define RVM_EPAGER 213   /* external pagers are not supported */
#define RVM_ERANGE 214   /* nothing can be mapped at this address */
#define RVM_EREGION 215
#define RVM_EREGION_DEF 216 /* the segment loader got no regions, or an invalid one */
#define RVM_ESRC 217        /* rvm_modify_bytes got no source address */
#define RVM_ESTATISTICS 218
#define RVM_ESTAT_VERSION_SKEW 219 /* the record of statistics has another version */
#define RVM_ETERMINATED 220        /* another owner has taken over the store */
#define RVM_ETHREADS 221           /* never returned */
#define RVM_ETID 222               /* the record names no open transaction */
#define RVM_ETOO_BIG 223           /* a limit was exceeded */
#define RVM_EUNCOMMIT 224          /* a transaction is open */
#define RVM_EVERSION_SKEW 225      /* the program was compiled for another version */
#define RVM_EVM_OVERLAP 226        /* another region is mapped at this address */
#define rvm_last_code 227          /* all error codes are less */

/* Return the name of a code, a mode or a record's type as declared here, for example "rvm_tid_t",
 * or a sentence for any other value. Never NULL; the text is static. Any thread may call them. */
extern char *rvm_return(rvm_return_t code);
extern char *rvm_mode(rvm_mode_t mode);
extern char *rvm_type(rvm_struct_id_t id);

/* Returns the sentence for the last error of the calling thread, or "". Never NULL; valid until the
 * thread's next call. RVM has no such function. */
extern const char *rvm_message(void);

/* --- lengths and offsets --- */

/* A length in bytes. */
typedef unsigned long rvm_length_t;

/* An offset in a segment, in bytes: high * 2^64 + low. */
typedef struct {
	rvm_length_t high, low;
} rvm_offset_t;

#define RVM_MK_OFFSET(x, y) rvm_mk_offset((rvm_length_t)(x), (rvm_length_t)(y))
#define RVM_OFFSET_INITIALIZER(x, y) \
	{                            \
		(x), (y)             \
	}
#define RVM_ZERO_OFFSET(x) ((x) = RVM_MK_OFFSET(0, 0))
#define RVM_OFFSET_TO_LENGTH(x) ((x).low)
#define RVM_OFFSET_HIGH_BITS_TO_LENGTH(x) ((x).high)
#define RVM_LENGTH_TO_OFFSET(x) RVM_MK_OFFSET(0, (x))

/* Sums and differences. The arguments of RVM_ADD_OFFSETS and RVM_SUB_OFFSETS must be variables. */
#define RVM_ADD_OFFSETS(x, y) rvm_add_offsets(&(x), &(y))
#define RVM_ADD_LENGTH_TO_OFFSET(x, y) rvm_add_length_to_offset(&(x), (y))
#define RVM_ADD_LENGTH_TO_ADDR(length, addr) \
	((char *)((rvm_length_t)(length) + (rvm_length_t)(addr)))
#define RVM_SUB_OFFSETS(x, y) rvm_sub_offsets(&(x), &(y))
#define RVM_SUB_LENGTH_FROM_OFFSET(x, y) rvm_sub_length_from_offset(&(x), (y))
#define RVM_SUB_LENGTH_FROM_ADDR(addr, length) \
	((char *)((rvm_length_t)(addr) - (rvm_length_t)(length)))

#define RVM_OFFSET_LSS(x, y) ((x).high < (y).high || ((x).high == (y).high && (x).low < (y).low))
#define RVM_OFFSET_GTR(x, y) ((x).high > (y).high || ((x).high == (y).high && (x).low > (y).low))
#define RVM_OFFSET_LEQ(x, y) (!RVM_OFFSET_GTR(x, y))
#define RVM_OFFSET_GEQ(x, y) (!RVM_OFFSET_LSS(x, y))
#define RVM_OFFSET_EQL(x, y) ((x).high == (y).high && (x).low == (y).low)
#define RVM_OFFSET_EQL_ZERO(x) ((x).high == 0 && (x).low == 0)

/* Pages have the system's size. */
#define RVM_PAGE_SIZE rvm_page_size()
#define RVM_ROUND_LENGTH_UP_TO_PAGE_SIZE(x) \
	((rvm_length_t)(((rvm_length_t)(x) + rvm_page_size() - 1) & rvm_page_mask()))
#define RVM_ROUND_LENGTH_DOWN_TO_PAGE_SIZE(x) ((rvm_length_t)((rvm_length_t)(x)&rvm_page_mask()))
#define RVM_ROUND_ADDR_UP_TO_PAGE_SIZE(x) \
	((char *)(((rvm_length_t)(x) + rvm_page_size() - 1) & rvm_page_mask()))
#define RVM_ROUND_ADDR_DOWN_TO_PAGE_SIZE(x) ((char *)((rvm_length_t)(x)&rvm_page_mask()))
#define RVM_ROUND_OFFSET_UP_TO_PAGE_SIZE(x) rvm_rnd_offset_up_to_page(&(x))
#define RVM_ROUND_OFFSET_DOWN_TO_PAGE_SIZE(x) rvm_rnd_offset_dn_to_page(&(x))

/* Functions behind the macros above. Sums and differences wrap around at 2^128. */
extern rvm_offset_t rvm_mk_offset(rvm_length_t high, rvm_length_t low);
extern rvm_offset_t rvm_add_offsets(rvm_offset_t *x, rvm_offset_t *y);
extern rvm_offset_t rvm_add_length_to_offset(rvm_offset_t *offset, rvm_length_t length);
extern rvm_offset_t rvm_sub_offsets(rvm_offset_t *x, rvm_offset_t *y);
extern rvm_offset_t rvm_sub_length_from_offset(rvm_offset_t *offset, rvm_length_t length);
extern rvm_length_t rvm_page_size(void);
/* Mask that turns an address into the beginning of its page. */
extern rvm_length_t rvm_page_mask(void);
extern rvm_offset_t rvm_rnd_offset_up_to_page(rvm_offset_t *x);
extern rvm_offset_t rvm_rnd_offset_dn_to_page(rvm_offset_t *x);

/* --- records --- */

/*
 * For each type of record:
 * - rvm_malloc_X returns a new record filled in with defaults, or NULL if out of memory.
 * - rvm_init_X fills in a record that the program owns.
 * - rvm_copy_X returns a new, equal record, or NULL if out of memory or if the argument has
 *   another type. tid_array is copied too; texts are not.
 * - rvm_free_X frees a record that malloc or copy returned, with its tid_array. Any other record
 *   becomes unusable until it is initialized again. The texts that a record points to belong to
 *   the program. NULL is allowed.
 */

/* A transaction. The program owns the record; it names a transaction from rvm_begin_transaction
 * until that transaction has ended. */
typedef struct {
	rvm_struct_id_t struct_id;
	rvm_bool_t from_heap;
	struct timeval uname; /* unique in the process; the second in which the transaction began */
	void *tid;            /* used by the library; programs must not touch it */
	rvm_length_t reserved; /* used by the library; programs must not touch it */
} rvm_tid_t;

extern rvm_tid_t *rvm_malloc_tid(void);
extern void rvm_init_tid(rvm_tid_t *tid);
extern rvm_tid_t *rvm_copy_tid(rvm_tid_t *tid);
extern void rvm_free_tid(rvm_tid_t *tid);

typedef struct {
	rvm_struct_id_t struct_id;
	rvm_bool_t from_heap;
	/* The log's name ("The log" above). rvm_query: NULL, or room for MAXPATHLEN + 1 bytes. */
	char *log_dev;
	long truncate;                 /* percent of the log, 0 to 100; stored, not used */
	rvm_length_t recovery_buf_len; /* stored, not used */
	/* RVM_COALESCE_TRANS delays at most this many bytes of no_flush transactions;
	 * MIN_FLUSH_BUF_LEN to 16 MiB. */
	rvm_length_t flush_buf_len;
	rvm_length_t max_read_len; /* stored, not used */
	/* rvm_query: rvm_true if the external data segments have all committed changes. */
	rvm_bool_t log_empty;
	char *pager;     /* must be NULL */
	long n_uncommit; /* rvm_query: the number of open transactions */
	/* rvm_query: the open transactions, in allocated memory; NULL in a new record. */
	rvm_tid_t *tid_array;
	rvm_length_t flags;           /* bits of RVM_COALESCE_RANGES and so on, below */
	rvm_bool_t create_log_file;   /* with log_dev: create the store, which must not exist */
	rvm_offset_t create_log_size; /* with create_log_file: as log_len of rvm_create_log */
	long create_log_mode;         /* ignored: the mirrors' access rules decide about rights */
} rvm_options_t;

/* Defaults in a new record of options, and lower limits. */
#define TRUNCATE 50
#define RECOVERY_BUF_LEN (256ul * 1024)
#define MIN_RECOVERY_BUF_LEN (64ul * 1024)
#define FLUSH_BUF_LEN (256ul * 1024)
#define MIN_FLUSH_BUF_LEN (64ul * 1024)
#define MAX_READ_LEN (512ul * 1024)

/* Bits of rvm_options_t.flags. */
#define RVM_COALESCE_RANGES 1 /* bytes that a transaction declares twice are sent once */
/* no_flush transactions are delayed for up to a second and sent together; bytes that several of
 * them change are sent once (section 5.2 of the paper). */
#define RVM_COALESCE_TRANS 2
#define RVM_ALL_OPTIMIZATIONS (RVM_COALESCE_RANGES | RVM_COALESCE_TRANS)
/* rvm_map returns at once, and memory is fetched when it is touched (PERSEAS_RECOVERY_ON_DEMAND in
 * perseas.h). */
#define RVM_MAP_PRIVATE 8

extern rvm_options_t *rvm_malloc_options(void);
extern void rvm_init_options(rvm_options_t *options);
extern rvm_options_t *rvm_copy_options(rvm_options_t *options);
extern void rvm_free_options(rvm_options_t *options);

/* A region: a part of a segment that is mapped or will be. */
typedef struct {
	rvm_struct_id_t struct_id;
	rvm_bool_t from_heap;
	char *data_dev; /* the external data segment's path, 1023 bytes at most */
	/* The segment's length in bytes; 0 for that of the store's segment or of the file. */
	rvm_offset_t dev_length;
	rvm_offset_t offset; /* the region's beginning in the segment */
	char *vmaddr;        /* the region's address; NULL to let the library choose */
	rvm_length_t length; /* bytes; 0 for all up to the segment's end */
	rvm_bool_t no_copy;  /* ignored */
} rvm_region_t;

extern rvm_region_t *rvm_malloc_region(void);
extern void rvm_init_region(rvm_region_t *region);
extern rvm_region_t *rvm_copy_region(rvm_region_t *region);
extern void rvm_free_region(rvm_region_t *region);

/* --- the library and its log --- */

/*
 * Initializes the library, once in a process. Opens the store if the options name a log; an owner
 * that is alive is not fenced. Otherwise rvm_set_options or rvm_map must name the log. A second
 * call does nothing.
 *
 * Errors: RVM_EVERSION_SKEW, RVM_EINIT (rvm_terminate was called), those of rvm_set_options.
 */
extern rvm_return_t rvm_initialize(const char *version, rvm_options_t *options);
#define RVM_INIT(options) rvm_initialize(RVM_VERSION, (options))

/*
 * Makes all commits permanent, closes the store, and unmaps all regions. Does not write external
 * data segments: rvm_truncate does. If the call returns RVM_ETERMINATED, the library is terminated
 * all the same.
 *
 * Errors: RVM_EUNCOMMIT, RVM_EIO (mirrors do not hold all commits yet: call it again).
 */
extern rvm_return_t rvm_terminate(void);

/*
 * Puts options in force. If no log is open, opens the one that log_dev names. log_dev may be NULL,
 * or the name of the open log.
 *
 * Errors: RVM_EOPTIONS (also if truncate is not 0 to 100), RVM_EPAGER, RVM_ENAME_TOO_LONG, RVM_ELOG
 * (another log is open, the name cannot be parsed, or its store cannot be opened),
 * RVM_ELOG_VERSION_SKEW, RVM_EIO (errno EEXIST: create_log_file is set and the store exists).
 */
extern rvm_return_t rvm_set_options(rvm_options_t *options);

/*
 * Fills in the record with the options in force and the open transactions; if a region is given,
 * only with those that declared bytes of it. Reallocates tid_array. Other threads continue in the
 * meantime.
 *
 * Errors: RVM_EOPTIONS, RVM_EREGION, RVM_ENOT_MAPPED.
 */
extern rvm_return_t rvm_query(rvm_options_t *options, rvm_region_t *region);

/*
 * Creates the store that options->log_dev names, and does not open it. All mirrors must answer.
 * log_len is the length of the undo log on each mirror in bytes, at least 4 MiB; 0 for 16 MiB. A
 * transaction may declare about half of that. mode is ignored.
 *
 * Errors: RVM_EOPTIONS, RVM_ELOG, RVM_EIO (errno EEXIST: the store exists), RVM_EOFFSET (log_len is
 * NULL, or more than 64 GiB).
 */
extern rvm_return_t rvm_create_log(rvm_options_t *options, rvm_offset_t *log_len, long mode);

/* --- regions --- */

/*
 * Maps a region (section 4.1 of the paper). Rounds its offset down and its end up to a page, but
 * not beyond the segment's end, and returns offset, length and vmaddr in *region. If vmaddr is not
 * NULL, it replaces the program's memory there, which must exist in all of the range; rvm_unmap
 * leaves zeros there. A part of a segment that was mapped before with other bounds is copied into a
 * new part. options are put in force as by rvm_set_options; NULL is allowed.
 *
 * Errors: RVM_EREGION (also without a data_dev), RVM_ENAME_TOO_LONG, RVM_EOFFSET, RVM_EOVERLAP,
 * RVM_EVM_OVERLAP, RVM_ERANGE (vmaddr is not page-aligned, or part of the range is not the
 * program's memory), RVM_ETOO_BIG (the store has too many segments or parts, or the region has more
 * than 1 TiB), those of rvm_set_options.
 */
extern rvm_return_t rvm_map(rvm_region_t *region, rvm_options_t *options);

/*
 * Unmaps a region, which must be as rvm_map returned it. The store keeps its contents.
 *
 * Errors: RVM_EREGION, RVM_ENOT_MAPPED, RVM_EUNCOMMIT (an open transaction declared bytes of it).
 */
extern rvm_return_t rvm_unmap(rvm_region_t *region);

/* --- transactions --- */

/*
 * Begins a transaction (section 4.2 of the paper), which *tid names from then on.
 *
 * Errors: RVM_ETID (also if *tid names an open transaction), RVM_EMODE, RVM_EIO (an earlier commit
 * is in doubt: rvm_flush waits for it).
 */
extern rvm_return_t rvm_begin_transaction(rvm_tid_t *tid, rvm_mode_t mode);

/*
 * Declares that the transaction may change length bytes from dest on. Must be called before the
 * bytes are changed. Length 0 does nothing.
 *
 * Errors: RVM_ETID, RVM_ENOT_MAPPED, RVM_ETOO_BIG (the transaction would exceed the log, or 16
 * MiB).
 */
extern rvm_return_t rvm_set_range(rvm_tid_t *tid, void *dest, rvm_length_t length);

/* Declares the range as rvm_set_range does, and copies the bytes from src, which may overlap dest.
 * Errors: those of rvm_set_range, and RVM_ESRC (src is NULL). */
extern rvm_return_t rvm_modify_bytes(rvm_tid_t *tid, void *dest, const void *src,
                                     rvm_length_t length);

/* Restores everything that the transaction declared, and ends it. Errors: RVM_ETID. */
extern rvm_return_t rvm_abort_transaction(rvm_tid_t *tid);

/*
 * Commits a transaction. With flush, returns once this transaction and everything committed before
 * it is permanent. With no_flush, a crash may lose the transaction and everything committed after
 * it, until rvm_flush or a commit with flush has returned (section 5.2 of the paper).
 *
 * Errors that leave the transaction open: RVM_ETID, RVM_EMODE, RVM_ENO_MEMORY, RVM_EIO with errno
 * EAGAIN (an earlier commit is in doubt). Errors that end it: RVM_EIO with another errno (the
 * transaction is applied here, but mirrors did not answer in time: rvm_flush waits for them),
 * RVM_ETERMINATED (its outcome is unknown).
 */
extern rvm_return_t rvm_end_transaction(rvm_tid_t *tid, rvm_mode_t mode);

/* Waits until all commits are permanent, for 5 s at most. Errors: RVM_EIO (some are not yet). */
extern rvm_return_t rvm_flush(void);

/*
 * Waits as rvm_flush does, and writes what was committed since the last call to the external data
 * segments of which the program has mapped regions: all parts that the store holds, mapped or not.
 * Creates missing files. Transactions may be open and continue. Afterwards each file is as between
 * two commits, without uncommitted bytes. The changed pages are copied before they are written,
 * which needs as much memory. A crash during a call leaves a file with old and new parts; rvm_map
 * does not read these, and the next rvm_truncate writes everything and repairs them.
 *
 * Each file is locked while it is written (fcntl, F_OFD_SETLK, the whole file), and then mirrors
 * are asked whether this process still owns the store. So it never overwrites what another owner
 * wrote, on this node or, if the file system has locks, on another one.
 *
 * Errors: RVM_ENO_MEMORY, RVM_EIO (a file cannot be written: the next call writes it again; errno
 * EAGAIN: another process held its lock for 5 s; ENOLCK: the file system cannot give a lock now),
 * RVM_ETERMINATED (another owner has the store; the file that would have been next was not
 * written).
 */
extern rvm_return_t rvm_truncate(void);

#ifdef __cplusplus
}
#endif

#endif
