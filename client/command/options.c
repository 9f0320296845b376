/*
 * options.c - the options, and what their values may be: one table, from which --help is written
 * too.
 */
#include "options.h"
#include "../../proto/envelope.h"
#include "../../proto/number.h"

#include <stdlib.h>
#include <string.h>

enum {
	CONNECT_TIMEOUT_MAX_MS = 600000,
	SECONDS_MAX = 86400,
	INTERVAL_MIN_MS = 100,
	RUN_MIN_MS = 100,
	RUN_MAX = 3600, /* seconds */
	BENCH_SIZE_MAX = 1 << 20,
	BENCH_THREADS_MAX = 64,
	HELP_COLUMN = 28,
};

/* A whole number from low to high. */
static bool read_between(const char *text, uint64_t low, uint64_t high, uint64_t *number)
{
	const char *end;

	return ps_number_read(text, &end, number) && !*end && *number >= low && *number <= high;
}

static bool set_mirrors(struct ps_args *args, const char *value)
{
	args->mirrors = value;
	return *value != '\0';
}

/* The library looks there, whichever of its functions a verb calls. */
static bool set_variable(const char *name, const char *value)
{
	return *value != '\0' && setenv(name, value, 1) == 0;
}

static bool set_tls_cert(struct ps_args *args, const char *value)
{
	(void)args;
	return set_variable("PERSEAS_TLS_CERT", value);
}

static bool set_tls_key(struct ps_args *args, const char *value)
{
	(void)args;
	return set_variable("PERSEAS_TLS_KEY", value);
}

static bool set_tls_ca(struct ps_args *args, const char *value)
{
	(void)args;
	return set_variable("PERSEAS_TLS_CA", value);
}

static bool set_to(struct ps_args *args, const char *value)
{
	args->to = value;
	return *value != '\0';
}

static bool set_onto(struct ps_args *args, const char *value)
{
	args->onto = value;
	return *value != '\0';
}

static bool set_as(struct ps_args *args, const char *value)
{
	args->as = value;
	return ps_name_valid(value);
}

static bool set_acks(struct ps_args *args, const char *value)
{
	uint64_t number = 0;
	bool good = read_between(value, 1, PS_MIRRORS_MAX, &number);

	args->acks = (uint32_t)number;
	return good;
}

static bool set_log_size(struct ps_args *args, const char *value)
{
	return ps_size_read(value, &args->log_size) && args->log_size >= PS_LOG_MIN &&
	       args->log_size <= PS_LOG_MAX;
}

static bool set_from(struct ps_args *args, const char *value)
{
	args->from = value;
	return *value != '\0';
}

static bool set_check(struct ps_args *args, const char *value)
{
	args->check = value;
	return *value != '\0';
}

static bool set_last(struct ps_args *args, const char *value)
{
	return read_between(value, 1, UINT64_MAX, &args->last);
}

static bool set_seq(struct ps_args *args, const char *value)
{
	args->one_seq = true;
	return read_between(value, 1, UINT64_MAX, &args->seq);
}

static bool set_segment(struct ps_args *args, const char *value)
{
	args->segment = value;
	return ps_name_valid(value);
}

static bool set_offset(struct ps_args *args, const char *value)
{
	return ps_size_read(value, &args->offset) && args->offset < PS_SEGMENT_MAX;
}

static bool set_length(struct ps_args *args, const char *value)
{
	return ps_size_read(value, &args->length) && args->length > 0 &&
	       args->length <= PS_SEGMENT_MAX;
}

static bool set_bytes(struct ps_args *args, const char *value)
{
	(void)value;
	return args->bytes = true;
}

static bool set_yes(struct ps_args *args, const char *value)
{
	(void)value;
	return args->yes = true;
}

static bool set_gone(struct ps_args *args, const char *value)
{
	(void)value;
	return args->gone = true;
}

