/*
 * status_json.c - writes stores, owners, mirrors and recent events as one JSON object. http_loop.c
 * calls it for /status.json, which the status page reads. Text of peers must be written by
 * proto/base/json.c.
 */
#include "status_json.h"

#include "../../proto/base/json.h"
#include "../../proto/base/latency.h"
#include "../loop/daemon.h"
#include "losses.h"
#include "watch.h"

#include <limits.h>
#include <time.h>
#include <unistd.h>

static void write_event(struct ps_json *json, const struct log_entry *entry)
{
	char time[LOG_TIME_TEXT];

	ps_json_begin(json, NULL, '{');
	ps_json_number(json, "number", entry->number);
	ps_json_text(json, "time", log_time_text(time, entry->time_us));
	ps_json_text(json, "level", log_level_name(entry->level));
	ps_json_text(json, "event", entry->event);
	ps_json_text(json, "message", entry->message);
	ps_json_end(json, '}');
}

static void write_mirror(struct ps_json *json, const Perseas__StoreStatus *status,
                         const Perseas__MirrorReport *report)
{
	const Perseas__Resync *resync = report->resync;

	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "address", report->address);
	ps_json_text(json, "state", watch_mirror_state(report));
	ps_json_number(json, "seq", report->seq);
	ps_json_number(json, "lag", watch_lag(status, report));
	ps_json_number(json, "copied", report->done);
	ps_json_number(json, "to_copy", report->total);
	ps_json_number(json, "copy_rate", resync ? resync->rate : 0);
	ps_json_number(json, "copy_left_ms", resync ? resync->left_ms : 0);
	ps_json_text(json, "copied_whole", resync && *resync->whole ? resync->whole : NULL);
	ps_json_number(json, "copy_place", report->copy_place);
	ps_json_number(json, "broken_copies", report->broken ? report->broken->count : 0);
	ps_json_text(json, "trouble", report->trouble);
	ps_json_end(json, '}');
}

static void write_figures(struct ps_json *json, const Perseas__OwnerFigures *figures)
{
	struct ps_latency latency;

	ps_latency_load(&latency, figures->commit);
	ps_json_begin(json, "figures", '{');
	ps_json_number(json, "commits", figures->commits);
	ps_json_number(json, "aborts", figures->aborts);
	ps_json_number(json, "in_doubt", figures->in_doubt);
	ps_json_number(json, "doubt_ms", figures->doubt_ms);
	ps_json_number(json, "paced", figures->paced);
	ps_json_number(json, "paced_ms", figures->paced_ms);
	ps_json_number(json, "range_bytes", figures->range_bytes);
	ps_json_number(json, "saved_within", figures->saved_within);
	ps_json_number(json, "saved_between", figures->saved_between);
	ps_json_number(json, "missing", figures->missing);
	ps_json_number(json, "resync_bytes", figures->resync_bytes);
	ps_json_number(json, "p50_ns", ps_latency_percentile(&latency, 50));
	ps_json_number(json, "p99_ns", ps_latency_percentile(&latency, 99));
	ps_json_end(json, '}');
}

static void write_losses(struct ps_json *json, const Perseas__StoreStatus *status)
{
	struct watch_losses losses;

	watch_losses_find(&losses, status);
	ps_json_begin(json, "next_loss", '{');
	ps_loss_json(json, "commit", losses.can_commit ? &losses.commit : NULL, losses.spots,
	             losses.count);
	ps_loss_json(json, "open", losses.can_open ? &losses.open : NULL, losses.spots,
	             losses.count);
	ps_json_end(json, '}');
}

static void write_owner(struct ps_json *json, const struct store_view *view)
{
	const Perseas__StoreStatus *status = view->status;

	ps_json_text(json, "owner", status->owner_address[0] ? status->owner_address : NULL);
	ps_json_bool(json, "live", status->live);
	ps_json_text(json, "fabric", watch_fabric(view));
	ps_json_bool(json, "owner_here", watch_owner_is_local(status));
	ps_json_number(json, "silent_ms", status->silent_ms);
	ps_json_text(json, "order", status->order && status->result ? status->result->text : NULL);
	if (status->figures)
		write_figures(json, status->figures);
	ps_json_begin(json, "mirrors", '[');
	for (size_t i = 0; i < status->n_mirrors; i++)
		write_mirror(json, status, status->mirrors[i]);
	ps_json_end(json, ']');
	write_losses(json, status);
}

static void write_store(struct ps_json *json, const struct store_view *view)
{
	const Perseas__StoreStatus *status = view->status;
	const Perseas__Header *header = status->header;

	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "name", view->name);
	ps_json_text(json, "state", watch_state_name(watch_state(view)));
	ps_json_text(json, "damage", view->damage);
	ps_json_text(json, "files_missing", view->restart_loss);
	ps_json_number(json, "promised_epoch", header ? header->promised_epoch : 0);
	ps_json_number(json, "epoch", status->slot ? status->slot->epoch : 0);
	ps_json_number(json, "seq", status->slot ? status->slot->seq : 0);
	ps_json_number(json, "bytes", status->bytes);
	ps_json_number(json, "segments", header ? header->n_segments : 0);
	ps_json_number(json, "acks", header && header->roster ? header->roster->acks : 0);
	ps_json_number(json, "claims", view->events[STORE_CLAIMED]);
	ps_json_number(json, "fences", view->events[STORE_FENCED]);
	ps_json_number(json, "resyncs", view->events[STORE_RESYNC_BEGUN]);
	ps_json_number(json, "rebuilds", view->events[STORE_REBUILD_BEGUN]);
	write_owner(json, view);
	ps_json_end(json, '}');
}

static void write_labels(struct ps_json *json, const struct labels *labels)
{
	ps_json_begin(json, "labels", '{');
	ps_json_text(json, "host", labels->host);
	ps_json_text(json, "rack", labels->rack);
	ps_json_text(json, "zone", labels->zone);
	ps_json_end(json, '}');
}

static void write_daemon(struct ps_json *json, struct daemon *daemon)
{
	struct memory *memory = stores_memory(daemon->stores);
	char why[WATCH_REASON] = "", text[LOG_TIME_TEXT], host[HOST_NAME_MAX + 1] = "";
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	gethostname(host, HOST_NAME_MAX);
	ps_json_text(json, "host", host);
	ps_json_text(json, "address", log_name());
	write_labels(json, stores_labels(daemon->stores));
	ps_json_text(json, "version", PERSEAS_VERSION);
	ps_json_text(json, "time",
	             log_time_text(text,
	                           (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000));
	ps_json_real(json, "uptime", (double)(daemon_now_ns() - daemon->began_ns) / 1e9);
	ps_json_bool(json, "ready", watch_is_ready(daemon, why, sizeof(why)));
	ps_json_text(json, "reason", why);
	ps_json_number(json, "memory_used", memory->ops->used(memory));
	ps_json_number(json, "memory_limit", memory->ops->limit(memory));
	ps_json_number(json, "connections", daemon->admission.connection_count);
}

void status_json_write(FILE *out, struct daemon *daemon)
{
	struct ps_json json = { .out = out, .one_line = true };
	const struct store_view *views;
	const struct log_entry *entry;
	size_t count;

	watch_stores(daemon, &views, &count);
	ps_json_begin(&json, NULL, '{');
	write_daemon(&json, daemon);
	ps_json_begin(&json, "stores", '[');
	for (size_t i = 0; i < count; i++)
		write_store(&json, &views[i]);
	ps_json_end(&json, ']');
	ps_json_begin(&json, "events", '[');
	for (unsigned i = 0; (entry = log_recent(i)); i++)
		write_event(&json, entry);
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}
