/*
 * unsent_granules.h - which granules of the store a mirror must still be sent, until its image
 * counts again. resync.c calls this, and holds admin.
 *
 * The set is made before the image becomes `joining`, and outlives broken links: the next copy goes
 * on where the last one ended. A granule leaves the set when the mirror has it. What changes after
 * that reaches the mirror as a transaction, or comes into the set again by the change map.
 */
#ifndef PERSEAS_CLIENT_UNSENT_GRANULES_H
#define PERSEAS_CLIENT_UNSENT_GRANULES_H

#include "handle.h"

struct ps_unsent_granules {
	/* The image that is sent to, and the epoch of the claim under which it was made `joining`.
	 * Another owner can have had the image only if a later claim has another epoch. An image
	 * beside has another id than the one that claims find, or ends with the session. */
	uint64_t epoch;
	uint8_t image_id[PS_ID_SIZE];
	/* The image's slot was at this transaction or a later one when a granule left the set. */
	uint64_t slot_seq_at_removal;
	/* What changed after this transaction is not in the set yet; UINT64_MAX: all of it is. */
	uint64_t unadded_changes_since_seq;
	/* The next granule to compare with the change map. */
	uint32_t next_segment_to_compare;
	uint64_t next_granule_to_compare;
	/* The set began with granules that are wrong in a whole image (repair.h). The ring cannot
	 * bring such an image up to date. */
	bool began_with_wrong_granules;
	/* A bit for each granule of each segment: it is in the set. NULL: every granule is. */
	uint64_t *unsent_bits[PS_SEGMENTS_MAX];
};

/* Says what a granted image is, apart from where it is copied to. Caller has admin. */
enum ps_unsent_base ps_unsent_choose_base(const struct perseas *p, const struct ps_mirror *m,
                                          const Perseas__ClaimReply *claim);

/* Makes the mirror's set, for a copy to this image that begins with `base`. `claim` may be NULL
 * with PS_UNSENT_ALL. With PS_UNSENT_DIFFERENT the set has all granules until
 * ps_unsent_remove_sent_part takes out those that do not differ. Returns 0, or -1 if out of memory.
 * Caller does not hold p->lock. */
int ps_unsent_make_set(struct perseas *p, struct ps_mirror *m, enum ps_unsent_base base,
                       const Perseas__ClaimReply *claim, const uint8_t *image_id);

/* Adds some of what changed since the image's slot, and sets *bytes to the bytes of the granules of
 * the set that it passed. Returns false when it has passed all. Transactions must be going to the
 * mirror already: what is posted before, and not marked yet, would be in neither. Caller holds
 * p->lock. */
bool ps_unsent_add_changed(struct perseas *p, struct ps_mirror *m, uint64_t *bytes);

/* Returns where the next part of the segment that the mirror must be sent begins, from `offset` on,
 * which must be the beginning of a granule. Returns the segment's size if no part is left. */
uint64_t ps_unsent_next_part(const struct ps_mirror *m, const struct ps_segment *segment,
                             uint64_t offset);

/* Returns where a part that begins at `offset` ends: before the next granule that is not in the
 * set, and at `most` bytes. */
uint64_t ps_unsent_part_end(const struct ps_mirror *m, const struct ps_segment *segment,
                            uint64_t offset, uint64_t most);

/* Takes the granules that end in this part of the segment out of the set: the mirror has them.
 * `held` is a transaction that the image's slot has reached. */
void ps_unsent_remove_sent_part(struct ps_mirror *m, const struct ps_segment *segment,
                                uint64_t offset, uint64_t end, uint64_t held);

/* Adds a granule that is wrong in a whole image. The next copy to the mirror sends it. Returns 0,
 * or -1 if out of memory. Caller has admin. */
int ps_unsent_add_wrong_granule(struct perseas *p, struct ps_mirror *m,
                                const struct ps_segment *segment, uint64_t offset);

/* Returns true if the mirror's image has wrong granules, and must be copied to. */
bool ps_unsent_has_wrong_granules(const struct ps_mirror *m);

/* Frees the mirror's set, if it has one. */
void ps_unsent_free(struct ps_mirror *m);

#endif
