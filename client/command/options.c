/*
 * options.c - the table of the command's options, with functions for values that
 * proto/base/options.c cannot parse. args.c reads command lines by the table; help and completion
 * are made from it. Each verb checks which options it accepts together.
 */
#include "options.h"
#include "../../proto/control/envelope.h"
#include "../../proto/base/number.h"

#include <string.h>

enum { BENCH_SIZE_MAX = 1 << 20 };

static bool set_as(void *into, const char *value)
{
	((struct ps_args *)into)->new_store_name = value;
	return ps_name_valid(value);
}

static bool set_name(void *into, const char *value)
{
	((struct ps_args *)into)->name = value;
	return ps_name_valid(value);
}

static bool set_segment(void *into, const char *value)
{
	((struct ps_args *)into)->segment = value;
	return ps_name_valid(value);
}

static bool set_apart(void *into, const char *value)
{
	((struct ps_args *)into)->apart = value;
	return !strcmp(value, "host") || !strcmp(value, "rack") || !strcmp(value, "zone");
}

static bool set_memory_dir(void *into, const char *value)
{
	((struct ps_args *)into)->memory_dir = value;
	return value[0] == '/';
}

static bool set_accept_state(void *into, const char *value)
{
	struct perseas_options *options = &((struct ps_args *)into)->options;
	const char *end;

	return ps_number_read(value, &end, &options->accept_epoch) && options->accept_epoch > 0 &&
	       *end == ':' && ps_number_read(end + 1, &end, &options->accept_seq) && !*end;
}

static bool set_store_level(void *into, const char *value)
{
	((struct ps_args *)into)->options.flags |= PERSEAS_LEVEL_0;
	return !strcmp(value, "0");
}

