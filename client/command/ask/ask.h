/*
 * ask.h - how the command asks mirrors about a store and prints their answers: opens peers
 * (client/standby/peers.h) and fetches images (images.h), complains about errors, and turns what
 * mirrors reported into words, table cells and JSON. The verbs call it. It must never claim a
 * store.
 */
#ifndef PERSEAS_COMMAND_ASK_H
#define PERSEAS_COMMAND_ASK_H

#include "../ui/ui.h"
#include "../../standby/images.h"

/* Opens peers as ps_peers_begin does, with the options' certificates and connect_timeout_ms.
 * Complains about an error; then there is nothing to close. */
enum ps_exit ps_peers_open(struct ps_peers *peers, const char *mirrors,
                           const struct perseas_options *options);

/* Opens the peers of a list with exactly one mirror, and refuses a longer list. */
enum ps_exit ps_peers_open_one(struct ps_peers *peers, const char *mirror,
                               const struct perseas_options *options);

/* Returns PS_EXIT_OK if all peers are different daemons, by the identities in their answers.
 * Otherwise complains. All peers must have answered. */
enum ps_exit ps_peers_check_distinct(const struct ps_peers *peers);

/* Complains if the address asks for RDMA and this host has none. Sends no request. */
enum ps_exit ps_env_check_route(struct ps_env *env, const struct ps_address *address);

/* Complains if a peer's address asks for RDMA and this host or the peer's has none. Sends each peer
 * a Status request for the store. */
enum ps_exit ps_peers_check_routes(struct ps_peers *peers, const char *store);

/* Ends the connections, and frees the env. */
void ps_peers_close(struct ps_peers *peers);

/* Returns the List request, which asks a mirror for its stores and for facts about its daemon. */
const Perseas__Request *ps_peers_list_request(void);

/* Complains with the text of peers->errors[i]. Returns the exit status for that error. */
enum ps_exit ps_peers_complain(const struct ps_peers *peers, unsigned i);

/* Returns a word or two, for a table cell, that say why peer i has no reply. peers->errors[i] has
 * the whole sentence. */
const char *ps_peers_absence_text(const struct ps_peers *peers, unsigned i);

/* Opens the peers of a list and asks each for its image of the store (the image's status, not its
 * contents). ps_images_close ends both. Complains about an error; then there is nothing to close.
 */
enum ps_exit ps_images_open(struct ps_images *images, struct ps_peers *peers, const char *store,
                            const char *mirrors, const struct perseas_options *options);
void ps_images_close(struct ps_images *images, struct ps_peers *peers);

/* Complains that no mirror has the store, with the error of each mirror. Returns the exit status.
 */
enum ps_exit ps_images_complain_absent(const struct ps_images *images, const char *store);

/* Returns PS_EXIT_NO, with a complaint, if the mirrors show two stores of this name and either may
 * be the right one. Any client that may create stores can make the second one. */
enum ps_exit ps_images_check_ambiguous(const struct ps_images *images, const char *store);

/* Returns true if the images are what an interrupted removal of an unfinished restore leaves: fewer
 * than R, none of which has the transaction that fills the store. */
bool ps_images_is_removal_remainder(const struct ps_images *images);

/* Returns true if the store is an unfinished restore: R images show it, or every member answered
 * and ps_images_is_removal_remainder is true. */
bool ps_images_is_unfinished(const struct ps_images *images);

/* Printed for a member whose image no mirror shows. */
#define PS_NOT_SEEN "not seen"

/* The advice if ps_images_are_addresses_unclear is true. */
#define PS_UNCLEAR_ADDRESSES                                                                    \
	"several of its mirrors were " PS_NOT_SEEN                                              \
	", and others exchanged addresses with them, so that it is not known which of them is " \
	"where: start one of them, or record the addresses of those that are seen, by the "     \
	"command that perseas roster tells"

/* Returns the header's entry of the segment with this id, or NULL. */
const Perseas__Segment *ps_header_find_segment(const Perseas__Header *header, uint32_t id);

/* Returns true if the segment exists in the state after transaction `seq`: it was published by
 * then, and not destroyed. */
bool ps_segment_exists_at(const Perseas__Segment *segment, uint64_t seq);

/* Returns true if the segment exists in the state that the image holds. */
bool ps_segment_exists_in_image(const Perseas__Segment *segment,
                                const Perseas__StoreStatus *status);

/* Returns the segment of this name that exists in the state that the image holds, or NULL. */
const Perseas__Segment *ps_images_find_segment(const Perseas__StoreStatus *status,
                                               const char *name);

/* Returns true if the store has a live owner and the segment tables of its mirrors differ, because
 * a mirror has not heard yet that a segment was created or destroyed. */
bool ps_images_tables_differ(const struct ps_images *images);

/* Returns the word for an image's state, such as "consistent". */
const char *ps_state_text(Perseas__State state);

/* Adds a cell with a commit slot as "epoch:seq", or "-" if slot is NULL. */
void ps_table_set_slot_cell(struct ps_table *table, unsigned column, const Perseas__Slot *slot);

struct ps_json;

/* Adds the identity of the daemon at address `i`, as "daemon"; null if it told none. */
void ps_peers_daemon_json(struct ps_json *json, const struct ps_peers *peers, unsigned i);

/* Adds a commit slot as an object, or null if slot is NULL. */
void ps_json_slot(struct ps_json *json, const char *key, const Perseas__Slot *slot);

#endif
