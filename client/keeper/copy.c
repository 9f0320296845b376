/*
 * copy.c - reads and writes segments in pieces, and reports progress. map.c, adopt.c and
 * mend_delta.c call this, with exclusive use of the links or before the store is open. It does not
 * decide which mirror's contents are right.
 */
#include "copy.h"

#include "../core/mirror.h"
#include "../demand/warm.h"
#include "heartbeat.h"
#include "../core/quorum.h"
#include "../core/segment.h"
#include "rejoin.h"

#include <string.h>

static struct {
	void (*call)(void *arg, const char *what, uint64_t done, uint64_t total);
	void *arg;
} progress;

void perseas_set_progress(void (*call)(void *arg, const char *what, uint64_t done, uint64_t total),
                          void *arg)
{
	progress.call = call;
	progress.arg = arg;
}

void ps_copy_report_progress(const char *what, uint64_t done, uint64_t total)
{
	if (progress.call)
		progress.call(progress.arg, what, done, total);
}

static bool (*stop_copy)(void);

void ps_copy_set_stop(bool (*stop)(void))
{
	stop_copy = stop;
}

static uint64_t piece_length(uint64_t done, uint64_t total, uint64_t most)
{
	return total - done < most ? total - done : most;
}

/* Returns true if the standby's copy has the whole piece. A piece that it has in part is read in
 * full, so that the copy never causes more requests. */
static bool is_in_standby_copy(const struct ps_warm_part *copy, uint64_t from, uint64_t length)
{
	return copy && ps_warm_part_has_bytes(copy, from, length);
}

/* Reads the segment from mirror `m`, except for the pieces that a standby's copy has. Returns 0, or
 * an error code if the link broke. */
static int read_segment(struct perseas *p, struct ps_mirror *m, struct ps_segment *segment)
{
	const uint64_t most = 16 * (uint64_t)PS_BOUNCE;
	const struct ps_segment_key key = ps_segment_key(segment);
	const struct ps_warm_part *copy = ps_warm_find_usable_part(p->warm_copy, &key);

	for (uint64_t done = 0; done < segment->size;) {
		uint64_t length = piece_length(done, segment->size, most);
		int rc = 0;

		if (is_in_standby_copy(copy, done, length))
			memcpy(segment->base + done, copy->bytes + done, length);
		else
			rc = ps_mirror_read(p, m, PS_REGION_SEGMENT + segment->id, done,
			                    segment->base + done, length);
		if (rc)
			return rc;
		done += length;
		ps_heartbeat_step(p, ps_now(p));
		ps_copy_report_progress(segment->name, done, segment->size);
	}
	return 0;
}

int ps_copy_segment_from_mirror(struct perseas *p, struct ps_segment *segment)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		/* A mirror that is being copied to does not have the whole segment yet. */
		if (ps_mirrors_with_whole_image(p) & ps_mirror_bit(p, m) &&
		    !read_segment(p, m, segment)) {
			ps_warm_stop_using_segment(p->warm_copy, segment->id);
			return 0;
		}
	}
	return ps_fail(p, PERSEAS_EUNREACHABLE,
	               "no live mirror is left to read segment '%s' from: see that mirrors run, "
	               "and open the store again",
	               segment->name);
}

int ps_copy_segment_to_mirrors(struct perseas *p, const struct ps_segment *segment)
{
	uint8_t *bounce = ps_ring_bounce_buffer(&p->commit.ring);
	bool to[PS_MIRRORS_MAX];

	for (uint64_t done = 0; done < segment->size;) {
		uint64_t length = piece_length(done, segment->size, PS_BOUNCE);
		struct ps_write write = { bounce, done, PS_REGION_SEGMENT + segment->id,
			                  (uint32_t)length };
		struct ps_chain chain = { &write, 1, 0, { NULL, 0, 0, 0 } };

		if (stop_copy && stop_copy())
			return ps_fail(p, PERSEAS_ECANCELLED,
			               "stopped by a signal: nothing is published");
		memcpy(bounce, segment->base + done, length);
		for (unsigned i = 0; i < p->mirror_count; i++)
			to[i] = p->mirrors[i].is_active;
		ps_mirrors_write(p, to, &chain);
		done += length;
		ps_heartbeat_step(p, ps_now(p));
		ps_copy_report_progress(segment->name, done, segment->size);
	}
	return 0;
}

/* Returns true if a copy to the mirror's listed image did not end, and another one may begin there.
 */
static bool is_half_copied(const struct perseas *p, const struct ps_mirror *m)
{
	const Perseas__Header *header = m->probe.header;

	return header && header->state == PERSEAS__STATE__STATE_JOINING &&
	       ps_id_valid(header->image_id) &&
	       !memcmp(header->image_id.data, m->image_id, PS_ID_SIZE) &&
	       ps_rejoin_has_regions_of_store(p, header);
}

int ps_copy_prepare_whole(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	return is_half_copied(p, m) ? ps_rejoin_begin_in_place(p, m, true, error)
	                            : ps_rejoin_make_image_beside(p, m, error);
}

int ps_copy_between_mirrors(struct perseas *p, struct ps_mirror *from, struct ps_mirror *to,
                            uint32_t region, uint64_t offset, uint64_t length)
{
	uint8_t *bounce = ps_ring_bounce_buffer(&p->commit.ring);

	for (uint64_t done = 0; done < length;) {
		uint64_t part = piece_length(done, length, PS_BOUNCE);
		struct ps_write write = { bounce, offset + done, region, (uint32_t)part };
		struct ps_chain chain = { &write, 1, 0, { NULL, 0, 0, 0 } };

		if (ps_mirror_read(p, from, region, offset + done, bounce, part) ||
		    ps_mirror_write(p, to, &chain))
			return -1;
		done += part;
	}
	return 0;
}

unsigned ps_copy_make_terminator_write(const struct perseas *p, struct ps_write *write)
{
	static const uint8_t zeros[PS_TERMINATOR];
	const uint64_t next = p->commit.next_position;

	*write = (struct ps_write){ zeros, PS_RING_OFFSET + next % p->log_size, PS_REGION_LOG,
		                    (uint32_t)ps_terminator_size(next, p->log_size) };
	return write->length != 0;
}

int ps_copy_write_commit_slot(struct perseas *p, struct ps_mirror *m)
{
	struct ps_slot slot;
	struct ps_write terminator;
	const unsigned count = ps_copy_make_terminator_write(p, &terminator);
	struct ps_chain chain = { &terminator,
		                  count,
		                  count,
		                  { &slot, ps_slot_offset(!m->probe.position.valid_slot),
		                    PS_REGION_LOG, sizeof(slot) } };

	ps_slot_encode(&slot, p->epoch, p->commit.seq, p->commit.next_position,
	               p->commit.last_position);
	if (ps_mirror_write(p, m, &chain))
		return -1;
	m->probe.position = (struct ps_image_position){ p->epoch, p->commit.seq,
		                                        p->commit.next_position,
		                                        p->commit.last_position,
		                                        !m->probe.position.valid_slot };
	return 0;
}
