/*
 * http_loop.c - pages for monitoring, with libevent's HTTP server on the daemon's loop.
 *
 * The loop also serves owners, so nothing here may block or take long. A page is made at most once
 * in FRESH_MS, however often it is requested. A connection may send one request and must be
 * finished within DEADLINE_SECONDS. At most CLIENTS_MAX connections are open; others wait in the
 * kernel's queue.
 */
#include "../loop/daemon.h"
#include "http_host.h"
#include "metrics.h"
#include "page.h"
#include "status_json.h"
#include "watch.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	CLIENTS_MAX = 32,
	DEADLINE_SECONDS = 5,        /* from accepting to the last byte of the answer */
	HEADERS_MAX = 8192,          /* bytes of a request's headers */
	FRESH_MS = 100,              /* how long a page is served from its cache */
	SWEEP_MS = 100,              /* interval of checks for connections that have ended */
	INPUT_MAX = 2 * HEADERS_MAX, /* bytes read ahead of the server */
	/* Bytes that the kernel buffers for a client that does not read. */
	OUTPUT_MAX = 64 << 10,
	NONCE_BYTES = 16,
	NONCE_TEXT = 2 * NONCE_BYTES + 1,
};

#define TEXT "text/plain; charset=utf-8"

/* A connection of an HTTP client. libevent reports when a connection begins but not when it ends.
 * So `stream` is a second reference to its bufferevent: when this reference is the last one, the
 * server has freed its own and shut the socket down. The socket is closed with the last
 * reference. */
struct client {
	struct http *http;
	struct bufferevent *stream; /* NULL: the entry is unused */
	struct event *deadline;     /* timer: ends the connection */
};

/* A page that is cached: answers share its bytes. */
struct page {
	void (*write)(FILE *out, struct daemon *daemon);
	struct evbuffer *body; /* NULL: the page was not made yet */
	uint64_t made_ns;      /* time when `body` was made */
};

struct http {
	struct daemon *daemon;
	struct http_options options;
	struct evhttp *server;
	struct evconnlistener *listener; /* owned by the server */
	struct event *sweep_timer;       /* pending while there are clients */
	struct client clients[CLIENTS_MAX];
	struct page metrics, alerts, status;
};

/* --- connections --- */

/* Gives up the reference to the client's stream. Returns true if the connection had ended
 * before. */
static bool stop_watching_client(struct client *client)
{
	struct bufferevent *stream = client->stream;

	assert(stream);
	client->stream = NULL;
	event_del(client->deadline);
	return bufferevent_decref(stream);
}

/* Frees the entries of connections that have ended. Returns how many are left. */
static unsigned sweep_connections(struct http *http)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &http->clients[i];
		struct bufferevent *stream = client->stream;

		if (!stream)
			continue;
		if (bufferevent_decref(stream)) {
			client->stream = NULL;
			event_del(client->deadline);
		} else {
			bufferevent_incref(stream);
			count++;
		}
	}
	return count;
}

unsigned http_connections(const struct http *http)
{
	return http ? sweep_connections((struct http *)(uintptr_t)http) : 0;
}

/* The server notices the end of the stream and frees the connection. */
static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	struct bufferevent *stream = client->stream;

	(void)fd;
	(void)what;
	if (!stop_watching_client(client))
		shutdown(bufferevent_getfd(stream), SHUT_RDWR);
}

static void sweep_later(struct http *http)
{
	const struct timeval pause = { .tv_usec = SWEEP_MS * 1000L };

	if (!evtimer_pending(http->sweep_timer, NULL))
		event_add(http->sweep_timer, &pause);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct http *http = arg;
	unsigned count = sweep_connections(http);

	(void)fd;
	(void)what;
	if (count > 0)
		sweep_later(http);
	if (count < CLIENTS_MAX)
		evconnlistener_enable(http->listener);
}

static void on_accept_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	evconnlistener_enable(arg);
}

