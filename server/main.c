/*
 * main.c - perseasd: keeps images of stores for their owners.
 */
#include "daemon.h"
#include "notify.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	(void)what;
	log_info("ends by signal %d", (int)number);
	daemon_stop(arg);
}

static void complain(void *arg, const char *text)
{
	(void)arg;
	log_warning("%s", text);
}

static int open_listeners(struct daemon *daemon, const struct config *config)
{
	char why[PATH_MAX + 256];

	for (unsigned i = 0; i < config->endpoint_count; i++) {
		if (daemon_listen(daemon, &config->endpoints[i], why, sizeof(why)) < 0) {
			log_error("%s", why);
			return -1;
		}
	}
	if (config->port_file[0] &&
	    daemon_write_ports(daemon, config->port_file, why, sizeof(why)) < 0) {
		log_error("%s", why);
		return -1;
	}
	return 0;
}

/* From open sockets to the signal that ends it. */
static int serve(struct daemon *daemon, const struct config *config)
{
	struct event *term = evsignal_new(daemon->base, SIGTERM, on_signal, daemon);
	struct event *interrupt = evsignal_new(daemon->base, SIGINT, on_signal, daemon);
	int ret = -1;

	if (!term || !interrupt || event_add(term, NULL) < 0 || event_add(interrupt, NULL) < 0)
		log_error("signals cannot be caught");
	else
		ret = open_listeners(daemon, config);
	if (ret == 0) {
		notify("READY=1\nSTATUS=serving");
		daemon_run(daemon);
		notify("STOPPING=1\nSTATUS=ending sessions");
	}
	if (term)
		event_free(term);
	if (interrupt)
		event_free(interrupt);
	return ret;
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

static int run(const struct config *config)
{
	const char *why = "";
	struct memory *memory = memory_file_new(config->memory_dir, config->max_memory, &why);
	struct stores *stores;
	struct daemon *daemon;
	int ret = -1;

	if (!memory) {
		log_error("%s", why);
		return -1;
	}
	stores = stores_new(memory);
	daemon = stores ? daemon_new(stores, config->spin_us) : NULL;
	if (daemon && start_rdma(daemon, config) == 0) {
		stores_load(stores, complain, NULL);
		log_info("perseasd %s keeps its images in %s, %llu bytes", PERSEAS_VERSION,
		         config->memory_dir, (unsigned long long)memory->ops->used(memory));
		ret = serve(daemon, config);
	} else {
		log_error("out of memory");
	}
	daemon_free(daemon);
	stores_free(stores);
	memory_file_free(memory);
	return ret;
}

int main(int argc, char **argv)
{
	struct config config;
	char why[2 * PATH_MAX];

	if (config_parse(&config, argc, argv, why, sizeof(why)) < 0) {
		log_error("%s", why);
		return 2;
	}
	if (config.help) {
		fputs(config_help, stdout);
		return 0;
	}
	if (config.version) {
		printf("perseasd %s\n", PERSEAS_VERSION);
		return 0;
	}
	log_init(config.log_level);
	signal(SIGPIPE, SIG_IGN);
	return run(&config) < 0 ? 1 : 0;
}
