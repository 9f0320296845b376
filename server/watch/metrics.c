/*
 * metrics.c - the table of metrics with their descriptions. http_loop.c calls it for /metrics,
 * main.c for --metrics-help. It only reads.
 */
#include "metrics.h"

#include "metrics_format.h"
#include "../../proto/base/latency.h"
#include "../loop/daemon.h"
#include "../store/status.h"
#include "losses.h"
#include "watch.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* --- the daemon --- */

static void write_build_info(struct sheet *sheet)
{
	metric_number(sheet,
	              LABELS({ "version", PERSEAS_VERSION }, { "rdma", PERSEAS_RDMA ? "1" : "0" }),
	              1);
}

static void write_place_info(struct sheet *sheet)
{
	const struct labels *labels = stores_labels(sheet->daemon->stores);
	char machine[PS_HEX_TEXT];

	metric_number(sheet,
	              LABELS({ "host", labels->host }, { "rack", labels->rack },
	                     { "zone", labels->zone },
	                     { "machine", watch_machine(machine, sheet->daemon) }),
	              1);
}

static void write_uptime(struct sheet *sheet)
{
	metric_seconds(sheet, "", NULL, daemon_now_ns() - sheet->daemon->began_ns);
}

static void write_ready(struct sheet *sheet)
{
	char why[WATCH_REASON];

	metric_number(sheet, NULL, watch_is_ready(sheet->daemon, why, sizeof(why)));
}

static struct memory *memory_of(const struct sheet *sheet)
{
	return stores_memory(sheet->daemon->stores);
}

/* Defines a metric with one number. */
#define ONE_NUMBER(name, value)                       \
	static void write_##name(struct sheet *sheet) \
	{                                             \
		metric_number(sheet, NULL, value);    \
	}

static void count_set_aside(void *arg, const char *name)
{
	(void)name;
	++*(uint64_t *)arg;
}

static uint64_t set_aside_count(struct memory *memory)
{
	uint64_t sum = 0;

	if (memory->ops->list_set_aside)
		memory->ops->list_set_aside(memory, count_set_aside, &sum);
	return sum;
}

ONE_NUMBER(set_aside, set_aside_count(memory_of(sheet)))
ONE_NUMBER(memory_used, memory_of(sheet)->ops->used(memory_of(sheet)))
ONE_NUMBER(memory_limit, memory_of(sheet)->ops->limit(memory_of(sheet)))
ONE_NUMBER(connections, sheet->daemon->admission.connection_count)
ONE_NUMBER(http_connections, http_connections(sheet->daemon->http))
ONE_NUMBER(accepted, sheet->daemon->counters.connections_accepted)
ONE_NUMBER(http_requests, sheet->daemon->counters.http_requests)
ONE_NUMBER(tcp_bytes, daemon_sum_traffic(sheet->daemon).received_bytes)
ONE_NUMBER(tcp_chains, daemon_sum_traffic(sheet->daemon).acknowledged_chains)
ONE_NUMBER(spins, daemon_spin_count(sheet->daemon))

static void write_memory_room(struct sheet *sheet)
{
	struct memory *memory = memory_of(sheet);
	const uint64_t room = memory->ops->room ? memory->ops->room(memory) : UINT64_MAX;

	if (room != UINT64_MAX)
		metric_number(sheet, NULL, room);
}

static void write_connections_refused(struct sheet *sheet)
{
	static const char *const reasons[REFUSALS] = {
		[REFUSED_FULL] = "full",   [REFUSED_LIMIT] = "limit", [REFUSED_TLS] = "tls",
		[REFUSED_HELLO] = "hello", [REFUSED_TOKEN] = "token",
	};

	for (unsigned i = 0; i < REFUSALS; i++)
		metric_number(sheet, LABELS({ "reason", reasons[i] }),
		              sheet->daemon->counters.connections_refused[i]);
}

static void write_stores(struct sheet *sheet)
{
	for (unsigned state = 0; state < WATCH_STATES; state++) {
		uint64_t count = 0;

		for (size_t i = 0; i < sheet->count; i++)
			count += watch_state(&sheet->views[i]) == state;
		metric_number(sheet, LABELS({ "state", watch_state_name(state) }), count);
	}
}