/* No descriptor is free for another connection, so stop accepting for a while. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	const struct timeval pause = { .tv_usec = SWEEP_MS * 1000L };
	struct event_base *base = evconnlistener_get_base(listener);

	(void)arg; /* the argument of the server's own callbacks */
	log_event(LOG_LEVEL_WARNING, "connections-wait", NULL,
	          "no connection for HTTP can be accepted for now: %s", strerror(errno));
	evconnlistener_disable(listener);
	(void)event_base_once(base, -1, EV_TIMEOUT, on_accept_again, listener, &pause);
}

/* Called when the server has accepted a connection and needs a stream for it. */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	const struct timeval limit = { .tv_sec = DEADLINE_SECONDS };
	struct http *http = arg;
	unsigned count = sweep_connections(http);
	struct bufferevent *stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	struct client *client = http->clients;

	if (!stream || count == CLIENTS_MAX)
		return stream;
	while (client->stream)
		client++;
	assert(client < http->clients + CLIENTS_MAX);
	bufferevent_setwatermark(stream, EV_READ, 0, INPUT_MAX);
	bufferevent_incref(stream);
	client->stream = stream;
	event_add(client->deadline, &limit);
	sweep_later(http);
	if (count + 1 == CLIENTS_MAX)
		evconnlistener_disable(http->listener); /* until the next sweep */
	return stream;
}

/* --- answers --- */

