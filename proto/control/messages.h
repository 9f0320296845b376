/*
 * messages.h - the table of control messages: one row for each request of control.proto, with all
 * that differs from message to message. A new message is a body in control.proto, its row here, and
 * the function that its row calls.
 *
 * This file defines nothing by itself. Each file that needs some of the columns defines a macro
 * MESSAGE and includes this file, once for each use: check.c (faults), asked.c (which answer
 * belongs to which request), rights.c and control.c. The expression in a column may only use names
 * that exist where its column is used:
 *
 *     field, FIELD, Type     the request's member, its body case, and the type of both bodies
 *     replied, REPLIED       the reply's member and its body case
 *     fault, answer_fault    for check.c: a sentence about the fault of `body`, or NULL
 *     rights, store          for rights.c: every right that `body` needs (0: none), and the
 *                            store on which (NULL: all stores); `held` is the session's store,
 *                            or NULL
 *     course, level          for control.h: how the request runs besides other requests; for
 *                            log.h: the level at which a refusal is logged, which is low for
 *                            requests that programs repeat all day
 *     handle                 for server/store/control.c: fills in `reply` for `body`
 *
 * Requests about a session's own store do not name it. Without a claim they need no right, because
 * they are refused anyway.
 */
/* clang-format off */

MESSAGE(list, LIST, List, list, LIST,
	NULL, list_reply_fault(body),
	0, NULL, AT_ONCE, DEBUG,
	answer_list(call, reply))
MESSAGE(status, STATUS, Status, store, STORE,
	name_fault(body->store), store_status_fault(body->status),
	RIGHT_READ, body->store, AT_ONCE, DEBUG,
	answer_status(call, body, reply))
MESSAGE(create, CREATE, Create, create, CREATE,
	create_fault(body), NULL,
	RIGHT_CREATE, body->store, GROWS, INFO,
	store_create(call->stores, &call->session->identity, body, call->why))
MESSAGE(settle, SETTLE, Settle, settle, SETTLE,
	store_fault(body->store, body->store_id), NULL,
	RIGHT_CREATE, body->store, IN_TURN, INFO,
	store_settle(call->stores, body, call->why))
MESSAGE(abandon, ABANDON, Abandon, abandon, ABANDON,
	store_fault(body->store, body->store_id), NULL,
	RIGHT_CREATE, body->store, LONG, INFO,
	store_abandon(call->stores, body, call->why))
MESSAGE(claim, CLAIM, Claim, claim, CLAIM,
	claim_fault(body), claim_reply_fault(body),
	body->takeover ? RIGHT_OWN | RIGHT_RECOVER : RIGHT_OWN, body->store, LONG, INFO,
	answer_claim(call, body, reply))
MESSAGE(confirm, CONFIRM, Confirm, confirm, CONFIRM,
	confirm_fault(body), confirm_reply_fault(body),
	held ? RIGHT_OWN : 0, held, AT_ONCE, DEBUG,
	answer_confirm(call, body, reply))
MESSAGE(add_segments, ADD_SEGMENTS, AddSegments, add_segments, ADD_SEGMENTS,
	add_segments_fault(body), grant_fault(body->grant),
	held ? RIGHT_OWN : 0, held, GROWS, INFO,
	store_add_segments(call->session, body, reply, call->why))
MESSAGE(drop_segments, DROP_SEGMENTS, DropSegments, drop_segments, DROP_SEGMENTS,
	ids_fault(body->ids, body->n_ids), grant_fault(body->grant),
	held ? RIGHT_OWN : 0, held, LONG, INFO,
	store_drop_segments(call->session, body, reply, call->why))
MESSAGE(publish, PUBLISH, Publish, publish, PUBLISH,
	publish_fault(body), NULL,
	held ? RIGHT_OWN : 0, held, IN_TURN, INFO,
	store_publish(call->session, body, call->why))
