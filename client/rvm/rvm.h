/*
 * rvm.h - the interface of RVM, lightweight recoverable virtual memory, on memory that is mirrored.
 *
 * Programs that were written for RVM (Satyanarayanan, Mashburn, Kumar, Steere and Kistler,
 * "Lightweight Recoverable Virtual Memory", SOSP'93, section 4) compile against this header and
 * link with librvm-perseas, unchanged. Names, members and values of codes are RVM's; the text and
 * the code are not. doc/rvm.md says what changes for such a program.
 *
 * The log. Where RVM wants the name of a log file (rvm_options_t.log_dev), this library wants a
 * store and its mirrors: "perseas:STORE@LIST", with LIST as perseas_open takes it, as in
 * "perseas:bank@node1:7170,node2:7170". Any other text is the path of a file of which the first
 * line that is neither empty nor begins with # is such a name; so a program in which the path of
 * its log is fixed need not be changed. A commit is permanent when a majority of the mirrors holds
 * it, or as many as the store was created with.
 *
 * Segments. rvm_region_t.data_dev names an external data segment, a file or a device. What of it
 * was never mapped with this store is read from there; from then on the store has it, and
 * wherever the program runs next rvm_map takes it from the mirrors. rvm_truncate writes it back. In
 * the store a segment is known by that name as it is written, so a program that moves to another
 * node uses the same one. A store holds 64 segments, and 120 parts of these that were mapped as
 * regions; a region has 1 TiB at most. Segments of the store whose names begin with "rvm." are this
 * library's. A region whose address the library chooses is at the same one the next time, if that
 * is free.
 *
 * Errors. Functions return RVM_SUCCESS or another code, and rvm_message() the sentence that goes
 * with it. With RVM_EIO errno is set. Unless a function says otherwise nothing is changed after an
 * error. These can come of any function that needs them: RVM_EINIT (rvm_initialize was not called,
 * or rvm_terminate was), RVM_ELOG (no log was named yet), RVM_ENO_MEMORY, RVM_ETERMINATED (another
 * owner has taken the store over: end the program), RVM_EIO (mirrors cannot be reached or do not
 * answer, a file cannot be read or written), RVM_EINTERNAL (a fault of this library).
 *
 * Records. Those that are passed must have been made by rvm_malloc_X or filled in by rvm_init_X:
 * RVM_EOPTIONS, RVM_EREGION, RVM_ETID and RVM_ESTATISTICS are returned for others, and for NULL.
 *
 * Threads. Any number of threads may call these functions, of which one at a time uses a
 * transaction. RVM does not keep transactions apart, and nor does this library: the program takes
 * care that no two that are open declare the same byte. rvm_terminate must be the last call. A
 * child of fork must not use the library, and does not inherit regions.
 *
 * What cannot be had:
 * - An abort of a transaction that began with no_restore does restore. Mirrors that are copied from
 *   this process would otherwise hold what was never committed.
 * - An external pager: RVM_EPAGER. RVM_MAP_PRIVATE brings memory when it is touched.
 * - rvm_region_t.no_copy: the contents are copied always. What the caller's memory held before is
 *   not kept.
 * - RVM_COALESCE_TRANS and RVM_MAP_PRIVATE that are first set after the log was named do nothing;
 *   rvm_query says which flags are in force. RVM_COALESCE_RANGES is always in force.
 * - rvm_options_t.truncate, recovery_buf_len and max_read_len are kept, and given back by
 *   rvm_query; there is no log that would have to be truncated.
 */
#ifndef RVM_VERSION

/* rvm_initialize is given this. It takes every text that begins with "RVM Interface Version 1.3",
 * also that of a program that was compiled with another header of this version. */
#define RVM_VERSION "RVM Interface Version 1.3 (Perseas)"
#define RVM_VERSION_MAX 128 /* bytes that any such text takes at most, with its end */

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

/* What a record is, in its first member. */
typedef enum {
	rvm_first_struct_id = 39, /* none of them */
	rvm_region_id,
	rvm_options_id,
	rvm_tid_id,
	rvm_statistics_id,
	rvm_last_struct_id /* none of them */
} rvm_struct_id_t;