static void add_header(struct evhttp_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

/* Sends an answer and frees `body`. HEAD gets only the headers. */
static void send_answer(struct http *http, struct evhttp_request *request, int code,
                        const char *reason, const char *type, struct evbuffer *body)
{
	char length[24];

	http->daemon->counters.http_requests++;
	snprintf(length, sizeof(length), "%zu", body ? evbuffer_get_length(body) : 0);
	add_header(request, "Content-Type", type);
	add_header(request, "Content-Length", length);
	add_header(request, "Cache-Control", "no-store");
	add_header(request, "X-Content-Type-Options", "nosniff");
	add_header(request, "Referrer-Policy", "no-referrer");
	add_header(request, "Connection", "close");
	if (body && evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
		evbuffer_drain(body, evbuffer_get_length(body));
	evhttp_send_reply(request, code, reason, body);
	if (body)
		evbuffer_free(body);
}

static void answer_text(struct http *http, struct evhttp_request *request, int code,
                        const char *reason, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	if (body)
		evbuffer_add_printf(body, "%s\n", text);
	send_answer(http, request, code, reason, TEXT, body);
}

/* Frees the bytes of a page. Called when the page was made again and no answer uses them any
 * more. */
static void free_page_bytes(const void *bytes, size_t len, void *arg)
{
	(void)bytes;
	(void)len;
	free(arg);
}

static struct evbuffer *write_page(struct http *http, const struct page *page)
{
	struct evbuffer *body = evbuffer_new();
	char *bytes = NULL;
	size_t len;
	FILE *out = body ? open_memstream(&bytes, &len) : NULL;

	if (out) {
		__fsetlocking(out, FSETLOCKING_BYCALLER); /* used by one thread */
		page->write(out, http->daemon);
	}
	if (out && fclose(out) == 0 &&
	    evbuffer_add_reference(body, bytes, len, free_page_bytes, bytes) == 0)
		return body;
	free(bytes);
	if (body)
		evbuffer_free(body);
	return NULL;
}

static bool add_page_to_body(struct http *http, struct page *page, struct evbuffer *body)
{
	uint64_t now = daemon_now_ns();
	struct evbuffer *made;

	if (!page->body || now - page->made_ns >= (uint64_t)FRESH_MS * 1000000) {
		made = write_page(http, page);
		if (!made)
			return false;
		if (page->body)
			evbuffer_free(page->body);
		page->body = made;
		page->made_ns = now;
	}
	return evbuffer_add_buffer_reference(body, page->body) == 0;
}

static void answer_page(struct http *http, struct evhttp_request *request, struct page *page,
                        const char *type)
{
	struct evbuffer *body = evbuffer_new();

	if (!body || !add_page_to_body(http, page, body)) {
		if (body)
			evbuffer_free(body);
		answer_text(http, request, HTTP_SERVUNAVAIL, "Service Unavailable",
		            "the daemon is out of memory");
		return;
	}
	send_answer(http, request, HTTP_OK, "OK", type, body);
}

/* Returns the query of the requested address, or "". */
static const char *request_query(const struct evhttp_request *request)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *query = uri ? evhttp_uri_get_query(uri) : NULL;

	return query ? query : "";
}

static void get_metrics(struct http *http, struct evhttp_request *request)
{
	const bool alerts = strcmp(request_query(request), "for=alerts") == 0;

	answer_page(http, request, alerts ? &http->alerts : &http->metrics,
	            "text/plain; version=0.0.4; charset=utf-8");
}

static void get_status(struct http *http, struct evhttp_request *request)
{
	answer_page(http, request, &http->status, "application/json");
}

/* An answer shows that the loop is running. */
static void get_health(struct http *http, struct evhttp_request *request)
{
	answer_text(http, request, HTTP_OK, "OK", "ok");
}

static void get_ready(struct http *http, struct evhttp_request *request)
{
	char why[WATCH_REASON] = "ready";

	if (watch_is_ready(http->daemon, why, sizeof(why)))
		answer_text(http, request, HTTP_OK, "OK", why);
	else
		answer_text(http, request, HTTP_SERVUNAVAIL, "Service Unavailable", why);
}

/* The policy allows only the script and style of this answer, by a random nonce. */
static void get_root(struct http *http, struct evhttp_request *request)
{
	static const char place[] = "@NONCE@";
	const char *at = (const char *)page_html, *end = at + page_html_size, *next;
	struct evbuffer *body = evbuffer_new();
	uint8_t random[NONCE_BYTES];
	char nonce[NONCE_TEXT], policy[256];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		abort(); /* a guessable nonce would be worse */
	for (unsigned i = 0; i < NONCE_BYTES; i++)
		snprintf(nonce + 2 * (size_t)i, 3, "%02x", random[i]);
	snprintf(policy, sizeof(policy),
	         "default-src 'none'; connect-src 'self'; img-src data:; "
	         "script-src 'nonce-%s'; style-src 'nonce-%s'; base-uri 'none'; "
	         "form-action 'none'; frame-ancestors 'none'",
	         nonce, nonce);
	for (; body && (next = memmem(at, (size_t)(end - at), place, sizeof(place) - 1));
	     at = next + sizeof(place) - 1) {
		evbuffer_add(body, at, (size_t)(next - at));
		evbuffer_add(body, nonce, sizeof(nonce) - 1);
	}
	if (body)
		evbuffer_add(body, at, (size_t)(end - at));
	add_header(request, "Content-Security-Policy", policy);
	send_answer(http, request, HTTP_OK, "OK", "text/html; charset=utf-8", body);
}

static const struct {
	const char *path;
	void (*get)(struct http *http, struct evhttp_request *request);
} paths[] = {
	{ "/", get_root },        { "/healthz", get_health },     { "/metrics", get_metrics },
	{ "/readyz", get_ready }, { "/status.json", get_status },
};

/* Checks each host that the request names. Browsers always name one, so a request without one is
 * not from a browser. */
static bool names_this_host(const struct http *http, struct evhttp_request *request,
                            const struct evhttp_uri *uri)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
	const char *host = uri ? evhttp_uri_get_host(uri) : NULL;

	if (host && *host && !http_host_is_ours(&http->options, host))
		return false;
	for (const struct evkeyval *at = headers->tqh_first; at; at = at->next.tqe_next)
		if (strcasecmp(at->key, "Host") == 0 &&
		    !http_host_is_ours(&http->options, at->value))
			return false;
	return true;
}

static void answer_request(struct http *http, struct evhttp_request *request)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	enum evhttp_cmd_type command = evhttp_request_get_command(request);

	if (!names_this_host(http, request, uri)) {
		answer_text(http, request, 421, "Misdirected Request",
		            "this daemon goes by another name: ask for it by a number, or start it "
		            "with --http-name and the name that you use");
		return;
	}
	if (command != EVHTTP_REQ_GET && command != EVHTTP_REQ_HEAD) {
		add_header(request, "Allow", "GET, HEAD");
		answer_text(http, request, HTTP_BADMETHOD, "Method Not Allowed",
		            "only GET and HEAD are answered");
		return;
	}
	for (unsigned i = 0; path && i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(path, paths[i].path) != 0)
			continue;
		paths[i].get(http, request);
		return;
	}
	answer_text(http, request, HTTP_NOTFOUND, "Not Found",
	            "there are /, /healthz, /metrics, /readyz and /status.json");
}

