/*
 * ask.h - how the command asks mirrors about a store, and says what they told: peers and images
 * with complaints, and the words, cells and numbers for what is in them. The verbs call it. It must
 * never claim a store.
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

/* Complains if two peers, which must have answered, are one daemon. */
enum ps_exit ps_peers_check_apart(const struct ps_peers *peers);

/* Complains if the address asks for RDMA, and this host has none. Asks nobody. */
enum ps_exit ps_env_check_route(struct ps_env *env, const struct ps_address *address);

/* Complains if a peer's address asks for RDMA, and this host or the peer has none. The peers are
 * asked with the name of the store. */
enum ps_exit ps_peers_check_routes(struct ps_peers *peers, const char *store);

/* Ends the connections, and frees the env. */
void ps_peers_close(struct ps_peers *peers);

/* Returns the request for what a mirror is, and which stores it has. */
const Perseas__Request *ps_peers_list_request(void);

/* Complains with errors[i]. Returns the status that fits. */
enum ps_exit ps_peers_failed(const struct ps_peers *peers, unsigned i);

/* Returns why there is no reply, in a word or two for a table; errors[i] has the sentence. */
const char *ps_peers_absence(const struct ps_peers *peers, unsigned i);

/* Opens peers and fetches the images of a store from them; ps_images_close ends both. Complains
 * about an error; then there is nothing to close. */
enum ps_exit ps_images_open(struct ps_images *images, struct ps_peers *peers, const char *store,
                            const char *mirrors, const struct perseas_options *options);
void ps_images_close(struct ps_images *images, struct ps_peers *peers);

/* Complains that no mirror has the store, with each mirror's own sentence. */
enum ps_exit ps_images_nobody(const struct ps_images *images, const char *store);

/* Returns PS_EXIT_NO, with a complaint, if the mirrors show two stores of this name and either may
 * be the right one. Any client that may create stores can make the second one. */
enum ps_exit ps_images_ambiguous(const struct ps_images *images, const char *store);

/* Returns true if fewer than R images of a store that a restore began are left, and none of them is
 * filled. A removal that was interrupted leaves this. */
bool ps_images_is_remainder(const struct ps_images *images);

/* Returns true if the store is an unfinished restore: R images show it, or every member answered
 * and ps_images_is_remainder is true. */
bool ps_images_is_unfinished(const struct ps_images *images);

/* Printed for a member whose image no mirror shows. */
#define PS_NOT_SEEN "not seen"

/* Returns the header's entry of that number, or NULL if it has none. */
const Perseas__Segment *ps_header_segment(const Perseas__Header *header, uint32_t id);

/* Returns true if the segment exists at that transaction: published, and not destroyed. */
bool ps_segment_lives(const Perseas__Segment *segment, uint64_t seq);

/* Returns true if the segment exists at the last transaction that the image holds. */
bool ps_images_lives(const Perseas__Segment *segment, const Perseas__StoreStatus *status);

/* Returns the segment of this name that exists then, or NULL. */
const Perseas__Segment *ps_images_segment(const Perseas__StoreStatus *status, const char *name);

/* Returns true if the store runs and a mirror has not heard yet that a segment was created or
 * destroyed. */
bool ps_images_moves(const struct ps_images *images);

const char *ps_state_text(Perseas__State state);

/* Adds a commit slot as "epoch:seq", or "-" if slot is NULL. */
void ps_table_slot(struct ps_table *table, unsigned column, const Perseas__Slot *slot);

struct ps_json;

/* Adds the identity of the daemon at address `i`, as "daemon"; null if it told none. */
void ps_peers_daemon_json(struct ps_json *json, const struct ps_peers *peers, unsigned i);

/* Adds a commit slot as an object, or null if slot is NULL. */
void ps_json_slot(struct ps_json *json, const char *key, const Perseas__Slot *slot);

#endif
