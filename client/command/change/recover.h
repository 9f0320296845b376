/*
 * recover.h - saves a store that perseas recover has opened for salvage: to files, or onto other
 * mirrors.
 */
#ifndef PERSEAS_COMMAND_RECOVER_H
#define PERSEAS_COMMAND_RECOVER_H

#include "../ui/args.h"
#include "../../open/opened.h"

/* Complain, before anything is claimed, about a reason why the recovery would fail. */
enum ps_exit ps_recover_to_files_check(const struct ps_args *args);
enum ps_exit ps_recover_onto_mirrors_check(const struct ps_args *args);

/* Writes each segment, and then the manifest, to files in args->to_path: all of them or none. */
enum ps_exit ps_recover_to_files(const struct ps_args *args, perseas_t *p);

/* Makes the store again on the mirrors of args->onto_mirrors and compares them. Unmaps the segments
 * of p that it mapped. */
enum ps_exit ps_recover_onto_mirrors(const struct ps_args *args, perseas_t *p);

struct ps_json;

/* Begins the JSON object that describes a recovery: the store, its state, and the report. */
void ps_recover_json(struct ps_json *json, const struct ps_args *args, perseas_t *p);

#endif
