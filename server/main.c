/*
 * main.c - perseasd: sets up the parts of the daemon, runs its loop, and ends them.
 */
#include "../proto/control/version.h"
#include "../proto/base/notify.h"
#include "../proto/base/standard_streams.h"
#include "loop/daemon.h"
#include "loop/reload.h"
#include "host/jobs.h"
#include "watch/metrics.h"
#include "store/used_spills.h"
#include "store/spill.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
	PROGRESS_SECONDS = 5,
	FILES_KEPT = 256, /* descriptors reserved for everything other than connections */
};

/* Logs why the daemon does not start. Returns -1. */
static int fail_start(const char *why)
{
	log_event(LOG_LEVEL_ERROR, "fails", NULL, "%s", why);
	return -1;
}

/* Signals are caught from before the first image is loaded until the last one is written. */
struct signals {
	struct daemon *daemon;
	struct job *loading; /* the job that loads images; NULL: it does not run */
	struct reload reload;
	struct event *term, *interrupt, *hangup;
};

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	struct signals *signals = arg;

	(void)what;
	log_event(LOG_LEVEL_INFO, "ends", NULL, "perseasd ends: it received signal %d",
	          (int)number);
	daemon_stop(signals->daemon);
	if (signals->loading)
		job_cancel(signals->loading);
}

static int catch_signals(struct signals *signals, struct daemon *daemon)
{
	signals->daemon = daemon;
	signals->term = evsignal_new(daemon->base, SIGTERM, on_signal, signals);
	signals->interrupt = evsignal_new(daemon->base, SIGINT, on_signal, signals);
	signals->hangup = evsignal_new(daemon->base, SIGHUP, reload_on_hangup, &signals->reload);
	signals->reload.event = signals->hangup;
	if (signals->term && signals->interrupt && signals->hangup &&
	    event_add(signals->term, NULL) == 0 && event_add(signals->interrupt, NULL) == 0 &&
	    event_add(signals->hangup, NULL) == 0)
		return 0;
	return fail_start("signals cannot be caught");
}

static void free_signals(struct signals *signals)
{
	if (signals->term)
		event_free(signals->term);
	if (signals->interrupt)
		event_free(signals->interrupt);
	if (signals->hangup)
		event_free(signals->hangup);
}

/* Blocks signals, so that a second one cannot end the process before the images are written, even
 * while libevent restores the default handlers. */
static void hold_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

/* Logs a problem. `arg` is the name of the event. */
static void report_rules(void *arg, const char *text)
{
	log_event(LOG_LEVEL_WARNING, arg, NULL, "%s", text);
}

static void report_lost(void *arg, const char *text)
{
	log_event(LOG_LEVEL_ERROR, arg, NULL, "%s", text);
}

/* Logs a message of libevent. */
static void on_libevent(int severity, const char *text)
{
	log_event(severity >= EVENT_LOG_WARN ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "libevent",
	          NULL, "libevent: %s", text);
}

static int open_http(struct daemon *daemon, const struct http_options *options)
{
	char why[PATH_MAX + 256];

	if (!options->enabled || http_open(daemon, options, why, sizeof(why)) == 0)
		return 0;
	return fail_start(why);
}

static int open_listeners(struct daemon *daemon, const struct config *config)
{
	char why[PATH_MAX + 256] = "out of memory";

	for (int i = 0; i < config->activated_count; i++)
		if (daemon_adopt_socket(daemon, &config->activated[i], why, sizeof(why)) < 0)
			return fail_start(why);
	for (unsigned i = 0; i < config->endpoint_count; i++)
		if (daemon_listen(daemon, &config->endpoints[i], why, sizeof(why)) < 0)
			return fail_start(why);
	if (config->port_file[0] &&
	    daemon_write_ports(daemon, config->port_file, why, sizeof(why)) < 0)
		return fail_start(why);
	return 0;
}