static void write_sessions(struct sheet *sheet)
{
	static const char *const fabrics[] = { "none", "rdma", "shm", "tcp" };

	for (unsigned fabric = 0; fabric < sizeof(fabrics) / sizeof(fabrics[0]); fabric++) {
		uint64_t count = 0;

		for (size_t i = 0; i < sheet->count; i++)
			count += sheet->views[i].status->owner_address[0] &&
			         strcmp(watch_fabric(&sheet->views[i]), fabrics[fabric]) == 0;
		metric_number(sheet, LABELS({ "fabric", fabrics[fabric] }), count);
	}
}

/* Defines a metric with a number for each certificate, CA and revocation list in use. */
#define OF_EXPIRIES(id, value)                                                                  \
	static void write_##id(struct sheet *sheet)                                             \
	{                                                                                       \
		const struct ps_expiries *all = &sheet->daemon->expiries;                       \
                                                                                                \
		for (const struct ps_expiry *at = all->list; at < all->list + all->count; at++) \
			metric_number(sheet,                                                    \
			              LABELS({ "kind", ps_expiry_kind_name(at->kind) },         \
			                     { "name", at->name }),                             \
			              value);                                                   \
	}

OF_EXPIRIES(expires, at->until_s)
OF_EXPIRIES(valid_from, at->from_s)

/* --- control requests --- */

static void write_requests(struct sheet *sheet)
{
	for (unsigned kind = 0; kind < CONTROL_REQUESTS; kind++)
		metric_number(sheet, LABELS({ "request", control_request_name(kind) }),
		              sheet->daemon->counters.requests[kind].count);
}

static void write_refusals(struct sheet *sheet)
{
	for (unsigned status = 1; status < COUNTED_STATUSES; status++) {
		char name[WATCH_STATUS_NAME];

		metric_number(sheet, LABELS({ "status", watch_status_name(name, status) }),
		              sheet->daemon->counters.refusals[status]);
	}
}

static void write_buckets(struct sheet *sheet, struct label of, const struct histogram *histogram)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		count += histogram->buckets[i];
		metric_bucket(sheet, of, histogram_bounds_ns[i], count);
	}
	assert(count <= histogram->count);
	metric_end_buckets(sheet, of, histogram->sum_ns, histogram->count);
}

/* Skips kinds without requests, because there are many kinds. */
static void write_request_seconds(struct sheet *sheet)
{
	for (unsigned kind = 0; kind < CONTROL_REQUESTS; kind++)
		if (sheet->daemon->counters.requests[kind].count > 0)
			write_buckets(sheet,
			              (struct label){ "request", control_request_name(kind) },
			              &sheet->daemon->counters.requests[kind]);
}

/* --- stores --- */

/* Defines a metric with a number for each store that satisfies `given`. */
#define OF_STORES(id, given, value)                                                           \
	static void write_##id(struct sheet *sheet)                                           \
	{                                                                                     \
		for (size_t i = 0; i < sheet->count; i++) {                                   \
			const struct store_view *view = &sheet->views[i];                     \
			const Perseas__StoreStatus *status = view->status;                    \
                                                                                              \
			if (given)                                                            \
				metric_number(sheet, LABELS({ "store", view->name }), value); \
		}                                                                             \
	}

OF_STORES(promised_epoch, status->header, status->header->promised_epoch)
OF_STORES(epoch, status->slot, status->slot->epoch)
OF_STORES(seq, status->slot, status->slot->seq)
OF_STORES(bytes, status->header, status->bytes)
OF_STORES(segments, status->header, status->header->n_segments)
OF_STORES(live, status->header, status->live)
OF_STORES(claims, status, view->events[STORE_CLAIMED])
OF_STORES(fences, status, view->events[STORE_FENCED])
OF_STORES(resyncs, status, view->events[STORE_RESYNC_BEGUN])
OF_STORES(rebuilds, status, view->events[STORE_REBUILD_BEGUN])
OF_STORES(restart_loss, status->header, view->restart_loss[0] != '\0')
OF_STORES(restart_losses, status, view->events[STORE_FILES_MISSING])

static void write_store_state(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->count; i++)
		metric_number(sheet,
		              LABELS({ "store", sheet->views[i].name },
		                     { "state", watch_state_name(watch_state(&sheet->views[i])) }),
		              1);
}

static void write_silence(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->count; i++)
		if (sheet->views[i].status->live)
			metric_seconds(sheet, "", LABELS({ "store", sheet->views[i].name }),
			               sheet->views[i].status->silent_ms * 1000000);
}