/* How a transaction begins, and how it ends. */
typedef enum {
	rvm_first_mode = 139, /* none of them */
	restore,              /* begin: an abort restores memory */
	no_restore,           /* begin: the program will not abort it; see above */
	flush,                /* end: return when the transaction is permanent */
	no_flush,             /* end: return at once; rvm_flush makes it permanent */
	rvm_last_mode         /* none of them */
} rvm_mode_t;

/* What functions return. */
typedef int rvm_return_t;

#define RVM_SUCCESS 0
#define rvm_first_code 199        /* codes of errors are above it */
#define RVM_EINIT 200             /* the library is not initialised, or was terminated */
#define RVM_EINTERNAL 201         /* a fault of the library */
#define RVM_EIO 202               /* see errno */
#define RVM_ELOG 204              /* the log is not named, or cannot be had */
#define RVM_ELOG_VERSION_SKEW 205 /* mirrors speak another version */
#define RVM_EMODE 206             /* no mode that a transaction can begin or end with */
#define RVM_ENAME_TOO_LONG 207    /* a name of more than 1023 bytes */
#define RVM_ENO_MEMORY 208
#define RVM_ENOT_MAPPED 209 /* not wholly in one region that is mapped */
#define RVM_EOFFSET 210     /* not inside of the segment */
#define RVM_EOPTIONS 211
#define RVM_EOVERLAP 212 /* a part of the segment is mapped already */
#define RVM_EPAGER 213   /* there are no external pagers */
#define RVM_ERANGE 214   /* an address that cannot be mapped at */
#define RVM_EREGION 215
#define RVM_EREGION_DEF 216 /* of the segment loader */
#define RVM_ESRC 217        /* no address of new values */
#define RVM_ESTATISTICS 218
#define RVM_ESTAT_VERSION_SKEW 219 /* the record of statistics is of another version */
#define RVM_ETERMINATED 220        /* another owner has the store */
#define RVM_ETHREADS 221           /* never returned */
#define RVM_ETID 222               /* no transaction that is open */
#define RVM_ETOO_BIG 223           /* a limit is exceeded */
#define RVM_EUNCOMMIT 224          /* a transaction is open */
#define RVM_EVERSION_SKEW 225      /* the program was compiled for another version */
#define RVM_EVM_OVERLAP 226        /* a region is mapped there already */
#define rvm_last_code 227          /* codes of errors are below it */

/* The name of a code, a mode, a record's type, as it stands above (a type's: "rvm_tid_t"). A
 * sentence that says so for other values. Never NULL; static. Any thread. */
extern char *rvm_return(rvm_return_t code);
extern char *rvm_mode(rvm_mode_t mode);
extern char *rvm_type(rvm_struct_id_t id);

/* The sentence of the last error of the calling thread, "" if there was none. Never NULL; valid
 * until the thread's next call. RVM has no such function. */
extern const char *rvm_message(void);

/* --- lengths and offsets --- */

/* Lengths, in bytes. */
typedef unsigned long rvm_length_t;

/* Offsets in segments, in bytes: high * 2^64 + low. */
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

/* Sums and differences; both arguments of those of two offsets must be variables. */
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

/* Pages are those of the system. */
#define RVM_PAGE_SIZE rvm_page_size()
#define RVM_ROUND_LENGTH_UP_TO_PAGE_SIZE(x) \
	((rvm_length_t)(((rvm_length_t)(x) + rvm_page_size() - 1) & rvm_page_mask()))
#define RVM_ROUND_LENGTH_DOWN_TO_PAGE_SIZE(x) ((rvm_length_t)((rvm_length_t)(x)&rvm_page_mask()))
#define RVM_ROUND_ADDR_UP_TO_PAGE_SIZE(x) \
	((char *)(((rvm_length_t)(x) + rvm_page_size() - 1) & rvm_page_mask()))
#define RVM_ROUND_ADDR_DOWN_TO_PAGE_SIZE(x) ((char *)((rvm_length_t)(x)&rvm_page_mask()))
#define RVM_ROUND_OFFSET_UP_TO_PAGE_SIZE(x) rvm_rnd_offset_up_to_page(&(x))
#define RVM_ROUND_OFFSET_DOWN_TO_PAGE_SIZE(x) rvm_rnd_offset_dn_to_page(&(x))