/* Serves from opening the sockets to the signal that ends the daemon. */
static int serve_until_signal(struct memory *memory, struct daemon *daemon,
                              const struct config *config)
{
	log_event(LOG_LEVEL_INFO, "begins", NULL,
	          "perseasd %s has started and keeps %llu bytes of images in %s", PERSEAS_VERSION,
	          (unsigned long long)memory->ops->used(memory), config->memory_dir);
	memory_file_log_charged_to_other_cgroups(memory);
	/* Processes may still have memory that an earlier daemon shared with them. */
	daemon_start_excess_checks(daemon);
	if (open_listeners(daemon, config) < 0)
		return -1;
	daemon->phase = DAEMON_SERVING;
	names_loop_open(daemon);
	ps_notify_service_manager("READY=1\nSTATUS=serving");
	daemon_run(daemon);
	ps_notify_service_manager("STOPPING=1\nSTATUS=ending sessions");
	return 0;
}

/* Raises the limit of open files as far as the host allows. */
static void raise_file_limit(unsigned connections)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < connections + FILES_KEPT)
		log_event(LOG_LEVEL_WARNING, "few-files", NULL,
		          "%u connections and the images may need more than the %llu open files "
		          "that this host allows: raise LimitNOFILE or ulimit -n",
		          connections, (unsigned long long)limit.rlim_max);
}

static int start_rdma(struct daemon *daemon, const struct config *config)
{
#if PERSEAS_RDMA
	return rdma_start(daemon, NULL, &config->rdma);
#else
	(void)daemon;
	(void)config;
	return 0;
#endif
}

/* Progress of loading and spilling. */
struct progress {
	struct daemon *daemon; /* NULL: not created yet */
	uint64_t told_ns;
};

/* Asks the service manager for more time every few seconds, and answers HTTP requests. */
static void on_progress(void *arg)
{
	struct progress *progress = arg;
	uint64_t now = daemon_now_ns();

	/* In a job, the loop does both. */
	if (job_current())
		return;
	if (progress->daemon)
		daemon_serve_http(progress->daemon);
	if (now - progress->told_ns < (uint64_t)PROGRESS_SECONDS * 1000000000)
		return;
	progress->told_ns = now;
	ps_notify_service_manager("EXTEND_TIMEOUT_USEC=60000000");
}

struct loading {
	struct job job; /* must be first */
	struct stores *stores;
	int loaded; /* images loaded from spills; -1: some images may be unknown */
};

/* Loads images in memory, then those that only the spill directory has. */
static void run_load(struct job *job)
{
	struct loading *loading = (struct loading *)job;
	char *event = (char *)(uintptr_t) "load-trouble";

	loading->loaded = stores_load(loading->stores, report_rules, event);
	if (loading->loaded == 0)
		loading->loaded = stores_load_spills(loading->stores, report_rules, event);
}

static void still_loading(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	on_progress(arg);
}

/* Loads in a job, while the loop answers HTTP requests. Returns 0 or -1. */
static int load_images(struct signals *signals, struct progress *progress,
                       const struct config *config)
{
	struct daemon *daemon = signals->daemon;
	const struct timeval often = { .tv_sec = 1 };
	struct event *tick = event_new(daemon->base, -1, EV_PERSIST, still_loading, progress);
	struct loading loading = { .job.run = run_load, .stores = daemon->stores };

	if (tick)
		event_add(tick, &often);
	signals->loading = &loading.job;
	daemon_run_job_to_end(daemon, &loading.job);
	signals->loading = NULL;
	if (tick)
		event_free(tick);
	if (loading.loaded > 0)
		log_event(LOG_LEVEL_INFO, "loaded", NULL, "%d images were loaded from %s",
		          loading.loaded, config->spill_dir);
	return loading.loaded < 0 ? fail_start("it is started again when all images can be known")
	                          : 0;
}

/* Writes spills after all connections have ended. */
static int write_spills(struct stores *stores, const struct config *config)
{
	struct spill_sum sum;

	if (!config->spill_dir[0]) {
		stores_repair_names(stores);
		stores_report_lost(stores, report_lost, (void *)(uintptr_t) "lost");
		return 0;
	}
	ps_notify_service_manager("STATUS=writing images\nEXTEND_TIMEOUT_USEC=60000000");
	if (!stores_spill(stores, &sum, report_rules, (void *)(uintptr_t) "spill-trouble"))
		return 0;
	log_event(LOG_LEVEL_INFO, "spilled", NULL, "%u images were written to %s, %llu bytes",
	          sum.stores, sum.directory, (unsigned long long)sum.bytes);
	return sum.failed > 0 ? -1 : 0;
}

