/*
 * grown.h - what segments of simulated applications have grown by: parts, which images have as
 * segments of their own, and which are mapped behind the segment.
 */
#ifndef PERSEAS_SIM_GROWN_H
#define PERSEAS_SIM_GROWN_H

#include "work.h"

/* Notes the parts of a segment that was just mapped: they lie behind it. */
void sim_grown_find(struct sim_application *a, unsigned segment);

/* Unmaps a segment with its parts, and returns what perseas_unmap does. Meanwhile no thread of the
 * application begins to use it. If perseas_unmap succeeds, the application knows the segment as
 * unmapped, even if its owner died in the call: other threads of a dead owner run to their end. */
int sim_grown_unmap(struct sim_application *a, unsigned segment);

/* Returns the segment, which the handle must know. */
const struct ps_segment *sim_grown_segment(const struct sim_application *a, unsigned segment);

/* Returns the size of a mapped segment with its parts. */
uint32_t sim_grown_size(const struct sim_application *a, unsigned segment);

/* Returns true if the segment is mapped and published, has whole pages, and can get one more
 * part. */
bool sim_grown_can(const struct sim_application *a, unsigned segment);

/* The state has what the range holds now, in the segment and its parts. */
void sim_grown_edit(const struct sim_application *a, struct sim_node *node, unsigned segment,
                    uint32_t offset, uint32_t length);

/* Record in the state that the segment has one more part, of zeros, or that it is gone with all its
 * parts. */
void sim_grown_seal(struct sim_application *a, struct sim_node *node, unsigned segment);
void sim_grown_end(struct sim_node *node, unsigned segment);

#endif
