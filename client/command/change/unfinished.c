/*
 * unfinished.c - see unfinished.h. Whether a store may be removed is decided in open/unfilled.c.
 */
#include "unfinished.h"
#include "../ask/ask.h"
#include "../../open/unfilled.h"

bool ps_unfinished_exists(const char *store, const char *mirrors,
                          const struct perseas_options *options)
{
	struct ps_peers peers;
	struct ps_images images;
	bool is;

	if (ps_images_open(&images, &peers, store, mirrors, options))
		return false;
	(void)ps_images_fetch_more(&images, &peers, store);
	is = images.judged.outlook == PS_OUTLOOK_UNFILLED ||
	     ps_images_is_removal_remainder(&images);
	ps_images_close(&images, &peers);
	return is;
}

enum ps_exit ps_unfinished_remove(const char *store, const char *mirrors, const uint8_t *store_id,
                                  const struct perseas_options *options)
{
	struct ps_error error = { 0 };
	struct ps_env *env = ps_env_posix(options, &error);

	if (env && !ps_unfilled_store_remove(env, store, mirrors, options, store_id, &error))
		return PS_EXIT_OK;
	return ps_complain(ps_exit_of_code(error.code), "%s", error.text);
}
