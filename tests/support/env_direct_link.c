/*
 * env_direct_link.c - the data path of env_direct.h: posted chains go straight into the mirror's
 * memory, or are held back.
 */
#include "env_direct_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A chain that is held back. */
struct held {
	struct held *next;
	bool applied;
	unsigned count, undo;
	struct ps_write slot;
	struct ps_write writes[];
};

static struct ps_link *direct_attach(struct ps_env *env, const struct ps_address *address,
                                     const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                     uint64_t until_ns, struct ps_error *error)
{
	struct direct *d = of(env)->d;
	unsigned mirror = direct_at(d, address);
	struct stores *stores = d->mirrors[mirror].stores;
	struct session *session = stores ? stores_find_session(stores, grant->token.data) : NULL;
	struct ps_link *link;

	(void)fds;
	(void)until_ns;
	if (!session) {
		ps_error_set(error, PERSEAS_EUNREACHABLE, "%s: the session is over", address->text);
		return NULL;
	}
	assert(session->epoch == epoch);
	direct_inside++;
	link = calloc(1, sizeof(*link));
	direct_inside--;
	assert(link);
	link->d = d;
	link->control = (struct ps_control *)session;
	link->mirror = mirror;
	link->last = &link->held;
	link->next = d->links;
	d->links = link;
	return link;
}

static int direct_update(struct ps_link *link, const Perseas__Grant *grant, const int *fds,
                         struct ps_error *error)
{
	(void)link;
	(void)grant;
	(void)fds;
	(void)error;
	return 0;
}

static void store_bytes(struct ps_link *link, enum direct_part part, const struct ps_write *write,
                        uint32_t length)
{
	struct direct *d = link->d;
	struct direct_write told = { link->mirror,   link->control->id, part,
		                     d->chain_count, write->region,     length,
		                     write->offset,  write->src };
	uint8_t *to = session_memory(&link->control->session, write->region, write->offset,
	                             write->length, true);

	/* The library writes only to memory that it was granted. */
	assert(to);
	memcpy(to, write->src, length);
	if (d->tap && d->tap->write && length)
		d->tap->write(d->tap->arg, &told);
}

/* Applies one write, unless the data path breaks at it. */
static int apply_write(struct ps_link *link, enum direct_part part, const struct ps_write *write)
{
	struct direct_mirror *m = &link->d->mirrors[link->mirror];

	if (link->dead)
		return link->dead;
	if (m->writes_left == 0) {
		m->writes_left = -1;
		store_bytes(link, part, write, m->torn < write->length ? m->torn : write->length);
		direct_break(link->control);
		return link->dead;
	}
	if (m->writes_left > 0)
		m->writes_left--;
	store_bytes(link, part, write, write->length);
	return 0;
}

static int apply_chain(struct ps_link *link, const struct ps_chain *chain)
{
	int rc = link->dead;

	link->d->chain_count++;
	for (unsigned i = 0; i < chain->write_count && !rc; i++) {
		enum direct_part part = i < chain->undo_write_count ? DIRECT_UNDO : DIRECT_DATA;

		rc = apply_write(link, chain->undo_write_count ? part : DIRECT_COPY,
		                 &chain->writes[i]);
	}
	if (!rc && chain->slot.length)
		rc = apply_write(link, DIRECT_SLOT, &chain->slot);
	return rc;
}

static void hold_back(struct ps_link *link, const struct ps_chain *chain, bool applied)
{
	struct held *held = calloc(1, sizeof(*held) + chain->write_count * sizeof(struct ps_write));

	assert(held);
	held->applied = applied;
	held->count = chain->write_count;
	held->undo = chain->undo_write_count;
	held->slot = chain->slot;
	memcpy(held->writes, chain->writes, chain->write_count * sizeof(struct ps_write));
	*link->last = held;
	link->last = &held->next;
}

static int post(struct ps_link *link, const struct ps_chain *chain)
{
	const struct direct_mirror *m = &link->d->mirrors[link->mirror];
	/* A chain behind one that is held back is held back, too. */
	bool held = (m->hold && chain->undo_write_count) || link->held;
	bool writes = held &&
	              (m->hold == DIRECT_HOLD_WRITES || (link->held && !link->held->applied));
	int rc = link->dead;

	if (rc)
		return rc;
	if (writes) {
		assert(link->d->staged);
		hold_back(link, chain, false);
		return 0;
	}
	rc = apply_chain(link, chain);
	if (rc)
		return rc;
	if (held)
		hold_back(link, chain, true);
	else
		link->done++;
	return 0;
}

static int direct_post(struct ps_link *link, const struct ps_chain *chain)
{
	int rc;

	direct_inside++;
	rc = post(link, chain);
	direct_inside--;
	return rc;
}

/* The oldest chain held back comes through. */
static void release_one(struct ps_link *link)
{
	struct held *held = link->held;
	struct ps_chain chain = { held->writes, held->count, held->undo, held->slot };
	int rc = held->applied ? 0 : apply_chain(link, &chain);

	link->held = held->next;
	if (!link->held)
		link->last = &link->held;
	free(held);
	link->done += !rc;
}

void direct_release(struct direct *d, unsigned mirror, unsigned count)
{
	for (struct ps_link *link = d->links; link; link = link->next) {
		if (link->mirror != mirror)
			continue;
		for (unsigned i = 0; i < count && link->held && !link->dead; i++)
			release_one(link);
	}
}

static int direct_poll(struct ps_link *link)
{
	int done = (int)link->done;

	link->done = 0;
	return done || !link->dead ? done : link->dead;
}

static int direct_read(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                       uint64_t length, uint64_t patience_ns)
{
	const uint8_t *from;

	(void)patience_ns;
	if (link->dead)
		return link->dead;
	from = session_memory(&link->control->session, region, offset, length, false);
	assert(from);
	memcpy(bytes, from, length);
	return 0;
}

static bool direct_waits(struct ps_link *link, struct pollfd *fd)
{
	*fd = (struct pollfd){ -1, 0, 0 };
	return link->held != NULL;
}

static void direct_detach(struct ps_link *link)
{
	struct ps_link **at = &link->d->links;

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	while (link->held) {
		struct held *held = link->held;

		link->held = held->next;
		free(held);
	}
	free(link);
}

#define FABRIC(is_staged)                                                            \
	{                                                                            \
		.name = "sim", .staged = (is_staged), .attach = direct_attach,       \
		.update = direct_update, .post = direct_post, .poll = direct_poll,   \
		.read = direct_read, .waits = direct_waits, .detach = direct_detach, \
	}

static const struct ps_fabric staged_fabric = FABRIC(true);
static const struct ps_fabric unstaged_fabric = FABRIC(false);

const struct ps_fabric *direct_fabric(struct ps_env *env, const struct ps_address *address,
                                      const Perseas__Grant *grant, unsigned tried)
{
	(void)address;
	(void)grant;
	if (tried)
		return NULL;
	return of(env)->d->staged ? &staged_fabric : &unstaged_fabric;
}
