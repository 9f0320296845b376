/*
 * unfilled.c - see unfilled.h. A filler that is paused may wake up at any moment. So every image is
 * claimed first, and an image is deleted only if it has no transaction under these claims, over the
 * session that holds its claim: then no filler can commit. It must never delete an image while a
 * member of the roster has not answered, because that member may have the first transaction.
 */
#include "unfilled.h"

#include "../keeper/attempt.h"
#include "claim.h"
#include "create.h"
#include "examine.h"
#include "open.h"
#include "probe.h"
#include "../core/mirror.h"
#include "../keeper/pending_answers.h"
#include "../keeper/rpc.h"

#include <string.h>

/* Returns true if a mirror has an image of an unfinished store, or of the making with the id
 * `created_id`, which has no mark at level 0. created_id may be NULL. */
static bool has_unfinished_creation(const struct perseas *p, const uint8_t *created_id)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_probe_result *f = &p->mirrors[i].probe;

		if (!f->code && f->header->state == PERSEAS__STATE__STATE_CREATING &&
		    (f->header->roster->filling ||
		     (created_id && ps_id_equal(f->header->store_id, created_id))))
			return true;
	}
	return false;
}

static bool has_settled_mirror(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_probe_result *f = &p->mirrors[i].probe;

		if (!f->code && f->header->state != PERSEAS__STATE__STATE_CREATING)
			return true;
	}
	return false;
}

static const struct ps_mirror *find_mirror_of_member(const struct perseas *p,
                                                     const Perseas__Member *member)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].is_image_in_roster &&
		    ps_id_equal(member->image_id, p->mirrors[i].image_id))
			return &p->mirrors[i];
	return NULL;
}

/* Fails unless each member shows its image, or answers that it has no image or another one. A
 * daemon has at most one image of a name. */
static int check_every_member_answered(struct perseas *p)
{
	for (size_t k = 0; k < p->roster->n_members; k++) {
		const Perseas__Member *member = p->roster->members[k];
		const struct ps_mirror *m = find_mirror_of_member(p, member);

		if (m && (m->probe.code == PERSEAS_ENOSTORE || !m->probe.code))
			continue;
		return ps_fail(p, PERSEAS_EUNREACHABLE,
		               "the restore of store '%s' is not finished, and nothing is deleted "
		               "before each of its mirrors answers: %s",
		               p->store, m ? m->probe.error.text : member->address);
	}
	return 0;
}

/*
 * Returns true if the image does not have the transaction that fills the store: it is before the
 * first transaction, or is an incomplete copy. An incomplete copy that overwrites an older image
 * was begun only while W other mirrors held what was acknowledged (I8), so one of these mirrors
 * shows the transaction.
 */
static bool is_before_first_transaction(const struct ps_probe_result *f)
{
	if (f->header->state == PERSEAS__STATE__STATE_JOINING)
		return true;
	return f->header->state == PERSEAS__STATE__STATE_CONSISTENT &&
	       f->position.next_position != 0 && f->position.seq == 0;
}

/* Fails if any image, listed in a roster or not, may have the transaction that fills the store. */
static int check_images_before_first_transaction(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!ps_has_store(p, m) || is_before_first_transaction(&m->probe))
			continue;
		return ps_fail(p, PERSEAS_EEXIST,
		               "%s may have what the restore of store '%s' brought: nothing is "
		               "deleted; perseas status shows what is there",
		               m->address.text, p->store);
	}
	return 0;
}

/* Fails unless the store is unfinished and no image has its first transaction. created_id: the id
 * of the store that the caller itself created, which has no mark at level 0; or NULL. */
static int check_still_before_first_transaction(struct perseas *p, const uint8_t *created_id)
{
	if ((!p->roster->filling && !created_id) || p->next_roster)
		return ps_fail(p, PERSEAS_EEXIST,
		               "store '%s' is not an unfinished restore, and nothing is deleted: "
		               "perseas status shows what is there",
		               p->store);
	return check_images_before_first_transaction(p);
}