static bool set_seconds(uint32_t *ms, const char *value)
{
	uint64_t number = 0;
	bool good = read_between(value, 1, SECONDS_MAX, &number);

	*ms = (uint32_t)number * 1000;
	return good;
}

static bool set_repeat(struct ps_args *args, const char *value)
{
	return set_seconds(&args->repeat_ms, value);
}

/* Seconds, with up to three decimals; from least_ms to most_s. */
static bool read_seconds(const char *value, uint32_t least_ms, uint32_t most_s, uint32_t *ms)
{
	uint64_t whole, part = 0;
	const char *end;

	if (!ps_number_read(value, &end, &whole) || whole > most_s)
		return false;
	if (*end == '.') {
		const char *digits = end + 1;

		if (!ps_number_read(digits, &end, &part) || end - digits > 3)
			return false;
		for (int i = 0; i < 3 - (int)(end - digits); i++)
			part *= 10;
	}
	*ms = (uint32_t)(whole * 1000 + part);
	return !*end && *ms >= least_ms && *ms <= most_s * (uint64_t)1000;
}

static bool set_interval(struct ps_args *args, const char *value)
{
	return read_seconds(value, INTERVAL_MIN_MS, SECONDS_MAX, &args->interval_ms);
}

static bool set_once(struct ps_args *args, const char *value)
{
	(void)value;
	return args->once = true;
}

static bool set_wait(struct ps_args *args, const char *value)
{
	return set_seconds(&args->wait_ms, value);
}

static bool set_accept_state(struct ps_args *args, const char *value)
{
	const char *end;

	return ps_number_read(value, &end, &args->accept_epoch) && args->accept_epoch > 0 &&
	       *end == ':' && read_between(end + 1, 0, UINT64_MAX, &args->accept_seq);
}

static bool set_connect_timeout(struct ps_args *args, const char *value)
{
	uint64_t number = 0;
	bool good = read_between(value, 1, CONNECT_TIMEOUT_MAX_MS, &number);

	args->connect_timeout_ms = (uint32_t)number;
	return good;
}

/* Sizes with commas between them. */
static bool set_sizes(struct ps_args *args, const char *value)
{
	char word[24];

	args->size_count = 0;
	for (size_t len; *value; value += len + (value[len] == ',' && value[len + 1])) {
		uint64_t size;

		len = strcspn(value, ",");
		if (len >= sizeof(word) || args->size_count == PS_SIZES_MAX)
			return false;
		memcpy(word, value, len);
		word[len] = '\0';
		if (!ps_size_read(word, &size) || size < 1 || size > BENCH_SIZE_MAX)
			return false;
		args->sizes[args->size_count++] = (uint32_t)size;
		if (value[len] == ',' && !value[len + 1])
			return false;
	}
	return args->size_count > 0;
}

static bool set_run(struct ps_args *args, const char *value)
{
	return read_seconds(value, RUN_MIN_MS, RUN_MAX, &args->run_ms);
}

static bool set_threads(struct ps_args *args, const char *value)
{
	uint64_t number = 0;
	bool good = read_between(value, 1, BENCH_THREADS_MAX, &number);

	args->threads = (uint32_t)number;
	return good;
}

static bool set_memory_dir(struct ps_args *args, const char *value)
{
	args->memory_dir = value;
	return value[0] == '/';
}

static bool set_json(struct ps_args *args, const char *value)
{
	(void)value;
	return args->json = true;
}

static bool set_takeover(struct ps_args *args, const char *value)
{
	(void)value;
	return args->takeover = true;
}

static bool set_help(struct ps_args *args, const char *value)
{
	(void)value;
	return args->help = true;
}

static bool set_version(struct ps_args *args, const char *value)
{
	(void)value;
	return args->version = true;
}

