/*
 * pager_source.c - asks a mirror for what is missing, and takes what it answers: pager_source.h.
 */
#include "pager_source.h"

#include <string.h>

bool pager_source_ask_status(const struct ps_env_ops *ops, struct pager_source *source)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_error error;

	status.store = (char *)(uintptr_t)source->missing.store;
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &status;
	return !ops->send(source->control, &request, &error);
}

bool pager_source_ask_bytes(const struct ps_env_ops *ops, struct pager_source *source)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_error error;

	read.store = (char *)(uintptr_t)source->missing.store;
	read.region = source->missing.region;
	read.offset = source->missing.offset;
	read.length = source->missing.length;
	request.body_case = PERSEAS__REQUEST__BODY_READ;
	request.read = &read;
	return !ops->send(source->control, &request, &error);
}

bool pager_source_take(const struct ps_env_ops *ops, struct pager_source *source)
{
	const Perseas__Reply__BodyCase due = source->answered == 1 ? PERSEAS__REPLY__BODY_READ
	                                                           : PERSEAS__REPLY__BODY_STORE;
	int fds[PS_REGIONS_MAX];
	struct ps_error error;
	Perseas__Reply *reply;
	unsigned count;

	if (ops->receive(source->control, 0, &reply, fds, &count, &error))
		return false;
	if (reply->status != PERSEAS__STATUS__STATUS_OK || reply->body_case != due) {
		perseas__reply__free_unpacked(reply, NULL);
		return false;
	}
	source->answers[source->answered++] = reply;
	return true;
}

void pager_source_tell(const struct pager_source *source, struct ps_fetch_answer *fetched)
{
	fetched->seen = NULL;
	fetched->before = source->answers[0]->store->status;
	fetched->bytes = source->answers[1]->read->bytes;
	fetched->after = source->answers[2]->store->status;
}

void pager_source_forget(struct pager_source *source)
{
	for (unsigned i = 0; i < source->answered; i++)
		perseas__reply__free_unpacked(source->answers[i], NULL);
	source->answered = 0;
}

void pager_source_drop(const struct ps_env_ops *ops, struct pager_source *source)
{
	pager_source_forget(source);
	ops->disconnect(source->control);
	source->control = NULL;
	source->asking = false;
}

void pager_source_lead(const struct ps_env_ops *ops, struct pager_source *source,
                       const struct ps_known_addresses *way)
{
	pager_source_drop(ops, source);
	source->leads = way != NULL;
	if (way)
		source->address = way->address;
}

const char *pager_has_no_limit(const struct ps_pager *pager)
{
	(void)pager;
	return NULL;
}

bool pager_has_no_faults(struct ps_pager *pager, uint64_t *address)
{
	(void)pager;
	(void)address;
	return false;
}

bool pager_gathers_all(struct ps_pager *pager, uint8_t *base, uint64_t size)
{
	(void)pager;
	(void)base;
	(void)size;
	return true;
}

int pager_looks_up_nothing(struct ps_pager *pager, const struct ps_address *address,
                           struct ps_known_addresses *way, struct ps_error *error)
{
	(void)pager;
	(void)error;
	memset(way, 0, sizeof(*way));
	way->address = *address;
	return 0;
}