static int check_every_member_claimed(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->probe.is_listed && !m->probe.is_claimed)
			return ps_fail(p, PERSEAS_EUNREACHABLE,
			               "the restore of store '%s' is not finished, and nothing is "
			               "deleted, as %s could not be claimed: %s",
			               p->store, m->address.text, m->probe.error.text);
	}
	return 0;
}

static int delete_image(struct perseas *p, struct ps_mirror *m)
{
	Perseas__DropRequest body = PERSEAS__DROP_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(drop, DROP, &body);
	struct ps_error error = { 0 };
	Perseas__Reply *reply;
	int rc;

	body.store = p->store;
	body.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, p->store_id };
	body.image_id = m->probe.header->image_id;
	/* A mirror of version 8 refuses to delete an image with a live owner, and cannot tell that
	 * the caller is this owner. */
	body.claimed = ps_mirror_has_version(p, m, 9);
	rc = ps_ask_mirror_and_wait(p, m, &request, ps_answer_deadline(p), &reply, NULL, &error);
	perseas__reply__free_unpacked(reply, NULL);
	return rc ? ps_fail(p, rc, "not every image of the unfinished store '%s' is deleted: %s",
	                    p->store, error.text)
	          : 0;
}

static int delete_claimed_images(struct perseas *p)
{
	int rc = 0;

	for (unsigned i = 0; i < p->mirror_count && !rc; i++)
		if (p->mirrors[i].probe.is_claimed)
			rc = delete_image(p, &p->mirrors[i]);
	return rc;
}

static int remove_settled_store(struct perseas *p, const uint8_t *created_id)
{
	int rc = ps_probe_judge_answers(p);

	/* PERSEAS_EQUORUM: an earlier removal may have deleted some images. Then every member must
	 * answer. */
	if (!rc || rc == PERSEAS_EQUORUM)
		rc = check_still_before_first_transaction(p, created_id);
	if (!rc)
		rc = check_every_member_answered(p);
	if (!rc)
		rc = ps_claim_store(p);
	if (!rc)
		rc = check_every_member_claimed(p);
	/* The claims may have shown newer images than the probe. */
	if (!rc)
		rc = check_still_before_first_transaction(p, created_id);
	if (!rc)
		rc = check_every_member_answered(p);
	return rc ? rc : delete_claimed_images(p);
}

/* Fails unless every mirror answers that it has no store of this name. */
static int check_no_mirror_has_store(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].probe.code != PERSEAS_ENOSTORE)
			return ps_fail_error(p, &p->mirrors[i].probe.error);
	return 0;
}

static int probe_and_remove_store(struct perseas *p, const uint8_t *created_id)
{
	int rc = 0;

	ps_probe_mirrors(p);
	if (has_settled_mirror(p))
		return remove_settled_store(p, created_id);
	if (!has_unfinished_creation(p, created_id))
		return created_id ? check_no_mirror_has_store(p)
		                  : ps_fail(p, PERSEAS_ENOSTORE,
		                            "no mirror has an unfinished store '%s'", p->store);
	rc = ps_create_withdraw_unfinished(p);
	if (rc != PS_AGAIN)
		return rc;
	ps_probe_mirrors(p);
	return remove_settled_store(p, created_id);
}

int ps_unfilled_store_remove(struct ps_env *env, const char *store, const char *mirrors,
                             const struct perseas_options *options, const uint8_t *store_id,
                             struct ps_error *error)
{
	struct perseas *p = ps_handle_new(env, store, mirrors, options, error);
	int rc;

	if (!p)
		return error->code;
	p->fills_new_store = true;
	p->options.flags = 0;
	if (store_id)
		memcpy(p->store_id, store_id, PS_ID_SIZE);
	rc = probe_and_remove_store(p, store_id);
	if (rc == PS_AGAIN)
		rc = ps_fail(p, PERSEAS_EUNREACHABLE,
		             "a session broke before the unfinished store '%s' was deleted: try "
		             "again",
		             p->store);
	return ps_open_abort(p, rc, error);
}
