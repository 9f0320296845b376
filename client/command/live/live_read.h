/*
 * live_read.h - reads one mirror's image of a store that may be running, as it was at one
 * transaction.
 *
 * perseas snapshot, verify and history use it: log_reader.h follows the log while they read the
 * segments. Everything that a mirror sends is checked, so that no answer can make this process
 * access memory out of bounds, or use more memory than the answers have bytes.
 */
#ifndef PERSEAS_COMMAND_LIVE_READ_H
#define PERSEAS_COMMAND_LIVE_READ_H

#include "../ask/ask.h"
#include "../../standby/live_fetch.h"
#include "../../../proto/image/log_reader.h"
#include "../../../proto/image/undo.h"

enum { PS_LIVE_TRIES = 16 }; /* tries before a store counts as changing too fast */

/* Follows an image's log while its segments are read. If a step fails, peers->errors[mirror] has
 * the reason. */
struct ps_live_reader {
	struct ps_fetch fetch;
	struct ps_log_reader log;
};

/* Copied bytes of segments, by segment id, in which records are undone. An entry without bytes is
 * unused. */
struct ps_windows {
	struct ps_window of[PS_SEGMENTS_MAX];
	uint64_t sizes[PS_SEGMENTS_MAX]; /* sizes of the whole segments */
};

/* Adds a window of copied bytes. size: that of the whole segment. */
void ps_windows_add(struct ps_windows *windows, const struct ps_window *window, uint64_t size);

/* Prepares to read; log_size is the header's. Returns false, with a complaint, if memory is
 * short. */
bool ps_live_reader_init(struct ps_live_reader *live, struct ps_peers *peers, unsigned mirror,
                         const char *store, uint64_t log_size);
void ps_live_reader_close(struct ps_live_reader *live);

/* Call ps_log_request_state and ps_log_read_state (log_reader.h), before the first read and
 * whenever reading begins again. */
bool ps_live_reader_ask_state(struct ps_live_reader *live);
enum ps_log_step ps_live_reader_begin(struct ps_live_reader *live);

/*
 * Undoes in the windows the records that were followed, back to transaction `seq`: that of the
 * first slot, or an older one that ps_log_read_older has reached. Returns false, with the peer's
 * error set, if the records are not contiguous or name bytes outside of a segment.
 */
bool ps_live_reader_undo(const struct ps_live_reader *live, const struct ps_windows *windows,
                         uint64_t seq);

#endif
