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
 * application begins to use it. */
int sim_grown_unmap(struct sim_application *a, unsigned segment);

/* Forgets where a segment and its parts were mapped. */
void sim_grown_forget(struct sim_application *a, unsigned segment);

/* A segment that the handle must know. */
const struct ps_segment *sim_grown_segment(const struct sim_application *a, unsigned segment);

/* The bytes of a segment that is mapped, with what it has grown by. */
uint32_t sim_grown_size(const struct sim_application *a, unsigned segment);

/* Is it mapped and published, has it whole pages, and is there a name for one part more? */
bool sim_grown_can(const struct sim_application *a, unsigned segment);

/* The state has what the range holds now, in the segment and its parts. */
void sim_grown_edit(const struct sim_application *a, struct sim_node *node, unsigned segment,
                    uint32_t offset, uint32_t length);

/* In this state the segment has a part more, of zeros; it is there no more, with all of its parts.
 * */
void sim_grown_seal(struct sim_application *a, struct sim_node *node, unsigned segment);
void sim_grown_end(struct sim_node *node, unsigned segment);

#endif
