/*
 * daemon_fixture.c - starts a daemon's loop in the test's process and steps it until something
 * has happened. Tests of server/ call it. It never sleeps for a time, and takes ports that the
 * system picks.
 */
#include "daemon_fixture.h"

#include "../../proto/data/frame.h"
#include "memory_folder.h"
#include "patient_daemon.h"
#include "unit.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <sys/un.h>

enum { STEPS_MAX = 10000 }; /* of a millisecond each at most */

unsigned fixture_threads = 1;

static uint16_t read_port(struct fixture *fixture)
{
	char path[128];
	unsigned port = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/port", fixture->directory);
	assert_int_equal(daemon_write_ports(fixture->daemon, path, fixture->why,
	                                    sizeof(fixture->why)),
	                 0);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%u", &port), 1);
	fclose(file);
	return (uint16_t)port;
}

int fixture_listen(struct fixture *fixture, const struct endpoint *endpoint)
{
	return daemon_listen(fixture->daemon, endpoint, fixture->why, sizeof(fixture->why));
}

int fixture_setup(void **state)
{
	static struct fixture fixture;
	struct endpoint tcp = { .host = "127.0.0.1", .port = "0" };
	char path[128];
	const char *text;

	log_init(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	memset(&fixture, 0, sizeof(fixture));
	memory_folder(fixture.directory, sizeof(fixture.directory), "daemon");
	snprintf(path, sizeof(path), "%s/memory", fixture.directory);
	fixture.memory = memory_file_new(path, 0, false, &text);
	assert_non_null(fixture.memory);
	fixture.stores = stores_new(fixture.memory);
	fixture.daemon = patient_daemon_new(fixture.stores);
	assert_non_null(fixture.daemon);
	assert_int_equal(lanes_open(fixture.daemon, fixture_threads), 0);
	assert_int_equal(fixture_listen(&fixture, &tcp), 0);
	fixture.local.local = true;
	snprintf(fixture.local.host, sizeof(fixture.local.host), "%s/socket", fixture.directory);
	assert_int_equal(fixture_listen(&fixture, &fixture.local), 0);
	fixture.port = read_port(&fixture);
	*state = &fixture;
	return 0;
}

static bool find_nobody(const char *name, uint32_t *number)
{
	(void)name;
	(void)number;
	return false;
}

void fixture_rules(struct fixture *fixture, const char *text)
{
	static const struct access_names names = { find_nobody, find_nobody };
	struct access_fault fault;
	struct access *old = fixture->rules;

	fixture->rules = access_parse(text, strlen(text), &names, &fault);
	assert_non_null(fixture->rules);
	stores_set_access(fixture->stores, fixture->rules);
	access_free(old);
}

static ino_t inode_of(int fd)
{
	struct stat file = { .st_ino = 0 };

	(void)fstat(fd, &file);
	return file.st_ino;
}

/* from: the address to bind first, or NULL. */
static int connect_to(struct fixture *fixture, const struct sockaddr_in *from, const void *to,
                      socklen_t length)
{
	const struct sockaddr *address = to;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (from)
		assert_int_equal(bind(fd, (const struct sockaddr *)from, sizeof(*from)), 0);
	assert_int_equal(connect(fd, address, length), 0);
	if (fixture->socket_count < FIXTURE_SOCKETS)
		fixture->sockets[fixture->socket_count++] = (struct fixture_socket){ fd,
			                                                             inode_of(fd) };
	return fd;
}

/* The number of a socket that the test has closed may be the daemon's now. */
static void close_sockets(struct fixture *fixture)
{
	for (unsigned i = 0; i < fixture->socket_count; i++)
		if (inode_of(fixture->sockets[i].fd) == fixture->sockets[i].inode)
			close(fixture->sockets[i].fd);
}

int fixture_teardown(void **state)
{
	struct fixture *fixture = *state;

	close_sockets(fixture);
	daemon_free(fixture->daemon);
	stores_free(fixture->stores);
	access_free(fixture->rules);
	memory_file_free(fixture->memory);
	unit_remove_folder(fixture->directory);
	return 0;
}

int fixture_tcp(struct fixture *fixture)
{
	return fixture_tcp_at(fixture, "127.0.0.1");
}

static struct sockaddr_in address_of(const char *host, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
		                     .sin_port = htons(port),
		                     .sin_addr.s_addr = inet_addr(host) };
}

int fixture_tcp_at(struct fixture *fixture, const char *address)
{
	const struct sockaddr_in to = address_of(address, fixture->port);

	return connect_to(fixture, NULL, &to, sizeof(to));
}

int fixture_tcp_from(struct fixture *fixture, const char *address)
{
	const struct sockaddr_in from = address_of(address, 0);
	const struct sockaddr_in to = address_of("127.0.0.1", fixture->port);

	return connect_to(fixture, &from, &to, sizeof(to));
}

int fixture_unix(struct fixture *fixture)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	memcpy(to.sun_path, fixture->local.host, sizeof(to.sun_path));
	return connect_to(fixture, NULL, &to, sizeof(to));
}