static void on_request(struct evhttp_request *request, void *arg)
{
	struct http *http = arg;

	daemon_lock(http->daemon);
	answer_request(http, request);
	daemon_unlock(http->daemon);
}

/* --- start and end --- */

static void configure_server(struct http *http)
{
	evhttp_set_max_headers_size(http->server, HEADERS_MAX);
	evhttp_set_max_body_size(http->server, 0);
	evhttp_set_timeout(http->server, DEADLINE_SECONDS);
	evhttp_set_allowed_methods(http->server, UINT16_MAX);
	evhttp_set_default_content_type(http->server, NULL);
	evhttp_set_bevcb(http->server, on_connection, http);
	evhttp_set_gencb(http->server, on_request, http);
}

static bool make_server(struct http *http, int fd)
{
	struct event_base *base = http->daemon->base;
	struct evhttp_bound_socket *bound;

	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		http->clients[i].http = http;
		http->clients[i].deadline = evtimer_new(base, on_deadline, &http->clients[i]);
		if (!http->clients[i].deadline)
			return false;
	}
	http->sweep_timer = evtimer_new(base, on_sweep, http);
	http->server = evhttp_new(base);
	if (!http->sweep_timer || !http->server)
		return false;
	configure_server(http);
	bound = evhttp_accept_socket_with_handle(http->server, fd);
	if (!bound)
		return false;
	http->listener = evhttp_bound_socket_get_listener(bound);
	evconnlistener_set_error_cb(http->listener, on_accept_error);
	return true;
}

static int announce_address(const struct http_options *options, unsigned port, char *why,
                            size_t size)
{
	const bool v6 = strchr(options->endpoint.host, ':') != NULL;
	char text[16];

	log_event(LOG_LEVEL_INFO, "listening", NULL, "listening at http://%s%s%s:%u", v6 ? "[" : "",
	          options->endpoint.host, v6 ? "]" : "", port);
	snprintf(text, sizeof(text), "%u\n", port);
	return options->port_file[0]
	               ? listen_write_file_atomically(options->port_file, text, why, size)
	               : 0;
}

int http_open(struct daemon *daemon, const struct http_options *options, char *why, size_t size)
{
	static const char exposed[] = "is not an address of this host alone, as 127.0.0.1 is; "
				      "--http-anywhere on lets other hosts in";
	int fd = listen_tcp(&options->endpoint, options->anywhere ? NULL : exposed, why, size);
	unsigned port;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ OUTPUT_MAX }, sizeof(int));
	port = listen_get_port(fd);
	daemon->http = calloc(1, sizeof(*daemon->http));
	if (daemon->http) {
		daemon->http->daemon = daemon;
		daemon->http->options = *options;
		daemon->http->metrics.write = metrics_write;
		daemon->http->alerts.write = metrics_write_alerts;
		daemon->http->status.write = status_json_write;
	}
	if (!daemon->http || !make_server(daemon->http, fd)) {
		snprintf(why, size, "out of memory");
		if (!daemon->http || !daemon->http->listener)
			close(fd);
		http_close(daemon);
		return -1;
	}
	return announce_address(options, port, why, size);
}

void http_close(struct daemon *daemon)
{
	struct http *http = daemon->http;

	if (!http)
		return;
	daemon->http = NULL;
	if (http->server)
		evhttp_free(http->server);
	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		if (http->clients[i].stream)
			stop_watching_client(&http->clients[i]);
		if (http->clients[i].deadline)
			event_free(http->clients[i].deadline);
	}
	if (http->sweep_timer)
		event_free(http->sweep_timer);
	if (http->metrics.body)
		evbuffer_free(http->metrics.body);
	if (http->alerts.body)
		evbuffer_free(http->alerts.body);
	if (http->status.body)
		evbuffer_free(http->status.body);
	free(http);
}
