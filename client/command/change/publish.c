/*
 * publish.c - see publish.h.
 */
#include "publish.h"

#include "../ask/ask.h"
#include "../../host/etcd.h"

#include <string.h>

const char *ps_publish_key(const struct ps_args *args)
{
	if (args->publish)
		return args->publish;
	return args->mirrors && ps_etcd_is(args->mirrors) ? args->mirrors : NULL;
}

/* False: the roster is longer than a list may be. */
static bool fill_value(struct ps_etcd_value *value, const struct ps_census *census)
{
	const Perseas__Roster *roster = census->judged.settled;
	size_t len = 0;

	*value = (struct ps_etcd_value){ .numbered = true, .roster = roster->version };
	ps_hex_text(value->store, census->header->store_id.data);
	for (size_t k = 0; k < roster->n_members; k++) {
		const char *address = roster->members[k]->address;

		if (len + strlen(address) + 2 > sizeof(value->list))
			return false;
		len += (size_t)sprintf(value->list + len, "%s%s", k ? "," : "", address);
	}
	return true;
}

static enum ps_exit publish_census(const struct ps_census *census, const char *store,
                                   const char *text, bool over)
{
	struct ps_etcd_value value;
	struct ps_etcd_key key;
	struct ps_error error;
	enum ps_etcd_put put;
	char name[2 * PS_ETCD_PART + 16];
	const bool open = text[strlen(text) - 1] == '/';

	snprintf(name, sizeof(name), "%s%s", text, open ? store : "");
	if (ps_etcd_parse(name, &key, &error))
		return ps_complain(PS_EXIT_USAGE, "%s", error.text);
	if (!fill_value(&value, census))
		return ps_complain(PS_EXIT_FAILURE, "the roster of '%s' is too long for a list",
		                   store);
	if (ps_etcd_put(&key, &value, over, &put, &error))
		return ps_complain(ps_exit_of(error.code), "%s", error.text);
	if (put == PS_ETCD_OTHER)
		return ps_complain(PS_EXIT_NO,
		                   "the key '%s' of etcd at %s has the mirrors of another store, "
		                   "and is left as it is; --yes replaces them",
		                   key.key, key.endpoints);
	return PS_EXIT_OK;
}

enum ps_exit ps_publish(const char *store, const char *mirrors, const char *key, bool over,
                        const struct perseas_options *options)
{
	struct ps_panel panel;
	struct ps_census census;
	enum ps_exit status = ps_census_open(&census, &panel, store, mirrors, options);

	if (status)
		return status;
	(void)ps_census_widen(&census, &panel, store);
	if (!census.have || !census.judged.settled)
		status = ps_census_nobody(&census, store);
	else
		status = publish_census(&census, store, key, over);
	ps_census_close(&census, &panel);
	return status;
}