/* Parses sizes with commas between them. */
static bool set_sizes(void *into, const char *value)
{
	struct ps_args *args = into;
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

#define AT(member) PS_OPTION_AT(struct ps_args, member)

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(mirrors), "LIST", .must = "a list of mirrors",
	  .groups = PS_ASKING_VERBS & ~(PS_SNAPSHOT | PS_HISTORY | PS_HEAP),
	  .variable = PS_MIRRORS_VARIABLE,
	  .help = "The mirrors, separated by commas: host:port (RDMA where both ends have it, else "
	          "TCP), rdma://host:port, tcp://host:port, unix:///path (shared memory, on the "
	          "same host). 1 to 16. Without :port it is " PS_PORT ", and unix:// is "
	          "unix://" PS_SOCKET ". Or the name of such a list: @NAME for a line of "
	          "~/.config/perseas/clusters or /etc/perseas/clusters, srv://DOMAIN for the "
	          "DNS (SRV records of _perseas._tcp.DOMAIN). The same as LIST or MIRROR as a "
	          "word. drop and spill must be told their mirror; doctor asks none unless it is "
	          "told; all others ask "
	          "127.0.0.1:" PS_PORT " where nothing is said." },
	{ "acks", PS_OPTION_NUMBER, AT(options.acks), "W", .low = 1, .high = PS_MIRRORS_MAX,
	  .groups = PS_CREATE | PS_RECOVER | PS_RESTORE | PS_ROSTER | PS_BENCH,
	  .help = "How many mirrors must hold a transaction before its commit returns, 1 to the "
	          "number of mirrors. Default: a majority. With recover, it is about the new store "
	          "of --onto; with roster, about the changed roster, where the default is a "
	          "majority if W was one before, and else what W was if that still fits." },
	{ "log-size", PS_OPTION_SIZE, AT(options.log_size), "SIZE", "16M", PS_LOG_MIN, PS_LOG_MAX,
	  .groups = PS_CREATE,
	  .help = "Bytes of the undo log on each mirror, 4K to 64G; K, M and G are 1024, 1024^2 "
	          "and 1024^3. Rounded up to 4K. A transaction's undo record may take half of "
	          "it." },
	{ "level", PS_OPTION_OWN, .placeholder = "0", .set = set_store_level, .groups = PS_CREATE,
	  .must = "0: new stores get the highest level that all of their mirrors know",
	  .help = "Makes a store of level 0, which programs and mirrors of the version before can "
	          "use, too. Default: the highest level that all of the mirrors know. perseas "
	          "roster raise raises it later." },
	{ "json", PS_OPTION_FLAG, AT(json), .groups = PS_ASKING_VERBS & ~PS_RUN,
	  .help = "Writes one JSON object instead of text. Sizes are in bytes. What went wrong is "
	          "said on stderr all the same." },
	{ "takeover", PS_OPTION_FLAG, AT(takeover), .groups = PS_RECOVER,
	  .help = "Fences a live owner, whose commits fail from then on, instead of being "
	          "refused." },
	{ "from", PS_OPTION_TEXT, AT(from_mirror), "MIRROR", .must = "a mirror",
	  .groups = PS_SNAPSHOT | PS_HISTORY | PS_HEAP,
	  .help = "The mirror to read from: one address, as in --mirrors. Its data path is not "
	          "used. Default: PERSEAS_MIRRORS in the environment, where that is one, or "
	          "127.0.0.1:" PS_PORT "." },
	{ "check", PS_OPTION_TEXT, AT(check_file), "FILE", .must = "a file", .groups = PS_SNAPSHOT,
	  .help = "Reads a snapshot, and says whether every byte of it is as it was written." },
	{ "last", PS_OPTION_NUMBER, AT(last_count), "N", .low = 1, .groups = PS_HISTORY,
	  .help = "At most N transactions, the newest first. Default: 20; with --segment or --seq, "
	          "all that the log still has." },
	{ "seq", PS_OPTION_NUMBER, AT(seq), "S", .low = 1, .groups = PS_HISTORY,
	  .help = "Only transaction S." },
	{ "segment", PS_OPTION_OWN, .placeholder = "NAME", .set = set_segment,
	  .must = "a segment's name", .groups = PS_HISTORY,
	  .help = "Only transactions that changed this segment." },
	{ "offset", PS_OPTION_SIZE, AT(offset), "BYTES", "0", .high = PS_SEGMENT_MAX - 1,
	  .must = "an offset in bytes, for example 4096 or 16M", .groups = PS_HISTORY,
	  .help = "With --segment: only those that changed bytes from this offset on." },
	{ "length", PS_OPTION_SIZE, AT(length), "BYTES", .low = 1, .high = PS_SEGMENT_MAX,
	  .groups = PS_HISTORY,
	  .help = "With --segment: how many bytes from the offset on. Default: 1 with --offset, "
	          "else all." },
	{ "bytes", PS_OPTION_FLAG, AT(shows_bytes), .groups = PS_HISTORY,
	  .help = "Shows in hexadecimal what the bytes were before each transaction, and after "
	          "it." },
	{ "interval", PS_OPTION_SECONDS, AT(interval_ms), "SECONDS", "1", 100, 86400000,
	  .groups = PS_TOP, .help = "Asks again after so many seconds, 0.1 at least." },
	{ "once", PS_OPTION_FLAG, AT(once), .groups = PS_TOP,
	  .help = "Asks twice, with the interval between, prints once, and ends." },
	{ "repeat", PS_OPTION_SECONDS, AT(repeat_ms), "SECONDS", .low = 1000, .high = 86400000,
	  .groups = PS_VERIFY,
	  .help = "Verifies again and again, with so many seconds between, until SIGINT or "
	          "SIGTERM." },
	{ "repair", PS_OPTION_FLAG, AT(repair), .groups = PS_VERIFY,
	  .help = "Has the store's owner compare its memory with its mirrors, and send a mirror "
	          "the 64 KiB pieces that are wrong there: W other mirrors must agree with the "
	          "owner. Then verifies again. Nothing changes if too few agree, or if the owner "
	          "differs from all of them: its process stored without perseas_set_range." },
	{ "gone", PS_OPTION_FLAG, AT(is_gone_for_good), .groups = PS_ROSTER | PS_DRAIN,
	  .help = "roster remove or replace: OLD is gone for good, with what it holds, and will "
	          "not be started again. Needed to replace a dead mirror of two: were it to come "
	          "back alone, it would not know of the change. drain: the same is so of MIRROR, "
	          "which does not answer." },
	{ "yes", PS_OPTION_FLAG, AT(is_confirmed), .groups = PS_DROP,
	  .help = "Deletes; without it, drop says what it would delete." },
	{ "wait", PS_OPTION_SECONDS, AT(wait_ms), "SECONDS", "600", 1000, 86400000,
	  .groups = PS_ROSTER | PS_SPILL | PS_DRAIN | PS_VERIFY,
	  .help = "How long to wait for the end (verify: with --repair); drain: for that of each "
	          "store. What was begun "
	          "goes on without the command." },
	{ "to", PS_OPTION_TEXT, AT(to_path), "PATH", .must = "a directory, or a snapshot's file",
	  .groups = PS_RECOVER | PS_SNAPSHOT,
	  .help = "snapshot: the file to write, which must not be there. recover: writes each "
	          "segment to PATH/<name>, and what they are to PATH/MANIFEST.json. PATH is made "
	          "when it is missing; files that are there already are never replaced." },
	{ "onto", PS_OPTION_TEXT, AT(onto_mirrors), "LIST", .must = "a list of mirrors",
	  .groups = PS_RECOVER,
	  .help = "Makes the store again on these mirrors, with the same segments at the same "
	          "addresses." },
	{ "as", PS_OPTION_OWN, .placeholder = "NAME", .set = set_as, .groups = PS_RECOVER,
	  .must = "a name: 1 to 63 of A-Z a-z 0-9 . _ -, not beginning with a dot",
	  .help = "With --onto: the new store's name. Default: the old one's." },
	{ "accept-state", PS_OPTION_OWN, .placeholder = "EPOCH:SEQ", .set = set_accept_state,
	  .must = "an epoch from 1 and a transaction's number, for example 7:12345",
	  .groups = PS_RECOVER,
	  .help = "Accepts this state although too few mirrors answer to know that it is the "
	          "newest. What was acknowledged after it is lost. The refusal without this option "
	          "names the state. Without --to and --onto, W mirrors must have an image." },
	{ "sizes", PS_OPTION_OWN, .placeholder = "LIST", .default_text = "8,64,1K,16K,256K",
	  .set = set_sizes,
	  .must = "up to 16 numbers of bytes from 1 to 1M, with commas between them, for example "
	          "8,1K,64K",
	  .groups = PS_BENCH, .help = "Bytes that a transaction changes; each is measured." },
	{ "seconds", PS_OPTION_SECONDS, AT(run_ms), "S", "2", 100, 3600000, .groups = PS_BENCH,
	  .help = "How long each size is measured, and until one commit was." },
	{ "threads", PS_OPTION_NUMBER, AT(threads), "N", "1", 1, 64, .groups = PS_BENCH,
	  .help = "How many threads run transactions at the same time." },
	{ "order", PS_OPTION_NUMBER, AT(order), "N", "0", .high = PS_ORDER_MAX, .groups = PS_RUN,
	  .help = "Waits N times 0.25 s when the store has lost its owner, and looks again: of "
	          "several standbys, those with a lower N come first." },
	{ "name", PS_OPTION_OWN, .placeholder = "NAME", .set = set_name, .groups = PS_RUN,
	  .must = "a name: 1 to 63 of A-Z a-z 0-9 . _ -, not beginning with a dot",
	  .help = "What perseas move calls this standby. Default: the host's name." },
	{ "warm", PS_OPTION_FLAG, AT(warm), .groups = PS_RUN,
	  .help = "While it waits, keeps a copy of the store's memory that follows the owner's "
	          "transactions. COMMAND inherits it, and its perseas_map takes from it what it "
	          "would otherwise read from mirrors." },
	{ "warm-rate", PS_OPTION_SIZE, AT(options.warm_rate), "SIZE", "64M", PS_PAGE,
	  (uint64_t)1 << 40, .groups = PS_RUN,
	  .help = "With --warm: how many bytes of memory it reads from a mirror in a second, at "
	          "most, besides the log." },
	{ "within", PS_OPTION_SECONDS, AT(within_ms), "SECONDS", "30", 1000, 86400000,
	  .groups = PS_MOVE,
	  .help = "How long the owner and the standbys have for it. Then the request is taken "
	          "back." },
	{ "copies", PS_OPTION_NUMBER, AT(copies), "N", "3", 1, PS_MIRRORS_MAX, .groups = PS_PLACE,
	  .help = "How many mirrors the store is to have." },
	{ "size", PS_OPTION_SIZE, AT(image_size), "BYTES", "0", .groups = PS_PLACE,
	  .help = "Bytes that the store takes on each mirror, with its log: daemons that have not "
	          "so much room are left out." },
	{ "apart", PS_OPTION_OWN, .placeholder = "WHERE", .set = set_apart,
	  .groups = PS_PLACE | PS_DRAIN, .must = "host, rack or zone",
	  .help = "No two mirrors in the same host, rack or zone; rack means different hosts, too, "
	          "and zone different racks. Default: the widest of these that all daemons "
	          "name; of drain see above." },
	{ "all", PS_OPTION_FLAG, AT(all_stores), .groups = PS_STATUS,
	  .help = "Shows all stores of the daemons of LIST, a line each, instead of one store." },
	{ "dry-run", PS_OPTION_FLAG, AT(dry_run), .groups = PS_DRAIN | PS_ROSTER,
	  .help = "drain: says what would be moved where, and changes nothing. roster: says what W "
	          "and R would be, and changes nothing." },
	{ "restarts", PS_OPTION_NUMBER, AT(restarts), "N", "5", .high = 1000000, .groups = PS_RUN,
	  .help = "How often COMMAND is started again when it fails again and again, 0 for never; "
	          "then run ends with its status. Counts anew when it ran for a minute, or another "
	          "owner came." },
	{ "stop-after", PS_OPTION_SECONDS, AT(stop_ms), "SECONDS", "10", 100, 86400000,
	  .groups = PS_RUN,
	  .help = "How long after SIGTERM a COMMAND that was fenced, or is to hand the store over, "
	          "is sent SIGKILL." },
	{ "patience", PS_OPTION_SECONDS, AT(patience_ms), "SECONDS", "60", 100, 86400000,
	  .groups = PS_RUN,
	  .help = "At the start, how long to wait for a mirror that has the store. Later on, run "
	          "waits for mirrors without end." },
	{ "memory-dir", PS_OPTION_OWN, .placeholder = "DIR", .default_text = "/dev/shm/perseas",
	  .set = set_memory_dir, .must = "an absolute path", .groups = PS_DOCTOR,
	  .help = "Where perseasd keeps images on this host." },
	{ "mirror-timeout", PS_OPTION_NUMBER, AT(options.mirror_timeout_ms), "MS", "3000", 100,
	  600000, .unit = "milliseconds", .groups = PS_BENCH,
	  .help = "Milliseconds for which a mirror may say nothing before it is left." },
	{ "connect-timeout", PS_OPTION_NUMBER, AT(options.connect_timeout_ms), "MS", "3000", 1,
	  600000, .unit = "milliseconds", .groups = PS_ASKING_VERBS,
	  .help = "Milliseconds to wait for one round of answers from the mirrors." },
	{ "tls-cert", PS_OPTION_TEXT, AT(options.tls_cert), "FILE", .must = "a file",
	  .variable = "PERSEAS_TLS_CERT", .groups = PS_EVERY_VERB,
	  .help = "Connects by TLS 1.3 and shows this certificate (PEM, with those between it and "
	          "the CA behind it). Needs --tls-key and --tls-ca; without them, TCP is plain "
	          "text." },
	{ "tls-key", PS_OPTION_TEXT, AT(options.tls_key), "FILE", .must = "a file",
	  .variable = "PERSEAS_TLS_KEY", .groups = PS_EVERY_VERB,
	  .help = "The certificate's key." },
	{ "tls-ca", PS_OPTION_TEXT, AT(options.tls_ca), "FILE", .must = "a file",
	  .variable = "PERSEAS_TLS_CA", .groups = PS_EVERY_VERB,
	  .help = "The CA that signs the mirrors' certificates." },
	{ "tls-crl", PS_OPTION_TEXT, AT(options.tls_crl), "FILE", .must = "a file",
	  .variable = "PERSEAS_TLS_CRL", .groups = PS_EVERY_VERB,
	  .help = "What that CA has revoked, and what each CA between it and a mirror has: a list "
	          "of each (PEM). Without it, what is revoked is not asked." },
	{ "help", PS_OPTION_FLAG, AT(help), .groups = PS_EVERY_VERB, .letter = 'h',
	  .help = "Prints this text." },
	{ "version", PS_OPTION_FLAG, AT(version), .groups = PS_EVERY_VERB,
	  .help = "Prints the version." },
};
static_assert(sizeof(rows) / sizeof(rows[0]) <= 64, "a bit for each in ps_reader.given");

const struct ps_options ps_command_options = {
	.program = "perseas",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.refuses_repeats = true,
};