/* Sets up what needs no images, so that mistakes are reported before these are loaded. */
static int set_up(struct daemon *daemon, const struct config *config)
{
	daemon_set_max_connections(daemon, config->max_connections);
	daemon->unix_mode = config->unix_mode;
	daemon->allows_exposed_plaintext = config->allows_exposed_plaintext;
	if (reload_read_tls(daemon, config) < 0)
		return -1;
	if (start_rdma(daemon, config) < 0 || lanes_open(daemon, config->threads) < 0)
		return fail_start("out of memory");
	return open_http(daemon, &config->http);
}

/* Serves, and writes the images at the end, also if nothing could be served: spills that were
 * loaded, or whose images were still in memory, are used up, and the host may be shut down next. */
static int serve_and_spill(struct memory *memory, struct daemon *daemon,
                           const struct config *config)
{
	int ret = daemon->is_stopping ? 0 : serve_until_signal(memory, daemon, config);

	hold_signals();
	daemon_end_sessions(daemon);
	return write_spills(daemon->stores, config) < 0 ? -1 : ret;
}

static int run_daemon(struct memory *memory, struct stores *stores, struct progress *progress,
                      const struct config *config, struct rules *rules)
{
	struct daemon *daemon = daemon_new(stores, config->spin_us);
	struct signals signals = { 0 };
	int ret = -1;

	if (!daemon)
		return fail_start("out of memory");
	progress->daemon = daemon;
	reload_init(&signals.reload, daemon, config, rules);
	if (set_up(daemon, config) == 0 && catch_signals(&signals, daemon) == 0 &&
	    load_images(&signals, progress, config) == 0)
		ret = serve_and_spill(memory, daemon, config);
	free_signals(&signals);
	/* The exit of the process closes it: the client knows that the memory directory is free. */
	daemon->spill_requester_fd = -1;
	daemon_free(daemon);
	return ret;
}

static void warn_of_old_spills(const struct config *config)
{
	log_event(LOG_LEVEL_INFO, "spills-unguarded", NULL,
	          "a spill that was loaded from %s, and that somebody puts back there, would be "
	          "loaded again, although it is older than what its image acknowledged: name a "
	          "--state-dir",
	          config->spill_dir);
}

/* Opens the directories that the options name. */
static bool open_directories(const struct config *config, struct spill **spill,
                             struct used_spills **used, const char **why)
{
	if (config->spill_dir[0] && !(*spill = spill_file_new(config->spill_dir, why)))
		return false;
	return !config->state_dir[0] || (*used = used_spills_file_new(config->state_dir, why));
}

static int run_stores(struct memory *memory, const struct config *config)
{
	struct progress progress = { 0 };
	struct stores *stores = stores_new(memory);
	struct spill *spill = NULL;
	struct used_spills *used_spills = NULL;
	struct rules rules = { .path = config->access_file };
	const char *why = "out of memory";
	int ret = -1;

	if (!stores || !open_directories(config, &spill, &used_spills, &why)) {
		fail_start(why);
	} else if (reload_read_rules(&rules) == 0) {
		if (spill) {
			spill->progress = on_progress;
			spill->progress_arg = &progress;
		}
		stores_set_owner_timeout(stores, config->owner_timeout_ms);
		stores_set_copies(stores, config->copies);
		stores_set_spill(stores, spill);
		stores_set_used_spills(stores, used_spills);
		if (spill && !used_spills)
			warn_of_old_spills(config);
		rules.stores = stores;
		stores_set_access(stores, rules.access);
		stores_set_labels(stores, &config->labels);
		ps_version_limit(config->highest_protocol);
		ret = run_daemon(memory, stores, &progress, config, &rules);
	}
	stores_free(stores);
	access_free(rules.access);
	spill_file_free(spill);
	used_spills_file_free(used_spills);
	return ret;
}

