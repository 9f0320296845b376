/*
 * mirror.h - a mirror: the real store logic over memory in the heap, and the mirror's ends of
 * the connections. Its daemon can crash (the memory stays), its host can be lost (it does not).
 */
#ifndef PERSEAS_SIM_MIRROR_H
#define PERSEAS_SIM_MIRROR_H

#include "../../client/core/address.h"
#include "../support/memory_heap.h"
#include "../support/spill_heap.h"
#include "fabric_sim.h"

struct sim_node;

enum { SIM_GONE = 8, SIM_LOST_MAX = 8 };

struct sim_mirror {
	struct sim_world *world;
	unsigned index;
	char address[32];
	struct memory *memory;
	struct stores *stores; /* NULL while the daemon does not run */
	struct spill *spill;   /* where it writes its images when it stops on purpose */
	/* stopped, and its memory is lost, but no acknowledged data with it */
	bool away;
	Perseas__Header *header;     /* the header that a stopped daemon left, or NULL */
	bool troubled;               /* creators.c lost its memory */
	bool silent;                 /* nor does its host: connections are not refused */
	uint64_t granted;            /* epoch of the last claim that was granted */
	bool forked;                 /* its image belongs to a fork of the store (fork.c) */
	bool strange;                /* it has an image that a stranger made (impostor.c) */
	struct ps_control *controls; /* that it has accepted */
	struct sim_memory *given;

	/* The oracle's. */
	struct sim_node *at;   /* where its image stands; NULL: it counts for nothing */
	uint64_t at_epoch;     /* of its slot */
	uint64_t generation;   /* of that image */
	Perseas__Header *lost; /* what the image said that was lost last; or NULL */
	uint8_t lost_makings[SIM_LOST_MAX][PS_ID_SIZE]; /* ids of the stores that were lost */
	unsigned lost_count;

	/* The part of the memory that has reached the disk; NULL: none. */
	struct memory *disk;
	/* For mistakes: the memory before the last claim, and memories that were lost. */
	struct memory *before, *gone[SIM_GONE];
	struct spill *old_spill, *early; /* early: written, and the daemon has not ended */
	unsigned gone_count;

	/* How clients reach it. */
	uint64_t window, packet; /* of data connections, bytes */
};

struct sim_mirror *sim_mirror_new(struct sim_world *w);
void sim_mirror_free(struct sim_mirror *m);

struct sim_mirror *sim_mirror_find(struct sim_world *w, const struct ps_address *address);

/* Ends the daemon. With `silent` its host ends too, so that nobody is told; with `lost` its memory
 * is lost. */
void sim_mirror_crash(struct sim_mirror *m, bool silent, bool lost);
void sim_mirror_start(struct sim_mirror *m);
/* Event: the daemon starts, unless it runs. */
void sim_mirror_start_again(struct sim_world *w, void *mirror, uint64_t ticket);

/* The daemon ends on purpose, and writes its images to the spill. The memory is kept, as when it is
 * upgraded; or the host ends too; or that, and the spill is lost. */
enum sim_stopping { SIM_MEMORY_KEPT, SIM_HOST_ENDS, SIM_SPILL_LOST };
void sim_mirror_stop(struct sim_mirror *m, enum sim_stopping how);

/* The mirror's end of a control connection, and of a data connection. */
void sim_mirror_control(void *arg, struct sim_message *message);

/* Carries out a request, and answers it. */
void sim_mirror_handle(struct ps_control *control, struct sim_message *message);
void sim_mirror_data(void *arg, struct sim_message *message);

/* Event: the mirror learns that a control connection broke. */
void sim_mirror_ended(struct sim_world *w, void *control, uint64_t ticket);

/* Draws how many bytes a new data connection takes at once. */
void sim_mirror_socket(struct ps_link *link);

#endif
