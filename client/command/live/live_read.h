/*
 * live_read.h - reads one mirror's image of a store that may run, as it was at one transaction.
 *
 * Snapshot, verify and history read by it: the log with log_reader.h, the data beside it. All
 * that a mirror tells is checked: nothing that it sends makes this leave its memory, and what is
 * taken up is bounded by what it sends.
 */
#ifndef PERSEAS_COMMAND_LIVE_READ_H
#define PERSEAS_COMMAND_LIVE_READ_H

#include "../ask/ask.h"
#include "../../standby/live_fetch.h"
#include "../../../proto/image/log_reader.h"
#include "../../../proto/image/undo.h"

enum { PS_LIVE_TRIES = 16 }; /* before a store changes too fast */

/* Follows an image's log while its segments are read. If a step fails, peers->errors[mirror] has
 * the reason. */
struct ps_live {
	struct ps_fetch fetch;
	struct ps_log_reader log;
};

/* The bytes of segments, by segment id, in which records are undone. An entry without bytes is
 * unused. */
struct ps_windows {
	struct ps_window of[PS_SEGMENTS_MAX];
	uint64_t sizes[PS_SEGMENTS_MAX]; /* of the segments themselves */
};

/* Adds these bytes of a segment. */
void ps_windows_add(struct ps_windows *windows, const struct ps_window *window, uint64_t size);

/* Prepares to read; log_size is the header's. Returns false, with a complaint, if memory is
 * short. */
bool ps_live_init(struct ps_live *live, struct ps_peers *peers, unsigned mirror, const char *store,
                  uint64_t log_size);
void ps_live_close(struct ps_live *live);

/* Call ps_log_request_state and ps_log_read_state, for the first state and whenever reading begins
 * again. */
bool ps_live_ask_state(struct ps_live *live);
enum ps_log_step ps_live_begin(struct ps_live *live);

/*
 * Undoes in the windows what was followed, back to transaction `seq`, which is the slot's, or an
 * older one as far as ps_log_read_older has gone. False: the records do not hang together, or name
 * bytes outside of a segment; the error is set.
 */
bool ps_live_undo(const struct ps_live *live, const struct ps_windows *windows, uint64_t seq);

#endif