static void write_owner_info(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->count; i++)
		if (sheet->views[i].status->owner_address[0])
			metric_number(sheet,
			              LABELS({ "store", sheet->views[i].name },
			                     { "fabric", watch_fabric(&sheet->views[i]) }),
			              1);
}

/* --- reported by owners --- */

OF_STORES(owner_commits, status->figures, status->figures->commits)
OF_STORES(owner_aborts, status->figures, status->figures->aborts)
OF_STORES(owner_in_doubt, status->figures, status->figures->in_doubt)
OF_STORES(owner_doubt, status->figures, status->figures->doubt_ms != 0)
OF_STORES(owner_paced, status->figures, status->figures->paced)
OF_STORES(owner_missing, status->figures, status->figures->missing)
OF_STORES(owner_resync_bytes, status->figures, status->figures->resync_bytes)
OF_STORES(owner_bytes, status->figures, status->figures->range_bytes)
OF_STORES(owner_saved_within, status->figures, status->figures->saved_within)
OF_STORES(owner_saved_between, status->figures, status->figures->saved_between)

/* Writes the histogram of an owner's commits. The owner counts in 16 buckets for each power of two
 * nanoseconds; the metric has a bucket for some of these powers. */
static void write_latencies(struct sheet *sheet, const char *store, const Perseas__Latencies *told)
{
	static const uint8_t powers[] = {
		10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 26, 28, 30, 32,
	};
	const struct label of = { "store", store };
	uint64_t count = 0;
	size_t at = 0;

	for (unsigned i = 0; i < sizeof(powers); i++) {
		const uint64_t bound = UINT64_C(1) << powers[i];

		for (; at < told->n_counts && told->first + at < ps_latency_bucket(bound); at++)
			count += told->counts[at];
		metric_bucket(sheet, of, bound, count);
	}
	for (; at < told->n_counts; at++)
		count += told->counts[at];
	metric_end_buckets(sheet, of, told->sum_ns, count);
}

static void write_owner_latency(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->count; i++) {
		const Perseas__OwnerFigures *figures = sheet->views[i].status->figures;

		if (figures && figures->commit)
			write_latencies(sheet, sheet->views[i].name, figures->commit);
	}
}

static void write_next_loss(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->count; i++) {
		const struct store_view *view = &sheet->views[i];
		struct watch_losses losses;

		watch_losses_find(&losses, view->status);
		if (!view->status->live || !losses.count)
			continue;
		metric_number(sheet,
		              LABELS({ "store", view->name }, { "ends", "commit" },
		                     { "of", watch_loss_word(losses.can_commit, &losses.commit) }),
		              1);
		metric_number(sheet,
		              LABELS({ "store", view->name }, { "ends", "open" },
		                     { "of", watch_loss_word(losses.can_open, &losses.open) }),
		              1);
	}
}

/* --- mirrors, as reported by owners --- */

/* Calls write() for each report of an owner about a mirror. Skips a report with the address of an
 * earlier one, because both would be the same series. */
static void each_mirror(struct sheet *sheet,
                        void (*write)(struct sheet *sheet, const struct store_view *view,
                                      const Perseas__MirrorReport *report))
{
	for (size_t i = 0; i < sheet->count; i++) {
		const Perseas__StoreStatus *status = sheet->views[i].status;

		for (size_t j = 0; j < status->n_mirrors; j++)
			if (watch_is_first_report(status, j))
				write(sheet, &sheet->views[i], status->mirrors[j]);
	}
}

