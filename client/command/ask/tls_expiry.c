/*
 * tls_expiry.c - see tls_expiry.h.
 */
#include "tls_expiry.h"

#include "../../../proto/base/json.h"
#include "../../../proto/control/expiry_message.h"

#include <string.h>

/* The certificate that expires first, and who uses it. */
struct first_expiry {
	bool found;
	struct ps_expiry expiry;
	enum ps_expiry_stage stage;
	const char *mirror; /* address of the mirror that uses it; NULL: this command does */
};

uint64_t ps_env_clock_seconds(struct ps_env *env)
{
	return env->ops->clock(env) / 1000000000;
}

void ps_env_list_expiries(struct ps_env *env, struct ps_expiries *expiries)
{
	memset(expiries, 0, sizeof(*expiries));
	if (env->ops->expiries)
		env->ops->expiries(env, expiries);
}

void ps_peers_list_expiries(const struct ps_peers *peers, unsigned i, struct ps_expiries *expiries)
{
	const struct ps_env_ops *ops = peers->env->ops;
	const Perseas__Reply *reply = peers->replies[i];
	struct ps_expiries shown = { 0 };

	memset(expiries, 0, sizeof(*expiries));
	if (reply && reply->body_case == PERSEAS__REPLY__BODY_LIST)
		ps_expiries_read(expiries, reply->list->expiries, reply->list->n_expiries);
	if (peers->controls[i] && ops->shown_expiries)
		ops->shown_expiries(peers->controls[i], &shown);
	for (unsigned k = 0; k < shown.count; k++)
		ps_expiries_add(expiries, &shown.list[k]);
}

static void take_expiry_if_first(struct first_expiry *first, const struct ps_expiries *expiries,
                                 const char *mirror, uint64_t now_s)
{
	const struct ps_expiry *other = ps_expiries_most_urgent(expiries, now_s);
	const enum ps_expiry_stage stage = other ? ps_expiry_stage(other, now_s) : PS_EXPIRY_FAR;

	if (!other || stage < first->stage ||
	    (first->found && stage == first->stage && first->expiry.until_s <= other->until_s))
		return;
	*first = (struct first_expiry){ true, *other, stage, mirror };
}

/* Returns the certificate that expires first. `found` is false without TLS. */
static struct first_expiry find_first_expiry(const struct ps_peers *peers)
{
	const uint64_t now_s = ps_env_clock_seconds(peers->env);
	struct first_expiry first = { 0 };
	struct ps_expiries expiries;

	ps_env_list_expiries(peers->env, &expiries);
	take_expiry_if_first(&first, &expiries, NULL, now_s);
	for (unsigned i = 0; i < peers->count; i++) {
		ps_peers_list_expiries(peers, i, &expiries);
		take_expiry_if_first(&first, &expiries, peers->addresses[i].text, now_s);
	}
	return first;
}

void ps_tls_expiry_print(const struct ps_peers *peers)
{
	const uint64_t now_s = ps_env_clock_seconds(peers->env);
	const struct first_expiry first = find_first_expiry(peers);
	char text[PS_EXPIRY_TEXT];

	if (!first.found)
		return;
	printf("\nTLS: %s (%s%s)\n", ps_expiry_text(&first.expiry, now_s, text),
	       first.mirror ? "mirror " : "a file of this command",
	       first.mirror ? first.mirror : "");
	if (first.stage != PS_EXPIRY_FAR)
		printf("     new connections are refused after the end: renew it, as "
		       "PerseasCertificateExpires in the runbook says\n");
}

void ps_tls_expiry_json(struct ps_json *json, const struct ps_peers *peers)
{
	static const char *const stages[] = {
		[PS_EXPIRY_FAR] = "far",
		[PS_EXPIRY_NEAR] = "near",
		[PS_EXPIRY_URGENT] = "urgent",
		[PS_EXPIRY_EXPIRED] = "over",
	};
	const struct first_expiry first = find_first_expiry(peers);

	if (!ps_json_begin_if(json, "tls_expires", first.found))
		return;
	ps_json_text(json, "kind", ps_expiry_kind_name(first.expiry.kind));
	ps_json_text(json, "name", first.expiry.name);
	ps_json_text(json, "mirror", first.mirror);
	ps_json_number(json, "expires", first.expiry.until_s);
	ps_json_text(json, "stage", stages[first.stage]);
	ps_json_end(json, '}');
}
