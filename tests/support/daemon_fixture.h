/*
 * daemon_fixture.h - a daemon on sockets of this host, stepped in the test's own thread.
 * Nothing waits for time to pass: every wait is for something to happen, up to a bound.
 */
#ifndef PERSEAS_TESTS_DAEMON_FIXTURE_H
#define PERSEAS_TESTS_DAEMON_FIXTURE_H

#include "../../server/loop/daemon.h"
#include "../../server/store/status.h"

enum { FIXTURE_SOCKETS = 64 };

/* A connection that the teardown closes, unless the test did. */
struct fixture_socket {
	int fd;
	ino_t inode;
};

struct fixture {
	char directory[64];
	struct memory *memory;
	struct stores *stores;
	struct daemon *daemon;
	struct access *rules; /* in force, or NULL */
	uint16_t port;
	struct endpoint local;
	char why[512];
	struct fixture_socket sockets[FIXTURE_SOCKETS];
	unsigned socket_count;
};

/* The number of threads that carry data (lanes.h) in daemons that are set up from now on. 1, the
 * default, is the test's own. */
extern unsigned fixture_threads;

/* For cmocka: sets up a daemon that listens on a free port and on a Unix socket. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Rules of access, without names of users and groups, until the end. */
void fixture_rules(struct fixture *fixture, const char *text);

/* Does what daemon_listen does. */
int fixture_listen(struct fixture *fixture, const struct endpoint *endpoint);

/* New connections, which block. The teardown closes the first FIXTURE_SOCKETS of them. */
int fixture_tcp(struct fixture *fixture);
int fixture_tcp_at(struct fixture *fixture, const char *address);
int fixture_tcp_from(struct fixture *fixture, const char *address);
int fixture_unix(struct fixture *fixture);

/* Steps the daemon until fd can be read. */
void fixture_wait(struct fixture *fixture, int fd);
/* Receives exactly len bytes; false: the connection ended before. */
bool fixture_receive(struct fixture *fixture, int fd, void *bytes, size_t len);
bool fixture_ended(struct fixture *fixture, int fd);
void fixture_send(int fd, const void *bytes, size_t len);

/* Exchanges hellos of a control connection. */
void fixture_greet(struct fixture *fixture, int fd);
/* Opens a control connection over TCP and exchanges greetings. */
int fixture_peer(struct fixture *fixture);
void fixture_ask(int fd, Perseas__Request__BodyCase body, void *message);
void fixture_ask_list(int fd);
/* Sends a claim with takeover. The owner's id is made from the epoch. */
void fixture_ask_claim(int fd, uint64_t epoch, bool shared);
void fixture_ask_claim_of(int fd, const char *store, uint64_t epoch, bool shared);
/* The next reply; signs of progress before it are passed over. */
Perseas__Reply *fixture_reply(struct fixture *fixture, int fd);
/* The next reply or sign of progress. */
Perseas__Reply *fixture_message(struct fixture *fixture, int fd);
void fixture_done(Perseas__Reply *reply);
/* Takes the next reply; returns its status. */
Perseas__Status fixture_status(struct fixture *fixture, int fd);
/* Takes the next reply, which must be a list. */
void fixture_take_list(struct fixture *fixture, int fd);
/* Asks for a sign of life, and takes it. */
void fixture_confirm(struct fixture *fixture, int fd);

/* Makes a settled store, with a ring of 1 MiB. */
void fixture_make(struct fixture *fixture, const char *store);
/* Makes the store "bank" so. */
void fixture_bank(struct fixture *fixture);
/* Greets and claims it; the claim must be granted. */
Perseas__Reply *fixture_claim(struct fixture *fixture, int fd, uint64_t epoch);

#endif
