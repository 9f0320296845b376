/*
 * publish.h - keeps the list of a store's mirrors under a key of etcd, behind a change of the
 * roster. cmd_roster.c and cmd_drain.c call it. It must never write an older roster over a newer
 * one.
 */
#ifndef PERSEAS_COMMAND_PUBLISH_H
#define PERSEAS_COMMAND_PUBLISH_H

#include "../ui/args.h"

/* The key that the change of a roster is to be written to: of --publish, or of the list where that
 * is one. NULL: none. */
const char *ps_publish_key(const struct ps_args *args);

/*
 * Asks the mirrors of the list for the store's roster, and writes that under the key (behind one
 * that ends with a slash stands the store's name). PS_EXIT_OK: it is there, or a newer one is.
 * Otherwise with a complaint: PS_EXIT_NO: the key is another store's, and `over` was not said;
 * PS_EXIT_FAILURE or PARTLY: etcd or the mirrors do not answer.
 */
enum ps_exit ps_publish(const char *store, const char *mirrors, const char *key, bool over,
                        const struct perseas_options *options);

#endif
