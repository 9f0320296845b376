/*
 * test_fabric_tcp.c - the data path over TCP, and the same inside TLS.
 */
#include "../support/authority_tls.h"
#include "tcp_mirror.h"

#include <sched.h>

struct unit_fixture unit_fixture = { setup, teardown };

/* Moves both ends on until `chains` more have completed. */
static void settle(struct mirror *m, struct ps_link *link, int chains)
{
	uint64_t until = soon();
	int n;

	while (chains > 0) {
		n = ps_fabric_tcp.poll(link);
		assert_true(n >= 0);
		chains -= n;
		if (pump_some(m, CHUNK) < 0)
			sched_yield();
		assert_true(ps_monotonic() < until);
	}
	assert_int_equal(chains, 0);
}

static struct ps_write write_of(const void *src, uint32_t region, uint64_t offset, uint32_t length)
{
	return (struct ps_write){ src, offset, region, length };
}

/* The mirror takes nothing for a while: far more is posted than the sockets hold. */
TEST(what_the_socket_does_not_take_is_sent_on_later, struct mirror *m)
{
	enum { BIG = 12 << 20, SMALL = 500 };
	struct ps_link *link = attach_well(m);
	uint8_t *source = malloc(BIG);
	static uint64_t numbers[SMALL];
	struct ps_write big = write_of(source, PS_REGION_SEGMENT, 0, BIG);
	struct ps_chain chain = { .writes = &big, .write_count = 1 };
	struct pollfd fd;
	uint64_t i;

	for (i = 0; i < BIG; i++)
		source[i] = (uint8_t)(i * 31 >> 3);
	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
	for (i = 0; i < SMALL; i++) {
		struct ps_write one = write_of(&numbers[i], PS_REGION_SEGMENT, BIG + i % 7 * 8, 8);
		struct ps_chain small = { &one, 1, 0, write_of(&numbers[i], PS_REGION_LOG, 0, 8) };

		numbers[i] = i;
		assert_int_equal(ps_fabric_tcp.post(link, &small), PS_LINK_OK);
	}
	assert_int_equal(ps_fabric_tcp.poll(link), 0);
	assert_true(ps_fabric_tcp.waits(link, &fd));
	assert_int_equal(fd.events, POLLIN | POLLOUT);
	settle(m, link, 1 + SMALL);
	assert_memory_equal(m->segment, source, BIG);
	for (i = SMALL - 7; i < SMALL; i++)
		assert_int_equal(*(uint64_t *)(void *)(m->segment + BIG + i % 7 * 8), i);
	assert_int_equal(*(uint64_t *)(void *)m->log, SMALL - 1);
	ps_fabric_tcp.detach(link);
	free(source);
}

/* Nothing leaves before the end of the cork, and then all comes by one read. */
TEST(what_is_posted_under_a_cork_goes_together, struct mirror *m)
{
	enum { CHAINS = 5 };
	struct ps_link *link = attach_well(m);
	static uint64_t numbers[CHAINS];

	ps_fabric_tcp.cork(link, true);
	for (uint64_t i = 0; i < CHAINS; i++) {
		struct ps_write one = write_of(&numbers[i], PS_REGION_SEGMENT, i * 8, 8);
		struct ps_chain chain = { &one, 1, 0, write_of(&numbers[i], PS_REGION_LOG, 0, 8) };

		numbers[i] = i + 1;
		assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
	}
	assert_true(pump_some(m, CHUNK) < 0);
	ps_fabric_tcp.cork(link, false);
	assert_true(pump_some(m, CHUNK) > 0);
	assert_int_equal(m->applied, CHAINS);
	settle(m, link, CHAINS);
	assert_memory_equal(m->segment, numbers, sizeof(numbers));
	assert_int_equal(*(uint64_t *)(void *)m->log, CHAINS);
	ps_fabric_tcp.detach(link);
}

/* A link is ended while a chain is on its way: in this process, or already in its kernel. */
TEST(nothing_is_sent_after_detach, struct mirror *m)
{
	const uint32_t lengths[] = { 16 << 20, 64 << 10 };
	int narrow = 4096, i;

	/* The second chain is one that the kernel takes whole, and the mirror's does not. */
	setsockopt(m->listener, SOL_SOCKET, SO_RCVBUF, &narrow, sizeof(narrow));
	for (i = 0; i < 2; i++) {
		struct ps_link *link = attach_well(m);
		uint8_t *source = calloc(1, lengths[i]);
		struct ps_write write = write_of(source, PS_REGION_SEGMENT, 0, lengths[i]);
		struct ps_chain chain = { .writes = &write, .write_count = 1 };
		uint64_t until = soon();
		struct pollfd fd;
		ssize_t n;

		assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
		assert_true(ps_fabric_tcp.waits(link, &fd));
		assert_int_equal(fd.events, i == 0 ? POLLIN | POLLOUT : POLLIN);
		ps_fabric_tcp.detach(link);
		free(source);
		do {
			n = pump_some(m, CHUNK);
			assert_true(ps_monotonic() < until);
		} while (n > 0 || (n < 0 && ps_would_block(errno)));
		assert_int_equal(m->applied, 0);
		ps_stream_close(&m->stream);
		ps_decoder_init(&m->decoder, &ops, m);
	}
}

