/*
 * main.c - perseasd: keeps images of stores for their owners.
 */
#include "access_file.h"
#include "daemon.h"
#include "metrics.h"
#include "notify.h"
#include "spill.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
	PROGRESS_SECONDS = 5,
	FILES_KEPT = 256, /* descriptors beside those of connections */
};

/* The rules in force, and where they are read. */
struct rules {
	const char *path;
	struct access *access;
	struct stores *stores; /* NULL: there are none yet */
};

/* What a signal reads again. */
struct reload {
	struct daemon *daemon;
	const struct config *config;
	struct rules *rules;
};

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	(void)what;
	log_event(LOG_LEVEL_INFO, "ends", NULL, "ends by signal %d", (int)number);
	daemon_stop(arg);
}

/* The old rules stay in force where the new ones cannot be read. */
static int read_rules(struct rules *rules)
{
	char why[PATH_MAX + 512];
	struct access *access, *old = rules->access;

	if (!rules->path[0]) {
		log_event(LOG_LEVEL_DEBUG, "access", NULL, "there are no access rules to read");
		return 0;
	}
	access = access_read(rules->path, why, sizeof(why));
	if (!access) {
		log_event(LOG_LEVEL_ERROR, "access-refused", NULL, "%s", why);
		return -1;
	}
	rules->access = access;
	if (rules->stores)
		stores_set_access(rules->stores, access);
	access_free(old);
	log_event(LOG_LEVEL_INFO, "access", NULL, "access rules %s: %u are in force", rules->path,
	          access_rules(access));
	return 0;
}

/* The same of the TLS files. */
static int read_tls(struct daemon *daemon, const struct config *config)
{
	const struct ps_tls_files files = {
		.cert = config->tls_cert,
		.key = config->tls_key,
		.ca = config->tls_ca,
		.crl = config->tls_crl[0] ? config->tls_crl : NULL,
	};
	char why[PATH_MAX + 256];

	if (!config->tls_cert[0] || daemon_load_tls(daemon, &files, why, sizeof(why)) == 0)
		return 0;
	log_event(LOG_LEVEL_ERROR, "tls-files-refused", NULL, "%s", why);
	return -1;
}

static void on_hangup(evutil_socket_t number, short what, void *arg)
{
	const struct reload *reload = arg;

	(void)number;
	(void)what;
	if (read_rules(reload->rules) < 0)
		log_event(LOG_LEVEL_ERROR, "access-refused", NULL,
		          "the access rules from before stay in force");
	if (read_tls(reload->daemon, reload->config) < 0)
		log_event(LOG_LEVEL_ERROR, "tls-files-refused", NULL,
		          "the TLS files from before stay in use");
	else if (reload->daemon->tls)
		log_event(LOG_LEVEL_INFO, "tls-files", NULL,
		          "new connections use the TLS files as they are now");
}

/* arg: the event. */
static void complain(void *arg, const char *text)
{
	log_event(LOG_LEVEL_WARNING, arg, NULL, "%s", text);
}

/* Why it does not start. */
static int fail(const char *why)
{
	log_event(LOG_LEVEL_ERROR, "fails", NULL, "%s", why);
	return -1;
}

/* libevent's own complaints. */
static void on_libevent(int severity, const char *text)
{
	log_event(severity >= EVENT_LOG_WARN ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "libevent",
	          NULL, "libevent: %s", text);
}

static int open_http(struct daemon *daemon, const struct http_options *options)
{
	char why[PATH_MAX + 256];

	if (!options->on || http_open(daemon, options, why, sizeof(why)) == 0)
		return 0;
	return fail(why);
}

static int open_listeners(struct daemon *daemon, const struct config *config)
{
	char why[PATH_MAX + 256] = "out of memory";

	for (int i = 0; i < config->activated_count; i++)
		if (daemon_adopt(daemon, &config->activated[i], why, sizeof(why)) < 0)
			return fail(why);
	for (unsigned i = 0; i < config->endpoint_count; i++)
		if (daemon_listen(daemon, &config->endpoints[i], why, sizeof(why)) < 0)
			return fail(why);
	if (config->port_file[0] &&
	    daemon_write_ports(daemon, config->port_file, why, sizeof(why)) < 0)
		return fail(why);
	return 0;
}

/* From open sockets to the signal that ends it. */
static int serve(struct daemon *daemon, const struct config *config, struct rules *rules)
{
	struct event *term = evsignal_new(daemon->base, SIGTERM, on_signal, daemon);
	struct event *interrupt = evsignal_new(daemon->base, SIGINT, on_signal, daemon);
	struct reload reload = { daemon, config, rules };
	struct event *hangup = evsignal_new(daemon->base, SIGHUP, on_hangup, &reload);
	int ret = -1;

	if (!term || !interrupt || !hangup || event_add(term, NULL) < 0 ||
	    event_add(interrupt, NULL) < 0 || event_add(hangup, NULL) < 0)
		fail("signals cannot be caught");
	else
		ret = open_listeners(daemon, config);
	if (ret == 0) {
		daemon->phase = DAEMON_SERVING;
		notify("READY=1\nSTATUS=serving");
		daemon_run(daemon);
		notify("STOPPING=1\nSTATUS=ending sessions");
	}
	if (term)
		event_free(term);
	if (interrupt)
		event_free(interrupt);
	if (hangup)
		event_free(hangup);
	return ret;
}

/* A descriptor for each connection: as many as the host allows. */
static void raise_files(unsigned connections)
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

/* Of what takes long: loading and spilling. */
struct progress {
	struct daemon *daemon; /* NULL: there is none yet */
	uint64_t told_ns;
};