#define OF_MIRRORS(id, value)                                                                 \
	static void of_mirror_##id(struct sheet *sheet, const struct store_view *view,        \
	                           const Perseas__MirrorReport *report)                       \
	{                                                                                     \
		metric_number(sheet,                                                          \
		              LABELS({ "store", view->name }, { "mirror", report->address }), \
		              value);                                                         \
	}                                                                                     \
                                                                                              \
	static void write_mirror_##id(struct sheet *sheet)                                    \
	{                                                                                     \
		each_mirror(sheet, of_mirror_##id);                                           \
	}

OF_MIRRORS(seq, report->seq)
OF_MIRRORS(lag, watch_lag(view->status, report))
OF_MIRRORS(copied, report->done)
OF_MIRRORS(to_copy, report->total)
OF_MIRRORS(copy_rate, report->resync ? report->resync->rate : 0)
OF_MIRRORS(copy_left, report->resync ? (report->resync->left_ms + 999) / 1000 : 0)
OF_MIRRORS(broken_copies, report->broken ? report->broken->count : 0)
OF_MIRRORS(broken_bytes, report->broken ? report->broken->bytes : 0)
OF_MIRRORS(needed_rate, report->broken ? report->broken->rate : 0)
OF_MIRRORS(waited_for_copies, report->broken ? report->broken->waited : 0)

static void write_one_whole_copy(struct sheet *sheet, const struct store_view *view,
                                 const Perseas__MirrorReport *report)
{
	if (report->resync && *report->resync->whole)
		metric_number(sheet,
		              LABELS({ "store", view->name }, { "mirror", report->address },
		                     { "reason", report->resync->whole }),
		              1);
}

static void write_mirror_copied_whole(struct sheet *sheet)
{
	each_mirror(sheet, write_one_whole_copy);
}

static void write_one_mirror_state(struct sheet *sheet, const struct store_view *view,
                                   const Perseas__MirrorReport *report)
{
	metric_number(sheet,
	              LABELS({ "store", view->name }, { "mirror", report->address },
	                     { "state", watch_mirror_state(report) }),
	              1);
}

static void write_mirror_state(struct sheet *sheet)
{
	each_mirror(sheet, write_one_mirror_state);
}

/* --- all of them --- */

static const struct metric {
	const char *name, *type, *labels, *help;
	void (*write)(struct sheet *sheet);
} metrics[] = {
	{ "perseas_build_info", "gauge", "version, rdma", "Which perseasd this is; always 1.",
	  write_build_info },
	{ "perseas_place_info", "gauge", "host, rack, zone, machine",
	  "The labels, and a name that daemons on one machine share; always 1.", write_place_info },
	{ "perseas_uptime_seconds", "gauge", "", "Since the daemon began.", write_uptime },
	{ "perseas_ready", "gauge", "", "Whether /readyz says so: 1, else 0.", write_ready },
	{ "perseas_memory_used_bytes", "gauge", "", "Memory that images take.", write_memory_used },
	{ "perseas_memory_limit_bytes", "gauge", "", "What they may take; 0: no limit.",
	  write_memory_limit },
	{ "perseas_memory_room_bytes", "gauge", "",
	  "What they can still take: of the limit, file system, host and control group.",
	  write_memory_room },
	{ "perseas_images_set_aside", "gauge", "",
	  "Images that are not used since they may be old, and whose files are still there.",
	  write_set_aside },
	{ "perseas_stores", "gauge", "state", "Stores by the state of their image.", write_stores },
	{ "perseas_sessions", "gauge", "fabric",
	  "Owners' sessions by data path; none: it is not there yet.", write_sessions },
	{ "perseas_connections", "gauge", "", "Open connections of owners and commands.",
	  write_connections },
	{ "perseas_connections_total", "counter", "", "Connections that were accepted.",
	  write_accepted },
	{ "perseas_connections_refused_total", "counter", "reason",
	  "Connections that were refused or closed: full, as too many were open; limit, of its "
	  "identity; tls, its handshake failed; hello, it did not greet, or as something else; "
	  "token, a data path for no session.",
	  write_connections_refused },
	{ "perseas_tls_expires_timestamp_seconds", "gauge", "kind, name",
	  "When a certificate, CA or revocation list in use expires, since 1970; 0: never valid.",
	  write_expires },
	{ "perseas_tls_valid_from_timestamp_seconds", "gauge", "kind, name",
	  "From when it is valid, since 1970.", write_valid_from },
	{ "perseas_http_connections", "gauge", "", "Open connections for HTTP.",
	  write_http_connections },
	{ "perseas_http_requests_total", "counter", "", "HTTP requests that were answered.",
	  write_http_requests },
	{ "perseas_control_requests_total", "counter", "request", "Control requests by kind.",
	  write_requests },
	{ "perseas_control_refusals_total", "counter", "status",
	  "Control requests that were refused, by the status of the answer.", write_refusals },
	{ "perseas_control_request_seconds", "histogram", "request",
	  "How long control requests took, of the kinds that came.", write_request_seconds },
	{ "perseas_tcp_received_bytes_total", "counter", "",
	  "Bytes that data connections received.", write_tcp_bytes },
	{ "perseas_tcp_chains_total", "counter", "",
	  "Chains of writes that were applied and acknowledged over tcp.", write_tcp_chains },
	{ "perseas_spins_total", "counter", "",
	  "Times that a thread spun for more data (--spin-us).", write_spins },
	{ "perseas_store_state", "gauge", "store, state", "The state of the image; always 1.",
	  write_store_state },
	{ "perseas_store_promised_epoch", "gauge", "store",
	  "The epoch of the owner that the mirror promised to serve last.", write_promised_epoch },
	{ "perseas_store_epoch", "gauge", "store", "The epoch of the last transaction.",
	  write_epoch },
	{ "perseas_store_seq", "gauge", "store",
	  "The number of the last transaction; its rate is transactions per second.", write_seq },
	{ "perseas_store_bytes", "gauge", "store", "Memory that the image takes.", write_bytes },
	{ "perseas_store_segments", "gauge", "store", "Segments of the image.", write_segments },
	{ "perseas_store_owner_live", "gauge", "store",
	  "Whether a live owner is connected: 1, else 0.", write_live },
	{ "perseas_store_owner_silent_seconds", "gauge", "store",
	  "For how long the live owner was not heard.", write_silence },
	{ "perseas_store_owner_info", "gauge", "store, fabric",
	  "The session of the owner; always 1.", write_owner_info },
	{ "perseas_store_claims_total", "counter", "store",
	  "Claims that were granted since the store is served.", write_claims },
	{ "perseas_store_fences_total", "counter", "store",
	  "Owners that lost their session to another's claim.", write_fences },
	{ "perseas_store_resyncs_total", "counter", "store",
	  "Times that an owner began to repair the image in place.", write_resyncs },
	{ "perseas_store_rebuilds_total", "counter", "store",
	  "Times that an owner began to rebuild the image.", write_rebuilds },
	{ "perseas_store_files_missing", "gauge", "store",
	  "Whether a restart of the daemon would lose the image, as files of it were removed or "
	  "moved: 1, else 0.",
	  write_restart_loss },
	{ "perseas_store_files_missing_total", "counter", "store",
	  "Times that files of the image were found missing.", write_restart_losses },
	{ "perseas_owner_commits_total", "counter", "store",
	  "Transactions that the owner committed since it opened the store.", write_owner_commits },
	{ "perseas_owner_aborts_total", "counter", "store", "Transactions that it aborted.",
	  write_owner_aborts },
	{ "perseas_owner_in_doubt_total", "counter", "store",
	  "Commits of which it does not know whether they count.", write_owner_in_doubt },
	{ "perseas_owner_doubt", "gauge", "store",
	  "Whether a commit is in doubt, as fewer than W mirrors hold it: 1, else 0.",
	  write_owner_doubt },
	{ "perseas_owner_paced_total", "counter", "store",
	  "Commits that waited for a mirror that could not keep up.", write_owner_paced },
	{ "perseas_owner_missing_bytes", "gauge", "store",
	  "About so much mapped memory it has still to read from mirrors (recovery on demand).",
	  write_owner_missing },
	{ "perseas_owner_resync_bytes_total", "counter", "store",
	  "Bytes that it copied to mirrors while transactions went on, also in vain.",
	  write_owner_resync_bytes },
	{ "perseas_owner_range_bytes_total", "counter", "store",
	  "Bytes that its transactions changed.", write_owner_bytes },
	{ "perseas_owner_saved_within_bytes_total", "counter", "store",
	  "Bytes that transactions declared again: each was sent once.", write_owner_saved_within },
	{ "perseas_owner_saved_between_bytes_total", "counter", "store",
	  "Bytes not sent, as a later transaction that was sent with it changed them again.",
	  write_owner_saved_between },
	{ "perseas_owner_commit_latency_seconds", "histogram", "store",
	  "How long its commits took; an estimate where it times only some.", write_owner_latency },
	{ "perseas_store_next_loss", "gauge", "store, ends, of",
	  "The smallest loss that ends commits or opens; now: they have ended; always 1.",
	  write_next_loss },
	{ "perseas_mirror_state", "gauge", "store, mirror, state",
	  "A mirror as the store's owner sees it; always 1.", write_mirror_state },
	{ "perseas_mirror_seq", "gauge", "store, mirror",
	  "The last transaction that the mirror holds, as the owner knows.", write_mirror_seq },
	{ "perseas_mirror_lag_transactions", "gauge", "store, mirror",
	  "By how many transactions it was behind the furthest mirror when the owner told.",
	  write_mirror_lag },
	{ "perseas_mirror_resync_copied_bytes", "gauge", "store, mirror",
	  "How much of a copy is done.", write_mirror_copied },
	{ "perseas_mirror_resync_size_bytes", "gauge", "store, mirror",
	  "How much the copy is; 0: none goes on.", write_mirror_to_copy },
	{ "perseas_mirror_resync_rate_bytes", "gauge", "store, mirror",
	  "Bytes a second that the copy sent lately; 0: unknown.", write_mirror_copy_rate },
	{ "perseas_mirror_resync_left_seconds", "gauge", "store, mirror",
	  "How long the rest of the copy takes at this rate; 0: unknown.", write_mirror_copy_left },
	{ "perseas_mirror_resync_whole", "gauge", "store, mirror, reason",
	  "A copy that sends everything, and why; always 1.", write_mirror_copied_whole },
	{ "perseas_mirror_broken_copies", "gauge", "store, mirror",
	  "Whole copies that broke since the last one that ended.", write_mirror_broken_copies },
	{ "perseas_mirror_broken_copies_bytes", "gauge", "store, mirror",
	  "What these copies sent in vain.", write_mirror_broken_bytes },
	{ "perseas_mirror_link_rate_needed_bytes", "gauge", "store, mirror",
	  "Bytes of transactions a second during the last of them, which the link must exceed.",
	  write_mirror_needed_rate },
	{ "perseas_mirror_commits_waited_for_copies", "gauge", "store, mirror",
	  "Commits that waited for one of these copies, or for the one that goes on.",
	  write_mirror_waited_for_copies },
};

enum { METRICS = sizeof(metrics) / sizeof(metrics[0]) };

/* The metrics that deploy/alerts.yaml uses. */
static const char *const alert_metrics[] = {
	"perseas_build_info",
	"perseas_place_info",
	"perseas_ready",
	"perseas_memory_used_bytes",
	"perseas_memory_room_bytes",
	"perseas_images_set_aside",
	"perseas_stores",
	"perseas_connections_refused_total",
	"perseas_tls_expires_timestamp_seconds",
	"perseas_tls_valid_from_timestamp_seconds",
	"perseas_control_refusals_total",
	"perseas_store_promised_epoch",
	"perseas_store_owner_live",
	"perseas_store_owner_silent_seconds",
	"perseas_store_fences_total",
	"perseas_store_files_missing",
	"perseas_store_files_missing_total",
	"perseas_owner_doubt",
	"perseas_owner_paced_total",
	"perseas_owner_missing_bytes",
	"perseas_owner_commit_latency_seconds",
	"perseas_mirror_state",
	"perseas_mirror_resync_copied_bytes",
	"perseas_mirror_resync_size_bytes",
};

static bool is_for_alerts(const char *name)
{
	for (unsigned i = 0; i < sizeof(alert_metrics) / sizeof(alert_metrics[0]); i++)
		if (strcmp(alert_metrics[i], name) == 0)
			return true;
	return false;
}

static void write_metrics(FILE *out, struct daemon *daemon, bool alerts)
{
	struct sheet sheet = { .out = out, .daemon = daemon };

	watch_stores(daemon, &sheet.views, &sheet.count);
	for (unsigned i = 0; i < METRICS; i++) {
		if (alerts && !is_for_alerts(metrics[i].name))
			continue;
		sheet.name = metrics[i].name;
		fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[i].name, metrics[i].help,
		        metrics[i].name, metrics[i].type);
		metrics[i].write(&sheet);
	}
}

void metrics_write(FILE *out, struct daemon *daemon)
{
	write_metrics(out, daemon, false);
}

void metrics_write_alerts(FILE *out, struct daemon *daemon)
{
	write_metrics(out, daemon, true);
}

void metrics_help(FILE *out)
{
	fputs("| metric | type | labels | |\n|---|---|---|---|\n", out);
	for (unsigned i = 0; i < METRICS; i++)
		fprintf(out, "| `%s` | %s | %s | %s |\n", metrics[i].name, metrics[i].type,
		        metrics[i].labels, metrics[i].help);
}