/* The mirror takes as much as is posted, but is always some megabytes behind. */
TEST(a_queue_that_is_never_empty_keeps_its_order, struct mirror *m)
{
	enum { CHAINS = 3000, FILLER = 16384, AHEAD = 12 << 20 };
	struct ps_link *link = attach_well(m);
	uint8_t *filler = calloc(1, AHEAD);
	static uint64_t numbers[CHAINS];
	struct ps_write ahead = write_of(filler, PS_REGION_SEGMENT, 0, AHEAD);
	struct ps_chain first = { .writes = &ahead, .write_count = 1 };
	int completed = 0, n, i;

	assert_int_equal(ps_fabric_tcp.post(link, &first), PS_LINK_OK);
	for (i = 0; i < CHAINS; i++) {
		struct ps_write writes[] = {
			write_of(filler, PS_REGION_SEGMENT, AHEAD, FILLER),
			write_of(&numbers[i], PS_REGION_SEGMENT, AHEAD + FILLER + 8 * i, 8),
		};
		struct ps_chain chain = { .writes = writes, .write_count = 2 };

		numbers[i] = (uint64_t)i + 1;
		assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
		assert_true(pump_some(m, FILLER + 8) != 0);
		n = ps_fabric_tcp.poll(link);
		assert_true(n >= 0);
		completed += n;
	}
	settle(m, link, CHAINS + 1 - completed);
	assert_memory_equal(m->segment + AHEAD + FILLER, numbers, sizeof(numbers));
	ps_fabric_tcp.detach(link);
	free(filler);
}

/* The mirror dies with a large chain under way: what it had acknowledged still counts. */
TEST(answers_before_the_end_still_count, struct mirror *m)
{
	struct ps_link *link = attach_well(m);
	uint8_t *source = calloc(1, SEGMENT_SIZE);
	struct ps_write small = write_of("x", PS_REGION_SEGMENT, 0, 1);
	struct ps_write large = write_of(source, PS_REGION_SEGMENT, 0, SEGMENT_SIZE);
	struct ps_chain chain = { .writes = &small, .write_count = 1 };
	uint64_t until = soon();
	int n;

	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
	while (m->applied < 2 && ps_monotonic() < until)
		pump_some(m, CHUNK);
	chain.writes = &large;
	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
	ps_stream_close(&m->stream);
	/* The first to meet the broken connection: poll() is to tell, after the answers. */
	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
	while ((n = ps_fabric_tcp.poll(link)) == 0 && ps_monotonic() < until)
		;
	assert_int_equal(n, 2);
	while ((n = ps_fabric_tcp.poll(link)) == 0 && ps_monotonic() < until)
		;
	assert_int_equal(n, PS_LINK_BROKEN);
	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_BROKEN);
	assert_int_equal(ps_fabric_tcp.read(link, 0, 0, source, 8, PATIENCE), PS_LINK_BROKEN);
	ps_fabric_tcp.detach(link);
	free(source);
}

/* A mistake of ours: nothing of such a chain may go out. */
TEST(what_lies_outside_a_region_is_refused, struct mirror *m)
{
	static const struct ps_write bad[] = {
		{ "x", SEGMENT_SIZE, PS_REGION_SEGMENT, 1 },
		{ "x", UINT64_MAX, PS_REGION_SEGMENT, 1 },
		{ "x", LOG_SIZE, PS_REGION_LOG, 1 },
		{ "x", 0, PS_REGION_SEGMENT + 1, 1 },
		{ "x", 0, PS_REGIONS_MAX, 1 },
		{ "x", 0, PS_REGION_SEGMENT, 0 },
	};
	struct ps_write writes[2] = { { "good", 0, PS_REGION_SEGMENT, 4 } };
	struct ps_chain chain = { .writes = writes, .write_count = 2 };
	struct ps_chain empty = { .write_count = 0 };
	size_t i;

	for (i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++) {
		struct ps_link *link = attach_well(m);

		if (i < sizeof(bad) / sizeof(bad[0]))
			writes[1] = bad[i];
		assert_int_equal(ps_fabric_tcp.post(link, i < sizeof(bad) / sizeof(bad[0])
		                                                  ? &chain
		                                                  : &empty),
		                 PS_LINK_BROKEN);
		assert_int_equal(ps_fabric_tcp.poll(link), PS_LINK_BROKEN);
		ps_fabric_tcp.detach(link);
		assert_true(!receive_all(m, &(char){ 0 }, 1));
		ps_stream_close(&m->stream);
	}
}