/* What the macros above call. Sums and differences wrap around at 2^128. */
extern rvm_offset_t rvm_mk_offset(rvm_length_t high, rvm_length_t low);
extern rvm_offset_t rvm_add_offsets(rvm_offset_t *x, rvm_offset_t *y);
extern rvm_offset_t rvm_add_length_to_offset(rvm_offset_t *offset, rvm_length_t length);
extern rvm_offset_t rvm_sub_offsets(rvm_offset_t *x, rvm_offset_t *y);
extern rvm_offset_t rvm_sub_length_from_offset(rvm_offset_t *offset, rvm_length_t length);
extern rvm_length_t rvm_page_size(void);
extern rvm_length_t rvm_page_mask(void); /* ANDed with an address: where its page begins */
extern rvm_offset_t rvm_rnd_offset_up_to_page(rvm_offset_t *x);
extern rvm_offset_t rvm_rnd_offset_dn_to_page(rvm_offset_t *x);

/* --- records --- */

/*
 * For each type of record: malloc gives one that is filled in with defaults, or NULL if memory is
 * out. init fills in one that is the caller's. copy gives another one that is equal, with copies of
 * tid_array and no copies of texts; NULL if memory is out or the argument is none of that type.
 * free frees what malloc and copy gave, with its tid_array, and makes any other one unusable until
 * init; the texts that it points to are the caller's. NULL is let pass.
 */

/* A transaction. The caller's, and of use from rvm_begin_transaction until it has ended. */
typedef struct {
	rvm_struct_id_t struct_id;
	rvm_bool_t from_heap;
	struct timeval
		uname; /* no two transactions of a process have the same; begun in that second */
	void *tid;     /* the library's */
	rvm_length_t reserved; /* the library's */
} rvm_tid_t;

extern rvm_tid_t *rvm_malloc_tid(void);
extern void rvm_init_tid(rvm_tid_t *tid);
extern rvm_tid_t *rvm_copy_tid(rvm_tid_t *tid);
extern void rvm_free_tid(rvm_tid_t *tid);

typedef struct {
	rvm_struct_id_t struct_id;
	rvm_bool_t from_heap;
	char *log_dev; /* see above. rvm_query: NULL, or room for MAXPATHLEN + 1 bytes */
	long truncate; /* percents of the log, 0 to 100; kept and not used */
	rvm_length_t recovery_buf_len; /* kept and not used */
	rvm_length_t flush_buf_len; /* bytes of no_flush transactions that RVM_COALESCE_TRANS holds
	                               back at most, from MIN_FLUSH_BUF_LEN to 16 MiB */
	rvm_length_t max_read_len;  /* kept and not used */
	rvm_bool_t log_empty; /* rvm_query: external data segments have all that is committed */
	char *pager;          /* NULL */
	long n_uncommit;      /* rvm_query: how many transactions are open */
	rvm_tid_t *tid_array; /* rvm_query: these, of malloc; in a new record NULL */
	rvm_length_t flags;   /* RVM_COALESCE_RANGES and the others below */
	rvm_bool_t create_log_file;   /* with log_dev: create the store, which must not exist */
	rvm_offset_t create_log_size; /* with it: as log_len of rvm_create_log */
	long create_log_mode; /* with it: not used; rights are the mirrors' (access rules) */
} rvm_options_t;

/* What a new record of options has. */
#define TRUNCATE 50
#define RECOVERY_BUF_LEN (256ul * 1024)
#define MIN_RECOVERY_BUF_LEN (64ul * 1024)
#define FLUSH_BUF_LEN (256ul * 1024)
#define MIN_FLUSH_BUF_LEN (64ul * 1024)
#define MAX_READ_LEN (512ul * 1024)

/* Bits of rvm_options_t.flags. */
#define RVM_COALESCE_RANGES 1 /* what a transaction declares twice is sent once */
#define RVM_COALESCE_TRANS \
	2 /* no_flush transactions are held back for up to a second, and sent as
                                 one: what several change is sent once (section 5.2) */
