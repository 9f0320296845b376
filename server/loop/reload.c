/*
 * reload.c - the files that the daemon reads at its start, and again on SIGHUP (reload.h).
 */
#include "reload.h"

#include "../store/access_file.h"
#include "daemon.h"

#include <assert.h>
#include <limits.h>

struct access *reload_read_access(const char *path)
{
	char why[PATH_MAX + 512];
	struct access *access = access_file_read(path, why, sizeof(why));

	if (!access)
		log_event(LOG_LEVEL_ERROR, "access-refused", NULL, "%s", why);
	return access;
}

static void use_access(struct rules *rules, struct access *access)
{
	struct access *old = rules->access;
	unsigned cut = 0;

	assert(access && access != old);
	rules->access = access;
	if (rules->stores)
		cut = stores_set_access(rules->stores, access);
	access_free(old);
	if (cut)
		log_event(LOG_LEVEL_WARNING, "access-cut", NULL,
		          "owners that lost their session by the new access rules: %u. They go on, "
		          "and have lost nothing, when rules that allow them are read",
		          cut);
	log_event(LOG_LEVEL_INFO, "access", NULL, "access rules %s: %u are in force", rules->path,
	          access_rule_count(access));
}

int reload_read_rules(struct rules *rules)
{
	struct access *access;

	if (!rules->path[0]) {
		log_event(LOG_LEVEL_DEBUG, "access", NULL, "there are no access rules to read");
		return 0;
	}
	access = reload_read_access(rules->path);
	if (access)
		use_access(rules, access);
	return access ? 0 : -1;
}

struct ps_tls_files reload_name_tls_files(const struct config *config)
{
	return (struct ps_tls_files){
		.cert = config->tls_cert,
		.key = config->tls_key,
		.ca = config->tls_ca,
		.crl = config->tls_crl[0] ? config->tls_crl : NULL,
	};
}

int reload_read_tls(struct daemon *daemon, const struct config *config)
{
	const struct ps_tls_files files = reload_name_tls_files(config);
	char why[PATH_MAX + 256];

	if (!config->tls_cert[0] || daemon_load_tls(daemon, &files, why, sizeof(why)) == 0)
		return 0;
	log_event(LOG_LEVEL_ERROR, "tls-files-refused", NULL, "%s", why);
	return -1;
}

/* Runs as a job, because an image may have to be copied from an owner that lost its rights. */
static void run_reload(struct job *job)
{
	const struct reload *reload = (const struct reload *)job;

	use_access(reload->rules, reload->access);
}

/* If the new rules cannot be read, the old ones stay in force. */
static void reload_rules(struct reload *reload)
{
	if (!reload->rules->path[0]) {
		log_event(LOG_LEVEL_DEBUG, "access", NULL, "there are no access rules to read");
		return;
	}
	reload->access = reload_read_access(reload->rules->path);
	if (reload->access)
		daemon_run_exclusive_job(reload->daemon, &reload->job);
	else
		log_event(LOG_LEVEL_ERROR, "access-refused", NULL,
		          "the access rules from before stay in force");
}

static void reload_tls(const struct reload *reload)
{
	if (reload_read_tls(reload->daemon, reload->config) < 0) {
		log_event(LOG_LEVEL_ERROR, "tls-files-refused", NULL,
		          "the TLS files from before stay in use");
		daemon_check_expiry_dates(reload->daemon);
	} else if (reload->daemon->tls)
		log_event(LOG_LEVEL_INFO, "tls-files", NULL,
		          "new connections use the TLS files as they are now");
}

void reload_init(struct reload *reload, struct daemon *daemon, const struct config *config,
                 struct rules *rules)
{
	*reload = (struct reload){
		.job.run = run_reload, .daemon = daemon, .config = config, .rules = rules
	};
}

void reload_on_hangup(evutil_socket_t number, short what, void *arg)
{
	struct reload *reload = arg;

	(void)number;
	(void)what;
	if (daemon_defer_event_until_no_jobs(reload->daemon, reload->event))
		return;
	log_event(LOG_LEVEL_INFO, "reload", NULL,
	          "SIGHUP: reading the access rules and the TLS files again. All other options "
	          "stay as they were at the start, --max-memory too: restart the daemon to change "
	          "them");
	daemon_lock(reload->daemon);
	reload_rules(reload);
	reload_tls(reload);
	daemon_unlock(reload->daemon);
}