/* A segment is made while the store is open: writes to it are good after the update. */
TEST(an_update_makes_new_regions_known, struct mirror *m)
{
	struct ps_link *link;
	struct ps_write write = write_of("new", PS_REGION_SEGMENT, 0, 3);
	struct ps_chain chain = { .writes = &write, .write_count = 1 };
	struct ps_error error;

	m->grant.n_regions = 1;
	link = attach_well(m);
	m->regions[1].id = PS_REGIONS_MAX;
	m->grant.n_regions = 2;
	assert_int_equal(ps_fabric_tcp.update(link, &m->grant, NULL, &error), PERSEAS_EPROTOCOL);
	m->regions[1].id = PS_REGION_SEGMENT;
	assert_int_equal(ps_fabric_tcp.update(link, &m->grant, NULL, &error), 0);
	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
	settle(m, link, 1);
	assert_memory_equal(m->segment, "new", 3);
	ps_fabric_tcp.detach(link);
}

/* A segment is read whole, while a chain that was posted before is not answered yet. */
TEST(a_read_takes_many_pieces_and_remembers_completions, struct mirror *m)
{
	const uint64_t length = 5 * (uint64_t)PS_READ_MAX + 12345;
	struct ps_link *link = attach_well(m);
	uint8_t *bytes = malloc(length + 1);
	struct ps_write write = write_of("first", PS_REGION_SEGMENT, 100, 5);
	struct ps_chain chain = { .writes = &write, .write_count = 1 };
	uint64_t i;

	for (i = 0; i < SEGMENT_SIZE; i++)
		m->segment[i] = (uint8_t)(i * 2654435761u >> 16);
	bytes[length] = 0x5a;
	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
	assert_int_equal(pthread_create(&m->thread, NULL, run, m), 0);
	assert_int_equal(ps_fabric_tcp.read(link, PS_REGION_SEGMENT, 99, bytes, length, PATIENCE),
	                 PS_LINK_OK);
	assert_memory_equal(bytes, m->segment + 99, length);
	assert_memory_equal(bytes + 1, "first", 5);
	assert_int_equal(bytes[length], 0x5a);
	assert_int_equal(ps_fabric_tcp.poll(link), 1);
	assert_int_equal(ps_fabric_tcp.read(link, PS_REGION_LOG, 8, bytes, 1, PATIENCE),
	                 PS_LINK_OK);
	assert_int_equal(ps_fabric_tcp.read(link, PS_REGION_LOG, 8, bytes, 0, PATIENCE),
	                 PS_LINK_OK);
	/* And the link is as good for chains as before. */
	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
	for (i = soon(); ps_monotonic() < i && ps_fabric_tcp.poll(link) == 0;)
		;
	assert_int_equal(m->applied, 1 + 6 + 1 + 1);
	assert_int_equal(ps_fabric_tcp.read(link, PS_REGION_LOG, LOG_SIZE, bytes, 1, PATIENCE),
	                 PS_LINK_BROKEN);
	ps_fabric_tcp.detach(link);
	pthread_join(m->thread, NULL);
	free(bytes);
}

#define SOON (3 * 1000000000ull) /* ns; a stalled machine must not use it up */

/* All of it takes four times as long as a caller has for an answer, or for a sixteenth of it. */
TEST(a_read_goes_on_as_long_as_bytes_come, struct mirror *m)
{
	const uint64_t length = 6 * PS_READ_STRIDE;
	struct ps_link *link = attach_well(m);
	uint8_t *bytes = malloc(length);
	uint64_t began = ps_monotonic();

	memset(m->segment, 'x', length);
	m->once = PS_READ_STRIDE / 2;
	m->rest = SOON / 8;
	assert_int_equal(pthread_create(&m->thread, NULL, run, m), 0);
	assert_int_equal(ps_fabric_tcp.read(link, PS_REGION_SEGMENT, 0, bytes, length, SOON),
	                 PS_LINK_OK);
	assert_true(ps_monotonic() - began > SOON);
	assert_memory_equal(bytes, m->segment, length);
	ps_fabric_tcp.detach(link);
	pthread_join(m->thread, NULL);
	free(bytes);
}

