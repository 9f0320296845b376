/*
 * inherited.h - what `perseas run` passes to COMMAND's handles: a block of text in the environment
 * variable PERSEAS_INHERITED. client/command/run/tell_command.c writes it, and ps_env_posix reads
 * it. Nothing else in the environment passes between them.
 *
 * The block is lines of a key, a space, and a value:
 *
 *   mark 0011aabb           the first bytes of the ids of this process's owners
 *   warm 7                  an inherited descriptor: a copy of the store's memory
 *   addresses TEXT          where mirrors answered, as ps_resolver_export writes it
 *   silent 123456 m2:7170   mirrors that did not answer, and when: ms of the monotonic clock
 *   store bank              the store that `perseas run` follows
 *   list @bank              the list of its mirrors, as `perseas run` was given it
 *   named m1:7170,m2:7170   mirrors that this list stood for when `perseas run` began
 *   learnt 3:7 m4:7170      mirrors of that store that this list does not name, by the roster of
 *                           that epoch and version
 *
 * A reader ignores unknown keys and malformed values. No open relies on the block: without it, an
 * open looks everything up and asks every mirror.
 */
#ifndef PERSEAS_CLIENT_INHERITED_H
#define PERSEAS_CLIENT_INHERITED_H

#include "address.h"
#include "../../proto/control/envelope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PS_INHERITED_VARIABLE "PERSEAS_INHERITED"

enum {
	/* Bytes of answered_addresses: more than the mirrors of a store need. */
	PS_INHERITED_ADDRESSES = 8 << 10,
	PS_INHERITED_SILENT_MS = 10000, /* a mirror counts as silent for this long */
	PS_INHERITED_TEXT = PS_INHERITED_ADDRESSES + 4 * PS_LIST_TEXT + 512, /* bytes of a block */
};

/* The mirrors that a roster names. The roster's epoch and version tell whether another one is
 * older. */
struct ps_roster_places {
	uint64_t epoch, version; /* epoch 0: no roster is known */
	unsigned count;
	struct ps_address addresses[PS_MIRRORS_MAX];
};

/* The parsed block. Lines that are missing leave zeros. */
struct ps_inherited {
	bool has_mark; /* `mark` was given */
	uint8_t mark[PS_OWNER_MARK];
	int warm_fd; /* descriptor of the copy of memory; none if not positive */
	char answered_addresses[PS_INHERITED_ADDRESSES];
	char store[PS_NAME_MAX + 1];
	char list[PS_LIST_TEXT];
	char list_mirrors[PS_LIST_TEXT]; /* comma-separated addresses, like mirrors_silent_to_run */
	struct ps_roster_places unlisted_mirrors;
	char mirrors_silent_to_run[PS_LIST_TEXT];
	uint64_t silent_at_ms;
};

/* Writes the block as text. */
void ps_inherited_write(const struct ps_inherited *inherited, char text[PS_INHERITED_TEXT]);

/* Parses a block. Malformed lines are ignored, since nothing in the environment can be trusted. */
void ps_inherited_read(struct ps_inherited *inherited, const char *text);

/* Returns the mirrors that the list stood for when `perseas run` began; "" if that is unknown,
 * because `inherited` is NULL or is about another list. */
const char *ps_inherited_mirrors_of_list(const struct ps_inherited *inherited, const char *list);

/* Sets *places to the mirrors of the store that the list does not name; none if `inherited` is NULL
 * or is about another store or list. */
void ps_inherited_unlisted_mirrors(const struct ps_inherited *inherited, const char *store,
                                   const char *list, struct ps_roster_places *places);

/* Returns true if the mirror at this address did not answer `perseas run` shortly before.
 * `inherited` may be NULL. */
bool ps_inherited_is_silent(const struct ps_inherited *inherited, const char *address,
                            uint64_t now_ms);

#endif