static int run_memory(const struct config *config)
{
	const char *why = "";
	struct memory *memory = memory_file_new(config->memory_dir, config->max_memory,
	                                        config->memory_on_disk, &why);
	int ret;

	if (!memory)
		return fail_start(why);
	if (config->has_boot_id)
		memory_file_set_boot_id(memory, config->boot_id);
	memory_file_leave_descriptors_to_others(memory, config->max_connections + FILES_KEPT);
	ret = run_stores(memory, config);
	memory_file_free(memory);
	return ret;
}

/* Writes to standard output and flushes it. Returns the exit status, also of earlier failures. */
static int put_text(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	log_event(LOG_LEVEL_ERROR, "fails", NULL, "the output could not be written: %s",
	          strerror(errno));
	return 1;
}

/* Checks whether a daemon could read the files that the options name, without touching anything of
 * a daemon. Logs all faults and returns the exit status. */
static int check_files(const struct config *config)
{
	const struct ps_tls_files files = reload_name_tls_files(config);
	struct access *access = NULL;
	struct ps_expiries expiries;
	struct ps_tls *tls = NULL;
	char why[PATH_MAX + 256];
	int status = 0;

	if (config->access_file[0] && !(access = reload_read_access(config->access_file)))
		status = 1;
	if (config->tls_cert[0] && !(tls = daemon_read_tls(&files, why, sizeof(why)))) {
		log_event(LOG_LEVEL_ERROR, "tls-files-refused", NULL, "%s", why);
		status = 1;
	}
	if (tls)
		expiry_log_warnings(tls, (uint64_t)time(NULL), &expiries);
	access_free(access);
	ps_tls_free(tls);
	return status ? status : put_text("the options and the files that they name can be used\n");
}

/* Takes over sockets of the service manager. The default address is used only if there are none. */
static int take_sockets(struct config *config)
{
	char why[512];

	config->activated_count = activation_take(config->activated, why, sizeof(why));
	if (config->activated_count < 0)
		fail_start(why);
	if (config->activated_count > 0 && config->is_default_endpoint)
		config->endpoint_count = 0;
	return config->activated_count;
}

/* Names the daemon in the log before it listens. */
static void set_name(const struct config *config)
{
	const struct endpoint *endpoint = &config->endpoints[0];
	const struct activated *activated = &config->activated[0];
	char text[LISTEN_TEXT];

	if (config->activated_count > 0)
		listen_text(text, activated->local, activated->host, activated->port);
	else
		listen_text(text, endpoint->local, endpoint->host, (unsigned)atoi(endpoint->port));
	log_set_name(text);
}

static int fill_streams(void)
{
	if (ps_standard_fds_fill() == 0)
		return 0;
	return fail_start("a standard stream is closed, and /dev/null cannot be opened in its "
	                  "place: start perseasd with all three open");
}

int main(int argc, char **argv)
{
	struct config config;
	char why[2 * PATH_MAX];

	if (fill_streams() < 0)
		return 1;
	if (config_parse(&config, argc, argv, why, sizeof(why)) < 0) {
		fail_start(why);
		return 2;
	}
	if (config.help) {
		config_help(stdout);
		return put_text("");
	}
	if (config.version)
		return put_text("perseasd " PERSEAS_VERSION "\n");
	if (config.metrics_help) {
		metrics_help(stdout);
		return put_text("");
	}
	log_init(config.log_level, config.log_format);
	if (config.check)
		return check_files(&config);
	log_set_journal(config.journal_socket);
	if (take_sockets(&config) < 0)
		return 1;
	set_name(&config);
	signal(SIGPIPE, SIG_IGN);
	/* A file that reaches its size limit makes write() fail instead of ending the process. */
	signal(SIGXFSZ, SIG_IGN);
	/* Opening a file while memory_file.c holds a lease on it sends SIGIO. */
	signal(SIGIO, SIG_IGN);
	event_set_log_callback(on_libevent);
	raise_file_limit(config.max_connections);
	return run_memory(&config) < 0 ? 1 : 0;
}