/* A few bytes now and then are none of a link: it is left as one that gives nothing. */
TEST(a_read_that_trickles_is_given_up, struct mirror *m)
{
	struct ps_link *link = attach_well(m);
	uint8_t bytes[4096];
	uint64_t began = ps_monotonic();

	m->once = 16;
	m->rest = SOON / 20;
	assert_int_equal(pthread_create(&m->thread, NULL, run, m), 0);
	assert_int_equal(ps_fabric_tcp.read(link, PS_REGION_SEGMENT, 0, bytes, sizeof(bytes), SOON),
	                 PS_LINK_BROKEN);
	assert_true(ps_monotonic() - began >= SOON);
	ps_fabric_tcp.detach(link);
	pthread_join(m->thread, NULL);
}

static void expect_refusal(struct mirror *m, int code, const char *word)
{
	struct ps_error error = { 0 };

	assert_null(attach(m, &error));
	assert_int_equal(error.code, code);
	if (!strstr(error.text, word) || !strstr(error.text, m->address.text))
		fail_msg("said: %s", error.text);
	ps_stream_close(&m->stream);
}

/* Greetings that are not the right one, each with what the owner is told. */
TEST(a_wrong_greeting_is_told_apart, struct mirror *m)
{
	struct ps_answer greeting = { .op = PS_OP_HELLO };
	uint8_t other[PS_ID_SIZE] = "other";

	m->grant.token.data = other;
	expect_refusal(m, PERSEAS_EUNREACHABLE, "session");
	assert_int_equal(m->hello.magic, PS_DATA_MAGIC);
	assert_int_equal(m->hello.version, PS_DATA_VERSION);

	m->greeting = &greeting;
	m->greeting_len = sizeof(greeting);
	greeting.status = PS_ANSWER_BAD_VERSION;
	expect_refusal(m, PERSEAS_EVERSION, "version 7");
	greeting.status = PS_ANSWER_BAD_FRAME;
	expect_refusal(m, PERSEAS_EPROTOCOL, "understand");
	greeting.status = 77;
	expect_refusal(m, PERSEAS_EPROTOCOL, "did not greet");
	greeting.status = PS_ANSWER_OK;
	greeting.op = PS_OP_WRITE;
	expect_refusal(m, PERSEAS_EPROTOCOL, "did not greet");
	m->greeting = "HTTP/1.1 400 Bad Request\r\n";
	expect_refusal(m, PERSEAS_EPROTOCOL, "did not greet");
	m->greeting_len = 5;
	expect_refusal(m, PERSEAS_EUNREACHABLE, "ended");
}

/* Nobody listens; a listener says nothing; the grant has no token. */
TEST(a_mirror_that_cannot_be_attached_is_named, struct mirror *m)
{
	struct ps_error error;

	assert_null(ps_fabric_tcp.attach(&owner_env, &m->address, &m->grant, NULL, 1,
	                                 ps_monotonic() + 20000000, &error));
	assert_int_equal(error.code, PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(error.text, "in time"));
	m->grant.token.len = 3;
	assert_null(
		ps_fabric_tcp.attach(&owner_env, &m->address, &m->grant, NULL, 1, soon(), &error));
	assert_int_equal(error.code, PERSEAS_EPROTOCOL);
	m->grant.token.len = PS_ID_SIZE;
	close(m->listener);
	m->listener = -1;
	assert_null(
		ps_fabric_tcp.attach(&owner_env, &m->address, &m->grant, NULL, 1, soon(), &error));
	assert_int_equal(error.code, PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(error.text, "is perseasd running there?"));
	assert_non_null(strstr(error.text, m->address.text));
}

/* For the second run: certificates of both ends. */
static int secure(void)
{
	const struct leaf leaves[] = {
		{ "mirror", "IP:127.0.0.1", NULL, 0, 0 },
		{ "owner", "DNS:owner", NULL, 0, 0 },
	};
	char folder[] = "/tmp/perseas-fabric-XXXXXX", command[64];
	struct authority *authority;

	assert_non_null(mkdtemp(folder));
	authority = authority_new(folder, "ca");
	authority_issue(authority, &leaves[0]);
	authority_issue(authority, &leaves[1]);
	mirror_tls = authority_tls(folder, "mirror", "ca", NULL);
	owner_env.tls = authority_tls(folder, "owner", "ca", NULL);
	authority_free(authority);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void expose(void)
{
	ps_tls_free(mirror_tls);
	ps_tls_free(owner_env.tls);
}

int main(void)
{
	int failed = unit_run("plain text");

	if (secure())
		return 1;
	failed += unit_run("TLS");
	expose();
	return failed;
}
