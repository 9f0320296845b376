/*
 * member_address.c - see member_address.h. A daemon is recognized by its identity, or by the image
 * that it shows if it told no identity. A member must never be confused with a mirror that merely
 * is at an address where the roster lists that member.
 */
#include "member_address.h"

#include "../core/mirror.h"

#include <assert.h>
#include <string.h>

static bool is_roster_member(const struct ps_mirror *m)
{
	return m->has_vote || m->is_joining;
}

/* Returns true if the header is of the mirror's image, or of one loaded from a spill of it. */
static bool is_image_of_mirror(const struct ps_mirror *m, const Perseas__Header *header)
{
	return ps_id_equal(header->image_id, m->image_id) ||
	       (m->is_from_spill && ps_id_equal(header->image_id, m->image_id_after_spill_load)) ||
	       (header->parent_id.len && ps_id_equal(header->parent_id, m->image_id));
}

static bool has_session_with(const struct ps_mirror *m, const uint8_t *daemon)
{
	return m->control && daemon && !memcmp(m->daemon_id, daemon, PS_ID_SIZE);
}

/* Returns true if a roster in force lists this image id. */
static bool is_image_listed(const struct perseas *p, ProtobufCBinaryData image)
{
	return image.len == PS_ID_SIZE && (ps_roster_member(p->roster, image.data) ||
	                                   ps_roster_member(p->next_roster, image.data));
}

/* Returns the other mirror that has a session with the daemon on mirror `m`'s connection, or whose
 * image that daemon shows. Returns NULL if there is no such mirror. */
static struct ps_mirror *find_other_member(struct perseas *p, const struct ps_mirror *m,
                                           const Perseas__Header *header)
{
	const uint8_t *daemon = ps_known_daemon_id(m->daemon_id);
	struct ps_mirror *has_image = NULL;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *other = &p->mirrors[i];

		if (other == m || !is_roster_member(other))
			continue;
		if (has_session_with(other, daemon))
			return other;
		if (header && is_image_of_mirror(other, header))
			has_image = other;
	}
	return has_image;
}

int ps_member_check_address(struct perseas *p, const struct ps_mirror *m,
                            const Perseas__Header *header, struct ps_mirror **other,
                            struct ps_error *error)
{
	bool own;

	/* An image without the store's key belongs to no member, whatever its id. */
	if (header && !ps_image_is_of_store(header, p->store_id, p->roster))
		header = NULL;
	own = header && is_image_of_mirror(m, header);
	*other = own ? NULL : find_other_member(p, m, header);
	if (*other)
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    m->is_joining
		                            ? "%s is the mirror %s of the roster, and counts once"
		                            : PS_SAME_MIRROR_NOTE,
		                    m->address.text, (*other)->address.text);
	if (header && !own &&
	    (is_image_listed(p, header->image_id) || is_image_listed(p, header->parent_id)))
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    "%s has the image of another member of the roster: the member "
		                    "that the roster lists there was not reached",
		                    m->address.text);
	return 0;
}

void ps_member_swap_addresses(struct perseas *p, struct ps_mirror *m, struct ps_mirror *other)
{
	const struct ps_address address = m->address;

	ps_assert_admin(p);
	assert(m != other);
	/* Commits read the addresses for events. */
	pthread_mutex_lock(&p->lock);
	m->address = other->address;
	other->address = address;
	pthread_mutex_unlock(&p->lock);
	other->retry.next_try_at = other->retry.delay_ns = 0;
}