MESSAGE(destroy, DESTROY, Destroy, destroy, DESTROY,
	destroy_fault(body), NULL,
	held ? RIGHT_OWN : 0, held, IN_TURN, INFO,
	store_destroy(call->session, body, call->why))
MESSAGE(rebuild, REBUILD, Rebuild, rebuild, REBUILD,
	rebuild_fault(body), rebuild_reply_fault(body),
	RIGHT_OWN, body->header->store, GROWS, INFO,
	store_rebuild(call->stores, call->session, body, reply, call->why))
MESSAGE(finish, FINISH, Finish, finish, FINISH,
	NULL, shown_header_fault(body->header),
	held ? RIGHT_OWN : 0, held, LONG, INFO,
	store_finish(call->session, reply, call->why))
MESSAGE(joining, JOINING, Joining, joining, JOINING,
	ps_joining_fault(body), NULL,
	held ? RIGHT_OWN : 0, held, LONG, INFO,
	store_joining(call->session, body, call->why))
MESSAGE(roster, ROSTER, Roster, roster, ROSTER,
	roster_request_fault(body), NULL,
	held ? RIGHT_OWN : 0, held, IN_TURN, INFO,
	store_roster(call->session, body, call->why))
MESSAGE(release, RELEASE, Release, release, RELEASE,
	NULL, NULL,
	held ? RIGHT_OWN : 0, held, LONG, INFO,
	store_release(call->session, call->why))
MESSAGE(digest, DIGEST, Digest, digest, DIGEST,
	ps_digest_fault(body), ps_digest_reply_fault(body),
	RIGHT_READ, body->store, HASHES, DEBUG,
	answer_digest(call, body, reply))
MESSAGE(read, READ, Read, read, READ,
	ps_read_fault(body), ps_read_reply_fault(body),
	RIGHT_READ, body->store, AT_ONCE, DEBUG,
	store_read(call->stores, body, reply, call->why))
MESSAGE(order, ORDER, Order, order, ORDER,
	order_request_fault(body), NULL,
	RIGHT_ADMIN, body->store, IN_TURN, INFO,
	store_order(call->stores, body, call->why))
MESSAGE(drop, DROP, Drop, drop, DROP,
	drop_fault(body), NULL,
	RIGHT_ADMIN, body->store, LONG, INFO,
	store_drop(call->stores, call->session, body, call->why))
MESSAGE(spill, SPILL, Spill, spill, SPILL,
	NULL, spill_reply_fault(body),
	RIGHT_ADMIN, NULL, ALONE, INFO,
	answer_spill(call, reply))
MESSAGE(watch, WATCH, Watch, watch, WATCH,
	ps_watch_fault(body), ps_watch_reply_fault(body),
	RIGHT_READ, body->store, WATCHES, DEBUG,
	store_watch(call->stores, body, reply, call->why))
MESSAGE(move, MOVE, Move, move, MOVE,
	ps_move_fault(body), NULL,
	RIGHT_OWN | RIGHT_RECOVER, body->store, IN_TURN, INFO,
	store_move(call->stores, body, call->why))
MESSAGE(host, HOST, Host, host, HOST,
	NULL, text_valid(body->version, TEXT_MAX) ? ps_host_reply_fault(body) : bad_version,
	RIGHT_READ, NULL, AT_ONCE, DEBUG,
	answer_host(call, reply))
MESSAGE(lifeline, LIFELINE, Lifeline, lifeline, LIFELINE,
	lifeline_fault(body), NULL,
	0, NULL, AT_ONCE, DEBUG,
	store_lifeline(call->stores, call->session, body, call->why))
MESSAGE(copy_turn, COPY_TURN, CopyTurn, copy_turn, COPY_TURN,
	name_fault(body->store), NULL,
	RIGHT_OWN, body->store, AT_ONCE, DEBUG,
	store_copy_turn(call->stores, call->session, body, reply, call->why))

/* clang-format on */
#undef MESSAGE
