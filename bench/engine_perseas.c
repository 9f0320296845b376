/*
 * engine_perseas.c - the library as an engine: one segment, one transaction at a time.
 */
#include "clock.h"
#include "engine.h"
#include "../client/perseas.h"

#include <stdio.h>
#include <stdlib.h>

struct mirrored {
	struct engine engine;
	perseas_t *p;
	perseas_tx_t *tx; /* open, or NULL */
	uint64_t patience_ns;
	char configuration[160];
};

static void mirrored_close(struct engine *engine)
{
	struct mirrored *m = (struct mirrored *)engine;

	if (!m)
		return;
	perseas_close(m->p);
	free(m);
}

static int open_store(struct mirrored *m, const struct engine_options *options)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;

	how.flags = PERSEAS_CREATE | (options->takeover ? PERSEAS_TAKEOVER : 0);
	how.acks = (uint32_t)options->acks;
	how.log_size = options->log_size;
	how.spin_us = (uint32_t)options->spin_us;
	return perseas_open(options->store, options->mirrors, &how, &m->p);
}

/* Has every page there, as the other engines do, so that no fault is measured later. */
static void touch(void *memory, size_t size)
{
	volatile uint8_t *bytes = memory;

	for (size_t i = 0; i < size; i += 4096)
		bytes[i] = bytes[i];
}

/* A mirror that breaks, or is slow, in the middle connects again by itself. False: it is not worth
 * another try. */
static bool wait_for_mirrors(int code, uint64_t until)
{
	const struct timespec pause = { .tv_nsec = 100000000 };

	if (code != PERSEAS_EUNREACHABLE || clock_ns() >= until)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

/* The segment, and its contents on the mirrors. */
static int make_segment(struct mirrored *m, const char *name, size_t size, void **memory)
{
	uint64_t until = clock_ns() + m->patience_ns;
	int code;

	do
		code = perseas_map(m->p, name, size, memory);
	while (wait_for_mirrors(code, until));
	if (code)
		return code;
	touch(*memory, size);
	do
		code = perseas_publish(m->p);
	while (wait_for_mirrors(code, until));
	return code;
}

/* Where the mirrors are, on which fabric the last of them, and how a commit waits. */
static void describe(struct mirrored *m, const struct engine_options *options)
{
	struct perseas_mirror_stat mirror = { .fabric = "?" };
	unsigned spin_us = options->spin_us ? (unsigned)options->spin_us : 50;
	struct perseas_stat stat = { 0 };
	char wait[32] = "sleeps at once";

	perseas_stat(m->p, &stat);
	perseas_mirror_stat(m->p, stat.mirrors - 1, &mirror);
	if (spin_us != UINT32_MAX)
		snprintf(wait, sizeof(wait), "spins %u us", spin_us);
	snprintf(m->configuration, sizeof(m->configuration), "%u mirror%s over %s, W = %u, %s",
	         stat.mirrors, stat.mirrors == 1 ? "" : "s", mirror.fabric, stat.acks, wait);
}

static struct engine *mirrored_open(const struct engine_options *options, size_t size,
                                    void **memory, char *why)
{
	struct mirrored *m = calloc(1, sizeof(*m));

	if (!m) {
		snprintf(why, ENGINE_WHY, "out of memory");
		return NULL;
	}
	m->engine.ops = &engine_perseas;
	m->patience_ns = (uint64_t)options->patience_ms * 1000000;
	if (open_store(m, options) || make_segment(m, options->segment, size, memory)) {
		snprintf(why, ENGINE_WHY, "%s", perseas_message(m->p));
		mirrored_close(&m->engine);
		return NULL;
	}
	describe(m, options);
	return &m->engine;
}

static int mirrored_begin(struct engine *engine)
{
	struct mirrored *m = (struct mirrored *)engine;

	return perseas_begin(m->p, 0, &m->tx);
}

static int mirrored_range(struct engine *engine, const void *addr, size_t len)
{
	struct mirrored *m = (struct mirrored *)engine;

	return perseas_set_range(m->tx, addr, len);
}

/* Waits for a commit in doubt, for as long as the options allow. */
static int settle(struct mirrored *m)
{
	uint64_t until = clock_ns() + m->patience_ns;
	int code;

	do
		code = perseas_flush(m->p);
	while (code == PERSEAS_EINDOUBT && clock_ns() < until);
	return code;
}

static int mirrored_commit(struct engine *engine)
{
	struct mirrored *m = (struct mirrored *)engine;
	int code = perseas_commit(m->tx, 0);

	if (__builtin_expect(code == PERSEAS_EINDOUBT, 0))
		code = settle(m);
	return code;
}

static const char *mirrored_why(const struct engine *engine)
{
	return perseas_message(((const struct mirrored *)engine)->p);
}

static const char *mirrored_configuration(const struct engine *engine)
{
	return ((const struct mirrored *)engine)->configuration;
}

static struct perseas *mirrored_handle(struct engine *engine)
{
	return ((struct mirrored *)engine)->p;
}

const struct engine_ops engine_perseas = {
	.name = "perseas",
	.open = mirrored_open,
	.begin = mirrored_begin,
	.range = mirrored_range,
	.commit = mirrored_commit,
	.why = mirrored_why,
	.survives = "host",
	.configuration = mirrored_configuration,
	.handle = mirrored_handle,
	.close = mirrored_close,
};
