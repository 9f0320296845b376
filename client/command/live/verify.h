/*
 * verify.h - one round of perseas verify: compares the images on the mirrors, and prints what
 * differs.
 */
#ifndef PERSEAS_COMMAND_VERIFY_H
#define PERSEAS_COMMAND_VERIFY_H

#include "../ui/args.h"

/* Compares all segments once. Sets *changed if images changed meanwhile, so that nothing is
 * concluded. */
enum ps_exit ps_verify_once(const struct ps_args *args, bool *changed);

#endif
