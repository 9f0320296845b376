/*
 * map.h - maps segments, and publishes or destroys several at once. The heap calls these functions,
 * and other files of this room.
 */
#ifndef PERSEAS_CLIENT_MAP_H
#define PERSEAS_CLIENT_MAP_H

#include "../core/handle.h"

struct ps_placement;

/* Does what perseas_map and perseas_map_at do, at the address that `placement` asks for. *whole,
 * unless whole is NULL, becomes the size of the segment with all of its parts. */
int ps_map_with_placement(perseas_t *p, const char *name, size_t size,
                          const struct ps_placement *placement, void **addr, ptrdiff_t *moved,
                          size_t *whole);

/* New segments that one record publishes. Other segments that are mapped and unpublished stay
 * so. */
struct ps_new_segments {
	unsigned count;
	struct {
		char name[PS_NAME_MAX + 1];
		uint64_t size;
		void *addr; /* set when the segment is mapped */
	} segments[2];
	/* Returns true if the segments are still needed. Called when no other thread can map or
	 * publish a segment. */
	bool (*is_wanted)(void *arg);
	/* Writes the first contents into the mapped segments, which are all zeros. */
	void (*fill)(const struct ps_new_segments *new_segments, void *arg);
	/* Called once the segments are published, before other threads may map or publish again.
	 * Cannot fail. */
	void (*on_published)(const struct ps_new_segments *new_segments, void *arg);
	void *arg;
	const struct ps_placement *placement; /* where to map the segments; NULL: anywhere */
};

/* Creates, fills and publishes the segments, all or none. Returns 0, also if they are no longer
 * wanted. Returns PERSEAS_EEXIST if a segment already has one of the names, PERSEAS_EINDOUBT if the
 * segments are published but W mirrors did not acknowledge it, or another code. */
int ps_map_create_and_publish_segments(struct perseas *p, struct ps_new_segments *new_segments);

/* Mapped segments that one record destroys. The caller must be the only heap that uses them. They
 * are unmapped, too. */
struct ps_destroy_set {
	uint32_t ids[PS_SEGMENTS_MAX];
	unsigned count;
	/* Sets ids and count, and releases the caller's own references to these segments. Called
	 * when no commit is in flight and no other thread can map or publish. A count of 0 destroys
	 * nothing. */
	void (*choose)(struct ps_destroy_set *destroy_set, void *arg);
	/* Called instead of the destruction if unmapping failed. The segments are as before
	 * `choose`. Cannot fail. */
	void (*undo_choose)(void *arg);
	void *arg;
};

/* Destroys the segments by one record, all or none. Returns 0, also if `choose` named none. After
 * PERSEAS_EINDOUBT or PERSEAS_EFENCED the segments may be gone from this process; `undo_choose` was
 * called only if they are not. */
int ps_map_destroy_set(struct perseas *p, struct ps_destroy_set *destroy_set);

/* Has mirrors free the memory of segments that were destroyed before, if W mirrors hold their
 * destruction by now. */
void ps_map_free_destroyed_on_mirrors(struct perseas *p);

/* Maps an existing segment for a heap and increments the segment's `heap_count`, so that it can be
 * neither unmapped nor destroyed until the caller decrements the count. anywhere: as perseas_map_at
 * with NULL; otherwise as perseas_map. */
int ps_map_for_heap(struct perseas *p, const char *segment, bool anywhere, void **addr);

/* Moves the mappings of these segments into hidden[], so that the segments look unmapped to other
 * threads. The caller either frees hidden[] by ps_segment_unmap, without the lock, or copies it
 * back. The layout still has the segments. Caller holds p->lock. */
void ps_map_hide_segments(struct perseas *p, const uint32_t *ids, unsigned count,
                          struct ps_segment *hidden);

/* Returns true if an open transaction has a range in the segment. Caller holds p->lock. */
bool ps_map_has_open_transaction(struct perseas *p, const struct ps_segment *segment);

/* Returns 0 if segments can be published or destroyed now, or an error code. Callers check before
 * ps_exclusive_enter, which waits for commits in flight, and again after it. */
int ps_map_check_can_change_segments(struct perseas *p);
/* Sends a request to every live mirror. Drops the mirrors that do not grant it. */
void ps_map_send_to_live_mirrors(struct perseas *p, const Perseas__Request *request);
/* Posts the record of this kind with these segment ids, and the slot that commits it. Returns 0 or
 * an error code. */
int ps_map_post_segment_record(struct perseas *p, enum ps_record_kind kind, const uint32_t *ids,
                               unsigned count);
/* Waits until W mirrors hold `seq`, after the caller has left the exclusive section. Returns
 * rc_before if it is an error, and 0 without waiting if seq is 0. */
int ps_map_await_durable(struct perseas *p, int rc_before, uint64_t seq);
/* Waits until W mirrors have ever held `seq`, which another thread posted and may still wait
 * for. */
int ps_map_await_ever_durable(struct perseas *p, uint64_t seq);
/* Has every mirror free the memory of an unpublished or destroyed segment. A mirror that does not
 * answer frees it when it is claimed next. */
void ps_map_drop_segment_on_mirrors(struct perseas *p, uint32_t id);
/* Unmaps an unpublished segment, removes it from the handle, and has mirrors free its memory.
 * Pointers to other struct ps_segment may be invalid afterwards. Returns 0, or PERSEAS_ENOMEM,
 * which changes nothing. */
int ps_map_drop_unpublished(struct perseas *p, struct ps_segment *segment);

#endif