/* Tells the service manager, now and then, that it goes on; and whoever asks, what it is at. */
static void on_progress(void *arg)
{
	struct progress *progress = arg;
	uint64_t now = daemon_now_ns();

	if (progress->daemon)
		daemon_breathe(progress->daemon);
	if (now - progress->told_ns < (uint64_t)PROGRESS_SECONDS * 1000000000)
		return;
	progress->told_ns = now;
	notify("EXTEND_TIMEOUT_USEC=60000000");
}

/* What was there before: images in memory, then those that only the spill directory has. */
static void load(struct stores *stores, const struct config *config)
{
	unsigned loaded;

	stores_load(stores, complain, (void *)(uintptr_t) "load-trouble");
	loaded = stores_load_spills(stores, complain, (void *)(uintptr_t) "load-trouble");
	if (loaded > 0)
		log_event(LOG_LEVEL_INFO, "loaded", NULL, "%u images were loaded from %s", loaded,
		          config->spill_dir);
}

/* After all connections have ended. */
static int write_spills(struct stores *stores, const struct config *config)
{
	struct spill_sum sum;

	if (!config->spill_dir[0])
		return 0;
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	notify("STATUS=writing images\nEXTEND_TIMEOUT_USEC=60000000");
	if (!stores_spill(stores, &sum, complain, (void *)(uintptr_t) "spill-trouble"))
		return 0;
	log_event(LOG_LEVEL_INFO, "spilled", NULL, "%u images were written to %s, %llu bytes",
	          sum.stores, config->spill_dir, (unsigned long long)sum.bytes);
	return sum.failed > 0 ? -1 : 0;
}

/* What needs no images: a mistake is told before these are loaded. */
static int set_up(struct daemon *daemon, const struct config *config)
{
	daemon_set_connections(daemon, config->max_connections);
	daemon->unix_mode = config->unix_mode;
	daemon->exposed = config->exposed;
	if (read_tls(daemon, config) < 0)
		return -1;
	if (start_rdma(daemon, config) < 0)
		return fail("out of memory");
	return open_http(daemon, &config->http);
}

static int run_daemon(struct memory *memory, struct stores *stores, struct progress *progress,
                      const struct config *config, struct rules *rules)
{
	struct daemon *daemon = daemon_new(stores, config->spin_us);
	int ret = -1;

	if (!daemon)
		return fail("out of memory");
	progress->daemon = daemon;
	if (set_up(daemon, config) == 0) {
		load(stores, config);
		log_event(LOG_LEVEL_INFO, "begins", NULL,
		          "perseasd %s keeps its images in %s, %llu bytes", PERSEAS_VERSION,
		          config->memory_dir, (unsigned long long)memory->ops->used(memory));
		ret = serve(daemon, config, rules);
	}
	if (ret == 0) {
		daemon_end_sessions(daemon);
		ret = write_spills(stores, config);
	}
	daemon_free(daemon);
	return ret;
}

static int run_stores(struct memory *memory, const struct config *config)
{
	struct progress progress = { 0 };
	struct stores *stores = stores_new(memory);
	struct spill *spill = NULL;
	struct rules rules = { .path = config->access_file };
	const char *why = "out of memory";
	int ret = -1;

	if (stores && config->spill_dir[0])
		spill = spill_file_new(config->spill_dir, &why);
	if (!stores || (config->spill_dir[0] && !spill)) {
		fail(why);
	} else if (read_rules(&rules) == 0) {
		if (spill) {
			spill->progress = on_progress;
			spill->progress_arg = &progress;
		}
		stores_set_owner_timeout(stores, (uint64_t)config->owner_timeout_s * 1000);
		stores_set_spill(stores, spill);
		rules.stores = stores;
		stores_set_access(stores, rules.access);
		ret = run_daemon(memory, stores, &progress, config, &rules);
	}
	stores_free(stores);
	access_free(rules.access);
	spill_file_free(spill);
	return ret;
}

static int run(const struct config *config)
{
	const char *why = "";
	struct memory *memory = memory_file_new(config->memory_dir, config->max_memory, &why);
	int ret;

	if (!memory)
		return fail(why);
	ret = run_stores(memory, config);
	memory_file_free(memory);
	return ret;
}

/* The exit status. */
static int say(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return 0;
	log_event(LOG_LEVEL_ERROR, "fails", NULL, "the output could not be written: %s",
	          strerror(errno));
	return 1;
}

/* What the service manager has opened. The usual address is for those who say nothing at all. */
static int take_sockets(struct config *config)
{
	char why[512];

	config->activated_count = activation_take(config->activated, why, sizeof(why));
	if (config->activated_count < 0)
		fail(why);
	if (config->activated_count > 0 && config->endpoint_default)
		config->endpoint_count = 0;
	return config->activated_count;
}

int main(int argc, char **argv)
{
	struct config config;
	char why[2 * PATH_MAX];

	if (config_parse(&config, argc, argv, why, sizeof(why)) < 0) {
		fail(why);
		return 2;
	}
	if (config.help)
		return say(config_help);
	if (config.version)
		return say("perseasd " PERSEAS_VERSION "\n");
	if (config.metrics_help) {
		metrics_help(stdout);
		return say("");
	}
	log_init(config.log_level, config.log_format);
	if (take_sockets(&config) < 0)
		return 1;
	signal(SIGPIPE, SIG_IGN);
	event_set_log_callback(on_libevent);
	raise_files(config.max_connections);
	return run(&config) < 0 ? 1 : 0;
}