#define RVM_ALL_OPTIMIZATIONS (RVM_COALESCE_RANGES | RVM_COALESCE_TRANS)
#define RVM_MAP_PRIVATE \
	8 /* rvm_map returns at once, and memory comes when it is touched
                             (PERSEAS_RECOVERY_ON_DEMAND in perseas.h) */

extern rvm_options_t *rvm_malloc_options(void);
extern void rvm_init_options(rvm_options_t *options);
extern rvm_options_t *rvm_copy_options(rvm_options_t *options);
extern void rvm_free_options(rvm_options_t *options);

/* A region: a part of a segment that is mapped, or is to be. */
typedef struct {
	rvm_struct_id_t struct_id;
	rvm_bool_t from_heap;
	char *data_dev;          /* the external data segment's path, 1023 bytes at most */
	rvm_offset_t dev_length; /* the segment's length; 0: as the store has it, or the file */
	rvm_offset_t offset;     /* where in the segment the region begins */
	char *vmaddr;            /* where it is mapped; NULL: the library chooses */
	rvm_length_t length;     /* 0: to the segment's end */
	rvm_bool_t no_copy;      /* not used */
} rvm_region_t;

extern rvm_region_t *rvm_malloc_region(void);
extern void rvm_init_region(rvm_region_t *region);
extern rvm_region_t *rvm_copy_region(rvm_region_t *region);
extern void rvm_free_region(rvm_region_t *region);

/* --- the library and its log --- */

/*
 * Initialises the library, once in a process. If options are given that name a log, its store is
 * opened: a live owner of it is not fenced. Without, rvm_set_options or rvm_map are to name it. A
 * second call does nothing.
 *
 * Errors: RVM_EVERSION_SKEW, RVM_EINIT (rvm_terminate was called), those of rvm_set_options.
 */
extern rvm_return_t rvm_initialize(const char *version, rvm_options_t *options);
#define RVM_INIT(options) rvm_initialize(RVM_VERSION, (options))

/*
 * Makes what is committed permanent, closes the store, and unmaps all regions. It writes nothing to
 * external data segments: rvm_truncate does. After RVM_ETERMINATED it has done its work.
 *
 * Errors: RVM_EUNCOMMIT, RVM_EIO (mirrors do not have all of it yet: call it again).
 */
extern rvm_return_t rvm_terminate(void);

/*
 * Takes options over. log_dev may be NULL, or the log's name if that is open already; if none is,
 * it is opened.
 *
 * Errors: RVM_EOPTIONS (also: truncate is not 0 to 100), RVM_EPAGER, RVM_ENAME_TOO_LONG, RVM_ELOG
 * (another log is open, the name cannot be understood, or its store cannot be opened),
 * RVM_ELOG_VERSION_SKEW, RVM_EIO (errno is EEXIST: the store is there, and create_log_file is set).
 */
extern rvm_return_t rvm_set_options(rvm_options_t *options);

/*
 * Fills in the record with the options in force, and with the transactions that are open; if a
 * region is given, those that declared bytes of it. tid_array is set anew by realloc. Other threads
 * go on meanwhile.
 *
 * Errors: RVM_EOPTIONS, RVM_EREGION, RVM_ENOT_MAPPED.
 */
extern rvm_return_t rvm_query(rvm_options_t *options, rvm_region_t *region);

/*
 * Creates the store that options->log_dev names, and does not open it. All mirrors must answer.
 * log_len is the length of the undo log on each mirror, in bytes; 0: 16 MiB, and less than 4 MiB
 * counts as that. A transaction may declare half of it, about. mode is not used.
 *
 * Errors: RVM_EOPTIONS, RVM_ELOG, RVM_EIO (errno is EEXIST: the store is there), RVM_EOFFSET
 * (log_len is NULL, or more than 64 GiB).
 */
extern rvm_return_t rvm_create_log(rvm_options_t *options, rvm_offset_t *log_len, long mode);

/* --- regions --- */