const struct ps_option ps_options[] = {
	{ "mirrors", "LIST", PS_ASKING_VERBS & ~(PS_SNAPSHOT | PS_HISTORY), set_mirrors,
	  "a list of mirrors",
	  "The mirrors, separated by commas: host:port (RDMA where both ends have it, else TCP), "
	  "rdma://host:port, tcp://host:port, unix:///path (shared memory, on the same host). "
	  "1 to 16. The same as LIST or MIRROR as a word: one of the two is needed." },
	{ "acks", "W", PS_CREATE | PS_RECOVER | PS_RESTORE | PS_ROSTER | PS_BENCH, set_acks,
	  "a number from 1 to 16",
	  "How many mirrors must hold a transaction before its commit returns, 1 to the number of "
	  "mirrors. Default: a majority. With recover, it is about the new store of --onto; with "
	  "roster, about the changed roster, where the default is what it was if that still "
	  "fits." },
	{ "log-size", "SIZE", PS_CREATE, set_log_size,
	  "a number of bytes from 4K to 64G, for example 65536 or 64M",
	  "Bytes of the undo log on each mirror, 4K to 64G; K, M and G are 1024, 1024^2 and "
	  "1024^3. Rounded up to 4K. A transaction's undo record may take half of it. Default: "
	  "16M." },
	{ "json", NULL, PS_ASKING_VERBS, set_json, NULL,
	  "Writes one JSON object instead of text. Sizes are in bytes. What went wrong is "
	  "said on stderr all the same." },
	{ "takeover", NULL, PS_RECOVER, set_takeover, NULL,
	  "Fences a live owner, whose commits fail from then on, instead of being refused." },
	{ "from", "MIRROR", PS_SNAPSHOT | PS_HISTORY, set_from, "a mirror",
	  "The mirror to read from: one address, as in --mirrors. Its data path is not used." },
	{ "check", "FILE", PS_SNAPSHOT, set_check, "a file",
	  "Reads a snapshot, and says whether every byte of it is as it was written." },
	{ "last", "N", PS_HISTORY, set_last, "a number from 1",
	  "At most N transactions, the newest first. Default: 20; with --segment or --seq, all "
	  "that the log still has." },
	{ "seq", "S", PS_HISTORY, set_seq, "a transaction's number, from 1",
	  "Only transaction S." },
	{ "segment", "NAME", PS_HISTORY, set_segment, "a segment's name",
	  "Only transactions that changed this segment." },
	{ "offset", "BYTES", PS_HISTORY, set_offset, "an offset in bytes, for example 4096 or 16M",
	  "With --segment: only those that changed bytes from this offset on. Default: 0." },
	{ "length", "BYTES", PS_HISTORY, set_length, "a number of bytes from 1",
	  "With --segment: how many bytes from the offset on. Default: 1 with --offset, else "
	  "all." },
	{ "bytes", NULL, PS_HISTORY, set_bytes, NULL,
	  "Shows in hexadecimal what the bytes were before each transaction, and after it." },
	{ "interval", "SECONDS", PS_TOP, set_interval,
	  "seconds from 0.1 to 86400, for example 0.5 or 60",
	  "Asks again after so many seconds, 0.1 at least. Default: 1." },
	{ "once", NULL, PS_TOP, set_once, NULL,
	  "Asks twice, with the interval between, prints once, and ends." },
	{ "repeat", "SECONDS", PS_VERIFY, set_repeat, "a number of seconds from 1 to 86400",
	  "Verifies again and again, with so many seconds between, until SIGINT or SIGTERM." },
	{ "gone", NULL, PS_ROSTER, set_gone, NULL,
	  "With remove or replace: OLD is gone for good, with what it holds, and will not be "
	  "started again. Needed to replace a dead mirror of two: were it to come back alone, it "
	  "would not know of the change." },
	{ "yes", NULL, PS_DROP, set_yes, NULL,
	  "Deletes. Without it, drop says what it would delete." },
	{ "wait", "SECONDS", PS_ROSTER | PS_SPILL, set_wait, "a number of seconds from 1 to 86400",
	  "How long to wait for the end. Default: 600. What was begun goes on without the "
	  "command." },
	{ "to", "PATH", PS_RECOVER | PS_SNAPSHOT, set_to, "a directory, or a snapshot's file",
	  "snapshot: the file to write, which must not be there. recover: writes each segment to "
	  "PATH/<name>, and what they are to PATH/MANIFEST.json. PATH is "
	  "made when it is missing; files that are there already are never replaced." },
	{ "onto", "LIST", PS_RECOVER, set_onto, "a list of mirrors",
	  "Makes the store again on these mirrors, with the same segments at the same addresses." },
	{ "as", "NAME", PS_RECOVER, set_as,
	  "a name: 1 to 63 of A-Z a-z 0-9 . _ -, not beginning with a dot",
	  "With --onto: the new store's name. Default: the old one's." },
	{ "accept-state", "EPOCH:SEQ", PS_RECOVER, set_accept_state,
	  "an epoch from 1 and a transaction's number, for example 7:12345",
	  "Accepts this state although too few mirrors answer to know that it is the newest. What "
	  "was acknowledged after it is lost. The refusal without this option names the state. "
	  "Without --to and --onto, W mirrors must have an image." },
	{ "sizes", "LIST", PS_BENCH, set_sizes,
	  "up to 16 numbers of bytes from 1 to 1M, with commas between them, for example 8,1K,64K",
	  "Bytes that a transaction changes; each is measured. Default: 8,64,1K,16K,256K." },
	{ "seconds", "S", PS_BENCH, set_run, "a number of seconds from 0.1 to 3600",
	  "How long each size is measured. Default: 2." },
	{ "threads", "N", PS_BENCH, set_threads, "a number from 1 to 64",
	  "How many threads run transactions at the same time. Default: 1." },
	{ "memory-dir", "DIR", PS_DOCTOR, set_memory_dir, "an absolute path",
	  "Where perseasd keeps images on this host. Default: /dev/shm/perseas." },
	{ "connect-timeout", "MS", PS_ASKING_VERBS, set_connect_timeout,
	  "a number of milliseconds from 1 to 600000",
	  "Milliseconds to wait for one round of answers from the mirrors. Default: 3000." },
	{ "tls-cert", "FILE", PS_EVERY_VERB, set_tls_cert, "a file",
	  "Connects by TLS 1.3 and shows this certificate (PEM, with those between it and the CA "
	  "behind it). Needs --tls-key and --tls-ca. Default: PERSEAS_TLS_CERT in the environment; "
	  "without it, TCP is plain text." },
	{ "tls-key", "FILE", PS_EVERY_VERB, set_tls_key, "a file",
	  "The certificate's key. Default: PERSEAS_TLS_KEY." },
	{ "tls-ca", "FILE", PS_EVERY_VERB, set_tls_ca, "a file",
	  "The CA that signs the mirrors' certificates. Default: PERSEAS_TLS_CA." },
	{ "help", NULL, PS_EVERY_VERB, set_help, NULL, "Prints this text." },
	{ "version", NULL, PS_EVERY_VERB, set_version, NULL, "Prints the version." },
};

enum { OPTIONS = sizeof(ps_options) / sizeof(ps_options[0]) };
static_assert(OPTIONS <= 64, "a bit for each in ps_args.given");

const unsigned ps_option_count = OPTIONS;

/* --- help --- */

void ps_args_help(FILE *out, unsigned bits)
{
	for (unsigned i = 0; i < OPTIONS; i++) {
		char name[HELP_COLUMN + 1];

		if (!(ps_options[i].verbs & bits))
			continue;
		snprintf(name, sizeof(name), "  --%s %s", ps_options[i].name,
		         ps_options[i].value ? ps_options[i].value : "");
		fprintf(out, "%-*s", HELP_COLUMN, name);
		ps_fill(out, ps_options[i].help, HELP_COLUMN, HELP_COLUMN);
	}
}
