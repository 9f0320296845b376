/*
 * cmd_spill.c - perseas spill: has a mirror write its images to disk and end.
 */
#include "command.h"
#include "../../proto/base/json.h"
#include "../../proto/control/envelope.h"
#include "ask/ask.h"

#include <inttypes.h>
#include <poll.h>

/* Waits until the mirror's process ends, which closes the connection. Bytes that arrive before,
 * such as TLS's close notification, are no end. */
static bool poll_until_daemon_ends(const struct ps_peers *peers, uint32_t wait_ms)
{
	struct pollfd fd = { .fd = peers->env->ops->control_fd(peers->controls[0]),
		             .events = POLLRDHUP };

	return poll(&fd, 1, (int)wait_ms) > 0;
}

static void print_spilled(const struct ps_peers *peers, bool ended, bool as_json)
{
	const Perseas__SpillReply *reply = peers->replies[0]->spill;
	struct ps_json json = { .out = stdout };
	char size[PS_SIZE_TEXT];

	if (!as_json) {
		printf("%s: %u store%s, %s, written to %s; the mirror %s\n",
		       peers->addresses[0].text, reply->stores, ps_plural(reply->stores),
		       ps_size_text(size, reply->bytes), reply->directory,
		       ended ? "has ended" : "is about to end");
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "mirror", peers->addresses[0].text);
	ps_json_number(&json, "stores", reply->stores);
	ps_json_number(&json, "bytes", reply->bytes);
	ps_json_text(&json, "directory", reply->directory);
	ps_json_bool(&json, "ended", ended);
	ps_json_end(&json, '}');
}

/* Returns true if the mirror answers. Asked first, so that an absent mirror is not waited for as
 * long as a disk may take. */
static bool does_daemon_answer(struct ps_peers *peers)
{
	ps_peers_ask_all(peers, ps_peers_list_request());
	return peers->replies[0] != NULL;
}

/* Waits for the daemon's end after the images were written, and reports it. */
static enum ps_exit await_spilled_daemon_end(const struct ps_peers *peers,
                                             const struct ps_args *args)
{
	const bool ended = poll_until_daemon_ends(peers, args->wait_ms);

	print_spilled(peers, ended, args->json);
	if (ended)
		return PS_EXIT_OK;
	return ps_complain(PS_EXIT_PARTLY,
	                   "%s has written its images, but has not ended within %" PRIu32
	                   " s: see its log",
	                   peers->addresses[0].text, args->wait_ms / 1000);
}

enum ps_exit ps_verb_spill(const struct ps_args *args)
{
	Perseas__SpillRequest ask = PERSEAS__SPILL_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(spill, SPILL, &ask);
	struct ps_peers peers;
	enum ps_exit status = ps_peers_open_one(&peers, args->mirrors, &args->options);

	if (status)
		return status;
	if (does_daemon_answer(&peers)) {
		peers.timeout_ms = args->wait_ms;
		ps_peers_ask_all(&peers, &request);
	}
	if (peers.replies[0])
		status = await_spilled_daemon_end(&peers, args);
	else
		status = ps_peers_complain(&peers, 0);
	ps_peers_close(&peers);
	return status;
}