/*
 * Maps a region (section 4.1). Its offset is rounded down to a page and its end up, but not beyond
 * the segment's; region has offset, length and vmaddr as they are then. If vmaddr is not NULL,
 * memory of the caller's that is all of that range is replaced; rvm_unmap leaves zeros there. A
 * part of a segment that was mapped in other parts before is cut anew, which copies them. options
 * may be NULL, or are taken over as by rvm_set_options.
 *
 * Errors: RVM_EREGION (also: no data_dev), RVM_ENAME_TOO_LONG, RVM_EOFFSET, RVM_EOVERLAP,
 * RVM_EVM_OVERLAP, RVM_ERANGE (vmaddr is not where a page begins, or a part of that range is not
 * the caller's), RVM_ETOO_BIG (the store has as many segments or parts as it can, or a region of
 * more than 1 TiB is wanted), those of rvm_set_options.
 */
extern rvm_return_t rvm_map(rvm_region_t *region, rvm_options_t *options);

/*
 * Unmaps a region, given as rvm_map left it. What it holds stays in the store.
 *
 * Errors: RVM_EREGION, RVM_ENOT_MAPPED, RVM_EUNCOMMIT (an open transaction declared bytes of it).
 */
extern rvm_return_t rvm_unmap(rvm_region_t *region);

/* --- transactions --- */

/*
 * Begins a transaction (section 4.2); *tid names it from then on.
 *
 * Errors: RVM_ETID (also: it names one that is open), RVM_EMODE, RVM_EIO (an earlier commit is in
 * doubt: rvm_flush waits for it).
 */
extern rvm_return_t rvm_begin_transaction(rvm_tid_t *tid, rvm_mode_t mode);

/*
 * Declares that the transaction may change length bytes from dest on, before it does. Length 0 does
 * nothing.
 *
 * Errors: RVM_ETID, RVM_ENOT_MAPPED, RVM_ETOO_BIG (the transaction would be too large for the log,
 * or for 16 MiB).
 */
extern rvm_return_t rvm_set_range(rvm_tid_t *tid, void *dest, rvm_length_t length);

/* The same, and copies the bytes there from src, which may overlap dest. Errors: the same, and
 * RVM_ESRC (src is NULL). */
extern rvm_return_t rvm_modify_bytes(rvm_tid_t *tid, void *dest, const void *src,
                                     rvm_length_t length);

/* Takes back all that the transaction declared, and ends it. Errors: RVM_ETID. */
extern rvm_return_t rvm_abort_transaction(rvm_tid_t *tid);

/*
 * Commits a transaction. With flush it returns when the transaction, and all that was committed
 * before it, is permanent. With no_flush a crash may lose it, and with it all that was committed
 * after it, until rvm_flush, or a commit with flush, has returned (section 5.2).
 *
 * Errors: RVM_ETID, RVM_EMODE, and these, after which the transaction is still open:
 * RVM_ENO_MEMORY, RVM_EIO with errno EAGAIN (an earlier commit is in doubt). After these it has
 * ended: RVM_EIO with another errno (it is applied here, and mirrors did not answer in time:
 * rvm_flush waits for them), RVM_ETERMINATED (its outcome is unknown).
 */
extern rvm_return_t rvm_end_transaction(rvm_tid_t *tid, rvm_mode_t mode);

/* Waits until all that is committed is permanent, for 5 s at most. Errors: RVM_EIO (it is not
 * yet). */
extern rvm_return_t rvm_flush(void);

/*
 * Waits as rvm_flush does, and writes what was committed since the last time to the external data
 * segments that the program has mapped regions of: all that the store has of them, mapped or not. A
 * file that is missing is made. Transactions may be open and go on: when it returns, each file is
 * as between two commits, and holds nothing of what is not committed. It copies what has changed
 * before it writes, and needs as much memory as that. A crash meanwhile leaves a file with old and
 * new parts; rvm_map does not read these, and the next rvm_truncate, which writes all, mends them.
 *
 * Each file is locked while it is written (fcntl, F_OFD_SETLK, the whole file), and mirrors are
 * asked before whether the store is still this process's: so what another owner wrote is not
 * written over, on this node or on another one, where the file system has locks.
 *
 * Errors: RVM_ENO_MEMORY, RVM_EIO (a file cannot be written: the next call writes it again; with
 * EAGAIN: another process had it locked for 5 s; with ENOLCK: no lock can be had now),
 * RVM_ETERMINATED (another owner has the store, and nothing was written of the file that would have
 * been the next).
 */
extern rvm_return_t rvm_truncate(void);

#ifdef __cplusplus
}
#endif

#endif
