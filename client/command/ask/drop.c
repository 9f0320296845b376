/*
 * drop.c - see drop.h.
 */
#include "drop.h"
#include "../../../proto/control/envelope.h"

void ps_drop_ask_mirror(struct ps_peers *peers, const char *store, unsigned i,
                        const Perseas__Header *header)
{
	const Perseas__Request *requests[PS_MIRRORS_MAX] = { NULL };
	Perseas__DropRequest ask = PERSEAS__DROP_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(drop, DROP, &ask);

	/* The message has no const; it is only packed. */
	ask.store = (char *)store;
	if (header) {
		ask.store_id = header->store_id;
		ask.image_id = header->image_id;
	}
	requests[i] = &request;
	ps_peers_ask(peers, requests);
}

static enum ps_exit drop_each_image(struct ps_peers *peers, const struct ps_images *images,
                                    const char *store)
{
	enum ps_exit status = PS_EXIT_OK;

	for (unsigned i = 0; i < peers->count; i++) {
		if (!images->told[i]) {
			if (images->errors[i].code != PERSEAS_ENOSTORE)
				status = ps_complain(PS_EXIT_FAILURE, "%s", images->errors[i].text);
			continue;
		}
		ps_drop_ask_mirror(peers, store, i, images->told[i]->header);
		if (!peers->replies[i])
			status = ps_complain(PS_EXIT_FAILURE, "%s", peers->errors[i].text);
	}
	return status;
}

enum ps_exit ps_drop_all(const char *store, const char *mirrors,
                         const struct perseas_options *options)
{
	struct ps_peers peers;
	struct ps_images images;
	enum ps_exit status = ps_images_open(&images, &peers, store, mirrors, options);

	if (status)
		return status;
	status = drop_each_image(&peers, &images, store);
	ps_images_close(&images, &peers);
	return status;
}
