/*
 * aim.h - schedules that aim at one situation. Each kind of them is a struct sim_aim, which a file
 * of its own defines, with what happens in its schedules; aim.c has the list. The functions below
 * are what the kinds share. A kind draws from chance only in its own schedules, so that all others
 * stay as they are.
 */
#ifndef PERSEAS_SIM_AIM_H
#define PERSEAS_SIM_AIM_H

#include "world.h"

struct perseas;
struct perseas_roster_change;
struct ps_mirror;

/* Seeds with the same remainder by this may be of a kind. */
enum { SIM_AIM_TURNS = 32, SIM_AIM_MISTAKES = 8 };

/* A kind of schedules that aims at one situation. */
struct sim_aim {
	unsigned turn; /* the remainder of its seeds */
	unsigned rare; /* only one in so many of these; 0: all, for they take little time */
	/* The mistakes of enum sim_mistake that every schedule of this kind looks for; 0 for unused
	 * entries. */
	int mistakes[SIM_AIM_MISTAKES];
	/* Gives the schedule its sizes, its mirrors and its spare mirrors. */
	void (*shape)(struct sim_world *w, unsigned *mirrors, unsigned *spares);
	/* Plans the first events after the mirrors were made. NULL: no events. */
	void (*begin)(struct sim_world *w);
};

/* Returns true if operators order repairs in this schedule (absence.c). */
bool sim_absence_repairs(const struct sim_world *w);

extern const struct sim_aim sim_absence_aim, sim_copied_spill_aim, sim_deposed_aim,
	sim_disjoint_aim, sim_fillers_aim, sim_forger_aim, sim_fork_aim, sim_hang_aim,
	sim_impostor_aim, sim_loaded_aim, sim_lossy_aim, sim_misled_aim, sim_overload_aim,
	sim_past_aim, sim_removed_aim, sim_reverted_mirror_aim, sim_stuck_aim;

/* Makes the schedule one of a kind, if the seed or the mistake is for one. */
void sim_aim_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);
void sim_aim_begin(struct sim_world *w);

/* Returns true if the schedule is of this kind. */
bool sim_aim_is(const struct sim_world *w, const struct sim_aim *aim);

/* Leaves out all faults and changes that schedules have: only what the kind itself does goes
 * wrong. */
void sim_aim_quiet(struct sim_schedule *schedule);

/* Returns true if transactions may begin at this owner. */
bool sim_aim_is_open(const struct sim_owner *o);

/* The first owner that is open and for which just so many mirrors are live (0: however many), or
 * NULL. */
struct sim_owner *sim_aim_owner(const struct sim_world *w, unsigned live);

/* The mirror as its owner's handle has it; the seed fails where it has not. */
struct ps_mirror *sim_aim_mirror(const struct sim_owner *o, const struct sim_mirror *mirror);

/* Returns true if the owner shares the memory of a mirror. */
bool sim_aim_shares(const struct sim_owner *o);

/* Makes a mirror hang, or go on. While it hangs, nothing that it sends or is sent arrives, until
 * everything heals at the latest. */
void sim_aim_hang(struct sim_world *w, const struct sim_mirror *mirror, bool hangs);

/* Takes the store over, as an owner that is no application of the schedule. Returns what
 * perseas_open returns; *p is NULL on failure. `who` is for the trace. */
int sim_aim_take_over(struct sim_owner *o, const char *who, const char *list, struct perseas **p);

/* Has the keeper of an owner begin a change of the roster. Returns false if it refuses. */
bool sim_aim_change(struct sim_owner *o, const struct perseas_roster_change *wanted);

/* Breaks all connections of an owner. */
void sim_aim_reset(struct sim_owner *o);

#endif
