/*
 * shared_hosts.c - see shared_hosts.h.
 */
#include "shared_hosts.h"

#include "next_loss.h"

#include <stdlib.h>

/* Complains that the mirrors of `loss`, which share a domain, would be lost together. */
static void complain_of_shared_domain(const struct ps_loss *loss, const struct ps_images *images)
{
	char *text;
	size_t size;
	FILE *out = ps_exit_if_null(open_memstream(&text, &size));

	ps_loss_print(out, loss, images);
	fclose(out);
	ps_exit_if_null(text);
	ps_complain(PS_EXIT_OK,
	            "%s would be lost together; perseas roster replace puts one of them elsewhere",
	            text);
	free(text);
}

/* Complains of every domain that several mirrors share. */
static void warn_of_shared_domains(const struct ps_images *images)
{
	const unsigned count = images->peers->count;
	struct ps_spot spots[PS_MIRRORS_MAX];

	ps_images_fill_spots(images, spots);
	for (;;) {
		const struct ps_loss loss = ps_smallest_shared_host(spots, count);

		if (!loss.spots)
			return;
		complain_of_shared_domain(&loss, images);
		for (unsigned i = 0; i < count; i++)
			spots[i].closed = spots[i].closed || loss.spots >> i & 1;
	}
}

void ps_shared_hosts_warn(const char *store, const char *mirrors,
                          const struct perseas_options *options)
{
	struct ps_peers peers;
	struct ps_images images;

	if (ps_images_open(&images, &peers, store, mirrors, options))
		return;
	(void)ps_images_fetch_more(&images, &peers, store);
	fflush(stdout);
	warn_of_shared_domains(&images);
	ps_images_close(&images, &peers);
}