/* Steps the daemon until fd can be read. */
void fixture_wait(struct fixture *fixture, int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	for (int i = 0; i < STEPS_MAX; i++) {
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
		if (poll(&ready, 1, 1) == 1)
			return;
	}
	fail_msg("the daemon did not answer");
}

/* Receives exactly len bytes; false: the connection ended before. */
bool fixture_receive(struct fixture *fixture, int fd, void *bytes, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n;

		fixture_wait(fixture, fd);
		n = recv(fd, (uint8_t *)bytes + have, len - have, 0);
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

void fixture_send(int fd, const void *bytes, size_t len)
{
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

bool fixture_ended(struct fixture *fixture, int fd)
{
	uint8_t byte;

	return !fixture_receive(fixture, fd, &byte, 1);
}

void fixture_greet(struct fixture *fixture, int fd)
{
	struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };

	fixture_send(fd, &hello, sizeof(hello));
	assert_true(fixture_receive(fixture, fd, &hello, sizeof(hello)));
	assert_int_equal(hello.magic, PS_CONTROL_MAGIC);
	assert_int_equal(hello.version, PS_PROTOCOL_VERSION);
}

int fixture_peer(struct fixture *fixture)
{
	int fd = fixture_tcp(fixture);

	fixture_greet(fixture, fd);
	return fd;
}

Perseas__Reply *fixture_reply(struct fixture *fixture, int fd)
{
	Perseas__Reply *reply = fixture_message(fixture, fd);

	while (reply->body_case == PERSEAS__REPLY__BODY_WORKING) {
		fixture_done(reply);
		reply = fixture_message(fixture, fd);
	}
	return reply;
}

Perseas__Reply *fixture_message(struct fixture *fixture, int fd)
{
	Perseas__Reply *reply;
	const char *text = NULL;
	uint8_t *bytes;
	uint32_t len;

	assert_true(fixture_receive(fixture, fd, &len, sizeof(len)));
	bytes = malloc(len + 1);
	assert_true(fixture_receive(fixture, fd, bytes, len));
	reply = ps_reply_unpack(bytes, len, &text);
	assert_non_null(reply);
	free(bytes);
	return reply;
}

void fixture_ask(int fd, Perseas__Request__BodyCase body, void *message)
{
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	uint8_t *bytes;
	size_t len;

	request.body_case = body;
	request.list = message;
	assert_int_equal(ps_request_pack(&request, &bytes, &len), 0);
	fixture_send(fd, bytes, len);
	free(bytes);
}

void fixture_ask_list(int fd)
{
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;

	fixture_ask(fd, PERSEAS__REQUEST__BODY_LIST, &list);
}

void fixture_done(Perseas__Reply *reply)
{
	perseas__reply__free_unpacked(reply, NULL);
}

Perseas__Status fixture_status(struct fixture *fixture, int fd)
{
	Perseas__Reply *reply = fixture_reply(fixture, fd);
	Perseas__Status status = reply->status;

	fixture_done(reply);
	return status;
}

void fixture_take_list(struct fixture *fixture, int fd)
{
	Perseas__Reply *reply = fixture_reply(fixture, fd);

	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_LIST);
	fixture_done(reply);
}

void fixture_confirm(struct fixture *fixture, int fd)
{
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;

	fixture_ask(fd, PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	fixture_done(fixture_reply(fixture, fd));
}

static uint8_t store_id[PS_ID_SIZE] = { 1 }, image_id[PS_ID_SIZE] = { 2 };

void fixture_make(struct fixture *fixture, const char *store)
{
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member member = PERSEAS__MEMBER__INIT, *members[] = { &member };
	struct why refusal;

	member.address = (char *)"127.0.0.1:1";
	member.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, image_id };
	roster.version = roster.acks = 1;
	roster.n_members = 1;
	roster.members = members;
	create.store = settle.store = (char *)(uintptr_t)store;
	create.store_id = settle.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, store_id };
	create.image_id = member.image_id;
	create.log_size = 1 << 20;
	create.roster = &roster;
	assert_int_equal(store_create(fixture->stores, NULL, &create, &refusal), 0);
	assert_int_equal(store_settle(fixture->stores, &settle, &refusal), 0);
}

void fixture_bank(struct fixture *fixture)
{
	fixture_make(fixture, "bank");
}

void fixture_ask_claim(int fd, uint64_t epoch, bool shared)
{
	fixture_ask_claim_of(fd, "bank", epoch, shared);
}

void fixture_ask_claim_of(int fd, const char *store, uint64_t epoch, bool shared)
{
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	uint8_t owner[PS_ID_SIZE] = { (uint8_t)epoch };

	claim.store = (char *)(uintptr_t)store;
	claim.epoch = epoch;
	claim.owner = (ProtobufCBinaryData){ PS_ID_SIZE, owner };
	claim.takeover = true;
	claim.shared = shared;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_CLAIM, &claim);
}

Perseas__Reply *fixture_claim(struct fixture *fixture, int fd, uint64_t epoch)
{
	Perseas__Reply *reply;

	fixture_greet(fixture, fd);
	fixture_ask_claim(fd, epoch, false);
	reply = fixture_reply(fixture, fd);
	assert_int_equal(reply->status, STATUS(OK));
	return reply;
}
